//! Names of files between a charset and UTF-8, in which they travel under `--iconv`.
//!
//! Names only: no byte order marks, no state, no replacement characters. What cannot be converted
//! is an error of its own, never a question mark.
//! Wire: protocol/doc/02-session-start.md#23-iconv

mod table;

use std::borrow::Cow;
use std::fmt;

use encoding_rs::{EncoderResult, Encoding};

use table::{Row, ROWS};

/// A charset that names can be in.
#[derive(Clone, Copy)]
pub struct Charset(&'static Row);

/// How a charset is converted.
#[derive(Debug, Clone, Copy)]
enum Coder {
    Utf8,
    Ascii,
    /// Bytes are the first 256 code points.
    Latin1,
    /// As the Web's encoding of that name.
    Web(&'static Encoding),
    /// The same, without the control characters that the Web puts in unassigned places.
    WebWithoutControls(&'static Encoding),
}

/// A name that its charset does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Invalid or incomplete multibyte or wide character")]
pub struct Unconvertible;

impl PartialEq for Charset {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Charset {}

impl fmt::Debug for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Charset {
    /// UTF-8 itself: names are checked, not changed.
    pub const UTF_8: Charset = Charset(&ROWS[0]);

    /// Returns the charset of a name or alias; case and what stands behind `//` do not count.
    pub fn named(name: &str) -> Option<Charset> {
        let name = name.split("//").next().unwrap_or(name);
        let is = |known: &&str| known.eq_ignore_ascii_case(name);
        ROWS.iter().find(|row| is(&row.name) || row.aliases.iter().any(is)).map(Charset)
    }

    /// Returns all charsets, each with its aliases.
    pub fn all() -> impl Iterator<Item = (Charset, &'static [&'static str])> {
        ROWS.iter().map(|row| (Charset(row), row.aliases))
    }

    /// Returns the main name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Converts a text to UTF-8.
    pub fn to_utf8(self, text: &[u8]) -> Result<Cow<'_, [u8]>, Unconvertible> {
        if text.is_ascii() && self.0.contains_ascii {
            return Ok(Cow::Borrowed(text));
        }
        match self.0.coder {
            Coder::Utf8 => std::str::from_utf8(text).map(|_| Cow::Borrowed(text)).map_err(|_| Unconvertible),
            Coder::Ascii => Err(Unconvertible),
            Coder::Latin1 => {
                Ok(Cow::Owned(text.iter().map(|&byte| char::from(byte)).collect::<String>().into()))
            }
            Coder::Web(encoding) => from_web(encoding, text),
            Coder::WebWithoutControls(encoding) => {
                let converted = from_web(encoding, text)?;
                if has_high_controls(&converted) {
                    return Err(Unconvertible);
                }
                Ok(converted)
            }
        }
    }

    /// Converts a text from UTF-8.
    pub fn from_utf8(self, text: &[u8]) -> Result<Cow<'_, [u8]>, Unconvertible> {
        if text.is_ascii() && self.0.contains_ascii {
            return Ok(Cow::Borrowed(text));
        }
        let valid = std::str::from_utf8(text).map_err(|_| Unconvertible)?;
        match self.0.coder {
            Coder::Utf8 => Ok(Cow::Borrowed(text)),
            Coder::Ascii => Err(Unconvertible),
            Coder::Latin1 => {
                let byte = |c: char| u8::try_from(u32::from(c)).map_err(|_| Unconvertible);
                valid.chars().map(byte).collect::<Result<Vec<u8>, _>>().map(Cow::Owned)
            }
            Coder::Web(encoding) => to_web(encoding, valid),
            Coder::WebWithoutControls(_) if has_high_controls(text) => Err(Unconvertible),
            Coder::WebWithoutControls(encoding) => to_web(encoding, valid),
        }
    }

    /// Converts a path to UTF-8 component by component, so that the name of a directory has one
    /// form however its members fare. Components that cannot be converted stay as they are.
    pub fn path_to_utf8(self, path: &[u8]) -> (Cow<'_, [u8]>, Result<(), Unconvertible>) {
        each_component(path, |part| self.to_utf8(part))
    }

    /// Converts a path from UTF-8, as [`Charset::path_to_utf8`] does to it. A component that would
    /// hold a slash or a NUL afterwards counts as one that cannot be converted.
    pub fn path_from_utf8(self, path: &[u8]) -> (Cow<'_, [u8]>, Result<(), Unconvertible>) {
        each_component(path, |part| self.from_utf8(part))
    }

    /// Converts a text for people to UTF-8: what cannot be converted passes as it is.
    pub fn message_to_utf8(self, text: &[u8]) -> Vec<u8> {
        self.message(text, Charset::to_utf8)
    }

    /// Converts a text for people from UTF-8: what cannot be converted passes as it is.
    pub fn message_from_utf8(self, text: &[u8]) -> Vec<u8> {
        self.message(text, Charset::from_utf8)
    }

    /// Converts character by character; a byte at which none begins passes as it is.
    fn message(
        self,
        text: &[u8],
        convert: impl Fn(Self, &[u8]) -> Result<Cow<'_, [u8]>, Unconvertible>,
    ) -> Vec<u8> {
        if let Ok(converted) = convert(self, text) {
            return converted.into_owned();
        }
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            // A character has at most four bytes in any charset that names can be in.
            let next = (1..=rest.len().min(4)).find_map(|n| convert(self, &rest[..n]).ok().map(|c| (n, c)));
            match next {
                Some((taken, converted)) => {
                    out.extend_from_slice(&converted);
                    rest = &rest[taken..];
                }
                None => {
                    out.push(rest[0]);
                    rest = &rest[1..];
                }
            }
        }
        out
    }
}

fn each_component<'a>(
    path: &'a [u8],
    convert: impl Fn(&[u8]) -> Result<Cow<'_, [u8]>, Unconvertible>,
) -> (Cow<'a, [u8]>, Result<(), Unconvertible>) {
    if path.is_ascii() && convert(path).is_ok_and(|converted| *converted == *path) {
        return (Cow::Borrowed(path), Ok(()));
    }
    let mut end = Ok(());
    let mut out = Vec::with_capacity(path.len() * 2);
    for (i, part) in path.split(|&byte| byte == b'/').enumerate() {
        if i > 0 {
            out.push(b'/');
        }
        match convert(part) {
            Ok(converted) if !converted.iter().any(|&byte| byte == b'/' || byte == 0) => {
                out.extend_from_slice(&converted);
            }
            Ok(_) | Err(Unconvertible) => {
                end = Err(Unconvertible);
                out.extend_from_slice(part);
            }
        }
    }
    (Cow::Owned(out), end)
}

fn from_web<'a>(encoding: &'static Encoding, text: &'a [u8]) -> Result<Cow<'a, [u8]>, Unconvertible> {
    match encoding.decode_without_bom_handling_and_without_replacement(text).ok_or(Unconvertible)? {
        Cow::Borrowed(text) => Ok(Cow::Borrowed(text.as_bytes())),
        Cow::Owned(text) => Ok(Cow::Owned(text.into_bytes())),
    }
}

fn to_web<'a>(encoding: &'static Encoding, text: &'a str) -> Result<Cow<'a, [u8]>, Unconvertible> {
    let mut encoder = encoding.new_encoder();
    let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len()).ok_or(Unconvertible)?;
    let mut out = Vec::with_capacity(room);
    match encoder.encode_from_utf8_to_vec_without_replacement(text, &mut out, true) {
        (EncoderResult::InputEmpty, _) => Ok(Cow::Owned(out)),
        (EncoderResult::OutputFull | EncoderResult::Unmappable(_), _) => Err(Unconvertible),
    }
}

/// Whether UTF-8 text holds one of U+0080 to U+009F.
fn has_high_controls(text: &[u8]) -> bool {
    text.windows(2).any(|pair| pair[0] == 0xC2 && (0x80..0xA0).contains(&pair[1]))
}

#[cfg(test)]
mod tests;
