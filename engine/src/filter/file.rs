//! The texts of a filter file: lines or words, with or without kinds.
//!
//! Wire: protocol/doc/13-filters.md#1-rule-text

use suisei_protocol::filter::{Directive, OldKind, Rule, RuleError, RuleFlags, RuleKind};

use super::FilterError;

/// What ends a line of a filter file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEnd {
    /// LF, CR or both.
    #[default]
    Newline,
    /// NUL, as with `--from0`.
    Nul,
}

/// How the texts of a file are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    style: Style,
    words: bool,
    /// What its rules inherit from the merge rule.
    inherited: RuleFlags,
    lines: LineEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// As `--filter` has them.
    Modern,
    /// As `--exclude` and `--include` have them.
    Old(OldKind),
    /// Patterns and nothing else.
    Patterns(RuleKind),
    /// CVS mode: patterns, but a lone `!` clears.
    Cvs,
}

impl Form {
    /// The form of a file that a merge rule names.
    pub(super) fn of_merge(flags: RuleFlags, lines: LineEnd) -> Self {
        let style = if flags.contains(RuleFlags::CVS) {
            Style::Cvs
        } else if flags.contains(RuleFlags::ONLY_EXCLUDES) {
            Style::Patterns(RuleKind::Exclude)
        } else if flags.contains(RuleFlags::ONLY_INCLUDES) {
            Style::Patterns(RuleKind::Include)
        } else {
            Style::Modern
        };
        let words = flags.intersects(RuleFlags::CVS | RuleFlags::WORDS);
        Form { style, words, inherited: flags, lines }
    }

    /// The form of a file of `--exclude-from` or `--include-from`.
    pub(super) fn of_list(kind: OldKind, lines: LineEnd) -> Self {
        Form { style: Style::Old(kind), words: false, inherited: RuleFlags::empty(), lines }
    }

    /// Returns what the texts of a file ask for, in order. `origin` is its name for messages, which
    /// never quote the file.
    pub(super) fn directives<'a>(
        self,
        content: &'a [u8],
        origin: &'a [u8],
    ) -> impl Iterator<Item = Result<Directive, FilterError>> + 'a {
        self.texts(content).map(move |(line, text)| {
            self.directive(text).map_err(|error| {
                let place = match self.words {
                    true => [b"<rule from ", origin, b">"].concat(),
                    false => [b"<rule from ", origin, format!(" line {line}>").as_bytes()].concat(),
                };
                FilterError::syntax(error, &place)
            })
        })
    }

    fn directive(self, text: &[u8]) -> Result<Directive, RuleError> {
        let pattern = |kind| Rule::new(kind, RuleFlags::empty(), text).map(Directive::Rule);
        match self.style {
            Style::Modern => Directive::parse(text),
            Style::Old(kind) => Directive::parse_old(text, kind),
            Style::Cvs if text == b"!" => Ok(Directive::Clear),
            Style::Cvs => pattern(RuleKind::Exclude),
            Style::Patterns(kind) => pattern(kind),
        }?
        .inherit(self.inherited)
    }

    /// Returns the texts with the numbers of their lines, from 1.
    fn texts(self, content: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
        let ends = move |byte: u8| match self.lines {
            _ if self.words && byte.is_ascii_whitespace() => true,
            LineEnd::Newline => matches!(byte, b'\n' | b'\r'),
            LineEnd::Nul => byte == 0,
        };
        let mut rest = content;
        let mut line = 0;
        let texts = std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = rest.iter().position(|&byte| ends(byte)).unwrap_or(rest.len());
            let text = &rest[..end];
            let end = if rest[end..].starts_with(b"\r\n") && self.lines == LineEnd::Newline {
                end + 1
            } else {
                end
            };
            rest = rest.get(end + 1..).unwrap_or_default();
            line += 1;
            Some((line, text))
        });
        texts.filter(move |(_, text)| match text.first() {
            None => false,
            Some(b'#' | b';') => self.words,
            Some(_) => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(flags: RuleFlags, lines: LineEnd, content: &[u8]) -> Vec<String> {
        Form::of_merge(flags, lines)
            .directives(content, b"F")
            .map(|directive| match directive {
                Ok(Directive::Rule(rule)) => String::from_utf8(rule.pattern).unwrap(),
                Ok(other) => format!("{other:?}"),
                Err(error) => error.to_string(),
            })
            .collect()
    }

    #[test]
    fn lines_have_comments_and_three_ends() {
        let content = b"# c\n; c\n\n- one\n+ two/\r\n- #three\r- four ";
        assert_eq!(
            patterns(RuleFlags::empty(), LineEnd::Newline, content),
            ["one", "two", "#three", "four "]
        );
        assert_eq!(patterns(RuleFlags::empty(), LineEnd::Nul, b"- a\0- b\n\0\0#c\0"), ["a", "b\n"]);
    }

    #[test]
    fn words_have_neither() {
        let content = b"-_*.o +_b.c\n\t#x";
        let only = RuleFlags::WORDS | RuleFlags::ONLY_EXCLUDES;
        assert_eq!(patterns(only, LineEnd::Newline, content), ["-_*.o", "+_b.c", "#x"]);
        assert_eq!(patterns(RuleFlags::WORDS, LineEnd::Newline, b"-_*.o +_b.c"), ["*.o", "b.c"]);
        assert_eq!(patterns(RuleFlags::CVS, LineEnd::Newline, b"f ! g"), ["f", "Clear", "g"]);
        assert_eq!(patterns(only, LineEnd::Newline, b"f ! g"), ["f", "!", "g"]);
    }

    #[test]
    fn errors_name_the_place_and_not_the_text() {
        let bad = b"- one\r\n\n!x\n";
        let sentence = "'!' rule has trailing characters: <rule from F line 3>";
        assert_eq!(patterns(RuleFlags::empty(), LineEnd::Newline, bad), ["one", sentence]);
        let word = "Unknown filter rule: <rule from F>";
        assert_eq!(patterns(RuleFlags::WORDS, LineEnd::Newline, b"secret"), [word]);
        let sided = "specified-side merge file contains specified-side filter: <rule from F line 1>";
        assert_eq!(patterns(RuleFlags::SENDER, LineEnd::Newline, b"H h"), [sided]);
    }
}
