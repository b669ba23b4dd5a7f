//! Rule text, in the form of `--filter` and in that of `--exclude` and `--include`.
//!
//! Wire: protocol/doc/13-filters.md#1-rule-text

use bstr::ByteSlice;

use super::{Rule, RuleFlags, RuleKind};
use crate::session::Version;

/// The file that a CVS-mode merge rule reads if it names none.
const CVS_FILE: &[u8] = b".cvsignore";
const SIDES: RuleFlags = RuleFlags::SENDER.union(RuleFlags::RECEIVER);
const ONLY: RuleFlags = RuleFlags::ONLY_INCLUDES.union(RuleFlags::ONLY_EXCLUDES);

/// What one text asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directive {
    /// A rule at this place.
    Rule(Rule),
    /// `.`: the rules of a file at this place.
    Merge {
        /// Its name.
        name: Vec<u8>,
        /// How it is read, and what its rules inherit.
        flags: RuleFlags,
    },
    /// `-C`: the CVS list at this place.
    CvsList {
        /// Excludes, or includes.
        kind: RuleKind,
        /// What its rules inherit.
        flags: RuleFlags,
    },
    /// `!`: forget the list so far.
    Clear,
}

/// What an old-form text without a prefix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldKind {
    /// As for `--exclude`.
    Exclude,
    /// As for `--include`.
    Include,
}

/// Why a text is no rule. All of these end with exit code 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleError {
    /// It starts with no kind.
    Unknown,
    /// This byte, at this offset, is no modifier here.
    Modifier(u8, usize),
    /// The pattern is missing.
    End,
    /// There is something behind a `!`.
    Trailing,
    /// A rule with a side, in a file that has one.
    TwoSides,
}

impl RuleError {
    /// Returns the sentence for the user. `shown` is the text, or where it stands.
    pub fn sentence(self, shown: &[u8]) -> String {
        let shown = shown.as_bstr();
        match self {
            RuleError::Unknown => format!("Unknown filter rule: {shown}"),
            RuleError::Modifier(byte, at) => {
                format!("invalid modifier '{}' at position {at} in filter rule: {shown}", byte as char)
            }
            RuleError::End => format!("unexpected end of filter rule: {shown}"),
            RuleError::Trailing => format!("'!' rule has trailing characters: {shown}"),
            RuleError::TwoSides => {
                format!("specified-side merge file contains specified-side filter: {shown}")
            }
        }
    }
}

/// What a kind letter stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain(RuleKind),
    /// Hide, show, protect, risk: with its side.
    Sided(RuleKind, RuleFlags),
    Merge,
    DirMerge,
    Clear,
}

const LONG_NAMES: [(&[u8], u8); 9] = [
    (b"exclude", b'-'),
    (b"include", b'+'),
    (b"merge", b'.'),
    (b"dir-merge", b':'),
    (b"hide", b'H'),
    (b"show", b'S'),
    (b"protect", b'P'),
    (b"risk", b'R'),
    (b"clear", b'!'),
];

impl Kind {
    fn of(letter: u8) -> Option<Kind> {
        Some(match letter {
            b'-' => Kind::Plain(RuleKind::Exclude),
            b'+' => Kind::Plain(RuleKind::Include),
            b'.' => Kind::Merge,
            b':' => Kind::DirMerge,
            b'H' => Kind::Sided(RuleKind::Exclude, RuleFlags::SENDER),
            b'S' => Kind::Sided(RuleKind::Include, RuleFlags::SENDER),
            b'P' => Kind::Sided(RuleKind::Exclude, RuleFlags::RECEIVER),
            b'R' => Kind::Sided(RuleKind::Include, RuleFlags::RECEIVER),
            b'!' => Kind::Clear,
            _ => return None,
        })
    }

    /// Finds the kind at the start of a text, and where its modifiers begin.
    fn at_start(text: &[u8]) -> Option<(Kind, usize)> {
        for (name, letter) in LONG_NAMES {
            if let Some(rest) = text.strip_prefix(name) {
                if matches!(rest.first(), None | Some(b' ' | b'_' | b',')) {
                    return Some((Kind::of(letter)?, name.len()));
                }
            }
        }
        Some((Kind::of(*text.first()?)?, 1))
    }

    fn is_merge(self) -> bool {
        matches!(self, Kind::Merge | Kind::DirMerge)
    }

    /// Returns the flag of a modifier, if this kind takes it after those in `flags`.
    fn modifier(self, byte: u8, flags: RuleFlags) -> Option<RuleFlags> {
        let sided = matches!(self, Kind::Sided(..));
        let patterns_only = flags.intersects(ONLY | RuleFlags::CVS);
        let (flag, allowed) = match byte {
            b'/' => (RuleFlags::ABSOLUTE, true),
            b'!' => (RuleFlags::NEGATE, !self.is_merge()),
            b'C' => (RuleFlags::CVS, !sided && !flags.intersects(ONLY)),
            b's' => (RuleFlags::SENDER, !sided),
            b'r' => (RuleFlags::RECEIVER, !sided),
            b'p' => (RuleFlags::PERISHABLE, true),
            b'x' => (RuleFlags::XATTR, true),
            b'e' => (RuleFlags::EXCLUDE_SELF, self.is_merge()),
            b'n' => (RuleFlags::NO_INHERIT, self.is_merge()),
            b'w' => (RuleFlags::WORDS, self.is_merge()),
            b'+' => (RuleFlags::ONLY_INCLUDES, self.is_merge() && !patterns_only),
            b'-' => (RuleFlags::ONLY_EXCLUDES, self.is_merge() && !patterns_only),
            _ => return None,
        };
        allowed.then_some(flag)
    }
}

impl Directive {
    /// Parses a rule as `--filter` and merge files have it.
    pub fn parse(text: &[u8]) -> Result<Directive, RuleError> {
        let (kind, start) = Kind::at_start(text).ok_or(RuleError::Unknown)?;
        let mut at = start + usize::from(text.get(start) == Some(&b','));
        if kind == Kind::Clear {
            return if at == text.len() { Ok(Directive::Clear) } else { Err(RuleError::Trailing) };
        }
        let mut flags = match kind {
            Kind::Sided(_, side) => side,
            _ => RuleFlags::empty(),
        };
        let pattern = loop {
            match text.get(at) {
                None => break &[][..],
                Some(b' ' | b'_') => break &text[at + 1..],
                Some(&byte) => flags |= kind.modifier(byte, flags).ok_or(RuleError::Modifier(byte, at))?,
            }
            at += 1;
        };
        let is_cvs = flags.contains(RuleFlags::CVS);
        match kind {
            Kind::Plain(kind) if is_cvs => Ok(Directive::CvsList { kind, flags }),
            Kind::Merge | Kind::DirMerge => {
                let name = if is_cvs && pattern.is_empty() { CVS_FILE } else { pattern };
                if name.is_empty() {
                    return Err(RuleError::End);
                }
                let name = name.to_vec();
                Ok(match kind {
                    Kind::Merge => Directive::Merge { name, flags },
                    _ => Directive::Rule(Rule { kind: RuleKind::DirMerge, flags, pattern: name }),
                })
            }
            Kind::Plain(kind) | Kind::Sided(kind, _) => Rule::new(kind, flags, pattern).map(Directive::Rule),
            Kind::Clear => Ok(Directive::Clear),
        }
    }

    /// Parses a rule as `--exclude` and `--include` have it, and every version below 29.
    pub fn parse_old(text: &[u8], kind: OldKind) -> Result<Directive, RuleError> {
        let kind = match kind {
            OldKind::Exclude => RuleKind::Exclude,
            OldKind::Include => RuleKind::Include,
        };
        let (kind, pattern) = match text {
            b"!" => return Ok(Directive::Clear),
            [b'-', b' ', pattern @ ..] => (RuleKind::Exclude, pattern),
            [b'+', b' ', pattern @ ..] => (RuleKind::Include, pattern),
            pattern => (kind, pattern),
        };
        Rule::new(kind, RuleFlags::empty(), pattern).map(Directive::Rule)
    }

    /// Parses a text that the peer sent.
    pub fn parse_received(text: &[u8], version: Version) -> Result<Directive, RuleError> {
        let mut directive = match version.has_modern_filters() {
            true => Directive::parse(text)?,
            false => Directive::parse_old(text, OldKind::Exclude)?,
        };
        match &mut directive {
            Directive::Rule(Rule { flags, .. })
            | Directive::CvsList { flags, .. }
            | Directive::Merge { flags, .. } => {
                *flags |= RuleFlags::RECEIVED;
            }
            Directive::Clear => {}
        }
        Ok(directive)
    }

    /// Adds what a merge rule hands down to the rules of its file: `/`, `p`, and its side.
    pub fn inherit(mut self, merge: RuleFlags) -> Result<Directive, RuleError> {
        match &mut self {
            Directive::Rule(Rule { flags, .. })
            | Directive::CvsList { flags, .. }
            | Directive::Merge { flags, .. } => {
                if flags.intersects(SIDES) && merge.intersects(SIDES) {
                    return Err(RuleError::TwoSides);
                }
                *flags |= merge & (RuleFlags::ABSOLUTE | RuleFlags::PERISHABLE | SIDES);
            }
            Directive::Clear => {}
        }
        Ok(self)
    }
}

impl Rule {
    /// Makes an include or exclude from a pattern as it is written: a slash at its end, unless it
    /// is all there is, means directories only.
    pub fn new(kind: RuleKind, mut flags: RuleFlags, pattern: &[u8]) -> Result<Rule, RuleError> {
        let pattern = match pattern {
            [] => return Err(RuleError::End),
            [name @ .., b'/'] if !name.is_empty() => {
                flags |= RuleFlags::DIR_ONLY;
                name
            }
            name => name,
        };
        Ok(Rule { kind, flags, pattern: pattern.to_vec() })
    }

    /// The rule that `e` puts in front of a merge rule: excludes the merge file by its own name.
    pub fn excluding_file(name: &[u8]) -> Result<Rule, RuleError> {
        let basename = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        Rule::new(RuleKind::Exclude, RuleFlags::empty(), basename)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &[u8]) -> Rule {
        match Directive::parse(text) {
            Ok(Directive::Rule(rule)) => rule,
            other => panic!("{:?}: {other:?}", text.as_bstr()),
        }
    }

    #[test]
    fn kinds_have_letters_and_names() {
        for (short, long) in [
            (&b"- a"[..], &b"exclude a"[..]),
            (b"+ a", b"include_a"),
            (b": a", b"dir-merge a"),
            (b"H a", b"hide a"),
            (b"S,p a", b"show,p a"),
            (b"P/ a", b"protect,/ a"),
            (b"R! a", b"risk,!_a"),
        ] {
            assert_eq!(rule(short), rule(long));
        }
        assert_eq!(rule(b"H a").flags, RuleFlags::SENDER);
        assert_eq!(rule(b"P a").flags, RuleFlags::RECEIVER);
        for text in [&b"!"[..], b"!,", b"clear", b"clear,"] {
            assert_eq!(Directive::parse(text), Ok(Directive::Clear));
        }
        let name = b"f".to_vec();
        assert_eq!(Directive::parse(b"merge f"), Ok(Directive::Merge { name, flags: RuleFlags::empty() }));
    }

    #[test]
    fn one_separator_belongs_to_the_syntax_and_the_rest_to_the_pattern() {
        assert_eq!(rule(b"-  x ").pattern, b" x ");
        assert_eq!(rule(b"-__x").pattern, b"_x");
        assert_eq!(rule(b"dir-merge_ .x").pattern, b" .x");
        assert_eq!(rule(b"-,p x").flags, RuleFlags::PERISHABLE);
        assert_eq!(
            rule(b"- x/"),
            Rule { kind: RuleKind::Exclude, flags: RuleFlags::DIR_ONLY, pattern: b"x".to_vec() }
        );
        assert_eq!(rule(b"- /").pattern, b"/");
        assert_eq!(rule(b": .f/").pattern, b".f/");
    }

    #[test]
    fn cvs_mode_needs_no_name() {
        let flags = RuleFlags::CVS;
        assert_eq!(rule(b":C"), Rule { kind: RuleKind::DirMerge, flags, pattern: b".cvsignore".to_vec() });
        assert_eq!(rule(b":C x").pattern, b"x");
        assert_eq!(Directive::parse(b"-C"), Ok(Directive::CvsList { kind: RuleKind::Exclude, flags }));
        assert_eq!(Directive::parse(b"+C x"), Ok(Directive::CvsList { kind: RuleKind::Include, flags }));
    }

    #[test]
    fn errors_are_worded_as_stock_words_them() {
        for (text, sentence) in [
            (&b"x foo"[..], "Unknown filter rule: x foo"),
            (b"excludefoo", "Unknown filter rule: excludefoo"),
            (b"exclude! foo", "Unknown filter rule: exclude! foo"),
            (b"", "Unknown filter rule: "),
            (b"- ", "unexpected end of filter rule: - "),
            (b"-s", "unexpected end of filter rule: -s"),
            (b"exclude", "unexpected end of filter rule: exclude"),
            (b": ", "unexpected end of filter rule: : "),
            (b"! x", "'!' rule has trailing characters: ! x"),
            (b"clear_", "'!' rule has trailing characters: clear_"),
            (b"-C,p", "invalid modifier ',' at position 2 in filter rule: -C,p"),
            (b"-,p,x y", "invalid modifier ',' at position 3 in filter rule: -,p,x y"),
            (b"hide,s x", "invalid modifier 's' at position 5 in filter rule: hide,s x"),
            (b"PC x", "invalid modifier 'C' at position 1 in filter rule: PC x"),
            (b"-n x", "invalid modifier 'n' at position 1 in filter rule: -n x"),
            (b":! .a", "invalid modifier '!' at position 1 in filter rule: :! .a"),
            (b":+- x", "invalid modifier '-' at position 2 in filter rule: :+- x"),
            (b":C+ x", "invalid modifier '+' at position 2 in filter rule: :C+ x"),
            (b":+C x", "invalid modifier 'C' at position 2 in filter rule: :+C x"),
        ] {
            assert_eq!(Directive::parse(text).unwrap_err().sentence(text), sentence);
        }
    }

    #[test]
    fn old_texts_are_patterns_with_a_prefix_at_most() {
        let old = |text: &[u8]| Directive::parse_old(text, OldKind::Exclude);
        let exclude =
            |pattern: &[u8]| Rule::new(RuleKind::Exclude, RuleFlags::empty(), pattern).map(Directive::Rule);
        assert_eq!(old(b"- - a"), exclude(b"- a"));
        assert_eq!(old(b"-x"), exclude(b"-x"));
        assert_eq!(old(b"!foo"), exclude(b"!foo"));
        assert_eq!(old(b"! "), exclude(b"! "));
        assert_eq!(old(b"foo/"), exclude(b"foo/"));
        assert_eq!(old(b"!"), Ok(Directive::Clear));
        assert_eq!(old(b"- "), Err(RuleError::End));
        assert_eq!(old(b""), Err(RuleError::End));
        let include = Rule::new(RuleKind::Include, RuleFlags::empty(), b"b").map(Directive::Rule);
        assert_eq!(old(b"+ b"), include);
        assert_eq!(Directive::parse_old(b"b", OldKind::Include), include);
    }

    #[test]
    fn merge_rules_hand_down_side_and_modifiers() {
        let merge = RuleFlags::ABSOLUTE | RuleFlags::PERISHABLE | RuleFlags::NO_INHERIT | RuleFlags::XATTR;
        let Ok(Directive::Rule(inner)) = Directive::parse(b": .inner").unwrap().inherit(merge) else {
            panic!()
        };
        assert_eq!(inner.flags, RuleFlags::ABSOLUTE | RuleFlags::PERISHABLE);
        let hide = Directive::parse(b"H h").unwrap();
        assert_eq!(hide.inherit(RuleFlags::SENDER), Err(RuleError::TwoSides));
    }
}
