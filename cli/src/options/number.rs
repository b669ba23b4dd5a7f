//! Numbers on the command line: integers as `strtol` reads them, and sizes with units.
//!
//! Wire: protocol/doc/24-environment-and-exit.md#3-size-arguments

use super::row::Given;
use crate::exit::Refusal;

/// Reads a decimal, octal (`0`) or hexadecimal (`0x`) integer; an empty one is 0.
pub fn int(given: &Given<'_>) -> Result<i32, Refusal> {
    let refused = |why: &str| Refusal::usage([b"rsync: ", given.word, b": ", why.as_bytes()].concat());
    let text = std::str::from_utf8(given.value).map_err(|_| refused("invalid numeric value"))?;
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if text.is_empty() {
        return Ok(0);
    }
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(refused("invalid numeric value"));
    }
    i64::from_str_radix(digits, radix)
        .ok()
        .map(|n| if negative { -n } else { n })
        .and_then(|n| i32::try_from(n).ok())
        .ok_or_else(|| refused("number too large or too small"))
}

/// Why a size cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BadSize {
    Invalid,
    TooLarge,
    TooSmall,
}

/// The range and the unit of a size.
#[derive(Debug, Clone, Copy)]
pub struct SizeRule {
    /// Option name in messages, without dashes.
    pub name: &'static str,
    /// Unit of a bare number: the letter, in lower case.
    pub unit: u8,
    /// Smallest value besides 0, and how messages show it.
    pub min: Option<(u64, &'static str)>,
    /// Largest value, and how messages show it.
    pub max: Option<(u64, &'static str)>,
}

/// Reads a size in bytes: a decimal fraction, a unit, and `+1` or `-1`.
pub fn size(value: &[u8], rule: &SizeRule) -> Result<u64, Refusal> {
    let answer = amount(value, rule.unit).and_then(|n| {
        if rule.max.is_some_and(|(max, _)| n > max) {
            Err(BadSize::TooLarge)
        } else if n != 0 && rule.min.is_some_and(|(min, _)| n < min) {
            Err(BadSize::TooSmall)
        } else {
            Ok(n)
        }
    });
    answer.map_err(|bad| {
        let why = match (bad, rule.max, rule.min) {
            (BadSize::Invalid, ..) => " is invalid".to_owned(),
            (BadSize::TooLarge, Some((_, shown)), _) => format!(" is too large (max: {shown})"),
            (BadSize::TooLarge, ..) => " is too large".to_owned(),
            (BadSize::TooSmall, _, Some((_, shown))) => {
                format!(" is too small (min: {shown} or 0 for unlimited)")
            }
            (BadSize::TooSmall, ..) => " is too small".to_owned(),
        };
        Refusal::usage([b"rsync: --", rule.name.as_bytes(), b"=", value, why.as_bytes()].concat())
    })
}

fn amount(value: &[u8], default_unit: u8) -> Result<u64, BadSize> {
    let text = std::str::from_utf8(value).map_err(|_| BadSize::Invalid)?;
    if let Some(rest) = text.strip_prefix('-') {
        // A negative number wraps to something huge before stock looks at it.
        return Err(if rest.starts_with(|c: char| c.is_ascii_digit()) {
            BadSize::TooLarge
        } else {
            BadSize::Invalid
        });
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (whole, mut rest) = text.split_at(digits);
    let mut fraction = "";
    if let Some(behind) = rest.strip_prefix('.') {
        let digits = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        (fraction, rest) = behind.split_at(digits);
    }
    let (step, rest) =
        match rest.strip_suffix("+1").map(|r| (1, r)).or_else(|| rest.strip_suffix("-1").map(|r| (-1, r))) {
            Some((step, rest)) => (step, rest),
            None => (0, rest),
        };
    let scale = multiplier(rest.as_bytes(), default_unit).ok_or(BadSize::Invalid)?;
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| BadSize::TooLarge)? };
    let part = format!("0.{fraction}0").parse::<f64>().map_err(|_| BadSize::Invalid)? * scale as f64;
    let total = whole
        .checked_mul(u128::from(scale))
        .and_then(|n| n.checked_add(part as u128))
        .ok_or(BadSize::TooLarge)?;
    let total = i128::try_from(total).map_err(|_| BadSize::TooLarge)? + step;
    u64::try_from(total).ok().filter(|&n| n < i64::MAX as u64).ok_or(BadSize::TooLarge)
}

fn multiplier(unit: &[u8], default_unit: u8) -> Option<u64> {
    let (letter, base) = match unit {
        [] => (default_unit, 1024u64),
        [b'b' | b'B'] => (b'b', 1024),
        [letter] => (letter.to_ascii_lowercase(), 1024),
        [letter, b'b' | b'B'] => (letter.to_ascii_lowercase(), 1000),
        [letter, b'i' | b'I', b'b' | b'B'] => (letter.to_ascii_lowercase(), 1024),
        _ => return None,
    };
    let power = b"bkmgtp".iter().position(|&c| c == letter)?;
    Some(base.pow(power as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: SizeRule = SizeRule { name: "max-size", unit: b'b', min: None, max: None };

    #[test]
    fn sizes_have_fractions_units_and_steps() {
        for (text, bytes) in [
            ("10k", 10240),
            ("1.5m", 1_572_864),
            ("1mb", 1_000_000),
            ("1GiB-1", (1 << 30) - 1),
            ("1k+1", 1025),
            (".5k", 512),
            ("1.5kb+1", 1501),
            ("2T", 2u64 << 40),
            ("", 0),
            (".", 0),
            ("1B", 1),
            ("1bB", 1),
            ("1Kib", 1024),
        ] {
            assert_eq!(size(text.as_bytes(), &PLAIN), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn bad_sizes_are_refused_in_the_words_of_stock() {
        for (text, why) in [
            ("x", "is invalid"),
            ("5+2", "is invalid"),
            ("+5", "is invalid"),
            ("1kk", "is invalid"),
            ("1e", "is invalid"),
            ("1ki", "is invalid"),
            ("1.2.3", "is invalid"),
            ("0-1", "is too large"),
            ("-5", "is too large"),
            ("9223372036854775807", "is too large"),
            ("8192p", "is too large"),
            ("0x10", "is invalid"),
        ] {
            let refusal = size(text.as_bytes(), &PLAIN).unwrap_err();
            assert_eq!(String::from_utf8(refusal.text).unwrap(), format!("rsync: --max-size={text} {why}"));
        }
        let rate = SizeRule { name: "bwlimit", unit: b'k', min: Some((512, "512")), max: None };
        assert_eq!(
            size(b"1b", &rate).unwrap_err().text,
            b"rsync: --bwlimit=1b is too small (min: 512 or 0 for unlimited)"
        );
        assert_eq!(size(b"0.5", &rate), Ok(512));
    }

    #[test]
    fn integers_read_like_strtol() {
        let read = |value: &str| int(&Given { on: true, value: value.as_bytes(), word: value.as_bytes() });
        for (text, n) in [("010", 8), ("0x10", 16), (" 5", 5), ("", 0), ("-1", -1), ("0", 0), ("+7", 7)] {
            assert_eq!(read(text), Ok(n), "{text}");
        }
        assert_eq!(read("5 ").unwrap_err().text, b"rsync: 5 : invalid numeric value");
        assert_eq!(
            read("99999999999").unwrap_err().text,
            b"rsync: 99999999999: number too large or too small"
        );
    }
}
