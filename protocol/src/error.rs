//! What can be wrong with bytes from a peer, sorted by whose fault it is.
//!
//! [`Malformed`]: the bytes do not parse. [`PeerMisbehaved`]: they parse, but break a rule.
//! [`PeerIncompatible`]: nothing in common. [`Misuse`]: our own caller asked for the impossible.
//! Wire: protocol/doc/02-session-start.md#264-exit-codes

use crate::flist::Ndx;

/// A decoder's answer: one whole unit, or the reason there is none.
pub type Decode<T> = Result<T, Stop>;

/// Why a decoder stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The unit is not complete yet: call again with the same bytes and more behind them.
    Short,
    /// The unit can never be decoded.
    Bad(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Stop::Bad(error.into())
    }
}

/// A session-ending error, by fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes do not parse.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The bytes parse, but break a rule of the protocol.
    #[error(transparent)]
    PeerMisbehaved(#[from] PeerMisbehaved),
    /// The two ends have nothing in common.
    #[error(transparent)]
    PeerIncompatible(#[from] PeerIncompatible),
    /// Our caller asked for something that cannot be expressed.
    #[error(transparent)]
    Misuse(#[from] Misuse),
}

impl Error {
    /// Returns rsync's exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Malformed(e) => e.exit_code(),
            Error::PeerMisbehaved(e) => e.exit_code(),
            Error::PeerIncompatible(e) => e.exit_code(),
            Error::Misuse(e) => e.exit_code(),
        }
    }
}

/// The bytes do not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A variable-length integer announces more bytes than its type holds.
    #[error("a variable-length integer is too long for its field")]
    LongInteger,
    /// A frame whose tag byte is no message code.
    #[error("unexpected tag {0}")]
    Tag(u8),
    /// A message whose payload length is not what its code demands.
    #[error("invalid multi-message {code}:{length}")]
    MessageLength {
        /// Message code, without the offset of 7.
        code: u8,
        /// Announced payload length in bytes.
        length: u32,
    },
    /// A text message at or beyond the limit.
    #[error("multiplexing overflow: a message of {0} bytes")]
    TextOverflow(u32),
    /// A length field at or beyond its limit: which one, and the value.
    #[error("overflow: {field} of {length} bytes")]
    Overflow {
        /// The field's name in the specification.
        field: &'static str,
        /// The announced length.
        length: u64,
    },
    /// A compressed stream that does not decompress.
    #[error("the {0} stream is damaged")]
    Compression(&'static str),
    /// A line of the daemon's text phase that is too long or holds a NUL.
    #[error("a line of the daemon greeting is too long or not text")]
    Line,
}

impl Malformed {
    /// Returns rsync's exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Malformed::Overflow { .. } => 22,
            _ => 12,
        }
    }
}

/// The bytes parse, but break a rule of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerMisbehaved {
    /// A value outside its documented range.
    #[error("invalid {field}: {value}")]
    OutOfRange {
        /// The field's name in the specification.
        field: &'static str,
        /// The value received.
        value: i64,
    },
    /// An index that no live file list holds.
    #[error("file-list index {0} is not in a known list")]
    UnknownIndex(Ndx),
    /// A transfer asked for something that is not a regular file.
    #[error("received request to transfer non-regular file: {0}")]
    NotRegular(Ndx),
    /// A transfer asked for an entry that was removed as a duplicate.
    #[error("refusing transfer of cleared file index {0}")]
    Cleared(Ndx),
    /// A transfer asked for after the transfer phases.
    #[error("got a transfer request in phase {0}")]
    LatePhase(u32),
    /// A block number beyond the basis.
    #[error("Invalid block index {index} (count={count})")]
    BlockIndex {
        /// The block named.
        index: u64,
        /// The number of blocks that the sum head announced.
        count: u32,
    },
    /// A name that leaves the tree, or an absolute one that nobody asked for.
    #[error("unsafe file name in the file list: {0}")]
    UnsafeName(String),
    /// A name that the receiving client did not ask for.
    #[error("ERROR: rejecting unrequested file-list name: {0}")]
    UnrequestedName(String),
    /// A name that the receiving client's filters exclude.
    #[error("ERROR: rejecting excluded file-list name: {0}")]
    ExcludedName(String),
    /// An entry that does not lie in the directory its segment lists.
    #[error("file-list entry {0} is outside the directory being listed")]
    ForeignEntry(String),
    /// Whatever else the specification lists as a protocol error.
    #[error("{0}")]
    Rule(&'static str),
    /// The same, where the specification demands another exit code than 2.
    #[error("{text}")]
    RuleWithCode {
        /// The sentence.
        text: &'static str,
        /// rsync's exit code.
        code: u8,
    },
}

impl PeerMisbehaved {
    /// Returns rsync's exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            PeerMisbehaved::UnsafeName(_)
            | PeerMisbehaved::ForeignEntry(_)
            | PeerMisbehaved::UnrequestedName(_)
            | PeerMisbehaved::ExcludedName(_) => 4,
            PeerMisbehaved::RuleWithCode { code, .. } => *code,
            _ => 2,
        }
    }
}

/// The two ends have nothing in common.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerIncompatible {
    /// The peer's version int is outside 27..=40, or is shell chatter.
    #[error("protocol version mismatch -- is your shell clean?\n(see the rsync manpage for an explanation)")]
    Version(i32),
    /// A batch file of a later version.
    #[error("The protocol version in the batch file is too new ({found} > {newest}).")]
    NewBatch {
        /// The version in the file.
        found: i32,
        /// Our own.
        newest: u8,
    },
    /// A feature needs a newer protocol than the one agreed.
    #[error("{feature} requires protocol {needed} or higher (negotiated {agreed}).")]
    Feature {
        /// The option, as the user typed it.
        feature: &'static str,
        /// The first version that has it.
        needed: u8,
        /// The version agreed.
        agreed: u8,
    },
    /// No checksum or compressor in common.
    #[error("Failed to negotiate a {kind} choice.\nServer list: {server}\nClient list: {client}")]
    NoChoice {
        /// `checksum` or `compress`.
        kind: &'static str,
        /// The server's list.
        server: String,
        /// The client's list.
        client: String,
    },
    /// The server switched on a capability that we did not offer.
    #[error("Incompatible options specified for inc-recurse connection.")]
    Unoffered,
    /// An explicit choice that the server's environment does not allow.
    #[error("Your --{kind}-choice value ({value}) was refused by the server.")]
    Refused {
        /// `checksum` or `compress`.
        kind: &'static str,
        /// What was asked for.
        value: &'static str,
    },
    /// An option that needs a capability which the other end lacks.
    #[error("{0}")]
    Lacks(&'static str),
    /// The daemon refused, or greeted wrongly: the line to show.
    #[error("{0}")]
    Daemon(String),
    /// The peer is no rsync daemon.
    #[error("did not see server greeting")]
    NoGreeting,
    /// No login digest in common.
    #[error("no daemon-auth digest in common: {0}")]
    NoDigest(String),
}

impl PeerIncompatible {
    /// Returns rsync's exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            PeerIncompatible::Version(_) | PeerIncompatible::Feature { .. } => 2,
            PeerIncompatible::NewBatch { .. } | PeerIncompatible::Lacks(_) => 2,
            PeerIncompatible::NoChoice { .. }
            | PeerIncompatible::NoDigest(_)
            | PeerIncompatible::Refused { .. } => 4,
            PeerIncompatible::Unoffered => 1,
            PeerIncompatible::Daemon(_) | PeerIncompatible::NoGreeting => 5,
        }
    }
}

/// Our caller asked for something that cannot be expressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// A filter rule that the peer's version cannot carry.
    #[error("filter rules are too modern for remote rsync.")]
    ModernFilter,
    /// An unknown name in a choice: `checksum` or `compress`, and the name.
    #[error("unknown {kind} name: {name}")]
    UnknownName {
        /// `checksum` or `compress`.
        kind: &'static str,
        /// What was typed.
        name: String,
    },
    /// A checksum choice that cannot serve for `-c`.
    #[error("Invalid checksum-choice for --checksum: none (0)")]
    NoListSum,
    /// An argument word that is empty, or that holds the separator of its block.
    #[error("an argument cannot be sent to the daemon")]
    Argument,
    /// More early input than a daemon takes.
    #[error("early-input is larger than 5120 bytes")]
    EarlyInput,
    /// A name or target that is too long to be sent.
    #[error("name too long for the protocol")]
    LongName,
}

impl Misuse {
    /// Returns rsync's exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Misuse::ModernFilter => 2,
            Misuse::Argument | Misuse::EarlyInput => 1,
            Misuse::UnknownName { .. } | Misuse::NoListSum => 4,
            Misuse::LongName => 22,
        }
    }
}
