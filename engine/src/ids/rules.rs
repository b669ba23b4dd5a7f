//! `--usermap` and `--groupmap`: rules that give the sender's ids other numbers here.
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#1-owner-and-group-mapping-receiving-side-only

use suisei_protocol::flist::IdKind;

use crate::filter::Wild;
use crate::sys::users;

/// The rules of one kind of ids, in order: the first that matches counts.
#[derive(Debug, Default)]
pub struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    from: From,
    to: u32,
}

#[derive(Debug)]
enum From {
    /// These numbers, both ends included.
    Numbers(u32, u32),
    /// Ids whose names match; one without a name has an empty one.
    Wild(Wild),
    /// The id of this name; of an empty one, every id without a name.
    Name(Vec<u8>),
}

/// What ends a run: a text that is no list of rules. Displays the sentence of stock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRules(String);

impl Rules {
    /// Parses `FROM:TO[,FROM:TO...]`. `unknown` is told of every TO that is no name here; its
    /// rule is left out.
    pub fn parse(
        kind: IdKind,
        text: &[u8],
        unknown: &mut dyn FnMut(&'static str, &[u8]),
    ) -> Result<Rules, InvalidRules> {
        let mut rules = Vec::new();
        for item in text.split(|&b| b == b',') {
            rules.extend(rule(kind, item, unknown)?);
        }
        Ok(Rules(rules))
    }

    /// Returns the number that an id gets, if a rule matches it.
    pub fn target(&self, id: u32, name: Option<&[u8]>) -> Option<u32> {
        let name = name.unwrap_or_default();
        let rule = self.0.iter().find(|rule| match &rule.from {
            From::Numbers(first, last) => (*first..=*last).contains(&id),
            From::Wild(pattern) => pattern.matches(name),
            From::Name(own) => own == name,
        });
        rule.map(|rule| rule.to)
    }
}

fn option(kind: IdKind) -> &'static str {
    match kind {
        IdKind::User => "--usermap",
        IdKind::Group => "--groupmap",
    }
}

fn rule(
    kind: IdKind,
    item: &[u8],
    unknown: &mut dyn FnMut(&'static str, &[u8]),
) -> Result<Option<Rule>, InvalidRules> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let option = option(kind);
    let Some(colon) = item.iter().position(|&b| b == b':') else {
        return Err(InvalidRules(format!("No colon found in {option}: {}", text(item))));
    };
    let (from, to) = (&item[..colon], &item[colon + 1..]);
    if to.is_empty() {
        return Err(InvalidRules(format!("No name found after colon {option}: {}", text(item))));
    }
    let from = match from.first() {
        Some(b'0'..=b'9') => {
            let (first, last) = match from.iter().position(|&b| b == b'-') {
                Some(dash) => (&from[..dash], &from[dash + 1..]),
                None => (from, from),
            };
            if !is_number(first) || !is_number(last) {
                return Err(InvalidRules(format!("Invalid number in {option}: {}", text(from))));
            }
            From::Numbers(number(first)?, number(last)?)
        }
        _ if from.iter().any(|byte| b"*?[".contains(byte)) => From::Wild(Wild::new(from)),
        _ => From::Name(from.to_vec()),
    };
    let to = match kind {
        _ if is_number(to) => Some(number(to)?),
        IdKind::User => users::user_id(to),
        IdKind::Group => users::group_id(to),
    };
    let Some(to) = to else {
        let before = match kind {
            IdKind::User => "Unknown --usermap name on receiver: ",
            IdKind::Group => "Unknown --groupmap name on receiver: ",
        };
        unknown(before, &item[colon + 1..]);
        return Ok(None);
    };
    Ok(Some(Rule { from, to }))
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

fn number(digits: &[u8]) -> Result<u32, InvalidRules> {
    let text = String::from_utf8_lossy(digits);
    text.parse().map_err(|_| InvalidRules(format!("Invalid ID number: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Rules {
        Rules::parse(IdKind::User, text.as_bytes(), &mut |_, name| panic!("{name:?}")).unwrap()
    }

    #[test]
    fn the_first_match_counts() {
        let rules = rules("5-9:100,d*:101,:102,root:103,[w]ww-dat?:104,7:105");
        assert_eq!(rules.target(7, Some(b"daemon")), Some(100));
        assert_eq!(rules.target(1, Some(b"daemon")), Some(101));
        assert_eq!(rules.target(54_321, None), Some(102));
        assert_eq!(rules.target(0, Some(b"root")), Some(103));
        assert_eq!(rules.target(33, Some(b"www-data")), Some(104));
        assert_eq!(rules.target(33, Some(b"bin")), None);
    }

    #[test]
    fn a_star_takes_ids_without_names_and_an_empty_range_nothing() {
        assert_eq!(rules("*:root").target(54_321, None), Some(0));
        assert_eq!(rules("5-1:7").target(3, None), None);
        assert_eq!(rules("-5:7").target(5, Some(b"-5")), Some(7));
    }

    #[test]
    fn captured_refusals() {
        let refusal = |text: &str| {
            Rules::parse(IdKind::Group, text.as_bytes(), &mut |_, _| {}).map(drop).unwrap_err().to_string()
        };
        assert_eq!(refusal(""), "No colon found in --groupmap: ");
        assert_eq!(refusal("1:2,"), "No colon found in --groupmap: ");
        assert_eq!(refusal("1:"), "No name found after colon --groupmap: 1:");
        for from in ["1x", "1-", "5*", "1-2-3", "0x1"] {
            assert_eq!(refusal(&format!("{from}:2")), format!("Invalid number in --groupmap: {from}"));
        }
        for text in ["99999999999:1", "1:99999999999", "1-99999999999:2"] {
            assert_eq!(refusal(text), "Invalid ID number: 99999999999");
        }
    }

    #[test]
    fn unknown_names_are_told_and_left_out() {
        let mut told = Vec::new();
        let rules = Rules::parse(IdKind::User, b"1:no such user,2:3,4:+5", &mut |text, name| {
            told.push([text.as_bytes(), name].concat());
        });
        let rules = rules.unwrap();
        assert_eq!(told[0], b"Unknown --usermap name on receiver: no such user");
        assert_eq!(told.len(), 2);
        assert_eq!((rules.target(1, None), rules.target(2, None)), (None, Some(3)));
    }
}
