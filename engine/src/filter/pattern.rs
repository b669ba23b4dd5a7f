//! Does one pattern match one name?
//!
//! Wire: protocol/doc/13-filters.md#3-matching-a-rule, protocol/doc/13-filters.md#4-wildmatch

use std::borrow::Cow;

use suisei_protocol::filter::{Rule, RuleFlags};

/// A name that is asked about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'a> {
    /// The path below the root of the transfer.
    pub(super) path: &'a [u8],
    /// Whether it is a directory.
    pub(super) is_dir: bool,
    /// The absolute path of the root of the transfer, without a slash at its end.
    pub(super) root: &'a [u8],
}

/// A prepared pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// Without the leading slash that anchors.
    text: Vec<u8>,
    /// Only if there is a `*`, `?` or `[`.
    tokens: Option<Tokens>,
    /// Slashes of the whole pattern, the leading one included.
    slashes: usize,
    anchored: bool,
    absolute: bool,
    dir_only: bool,
    negate: bool,
    /// Has a `**`.
    crosses: bool,
    /// Starts with `**`.
    crosses_first: bool,
    /// Ends in `***`.
    takes_dir: bool,
}

impl Pattern {
    /// Prepares the pattern of a rule.
    ///
    /// Wire: protocol/doc/13-filters.md#2-preparing-a-pattern
    pub(super) fn new(rule: &Rule) -> Self {
        let whole = &rule.pattern[..];
        let text = whole.strip_prefix(b"/").unwrap_or(whole);
        let wild = whole.iter().any(|byte| b"*?[".contains(byte));
        Pattern {
            text: text.to_vec(),
            tokens: wild.then(|| tokenize(text)),
            slashes: whole.iter().filter(|&&byte| byte == b'/').count(),
            anchored: text.len() < whole.len(),
            absolute: rule.flags.contains(RuleFlags::ABSOLUTE),
            dir_only: rule.flags.contains(RuleFlags::DIR_ONLY),
            negate: rule.flags.contains(RuleFlags::NEGATE),
            crosses: whole.windows(2).any(|pair| pair == b"**"),
            crosses_first: whole.starts_with(b"**"),
            takes_dir: whole.ends_with(b"***"),
        }
    }

    /// Whether the rule applies to a name.
    pub(super) fn matches(&self, name: Name<'_>) -> bool {
        self.fits(name) != self.negate
    }

    fn fits(&self, name: Name<'_>) -> bool {
        if self.dir_only && !name.is_dir {
            return false;
        }
        let mut text = self.subject(name);
        if self.takes_dir && name.is_dir {
            text.to_mut().push(b'/');
        }
        let text = match (self.anchored, &text[..]) {
            (true, [b'/', rest @ ..]) => rest,
            (_, all) => all,
        };
        match &self.tokens {
            None if self.anchored => text == self.text,
            None => is_tail(text, &self.text),
            Some(tokens) => self.places(text).any(|place| wildmatch(tokens, place)),
        }
    }

    /// The text to compare with.
    fn subject<'a>(&self, name: Name<'a>) -> Cow<'a, [u8]> {
        let path = name.path.strip_prefix(b"/").unwrap_or(name.path);
        if self.slashes == 0 && !self.crosses {
            Cow::Borrowed(path.rsplit(|&byte| byte == b'/').next().unwrap_or_default())
        } else if self.absolute && path.len() == name.path.len() {
            Cow::Owned([name.root, b"/", path].concat())
        } else if self.crosses_first {
            Cow::Owned([b"/", path].concat())
        } else {
            Cow::Borrowed(path)
        }
    }

    /// The parts of the text, each up to its end, that a wild pattern is tried against.
    fn places<'a>(&self, text: &'a [u8]) -> Box<dyn Iterator<Item = &'a [u8]> + 'a> {
        if !self.anchored && self.slashes > 0 && !self.crosses {
            return Box::new(last_components(text, self.slashes + 1).into_iter());
        }
        let here = std::iter::once(text);
        if !self.anchored && self.crosses && !self.crosses_first {
            let slashes = text.iter().enumerate().filter(|(_, &byte)| byte == b'/');
            return Box::new(here.chain(slashes.map(|(at, _)| &text[at + 1..])));
        }
        Box::new(here)
    }
}

/// Whether `text` is `tail`, or ends in a slash and `tail`.
fn is_tail(text: &[u8], tail: &[u8]) -> bool {
    text.strip_suffix(tail).is_some_and(|front| matches!(front.last(), None | Some(b'/')))
}

/// The last `n` components of a text that has as many.
fn last_components(text: &[u8], n: usize) -> Option<&[u8]> {
    let mut slashes = text.iter().enumerate().rev().filter(|(_, &byte)| byte == b'/').map(|(at, _)| at);
    match slashes.nth(n - 1) {
        Some(at) => Some(&text[at + 1..]),
        None => (text.iter().filter(|&&byte| byte == b'/').count() + 1 == n).then_some(text),
    }
}

/// A pattern that is tried against a whole text, outside of any path.
#[derive(Debug, Clone)]
pub(crate) struct Wild(Tokens);

impl Wild {
    /// Prepares a pattern.
    pub(crate) fn new(pattern: &[u8]) -> Self {
        Wild(tokenize(pattern))
    }

    /// Whether it matches the whole text.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        wildmatch(&self.0, text)
    }
}

/// A wild pattern in pieces; nothing if it can never match.
type Tokens = Option<Vec<Token>>;

#[derive(Debug, Clone)]
enum Token {
    Byte(u8),
    /// `?`.
    Any,
    /// `*`.
    Star,
    /// `**` and longer.
    Stars,
    Set(Box<[bool; 256]>),
}

impl Token {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Token::Byte(own) => *own == byte,
            Token::Any => byte != b'/',
            Token::Set(set) => byte != b'/' && set[usize::from(byte)],
            Token::Star | Token::Stars => false,
        }
    }
}

fn tokenize(pattern: &[u8]) -> Tokens {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while let [first, tail @ ..] = rest {
        rest = tail;
        tokens.push(match first {
            b'?' => Token::Any,
            b'*' => {
                let more = rest.iter().take_while(|&&byte| byte == b'*').count();
                rest = &rest[more..];
                if more == 0 {
                    Token::Star
                } else {
                    Token::Stars
                }
            }
            b'[' => {
                let (set, behind) = set(rest)?;
                rest = behind;
                Token::Set(set)
            }
            b'\\' => {
                let (escaped, behind) = rest.split_first()?;
                rest = behind;
                Token::Byte(*escaped)
            }
            byte => Token::Byte(*byte),
        });
    }
    Some(tokens)
}

/// Reads a set behind its `[`. Returns its members and what follows the `]`.
fn set(pattern: &[u8]) -> Option<(Box<[bool; 256]>, &[u8])> {
    let mut members = Box::new([false; 256]);
    let negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let mut rest = if negated { &pattern[1..] } else { pattern };
    // What a `-` would start a range from.
    let mut before: Option<u8> = None;
    let mut is_first = true;
    loop {
        let (&byte, tail) = rest.split_first()?;
        rest = tail;
        match byte {
            b']' if !is_first => break,
            b'[' if class_name(rest).is_some() => {
                let (name, behind) = class_name(rest)?;
                add_class(name, &mut members)?;
                rest = behind;
                before = None;
            }
            b'-' if before.is_some() && !matches!(rest.first(), None | Some(b']')) => {
                let (last, behind) = literal(rest)?;
                rest = behind;
                for member in before.take()?..=last {
                    members[usize::from(member)] = true;
                }
            }
            _ => {
                let (member, behind) = if byte == b'\\' { rest.split_first()? } else { (&byte, rest) };
                rest = behind;
                members[usize::from(*member)] = true;
                before = Some(*member);
            }
        }
        is_first = false;
    }
    if negated {
        members.iter_mut().for_each(|member| *member = !*member);
    }
    Some((members, rest))
}

/// Takes a byte that may be escaped.
fn literal(pattern: &[u8]) -> Option<(u8, &[u8])> {
    match pattern {
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => Some((*byte, rest)),
        [] => None,
    }
}

/// Reads `:name:]`, which turns the `[` in front of it into a class.
fn class_name(pattern: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = pattern.strip_prefix(b":")?;
    let end = rest.iter().position(|&byte| byte == b']')?;
    let name = rest[..end].strip_suffix(b":")?;
    Some((name, &rest[end + 1..]))
}

/// Adds the bytes of a class; nothing if there is no such class.
fn add_class(name: &[u8], members: &mut [bool; 256]) -> Option<()> {
    let is_member: fn(&u8) -> bool = match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| byte.is_ascii_graphic() || *byte == b' ',
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    };
    for (byte, member) in (0..=u8::MAX).zip(members) {
        *member |= is_member(&byte);
    }
    Some(())
}

/// Whether tokens match a whole text.
///
/// Where the text goes on differently, the star seen last takes one byte more; where a `*` would
/// have to take a slash, the last `**` does. Earlier stars need not be tried again: a later one
/// can take whatever they could have.
fn wildmatch(tokens: &Tokens, text: &[u8]) -> bool {
    let Some(tokens) = tokens else { return false };
    let (mut token, mut at) = (0, 0);
    // Where to go on if a star takes one byte more: behind it, and from that byte.
    let mut star: Option<(usize, usize)> = None;
    let mut stars: Option<(usize, usize)> = None;
    loop {
        match tokens.get(token) {
            Some(Token::Star) => {
                token += 1;
                star = Some((token, at));
                continue;
            }
            Some(Token::Stars) => {
                token += 1;
                stars = Some((token, at));
                star = None;
                continue;
            }
            Some(one) if text.get(at).is_some_and(|&byte| one.takes(byte)) => {
                token += 1;
                at += 1;
                continue;
            }
            None if at == text.len() => return true,
            _ => {}
        }
        let next = match (star, stars) {
            (Some((behind, from)), _) if text.get(from).is_some_and(|&byte| byte != b'/') => {
                star = Some((behind, from + 1));
                (behind, from + 1)
            }
            (_, Some((behind, from))) if from < text.len() => {
                star = None;
                stars = Some((behind, from + 1));
                (behind, from + 1)
            }
            _ => return false,
        };
        (token, at) = next;
    }
}

#[cfg(test)]
mod tests;
