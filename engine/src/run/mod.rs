//! Roles and links put together: a local run, and either end of a remote one.
//!
//! A remote run goes through three calls: [`crate::link::handshake`] agrees on a session,
//! [`begin`] exchanges what precedes the list (filters, forwarded names) and starts the link's
//! threads, and [`sending`] or [`receiving`] runs the roles to the end.
//! Wire: protocol/doc/02-session-start.md#26-end-of-session

use std::io::Read;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use suisei_protocol::session::{Direction, Layout, Session, Version};
use suisei_protocol::sum::SumKind;

use crate::ids::IdMap;
use crate::link::{Connection, NoticePort, Stream};
use crate::observe::Observer;
use crate::context::Reporter;
use crate::source::Source;
use crate::{Context, Failure, TransferOptions};

/// What a remote run needs before its roles can start.
pub struct Start {
    /// What both ends agreed on.
    pub session: Session,
    /// What the user wants. A server's filter rules are replaced by those that arrive.
    pub options: TransferOptions,
    /// Where events go.
    pub observer: Arc<dyn Observer>,
    /// The way of this end's notices; a server's observer holds a clone.
    pub notices: NoticePort,
    /// Which role reports items.
    pub reporter: Reporter,
    /// Id maps of a receiving side.
    pub ids: IdMap,
    /// Set by a signal handler.
    pub interrupted: Arc<AtomicBool>,
    /// Bytes to and from the peer, as the handshake left them.
    pub stream: Stream,
    /// Whether the peer forwards the names of `--files-from` to this (sending) end.
    pub names_arrive: bool,
}

/// A remote run whose roles can start.
pub struct Begun {
    /// What the roles share.
    pub context: Arc<Context>,
    /// The link to the peer.
    pub connection: Connection,
    /// Names that the peer forwarded, if it was to.
    pub names: Option<Vec<Vec<u8>>>,
}

/// Exchanges what precedes the file list and starts the link's threads.
pub fn begin(_start: Start) -> Result<Begun, Failure> {
    todo!()
}

/// What a receiving end is told by its arguments.
pub struct Target {
    /// The destination as named.
    pub path: Vec<u8>,
    /// Names of `--files-from` that this end forwards to the sender.
    pub forward: Option<ForwardedNames>,
    /// What a client asked for: names beyond it are refused. Nothing: the check is off.
    pub requested: Option<Requested>,
}

/// A `--files-from` file on the receiving end.
pub struct ForwardedNames {
    /// The open file.
    pub file: Box<dyn Read + Send>,
    /// Whether its names end in NUL (`--from0`) rather than at line ends.
    pub nul_separated: bool,
}

/// The source arguments of a pull, host (or module) removed, and names of a local `--files-from`.
#[derive(Debug, Clone, Default)]
pub struct Requested {
    /// Source arguments.
    pub arguments: Vec<Vec<u8>>,
    /// Names below the single source argument.
    pub names: Option<Vec<Vec<u8>>>,
}

/// What both ends of a local run would have agreed on.
#[derive(Debug, Clone, Copy)]
pub struct LocalChoice {
    /// `--protocol`, or the newest.
    pub version: Version,
    /// Sum of blocks and files.
    pub transfer_sum: SumKind,
    /// Sum of `-c`.
    pub list_sum: SumKind,
    /// `--checksum-seed`; 0 takes one from the clock.
    pub seed: i32,
}

/// Returns the session of a local run.
pub fn local_session(_options: &TransferOptions, _choice: LocalChoice) -> Session {
    todo!()
}

/// Returns which optional fields entries and items carry.
pub fn layout(_options: &TransferOptions) -> Layout {
    todo!()
}

/// Whether this end's options allow incremental recursion (the client's letter `i`; the server's
/// own test).
pub fn allows_incremental(_options: &TransferOptions, _direction: Direction) -> bool {
    todo!()
}

/// Copies on one machine: three roles, typed links.
pub fn local(_ctx: Arc<Context>, _source: Source, _destination: &[u8]) -> Result<(), Failure> {
    todo!()
}

/// Sends to a peer: the client of a push, or the server of a pull.
pub fn sending(_ctx: Arc<Context>, _connection: Connection, _source: Source) -> Result<(), Failure> {
    todo!()
}

/// Receives from a peer: the client of a pull, or the server of a push.
pub fn receiving(_ctx: Arc<Context>, _connection: Connection, _target: Target) -> Result<(), Failure> {
    todo!()
}
