//! The one rule by which bytes become text, applied when a line is written.
//!
//! Valid UTF-8 is text in every locale: the record of a run must not depend on the shell that
//! started it. Control bytes and invalid bytes become `\#ooo`, and a backslash that would read as
//! such an escape becomes `\#134`. Wire: protocol/doc/22-output.md#2-escaping-of-unsafe-bytes

use std::borrow::Cow;

use bstr::ByteSlice;

/// Whether bytes above 0x7F that are no text are written as they are (`-8`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HighBytes {
    /// Escaped.
    #[default]
    Escape,
    /// Raw.
    Raw,
}

/// Escapes one line. A final newline or carriage return and a leading carriage return are kept.
pub fn escape(line: &[u8], high: HighBytes) -> Cow<'_, [u8]> {
    let start = usize::from(line.first() == Some(&b'\r'));
    let end = line.len() - usize::from(line.len() > start && matches!(line.last(), Some(b'\n' | b'\r')));
    let body = &line[start..end];
    if is_plain(body) {
        return Cow::Borrowed(line);
    }
    let mut out = Vec::with_capacity(line.len() + 16);
    out.extend_from_slice(&line[..start]);
    escape_body(body, high, &mut out);
    out.extend_from_slice(&line[end..]);
    Cow::Owned(out)
}

fn is_plain(body: &[u8]) -> bool {
    body.iter().all(|&b| (0x20..0x80).contains(&b) && b != b'\\' || b == b'\t')
}

fn escape_body(body: &[u8], high: HighBytes, out: &mut Vec<u8>) {
    let mut rest = body;
    while !rest.is_empty() {
        let (valid, bad) = match rest.to_str() {
            Ok(_) => (rest.len(), 0),
            Err(e) => (e.valid_up_to(), e.error_len().unwrap_or(rest.len() - e.valid_up_to())),
        };
        for (i, &byte) in rest[..valid].iter().enumerate() {
            let fake = byte == b'\\' && looks_escaped(&rest[i..]);
            if fake || byte < 0x20 && byte != b'\t' {
                push_octal(byte, out);
            } else {
                out.push(byte);
            }
        }
        for &byte in &rest[valid..valid + bad] {
            match high {
                HighBytes::Escape => push_octal(byte, out),
                HighBytes::Raw => out.push(byte),
            }
        }
        rest = &rest[valid + bad..];
    }
}

fn looks_escaped(bytes: &[u8]) -> bool {
    bytes.len() >= 5 && bytes[1] == b'#' && bytes[2..5].iter().all(u8::is_ascii_digit)
}

fn push_octal(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\#");
    out.extend([byte >> 6, byte >> 3 & 7, byte & 7].map(|d| b'0' + d));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &[u8], expected: &str) {
        assert_eq!(escape(input, HighBytes::Escape).as_bstr(), expected.as_bytes().as_bstr());
    }

    #[test]
    fn unsafe_bytes_become_octal() {
        check(b"a\x01b", "a\\#001b");
        check(b"nl\nx", "nl\\#012x");
        check(b"e\x1bq", "e\\#033q");
        check(b"bad\xff", "bad\\#377");
        check(b"tab\there", "tab\there");
        check(b"x\\#123y", "x\\#134#123y");
        check(b"foo\\bar", "foo\\bar");
    }

    #[test]
    fn text_and_line_ends_stay() {
        check("caf\u{e9} \u{1f600}\n".as_bytes(), "caf\u{e9} \u{1f600}\n");
        check(b"\r  12%\r", "\r  12%\r");
    }

    #[test]
    fn eight_bit_output_keeps_high_bytes() {
        assert_eq!(&*escape(b"bad\xff\x01", HighBytes::Raw), b"bad\xff\\#001");
    }
}
