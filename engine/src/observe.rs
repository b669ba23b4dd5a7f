//! What the engine reports while it works: typed events, worded and printed by `cli`.
//!
//! Events are borrowed and sent from the thread of the role where they happen; each role sends
//! its own in list order. An observer must not block for long.

use std::io;

use suisei_protocol::flist::{EntryRef, FileKind, Ndx, RelPath};
use suisei_protocol::mux::TextKind;
use suisei_protocol::transfer::Item;

use crate::trace::Trace;
use crate::Failure;

/// Receives events. Called from several threads.
pub trait Observer: Send + Sync {
    /// Takes one event.
    fn event(&self, event: Event<'_>);
}

/// Which role of which end speaks: the `[WHO]` of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The sender.
    Sender,
    /// The generator.
    Generator,
    /// The receiver.
    Receiver,
    /// The receiving side before it splits (`Receiver`).
    ReceivingSide,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Worth saying; no effect on the exit code by itself.
    Warning,
    /// An error; no effect on the exit code by itself.
    Error,
    /// An error that makes the exit code 23.
    Transfer,
}

/// Something went wrong with one item; the run goes on.
#[derive(Debug)]
pub struct Problem<'a> {
    /// Who met it.
    pub who: Who,
    /// How bad it is.
    pub class: Class,
    /// What happened.
    pub what: What<'a>,
}

/// What went wrong.
#[derive(Debug)]
pub enum What<'a> {
    /// A system call: `rsync: [WHO] CALL "PATH" failed: REASON (ERRNO)`.
    Call {
        /// The wording in front of the name, such as `link_stat` or `recv_generator: mkdir`.
        call: &'static str,
        /// The full name of the item.
        path: &'a [u8],
        /// The reason.
        error: &'a io::Error,
    },
    /// The same without the word `failed`: `rsync: [WHO] TEXT "PATH": REASON (ERRNO)`, such as
    /// `send_files failed to open`.
    Reason {
        /// The wording in front of the name.
        text: &'static str,
        /// The full name of the item.
        path: &'a [u8],
        /// The reason.
        error: &'a io::Error,
    },
    /// A system call on a name that stands inside its wording, verbatim:
    /// `rsync: [WHO] BEFORE PATH AFTER: REASON (ERRNO)` without the blanks around PATH, such as
    /// `delete_file: unlink(X) failed` or `symlink "X" -> "Y" failed`.
    Around {
        /// Text in front.
        before: &'static str,
        /// The name, as the text wants it.
        path: &'a [u8],
        /// Text behind.
        after: &'a [u8],
        /// The reason.
        error: &'a io::Error,
    },
    /// A sentence around a name: BEFORE, then PATH, then AFTER; no `[WHO]`, no quotes added.
    Sentence {
        /// Text in front.
        before: &'static str,
        /// The name, as the text wants it.
        path: &'a [u8],
        /// Text behind.
        after: &'static str,
    },
}

/// A line of information about one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note<'a> {
    /// `X is uptodate` (info NAME2).
    UpToDate,
    /// The same of a directory that an alternate one is like: `X/ is uptodate`.
    DirectoryUpToDate,
    /// `X`: only attributes were set (info NAME2).
    Adjusted,
    /// `X exists` and why nothing was done (info SKIP1; the reason at SKIP2).
    Exists(&'static str),
    /// `X is newer` (info SKIP1).
    Newer,
    /// `X is over max-size` (info SKIP1).
    OverMaxSize,
    /// `X is under min-size` (info SKIP1).
    UnderMinSize,
    /// `not creating new file "X"` or `directory` (info SKIP1).
    NotCreating(FileKind),
    /// `skipping non-regular file "X"` (info NONREG).
    NonRegular,
    /// `skipping directory X`.
    SkippingDirectory,
    /// `cannot delete non-empty directory: X`.
    NotEmpty,
    /// `cannot delete mount point: X` (info MOUNT).
    MountPoint,
    /// `sender removed X` (info REMOVE).
    SenderRemoved,
    /// `ignoring unsafe symlink "X" -> "Y"` (info SYMSAFE).
    UnsafeLinkIgnored(&'a [u8]),
    /// `copying unsafe symlink "X" -> "Y"` (info SYMSAFE).
    UnsafeLinkCopied(&'a [u8]),
    /// `WARNING: X failed verification -- update STATE (will try again).` (info NAME1, or any
    /// itemizing); holds the state.
    FailedVerification(&'static str),
    /// `(Skipping batched update for "X")`.
    RecordSkipped,
    /// `rsync: [generator] link TEXT` (info NAME1): a file could not be linked to an alternate
    /// directory's, and is copied instead; holds both full names and the reason.
    NotLinked(&'a [u8]),
    /// `backed up X to Y` (info BACKUP).
    BackedUp(&'a [u8]),
}

/// Where in its life an item is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Its data is about to move (transfers only).
    Begun,
    /// Nothing more will happen to it.
    Finished,
}

/// One item of the transfer, as the reporting role of the client sees it. A transfer is reported
/// twice, as begun and as finished (in a dry run one right after the other); an item without
/// data once, as finished.
#[derive(Debug)]
pub struct ItemReport<'a> {
    /// Begun or finished.
    pub moment: Moment,
    /// Index, for telling items apart.
    pub ndx: Ndx,
    /// The entry.
    pub entry: EntryRef<'a>,
    /// What differs.
    pub item: &'a Item,
    /// The name with its source prefix, for `%f`; on a receiver the plain name.
    pub long_name: &'a [u8],
    /// Whether the entry's group can be given here (`%G`): `DEFAULT` if not.
    pub has_group: bool,
    /// Bytes moved in the direction of the data, raw (`%b`); 0 while begun.
    pub data_bytes: u64,
    /// Bytes moved against it (`%c`); 0 while begun.
    pub sum_bytes: u64,
    /// Sum of the whole file, if one was made (`%C`).
    pub sum: Option<&'a [u8]>,
}

/// How far a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the file done so far.
    pub offset: u64,
    /// Size of the file.
    pub size: u64,
    /// Whether this is the file's last report.
    pub finished: bool,
    /// Number of files transferred so far, this one included when finished.
    pub transferred: u64,
    /// Index-wise items still to be looked at.
    pub to_check: u64,
    /// Items known so far.
    pub known: u64,
    /// Sum of the sizes of all files known so far, for `--info=progress2`.
    pub total_size: u64,
    /// Whether the list is complete (`to-chk` rather than `ir-chk`).
    pub list_complete: bool,
}

/// What happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The list begins to travel.
    ListStarted {
        /// Whether it travels in segments.
        incremental: bool,
    },
    /// A whole list is complete.
    ListFinished {
        /// Number of entries.
        entries: usize,
    },
    /// The destination directory (or, with `--mkpath`, its missing levels) was made.
    DestinationCreated {
        /// The destination as named.
        path: &'a [u8],
        /// Number of directories that `--mkpath` made; 0 for the plain one.
        levels: u32,
    },
    /// Whether block sums will be made (debug FLIST).
    DeltaMode {
        /// False: whole files.
        enabled: bool,
    },
    /// An item of the transfer.
    Item(ItemReport<'a>),
    /// Data moves.
    Progress(Progress),
    /// A list is done with: only the counts tell something.
    ListDone(Progress),
    /// This end ends the run here, before the peer is told. Reported once, after every other
    /// event of the roles; [`Failure::PeerExit`] was already explained by the peer.
    Failed {
        /// Who failed.
        who: Who,
        /// Why.
        failure: &'a Failure,
    },
    /// Something was deleted (or would be).
    Deleted {
        /// Its path below the destination.
        path: RelPath<'a>,
        /// Its kind.
        kind: FileKind,
    },
    /// Information about one item: its name, and what there is to say.
    Note(RelPath<'a>, Note<'a>),
    /// Something went wrong with one item.
    Problem(Problem<'a>),
    /// `IO error encountered -- skipping file deletion`, once.
    DeletionSkipped,
    /// `Deletions stopped due to --max-delete limit (N skipped)`.
    DeleteLimit {
        /// How many deletions were not done.
        skipped: u64,
    },
    /// A text from the peer. Hostile until escaped.
    PeerText(TextKind, &'a [u8]),
    /// An entry to list (`--list-only`).
    Listed(EntryRef<'a>),
    /// Something in the works, for who looks into them.
    Trace(Who, Trace<'a>),
    /// Search totals of the sender (debug DELTASUM).
    MatchTotals {
        /// Blocks matched.
        matches: u64,
        /// Weak sums found in the table.
        hash_hits: u64,
        /// Weak sums whose strong sums differed.
        false_alarms: u64,
        /// Literal bytes.
        data: u64,
    },
}
