//! What the three roles say to each other: the whole transfer in three enums.
//!
//! ```text
//! generator ── ToSender ──► sender ── ToReceiver<L> ──► receiver
//!     ▲                                                    │
//!     └──────────────────── FromReceiver ──────────────────┘
//! ```
//!
//! The local link passes these values as they are; the remote link passes them through
//! [`crate::codec`]. Wire: protocol/doc/20-transfer.md#2-one-request-receiving-side---sending-side-and-its-reply

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;

use crate::flist::{IoErrors, Ndx, Segment};
use crate::transfer::{BlockSignature, DeleteCounts, Item, SumHead, Token, TransferStats};

/// Generator to sender.
#[derive(Debug)]
pub enum ToSender {
    /// Nothing to send, only to report.
    Item {
        /// The entry, or the gap index of its segment.
        ndx: Ndx,
        /// What differs.
        item: Item,
    },
    /// File data is wanted. In a dry run `basis` is the whole-file signature and no data follows.
    Want {
        /// The entry.
        ndx: Ndx,
        /// What differs; has `TRANSFER`.
        item: Item,
        /// Sums of the basis; [`BlockSignature::whole_file`] asks for everything.
        basis: BlockSignature,
    },
    /// The file is in place: with `--remove-source-files` the sender may unlink it.
    Succeeded(Ndx),
    /// The end of a segment, of a phase, or of the session: the ladder tells which.
    Done,
    /// Deletion statistics.
    Deleted(DeleteCounts),
}

/// Sender to receiver. `L` is what a sender on the same machine can hand over instead of bytes;
/// on the wire it is [`Infallible`], so it cannot even be constructed there.
#[derive(Debug, Clone)]
pub enum ToReceiver<L = Infallible> {
    /// A file list: the first, or one directory's.
    Segment(Arc<Segment>),
    /// No more segments follow. A whole list is followed by it at once.
    ListEnd,
    /// Echo of an item without data.
    Item {
        /// The entry, or a gap index.
        ndx: Ndx,
        /// As asked.
        item: Item,
    },
    /// Echo of a wanted item; its tokens follow (none in a dry run, nor `End`).
    Begin {
        /// The entry.
        ndx: Ndx,
        /// As asked.
        item: Item,
        /// Echo of the sum head: how the basis was cut.
        head: SumHead,
    },
    /// A piece of the file that was begun.
    Token(Token),
    /// The open source itself, in place of all tokens.
    Local(L),
    /// The end of the file that was begun.
    End {
        /// Sum of the whole file; empty after [`ToReceiver::Local`], where nothing is hashed.
        sum: Bytes,
    },
    /// The sender cannot send this file.
    NotSent(Ndx),
    /// The sender's error bits changed after the list.
    IoErrors(IoErrors),
    /// Echo of a `Done`.
    Done,
    /// A server's echo of the deletion statistics.
    Deleted(DeleteCounts),
    /// A server's statistics, after the last phase.
    Stats(TransferStats),
}

/// What became of a wanted file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// In place and verified.
    Placed,
    /// Verified, waiting for the phase of delayed updates.
    Delayed,
    /// Failed verification: ask again with full sums.
    Redo,
    /// Given up, with its error already reported.
    Failed,
    /// The sender did not send it.
    NotSent,
}

/// Receiver to generator.
#[derive(Debug)]
pub enum FromReceiver {
    /// A new segment, as soon as it arrived.
    Segment(Arc<Segment>),
    /// No more segments.
    ListEnd,
    /// A wanted file is finished.
    Finished(Ndx, Fate),
    /// A batch file goes on only when so many segments are walked.
    Walk(u32),
    /// The sender's echo of the n-th `Done`, counted from 1.
    DoneSeen(u32),
}
