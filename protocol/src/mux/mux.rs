//! From data and notices to frames.
//!
//! Data is not copied: the caller writes each header in front of its slice. What a version or a
//! stream cannot carry is mapped or refused here, so that roles need not know.
//! Wire: protocol/doc/01-integers-and-multiplexing.md#172-codes

use std::borrow::Cow;

use super::frame::{Code, FrameHeader, HEADER_LEN};
use super::{Notice, TextKind};
use crate::charset::Charset;
use crate::limits::{FRAME_WRITTEN_MAX, TEXT_MAX};
use crate::session::{Session, Version};

/// Whether a notice could be put on the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Carried {
    /// It was appended.
    Yes,
    /// This version or this stream has no form for it; nothing was appended.
    No,
}

/// One slice of outgoing data and the header that goes in front of it (none on a raw stream).
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    header: Option<[u8; HEADER_LEN]>,
    payload: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Returns the 4 bytes to write first, or none.
    pub fn header(&self) -> &[u8] {
        self.header.as_ref().map_or(&[], |h| h.as_slice())
    }

    /// Returns the bytes to write next.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Frames an outgoing stream, from the start point on.
#[derive(Debug, Clone)]
pub struct Mux {
    version: Version,
    framed: bool,
    suspended: bool,
    /// The charset that texts are in, if they travel in UTF-8.
    charset: Option<Charset>,
}

impl Mux {
    /// Starts right behind the checksum seed, framed or raw as the session says.
    pub fn new(session: &Session) -> Self {
        Mux {
            version: session.version,
            framed: session.output_is_framed(),
            suspended: false,
            charset: session.charset,
        }
    }

    /// Whether frames are written at the moment.
    pub fn is_framed(&self) -> bool {
        self.framed && !self.suspended
    }

    /// Stops framing while names are forwarded for `--files-from`; without effect from version
    /// 31 on, where names travel as data. Notices cannot be carried until [`Mux::resume`].
    ///
    /// Wire: protocol/doc/02-session-start.md#25---files-from
    pub fn suspend_for_names(&mut self) {
        self.suspended = !self.version.frames_forwarded_names();
    }

    /// Frames again, once the empty name is written.
    pub fn resume(&mut self) {
        self.suspended = false;
    }

    /// Cuts outgoing data into frames of at most 65532 bytes, without copying it.
    pub fn pieces<'a>(&self, data: &'a [u8]) -> impl Iterator<Item = Piece<'a>> {
        let framed = self.is_framed();
        let most = if framed { FRAME_WRITTEN_MAX } else { data.len().max(1) };
        data.chunks(most).map(move |payload| Piece {
            header: framed.then(|| FrameHeader::new(Code::Data, payload.len()).to_bytes()),
            payload,
        })
    }

    /// Appends outgoing data, framed where the stream is.
    pub fn put_data(&self, data: &[u8], out: &mut Vec<u8>) {
        for piece in self.pieces(data) {
            out.extend_from_slice(piece.header());
            out.extend_from_slice(piece.payload());
        }
    }

    /// Appends a keep-alive: an empty DATA frame.
    pub fn put_keep_alive(&self, out: &mut Vec<u8>) -> Carried {
        self.put_message(Code::Data, &[], out)
    }

    /// Appends a notice. A text is converted under `--iconv` and cut to 5119 bytes; below version 30 an error or warning takes
    /// the code of a transfer error or of ordinary output.
    pub fn put_notice(&self, notice: &Notice, out: &mut Vec<u8>) -> Carried {
        let v = self.version;
        match notice {
            Notice::Text(kind, text) => self.put_text(*kind, text, out),
            Notice::IoErrors(errors) if v.has_status_messages() => {
                self.put_message(Code::IoError, &i32::from(errors.bits()).to_le_bytes(), out)
            }
            Notice::NoSend(ndx) if v.has_status_messages() => {
                self.put_message(Code::NoSend, &ndx.0.to_le_bytes(), out)
            }
            Notice::IoTimeout(seconds) if v.has_error_exit() => {
                self.put_message(Code::IoTimeout, &seconds.to_le_bytes(), out)
            }
            Notice::ErrorExit(Some(code)) if v.has_error_exit() => {
                self.put_message(Code::ErrorExit, &code.to_le_bytes(), out)
            }
            Notice::ErrorExit(None) if v.has_error_exit() => self.put_message(Code::ErrorExit, &[], out),
            Notice::Success(ndx) => self.put_message(Code::Success, &ndx.0.to_le_bytes(), out),
            Notice::Deleted { path, is_dir } if v.has_deleted_message() => {
                let mut name = self.converted(path).into_owned();
                name.truncate(TEXT_MAX - 2);
                if *is_dir {
                    name.push(0);
                }
                self.put_message(Code::Deleted, &name, out)
            }
            // Read from old peers, never written: our keep-alive is an empty DATA frame.
            Notice::Noop => self.put_keep_alive(out),
            _ => Carried::No,
        }
    }

    fn converted<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match self.charset {
            Some(charset) => charset.message_to_utf8(text).into(),
            None => text.into(),
        }
    }

    fn put_text(&self, kind: TextKind, text: &[u8], out: &mut Vec<u8>) -> Carried {
        let text = &*self.converted(text);
        let code = match kind {
            TextKind::Info => Code::Info,
            TextKind::Warning if self.version.has_error_codes() => Code::Warning,
            TextKind::Warning => Code::Info,
            TextKind::Error if self.version.has_error_codes() => Code::Error,
            TextKind::Error | TextKind::ErrorXfer => Code::ErrorXfer,
        };
        if text.len() < TEXT_MAX {
            return self.put_message(code, text, out);
        }
        let mut cut = text[..TEXT_MAX - 1].to_vec();
        if text.ends_with(b"\n") {
            cut[TEXT_MAX - 2] = b'\n';
        }
        self.put_message(code, &cut, out)
    }

    fn put_message(&self, code: Code, payload: &[u8], out: &mut Vec<u8>) -> Carried {
        if !self.is_framed() {
            return Carried::No;
        }
        out.extend_from_slice(&FrameHeader::new(code, payload.len()).to_bytes());
        out.extend_from_slice(payload);
        Carried::Yes
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::flist::{IoErrors, Ndx};
    use crate::mux::tests_support::session;
    use crate::session::{Direction, Side};

    fn server(version: u32) -> Mux {
        Mux::new(&session(Side::Server, Direction::Receiving, version))
    }

    fn bytes(mux: &Mux, notice: Notice) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        match mux.put_notice(&notice, &mut out) {
            Carried::Yes => Some(out),
            Carried::No => {
                assert!(out.is_empty());
                None
            }
        }
    }

    #[test]
    fn captured_notices() {
        let mux = server(32);
        let deleted = |path: &'static str, is_dir| Notice::Deleted {
            path: Bytes::from_static(path.as_bytes()),
            is_dir,
        };
        let table: [(Notice, &[u8]); 7] = [
            (Notice::ErrorExit(Some(11)), &[4, 0, 0, 0x5D, 0x0B, 0, 0, 0]),
            (Notice::ErrorExit(None), &[0, 0, 0, 0x5D]),
            (Notice::IoErrors(IoErrors::GENERAL), &[4, 0, 0, 0x1D, 1, 0, 0, 0]),
            (Notice::IoTimeout(77), &[4, 0, 0, 0x28, 0x4D, 0, 0, 0]),
            (Notice::Success(Ndx(2)), &[4, 0, 0, 0x6B, 2, 0, 0, 0]),
            (deleted("jd/x", false), b"\x04\0\0\x6Cjd/x"),
            (deleted("jd", true), b"\x03\0\0\x6Cjd\0"),
        ];
        for (notice, expected) in table {
            assert_eq!(bytes(&mux, notice).as_deref(), Some(expected));
        }
    }

    #[test]
    fn old_versions_map_texts_and_lack_the_rest() {
        let old = server(29);
        let text = |kind| Notice::Text(kind, Bytes::from_static(b"x\n"));
        let tag = |mux: &Mux, kind| bytes(mux, text(kind)).unwrap()[3];
        assert_eq!(tag(&old, TextKind::Error), 0x08);
        assert_eq!(tag(&old, TextKind::Warning), 0x09);
        assert_eq!(tag(&server(30), TextKind::Error), 0x0A);
        assert_eq!(tag(&server(30), TextKind::Warning), 0x0B);
        for notice in
            [Notice::NoSend(Ndx(1)), Notice::IoErrors(IoErrors::GENERAL), Notice::ErrorExit(Some(2))]
        {
            assert_eq!(bytes(&old, notice), None);
        }
        assert_eq!(bytes(&server(30), Notice::ErrorExit(Some(2))), None);
        let gone = Notice::Deleted { path: Bytes::from_static(b"f"), is_dir: false };
        assert!(bytes(&old, gone.clone()).is_some());
        assert_eq!(bytes(&server(28), gone), None);
    }

    #[test]
    fn long_texts_are_cut_below_the_limit_and_keep_their_newline() {
        let mut long = vec![b'x'; 6000];
        long.push(b'\n');
        let framed = bytes(&server(32), Notice::Text(TextKind::Info, long.into())).unwrap();
        assert_eq!(framed[..4], [0xFF, 0x13, 0, 0x09]);
        assert_eq!((framed.len(), framed.last()), (4 + 5119, Some(&b'\n')));
    }

    #[test]
    fn data_is_cut_into_frames_that_stock_would_write() {
        let data = vec![7u8; 65_532 + 3];
        let mut out = Vec::new();
        server(32).put_data(&data, &mut out);
        assert_eq!(out[..4], [0xFC, 0xFF, 0, 7]);
        assert_eq!(out[4 + 65_532..][..4], [3, 0, 0, 7]);
        assert_eq!(out.len(), data.len() + 8);
        out.clear();
        server(32).put_data(&[], &mut out);
        assert_eq!(out, [] as [u8; 0], "no accidental keep-alive");
    }

    #[test]
    fn a_raw_or_suspended_stream_carries_data_only() {
        let mut raw = Mux::new(&session(Side::Client, Direction::Sending, 29));
        raw.suspend_for_names();
        raw.resume();
        let mut names = server(30);
        names.suspend_for_names();
        for mux in [&raw, &names] {
            let mut out = Vec::new();
            mux.put_data(b"a.txt\0\0", &mut out);
            assert_eq!(out, b"a.txt\0\0");
            assert_eq!(mux.put_keep_alive(&mut out), Carried::No);
        }
        names.resume();
        assert!(names.is_framed());
        let mut new = server(31);
        new.suspend_for_names();
        assert!(new.is_framed(), "names are data from 31 on");
    }
}
