//! Names of `--files-from` that cross the wire: forwarded by a receiving end, read by a sending one.
//!
//! Wire: protocol/doc/02-session-start.md#25---files-from

use std::io::Read;

use suisei_protocol::charset::Charset;
use suisei_protocol::error::Malformed;
use suisei_protocol::limits::PATH_MAX;
use suisei_protocol::{Decode, Stop};

use crate::link::Connection;
use crate::source::Names;
use crate::Failure;

/// Bytes of names that are read and sent at once.
const PIECE: usize = 16 << 10;
/// Bytes without a NUL after which a peer's list is no list.
const NAME_ENDLESS: usize = 64 << 10;

/// A `--files-from` file on the receiving end.
pub struct ForwardedNames {
    /// The open file.
    pub file: Box<dyn Read + Send>,
    /// Whether its names end in NUL (`--from0`) rather than at line ends.
    pub nul_separated: bool,
    /// The charset that its names are in, if they travel in UTF-8 (`--iconv` with `-s`).
    pub charset: Option<Charset>,
}

/// Brings the bytes of a list into the form that travels: line ends are NULs, runs of NULs are
/// one, and none stands in front.
#[derive(Debug)]
struct Squeeze {
    nul_separated: bool,
    after_nul: bool,
}

impl Squeeze {
    fn new(nul_separated: bool) -> Self {
        Squeeze { nul_separated, after_nul: true }
    }

    fn piece(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            let byte = if !self.nul_separated && matches!(byte, b'\n' | b'\r') { 0 } else { byte };
            if byte != 0 || !self.after_nul {
                out.push(byte);
            }
            self.after_nul = byte == 0;
        }
        out
    }

    /// Returns the end: the last name's NUL if it is missing, and an empty name.
    fn end(&self) -> &'static [u8] {
        if self.after_nul {
            b"\0"
        } else {
            b"\0\0"
        }
    }
}

/// Sends all names.
pub(super) fn forward(connection: &Connection, mut names: ForwardedNames) -> Result<(), Failure> {
    connection.forwarding_names(|| {
        let mut squeeze = Squeeze::new(names.nul_separated);
        let mut piece = vec![0; PIECE];
        let mut unfinished = Vec::new();
        loop {
            match names.file.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => {
                    let mut out = squeeze.piece(&piece[..n]);
                    if let Some(charset) = names.charset {
                        unfinished.append(&mut out);
                        let whole = unfinished.iter().rposition(|&b| b == 0).map_or(0, |nul| nul + 1);
                        out = charset.message_to_utf8(&unfinished[..whole]);
                        unfinished.drain(..whole);
                    }
                    if !out.is_empty() {
                        connection.write(out)?;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let text = format!("rsync: [Receiver] read error: {}", crate::failure::reason(&error));
                    return Err(Failure::FileIo { text });
                }
            }
        }
        let mut end = names.charset.map_or_else(Vec::new, |charset| charset.message_to_utf8(&unfinished));
        end.extend_from_slice(squeeze.end());
        connection.write(end)
    })
}

/// Reads all names. Those that are too long are cut. `charset`: what to give them in, if they
/// travel in UTF-8.
pub(super) fn receive(connection: &mut Connection, charset: Option<Charset>) -> Result<Names, Failure> {
    connection.expect_names();
    let mut names = Vec::new();
    loop {
        let name = connection.read_unit(name)?;
        if name.is_empty() {
            break;
        }
        names.push(charset.map_or(name.clone(), |charset| charset.message_from_utf8(&name)));
    }
    let mut names = names.into_iter();
    Ok(Names::Forwarded(Box::new(move || Ok(names.next()))))
}

/// Decodes a name up to its NUL; of one without end, the first bytes that exceed the limit.
fn name(reader: &mut suisei_protocol::wire::Reader<'_>) -> Decode<Vec<u8>> {
    let rest = reader.rest();
    let Some(end) = rest.iter().position(|&b| b == 0) else {
        if rest.len() > NAME_ENDLESS {
            return Err(Malformed::Overflow { field: "files-from name", length: rest.len() as u64 }.into());
        }
        return Err(Stop::Short);
    };
    let name = reader.take(end)?;
    let name = name[..name.len().min(PATH_MAX - 1)].to_vec();
    reader.u8()?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(nul_separated: bool, pieces: &[&[u8]]) -> Vec<u8> {
        let mut squeeze = Squeeze::new(nul_separated);
        let mut out: Vec<u8> = pieces.iter().flat_map(|p| squeeze.piece(p)).collect();
        out.extend_from_slice(squeeze.end());
        out
    }

    #[test]
    fn lines_become_names() {
        assert_eq!(squeezed(false, &[b"a.txt\nd/b.txt\n"]), b"a.txt\0d/b.txt\0\0");
        assert_eq!(squeezed(false, &[b"\r\n\na.txt\r", b"\n\r\nb"]), b"a.txt\0b\0\0");
        assert_eq!(squeezed(false, &[b"#c\n"]), b"#c\0\0");
        assert_eq!(squeezed(false, &[]), b"\0");
    }

    #[test]
    fn a_separated_list_keeps_its_line_ends() {
        assert_eq!(squeezed(true, &[b"\0a\nb\0\0c"]), b"a\nb\0c\0\0");
    }
}
