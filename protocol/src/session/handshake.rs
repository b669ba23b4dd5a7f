//! The raw bytes before the start point: versions, compat flags, names, seed.
//!
//! Sans I/O: the caller writes what [`Handshake::output`] returns and feeds what it reads. What
//! lies behind the end stays unconsumed: it is the multiplexed stream.
//! Wire: protocol/doc/02-session-start.md#22-start-handshake-raw-bytes-remote-shell

use super::names::{check_implied, sum_kinds, NameList, Named};
use super::{
    Capabilities, Compat, CompressWish, Direction, IncrementalRecursion, Layout, Recursion, Session, Side,
    SumChoice, SumName, Version,
};
use crate::charset::Charset;
use crate::error::{Decode, Error, Misuse, PeerIncompatible, PeerMisbehaved, Stop};
use crate::limits::CHOICE_LIST_MAX;
use crate::sum::SumKind;
use crate::transfer::Compressor;
use crate::wire::{put_i32, put_vstring, Reader};

/// What one end brings to the handshake.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Which end we are.
    pub side: Side,
    /// Whether we send or receive files.
    pub direction: Direction,
    /// Our own version (`--protocol`).
    pub version: Version,
    /// The version settled by a daemon's greeting; no version ints are exchanged then.
    pub agreed: Option<Version>,
    /// Client: what its command line offers. Server: what it found there.
    pub capabilities: Capabilities,
    /// Whether our own options allow incremental recursion; a client's offer says it already.
    pub recursion: IncrementalRecursion,
    /// `--checksum-choice`.
    pub sums: Option<SumChoice>,
    /// Whether and how literals shall be compressed.
    pub compress: CompressWish,
    /// `--compress-level`.
    pub compress_level: Option<i32>,
    /// The seed that a server hands out.
    pub seed: i32,
    /// `RSYNC_CHECKSUM_LIST`.
    pub checksum_list: Option<String>,
    /// `RSYNC_COMPRESS_LIST`.
    pub compress_list: Option<String>,
    /// Client: whether the run is recorded. A replay negotiates nothing, so no more is offered
    /// than what it takes without.
    pub recorded: bool,
    /// The fields that the options of both ends demand.
    pub layout: Layout,
    /// An option of this end that old versions lack, and the first version that has it.
    pub needs: Option<(&'static str, u8)>,
    /// `--iconv`: the charset of this end's names.
    pub charset: Option<Charset>,
}

/// How far a handshake is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed; so many were consumed.
    NeedMore {
        /// Bytes that need not be fed again.
        consumed: usize,
    },
    /// Both ends agreed.
    Done {
        /// Bytes that were part of the handshake.
        consumed: usize,
        /// The result.
        session: Session,
    },
}

/// Named for what comes in next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Version,
    Compat,
    SumList,
    CompressList,
    Seed,
    Done,
}

/// ```text
/// client   Version ─► Compat ─► SumList ─► CompressList ─► Seed ─► Done
/// server   Version ───────────► SumList ─► CompressList ─────────► Done
/// ```
///
/// Each step but `Version` is skipped where the agreed version, flags and choices leave it out.
/// A client answers each list with one name: every server sends its lists without waiting, and
/// a single name leaves nothing to be chosen differently.
#[derive(Debug)]
pub struct Handshake {
    offer: Offer,
    step: Step,
    version: Version,
    compat: Compat,
    sums: NameList<SumName>,
    compressors: NameList<Compressor>,
    sum: Option<SumName>,
    compressor: Option<Compressor>,
    seed: i32,
    output: Vec<u8>,
}

impl Handshake {
    /// Starts. Fails on choices that this end's own environment refuses.
    pub fn new(offer: Offer) -> Result<Self, Error> {
        let (sums, compressors) = match offer.recorded {
            true => (NameList::only(SumName::Md5), NameList::only(Compressor::Zlib)),
            false => (
                NameList::new(offer.side, offer.checksum_list.as_deref()),
                NameList::new(offer.side, offer.compress_list.as_deref()),
            ),
        };
        let mut handshake = Handshake {
            step: Step::Version,
            version: offer.version,
            compat: Compat::empty(),
            sums,
            compressors,
            sum: None,
            compressor: None,
            seed: offer.seed,
            output: Vec::new(),
            offer,
        };
        handshake.check_choices()?;
        match handshake.offer.agreed {
            Some(version) => handshake.settle_version(version)?,
            None => put_i32(handshake.announced() as i32, &mut handshake.output),
        }
        Ok(handshake)
    }

    /// Returns what is to be written now. After a failure it may hold the bytes that let the peer
    /// fail with the same exit code.
    pub fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Takes received bytes, also none at all: a daemon may be done without reading any. Bytes
    /// that were not consumed must be fed again, with more behind them.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Progress, Error> {
        let mut reader = Reader::new(bytes);
        let mut consumed = 0;
        while self.step != Step::Done {
            match self.unit(&mut reader) {
                Ok(()) => consumed = reader.consumed(),
                Err(Stop::Short) => return Ok(Progress::NeedMore { consumed }),
                Err(Stop::Bad(error)) => return Err(error),
            }
        }
        Ok(Progress::Done { consumed, session: self.session()? })
    }

    /// Takes one field. Nothing changes unless it is whole.
    fn unit(&mut self, reader: &mut Reader<'_>) -> Decode<()> {
        match self.step {
            Step::Version => {
                let peer = reader.i32()?;
                let agreed = Version::new(self.announced()).and_then(|ours| Version::agree(ours, peer));
                self.settle_version(agreed.ok_or(PeerIncompatible::Version(peer))?)?;
            }
            Step::Compat => {
                self.compat = Compat::decode(reader)?;
                self.settle_compat()?;
                self.go_on();
            }
            Step::SumList => {
                let list = choice_list(reader)?;
                let chosen = self.sums.choose(self.offer.side, list);
                self.sum = Some(self.answer(chosen)?);
                self.go_on();
            }
            Step::CompressList => {
                let list = choice_list(reader)?;
                let chosen = self.compressors.choose(self.offer.side, list);
                self.compressor = Some(self.answer(chosen)?);
                self.go_on();
            }
            Step::Seed => {
                self.seed = reader.i32()?;
                self.go_on();
            }
            Step::Done => {}
        }
        Ok(())
    }

    /// Returns the number that we announce.
    fn announced(&self) -> u32 {
        match self.offer.side {
            Side::Client => u32::from(self.offer.version.number()),
            Side::Server => self.offer.capabilities.announced_by(self.offer.version),
        }
    }

    /// The version is known: a server says which capabilities it takes up, and lists its names.
    fn settle_version(&mut self, version: Version) -> Result<(), Error> {
        self.version = version;
        if let Some((feature, needed)) = self.offer.needs {
            version.require(feature, needed)?;
        }
        let has_compat = version.has_compat_flags();
        if self.offer.side == Side::Server && has_compat {
            self.compat = self.offer.capabilities.answer(self.offer.recursion);
            self.offer.capabilities.put_answer(self.compat, &mut self.output);
        }
        if self.offer.side == Side::Server || !has_compat {
            self.settle_compat()?;
        }
        if self.offer.side == Side::Server {
            if self.negotiates_sum() {
                put_list(&self.sums, &mut self.output)?;
            }
            if self.negotiates_compressor() {
                put_list(&self.compressors, &mut self.output)?;
            }
        }
        self.go_on();
        Ok(())
    }

    /// The flags are known (none below 30): checks what hangs on them.
    fn settle_compat(&self) -> Result<(), Error> {
        let incremental = self.compat.contains(Compat::INC_RECURSE);
        if incremental && !self.offer.capabilities.offers_incremental_recursion() {
            return Err(PeerIncompatible::Unoffered.into());
        }
        let Layout { acls, xattrs, .. } = self.offer.layout;
        for (feature, wanted) in [("--acls", acls), ("--xattrs", xattrs)] {
            if wanted && !self.version.has_acls_and_xattrs() {
                let agreed = self.version.number();
                return Err(PeerIncompatible::Feature { feature, needed: 30, agreed }.into());
            }
        }
        if self.offer.layout.crtimes && !self.compat.contains(Compat::VARINT_FLIST) {
            return Err(
                PeerIncompatible::Lacks("Both rsync versions must be at least 3.2.0 for --crtimes.").into()
            );
        }
        if self.offer.sums.is_none() && !self.negotiates_sum() {
            check_implied(&self.sums, self.offer.side, SumName::implied(self.version))?;
        }
        if self.offer.compress == CompressWish::Negotiate && !self.negotiates_compressor() {
            check_implied(&self.compressors, self.offer.side, Compressor::Zlib)?;
        }
        Ok(())
    }

    fn exchanges_names(&self) -> bool {
        self.compat.contains(Compat::VARINT_FLIST) && self.offer.capabilities.negotiates_names()
    }

    fn negotiates_sum(&self) -> bool {
        self.exchanges_names() && self.offer.sums.is_none()
    }

    fn negotiates_compressor(&self) -> bool {
        self.exchanges_names() && self.offer.compress == CompressWish::Negotiate
    }

    /// Moves to the next field that comes in, and sends what is due before it.
    fn go_on(&mut self) {
        let client = self.offer.side == Side::Client;
        self.step = match self.step {
            Step::Version if client && self.version.has_compat_flags() => Step::Compat,
            Step::Version | Step::Compat if self.negotiates_sum() => Step::SumList,
            Step::Version | Step::Compat | Step::SumList if self.negotiates_compressor() => {
                Step::CompressList
            }
            Step::Seed | Step::Done => Step::Done,
            _ if client => Step::Seed,
            _ => {
                put_i32(self.seed, &mut self.output);
                Step::Done
            }
        };
    }

    /// A client sends its choice. If there is none it sends its lists, so that the server can see
    /// for itself that nothing fits.
    fn answer<T: Named>(&mut self, chosen: Result<T, PeerIncompatible>) -> Result<T, Error> {
        if self.offer.side == Side::Client {
            match &chosen {
                Ok(name) => put_vstring(name.name().as_bytes(), &mut self.output)?,
                Err(_) => {
                    if self.step == Step::SumList {
                        put_list(&self.sums, &mut self.output)?;
                    }
                    if self.negotiates_compressor() {
                        put_list(&self.compressors, &mut self.output)?;
                    }
                }
            }
        }
        Ok(chosen?)
    }

    /// A server's environment also limits what a client may choose for it.
    fn check_choices(&self) -> Result<(), Error> {
        if let Some(choice) = self.offer.sums {
            if choice.list == Some(SumName::None) && self.offer.layout.checksum {
                return Err(Misuse::NoListSum.into());
            }
            for name in [choice.transfer, choice.list].into_iter().flatten() {
                self.check_choice(&self.sums, name)?;
            }
        }
        if let CompressWish::Fixed(compressor) = self.offer.compress {
            self.check_choice(&self.compressors, compressor)?;
        }
        Ok(())
    }

    fn check_choice<T: Named>(&self, list: &NameList<T>, name: T) -> Result<(), Error> {
        if self.offer.side == Side::Server && !list.check(name) {
            return Err(PeerIncompatible::Refused { kind: T::KIND, value: name.name() }.into());
        }
        Ok(())
    }

    fn session(&self) -> Result<Session, Error> {
        let offer = &self.offer;
        let (transfer_sum, list_sum) = sum_kinds(self.version, self.compat, offer.sums, self.sum);
        if offer.layout.checksum && list_sum == SumKind::None {
            return Err(Misuse::NoListSum.into());
        }
        let compressor = match offer.compress {
            CompressWish::Off => Compressor::None,
            CompressWish::Fixed(compressor) => compressor,
            CompressWish::Negotiate => self.compressor.unwrap_or(Compressor::Zlib),
        };
        let level = compressor.level(offer.compress_level);
        let incremental = self.compat.contains(Compat::INC_RECURSE);
        Ok(Session {
            side: offer.side,
            direction: offer.direction,
            version: self.version,
            compat: self.compat,
            seed: self.seed,
            transfer_sum,
            list_sum,
            compressor: if level.is_some() { compressor } else { Compressor::None },
            compress_level: level.unwrap_or(0),
            layout: offer.layout,
            recursion: if incremental { Recursion::Incremental } else { Recursion::Whole },
            charset: offer.charset,
        })
    }
}

/// Takes a list of names. One that is too long is a failed negotiation.
fn choice_list<'a>(reader: &mut Reader<'a>) -> Decode<&'a [u8]> {
    reader.vstring("negotiation list", CHOICE_LIST_MAX).map_err(|stop| match stop {
        Stop::Short => Stop::Short,
        Stop::Bad(Error::PeerMisbehaved(PeerMisbehaved::OutOfRange { .. })) => {
            PeerMisbehaved::RuleWithCode { text: "a negotiation list is too long", code: 4 }.into()
        }
        bad => bad,
    })
}

fn put_list<T: Named>(list: &NameList<T>, out: &mut Vec<u8>) -> Result<(), Misuse> {
    put_vstring(list.text().as_bytes(), out)
}

#[cfg(test)]
mod tests;
