//! From received bytes to data and notices.
//!
//! DATA payloads are passed on as slices of the received buffers and never collected; a message
//! is held until it is whole, within the limit that its code sets. Every message is checked
//! against who may send it to this end at this version.
//! Wire: protocol/doc/01-integers-and-multiplexing.md#173-length-and-legality-checks-on-reading

use std::collections::VecDeque;

use bytes::Bytes;

use super::frame::{Code, FrameHeader, HEADER_LEN};
use super::{Notice, TextKind};
use crate::charset::Charset;
use crate::error::{Error, Malformed, PeerMisbehaved, Stop};
use crate::flist::{IoErrors, Ndx};
use crate::limits::TEXT_MAX;
use crate::session::{Direction, Session, Side, Version};
use crate::wire::Reader;

/// One step of the incoming stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The next bytes of the data stream, never empty. Where they end means nothing.
    Data(Bytes),
    /// A message beside the data.
    Notice(Notice),
}

/// ```text
///            ┌──────────── expect_names ───────────┐
///            ▼                                     │
///  Raw    Names ──empty name──► Header ──tag──► Data | Message ──end──► Header
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The stream has no frames.
    Raw,
    /// Raw names until an empty one; `at_start` of a name.
    Names { at_start: bool },
    /// A frame header is next.
    Header,
    /// So many bytes of a DATA payload are next.
    Data { left: usize },
    /// A message's payload is next.
    Message(FrameHeader),
}

/// Who sends to whom: what decides which messages are legal.
#[derive(Debug, Clone, Copy)]
struct Reading {
    side: Side,
    direction: Direction,
    version: Version,
    confirm: bool,
    /// The charset to give texts in, if they arrive in UTF-8.
    charset: Option<Charset>,
}

/// Splits an incoming stream, from the start point on.
#[derive(Debug)]
pub struct Demux {
    reading: Reading,
    state: State,
    names_follow: bool,
    chunks: VecDeque<Bytes>,
    held: Vec<u8>,
}

impl Demux {
    /// Starts right behind the checksum seed, framed or raw as the session says.
    pub fn new(session: &Session) -> Self {
        Demux {
            reading: Reading {
                side: session.side,
                direction: session.direction,
                version: session.version,
                confirm: session.layout.confirm,
                charset: session.charset,
            },
            state: if session.input_is_framed() { State::Header } else { State::Raw },
            names_follow: false,
            chunks: VecDeque::new(),
            held: Vec::new(),
        }
    }

    /// Adds received bytes.
    pub fn feed(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.chunks.push_back(bytes);
        }
    }

    /// Announces forwarded `--files-from` names outside of frames (below version 31): from the
    /// next frame boundary on, bytes up to and including the empty name pass as data. Without
    /// effect on a raw stream, where they do so anyway.
    ///
    /// Wire: protocol/doc/02-session-start.md#25---files-from
    pub fn expect_names(&mut self) {
        if self.state != State::Raw && !self.reading.version.frames_forwarded_names() {
            self.names_follow = true;
        }
    }

    /// Whether the stream may end here without cutting a frame.
    pub fn is_at_boundary(&self) -> bool {
        matches!(self.state, State::Raw | State::Header) && self.held.is_empty() && self.chunks.is_empty()
    }

    /// Returns the next piece of data or notice; `None` asks for more bytes.
    ///
    /// Fails on frames that may not come to this end; the stream is then of no further use.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            match self.state {
                State::Raw => return Ok(self.piece(usize::MAX).map(Frame::Data)),
                State::Names { at_start } => return Ok(self.names(at_start).map(Frame::Data)),
                State::Header if self.names_follow => {
                    self.names_follow = false;
                    self.state = State::Names { at_start: true };
                }
                State::Header => match self.gather(HEADER_LEN) {
                    None => return Ok(None),
                    Some(header) => self.begin(&header)?,
                },
                State::Data { left: 0 } => self.state = State::Header,
                State::Data { left } => {
                    let Some(data) = self.piece(left) else { return Ok(None) };
                    self.state = State::Data { left: left - data.len() };
                    return Ok(Some(Frame::Data(data)));
                }
                State::Message(header) => {
                    let Some(payload) = self.gather(header.length as usize) else { return Ok(None) };
                    self.state = State::Header;
                    return self.reading.notice(header, payload).map(|n| Some(Frame::Notice(n)));
                }
            }
        }
    }

    /// Takes a header and checks it, before anything of its payload is held.
    fn begin(&mut self, header: &[u8]) -> Result<(), Error> {
        let header = FrameHeader::decode(&mut Reader::new(header)).map_err(|stop| match stop {
            Stop::Bad(error) => error,
            Stop::Short => Malformed::Tag(0).into(),
        })?;
        self.state = if header.code == Code::Data {
            State::Data { left: header.length as usize }
        } else {
            self.reading.check(header)?;
            State::Message(header)
        };
        Ok(())
    }

    /// Takes at most `most` bytes of the first chunk.
    fn piece(&mut self, most: usize) -> Option<Bytes> {
        let chunk = self.chunks.front_mut()?;
        if chunk.len() <= most {
            return self.chunks.pop_front();
        }
        Some(chunk.split_to(most))
    }

    /// Takes exactly `n` bytes, or holds what there is of them.
    fn gather(&mut self, n: usize) -> Option<Bytes> {
        if self.held.is_empty() && n == 0 {
            return Some(Bytes::new());
        }
        while self.held.len() < n {
            let piece = self.piece(n - self.held.len())?;
            if piece.len() == n {
                return Some(piece);
            }
            self.held.extend_from_slice(&piece);
        }
        Some(Bytes::from(std::mem::take(&mut self.held)))
    }

    /// Takes raw names up to the empty one, behind which frames resume.
    fn names(&mut self, mut at_start: bool) -> Option<Bytes> {
        let chunk = self.chunks.front()?;
        let mut end = chunk.len();
        let mut next = None;
        for (i, &byte) in chunk.iter().enumerate() {
            if byte == 0 && at_start {
                end = i + 1;
                next = Some(State::Header);
                break;
            }
            at_start = byte == 0;
        }
        self.state = next.unwrap_or(State::Names { at_start });
        self.piece(end)
    }
}

impl Reading {
    /// Checks that a message may come to this end, and that its length fits its code.
    fn check(&self, header: FrameHeader) -> Result<(), Error> {
        let from_sender = self.direction == Direction::Receiving;
        let allowed = match header.code {
            Code::Data | Code::Noop => true,
            Code::ErrorXfer | Code::Info | Code::Error | Code::Warning => self.side == Side::Client,
            Code::IoError | Code::NoSend => from_sender && self.version.has_status_messages(),
            Code::IoTimeout => self.side == Side::Client && self.version.has_error_exit(),
            // A stock sender obeys it at any version, a stock receiving side does not.
            Code::ErrorExit => self.version.has_error_exit() || !from_sender,
            Code::Success => !from_sender && self.confirm,
            Code::Deleted => self.side == Side::Client && !from_sender && self.version.has_deleted_message(),
        };
        if !allowed {
            return Err(Malformed::Tag(header.code.tag()).into());
        }
        let length = header.length;
        let fits = match header.code {
            Code::Data => true,
            Code::ErrorXfer | Code::Info | Code::Error | Code::Warning | Code::Deleted => {
                if length as usize >= TEXT_MAX {
                    return Err(Malformed::TextOverflow(length).into());
                }
                true
            }
            Code::IoError | Code::IoTimeout | Code::NoSend | Code::Success => length == 4,
            Code::ErrorExit => length == 4 || length == 0,
            Code::Noop => length == 0,
        };
        if fits {
            Ok(())
        } else {
            Err(Malformed::MessageLength { code: header.code as u8, length }.into())
        }
    }

    /// Turns a checked message into a notice.
    fn notice(&self, header: FrameHeader, payload: Bytes) -> Result<Notice, Error> {
        let int = <[u8; 4]>::try_from(&payload[..]).ok().map(i32::from_le_bytes);
        let int_or_zero = int.unwrap_or(0);
        let payload = match (header.code, self.charset) {
            (
                Code::ErrorXfer | Code::Data | Code::Info | Code::Error | Code::Warning | Code::Deleted,
                Some(charset),
            ) => charset.message_from_utf8(&payload).into(),
            _ => payload,
        };
        Ok(match header.code {
            Code::ErrorXfer => Notice::Text(TextKind::ErrorXfer, payload),
            Code::Data | Code::Info => Notice::Text(TextKind::Info, payload),
            Code::Error => Notice::Text(TextKind::Error, payload),
            Code::Warning => Notice::Text(TextKind::Warning, payload),
            Code::IoError => Notice::IoErrors(IoErrors::from_bits_truncate((int_or_zero & 7) as u8)),
            Code::IoTimeout => Notice::IoTimeout(int_or_zero),
            Code::Noop => Notice::Noop,
            Code::ErrorExit => Notice::ErrorExit(int),
            Code::Success => Notice::Success(index(int_or_zero)?),
            Code::NoSend => Notice::NoSend(index(int_or_zero)?),
            Code::Deleted => match payload.strip_suffix(&[0]) {
                Some(path) => Notice::Deleted { path: payload.slice_ref(path), is_dir: true },
                None => Notice::Deleted { path: payload, is_dir: false },
            },
        })
    }
}

/// Whether a list knows the index is for its owner to say; no list knows a negative one.
fn index(ndx: i32) -> Result<Ndx, PeerMisbehaved> {
    if ndx < 0 {
        return Err(PeerMisbehaved::UnknownIndex(Ndx(ndx)));
    }
    Ok(Ndx(ndx))
}

#[cfg(test)]
mod tests;
