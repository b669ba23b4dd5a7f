//! The shipped decoders over one direction of a recorded session, following what happens to files.

use std::collections::HashMap;

use bytes::Bytes;
use suisei_protocol::codec::{Input, ToReceiverDecoder, ToSenderDecoder};
use suisei_protocol::flist::Ndx;
use suisei_protocol::message::{ToReceiver, ToSender};
use suisei_protocol::mux::{Demux, Frame, Notice};
use suisei_protocol::session::{Direction, Session};
use suisei_protocol::transfer::{BasisKind, Item, SumHead, Token};
use suisei_protocol::{Error, Stop};

use super::Recorded;

/// One decoded message of a stream.
pub enum Message {
    /// A filter rule; the end of the list is an empty one.
    Filter(Vec<u8>),
    /// A name of `--files-from`; the end of the names is an empty one.
    Name(Vec<u8>),
    ToReceiver(ToReceiver),
    ToSender(ToSender),
    Notice(Notice),
}

/// A file that came over.
pub struct Transfer {
    pub path: Vec<u8>,
    pub content: Vec<u8>,
    /// The part of the content that the sum covers.
    pub summed_from: usize,
    pub sum: Bytes,
}

enum Codec {
    ToReceiver(Box<ToReceiverDecoder>),
    ToSender(Box<ToSenderDecoder>),
}

/// Reads one direction as the end whose session is given.
pub struct Replay {
    demux: Demux,
    input: Input,
    filters: bool,
    names: bool,
    codec: Codec,
    files: Files,
    /// The data stream without frames.
    pub data: Vec<u8>,
    /// Length of the filter list in `data`.
    pub filter_len: usize,
    /// Length of the names behind it.
    pub names_len: usize,
    pub messages: Vec<Message>,
}

impl Replay {
    pub fn new(recorded: &Recorded, session: &Session) -> Self {
        let server = session.side == suisei_protocol::session::Side::Server;
        let mut demux = Demux::new(session);
        let names = session.direction == Direction::Sending && recorded.has_names();
        let filters = server && recorded.has_filters();
        if names && !filters {
            demux.expect_names();
        }
        Replay {
            demux,
            input: Input::new(),
            filters,
            names,
            codec: match session.direction {
                Direction::Sending => Codec::ToSender(Box::new(ToSenderDecoder::new(session))),
                Direction::Receiving => {
                    Codec::ToReceiver(Box::new(ToReceiverDecoder::new(session).expect("a decoder")))
                }
            },
            files: Files::new(recorded, session),
            data: Vec::new(),
            filter_len: 0,
            names_len: 0,
            messages: Vec::new(),
        }
    }

    /// Takes received bytes and decodes as far as they go.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.demux.feed(Bytes::copy_from_slice(bytes));
        while let Some(frame) = self.demux.next_frame()? {
            match frame {
                Frame::Notice(notice) => self.messages.push(Message::Notice(notice)),
                Frame::Data(data) => {
                    self.data.extend_from_slice(&data);
                    self.input.push(data);
                    self.decode()?;
                }
            }
        }
        Ok(())
    }

    /// Takes the whole data stream at once, without frames.
    pub fn feed_data(&mut self, data: &[u8]) -> Result<(), Error> {
        self.input.push(Bytes::copy_from_slice(data));
        self.decode()
    }

    /// Whether the stream ended between frames and between units.
    pub fn ended_well(&self) -> bool {
        let boundary = match &self.codec {
            Codec::ToReceiver(codec) => codec.is_at_boundary(),
            Codec::ToSender(codec) => codec.is_at_boundary(),
        };
        boundary && self.demux.is_at_boundary() && self.input.is_empty()
    }

    pub fn transfers(&self) -> &[Transfer] {
        &self.files.transfers
    }

    fn decode(&mut self) -> Result<(), Error> {
        loop {
            match self.message() {
                Ok(message) => self.messages.push(message),
                Err(Stop::Short) => return Ok(()),
                Err(Stop::Bad(error)) => return Err(error),
            }
        }
    }

    fn message(&mut self) -> Result<Message, Stop> {
        if self.filters {
            let rule = self.input.decode(|r| {
                let length = usize::try_from(r.i32()?).expect("a recorded length");
                r.take(length).map(<[u8]>::to_vec)
            })?;
            self.filters = !rule.is_empty();
            self.filter_len += 4 + rule.len();
            if self.names && !self.filters {
                self.demux.expect_names();
            }
            return Ok(Message::Filter(rule));
        }
        if self.names {
            let name = self.input.decode(|r| {
                let end = r.rest().iter().position(|b| *b == 0).ok_or(Stop::Short)?;
                r.take(end + 1).map(|name| name[..end].to_vec())
            })?;
            self.names = !name.is_empty();
            self.names_len += name.len() + 1;
            return Ok(Message::Name(name));
        }
        match &mut self.codec {
            Codec::ToSender(codec) => codec.decode(&mut self.input).map(Message::ToSender),
            Codec::ToReceiver(codec) => {
                let message = codec.decode(&mut self.input)?;
                if let Some(block) = self.files.follow(&message) {
                    if codec.wants_history() {
                        codec.add_history(&block)?;
                    }
                }
                Ok(Message::ToReceiver(message))
            }
        }
    }
}

/// The destination, as far as the messages tell.
pub struct Files {
    names: HashMap<i32, Vec<u8>>,
    disk: HashMap<Vec<u8>, Vec<u8>>,
    appends: bool,
    sums_all: bool,
    current: Option<Current>,
    transfers: Vec<Transfer>,
}

struct Current {
    path: Vec<u8>,
    head: SumHead,
    basis: Vec<u8>,
    content: Vec<u8>,
    summed_from: usize,
}

impl Files {
    pub fn new(recorded: &Recorded, session: &Session) -> Self {
        Files {
            names: HashMap::new(),
            disk: recorded
                .basis
                .iter()
                .map(|(name, data)| (name.as_bytes().to_vec(), data.clone()))
                .collect(),
            appends: recorded.appends() > 0,
            sums_all: recorded.appends() != 1 || !session.version.has_plain_append(),
            current: None,
            transfers: Vec::new(),
        }
    }

    /// Notes a message; returns the bytes of a copied block.
    pub fn follow(&mut self, message: &ToReceiver) -> Option<Vec<u8>> {
        match message {
            ToReceiver::Segment(segment) => {
                self.names.extend(segment.iter().map(|(ndx, e)| (ndx.0, e.wire_path().to_vec())));
            }
            ToReceiver::Begin { ndx, item, head } => self.begin(*ndx, item, *head),
            ToReceiver::Token(Token::Literal(bytes)) => {
                self.current.as_mut().unwrap().content.extend_from_slice(bytes);
            }
            ToReceiver::Token(Token::Copy(block)) => {
                let current = self.current.as_mut().unwrap();
                let start = current.head.offset_of(block.0) as usize;
                let end = start + current.head.len_of(block.0) as usize;
                let block = current.basis[start..end].to_vec();
                current.content.extend_from_slice(&block);
                return Some(block);
            }
            ToReceiver::End { sum } => {
                let Current { path, content, summed_from, .. } = self.current.take().unwrap();
                self.disk.insert(path.clone(), content.clone());
                self.transfers.push(Transfer { path, content, summed_from, sum: sum.clone() });
            }
            _ => {}
        }
        None
    }

    fn begin(&mut self, ndx: Ndx, item: &Item, head: SumHead) {
        let path = self.names[&ndx.0].clone();
        let basis = match (item.basis, &item.xname) {
            (Some(BasisKind::Fuzzy(0)), Some(name)) => &**name,
            _ => &path,
        };
        let basis = self.disk.get(basis).cloned().unwrap_or_default();
        let again = self.transfers.iter().any(|t| t.path == path);
        let mut content = Vec::new();
        if self.appends && !again {
            content.extend_from_slice(&basis[..head.basis_len() as usize]);
        }
        let summed_from = if self.sums_all || again { 0 } else { content.len() };
        self.current = Some(Current { path, head, basis, content, summed_from });
    }
}
