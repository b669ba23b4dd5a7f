//! What the works report when somebody looks into them (`--debug`): typed, and only on demand.
//!
//! Wire: protocol/doc/22-output.md#3-verbosity---info---debug

use suisei_protocol::filter::{Rule, RuleFlags, RuleKind};
use suisei_protocol::flist::{FileKind, IdKind, Ndx, Rdev, RelPath, Segment};
use suisei_protocol::transfer::SumHead;

use crate::context::Context;
use crate::filter::Chain;
use crate::observe::{Event, Who};
use crate::tree::{Attributes, Meta};

/// What can be looked into, each by levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Backups.
    Backup,
    /// Deletions.
    Del,
    /// Blocks and their sums.
    Deltasum,
    /// Filters.
    Filter,
    /// File lists.
    Flist,
    /// The generator.
    Genr,
    /// Owners and groups.
    Own,
    /// The receiver.
    Recv,
    /// The sender.
    Send,
}

/// Number of topics.
const TOPICS: usize = Topic::Send as usize + 1;

/// The level of each topic; 0: not wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Topics([u8; TOPICS]);

impl Topics {
    /// Sets the level of a topic.
    pub fn set(&mut self, topic: Topic, level: u8) {
        self.0[topic as usize] = level;
    }

    /// Returns the level of a topic.
    pub fn level(&self, topic: Topic) -> u8 {
        self.0[topic as usize]
    }
}

/// One thing that happened in the works.
#[derive(Debug)]
pub enum Trace<'a> {
    /// A rule decided about a name (FILTER 1).
    Judged {
        /// The name.
        path: &'a [u8],
        /// Whether it is a directory.
        is_dir: bool,
        /// Whether it is excluded: hidden from the transfer, or protected from deletion.
        is_excluded: bool,
        /// The rule's pattern, a directory's slash included.
        pattern: &'a [u8],
        /// The list that the rule stands in, if it is not the user's: ` [per-dir NAME]`.
        list: &'a [u8],
    },
    /// A rule counts from here on (FILTER 2).
    RuleAdded(&'a Rule),
    /// The filters of a directory apply from here on (FILTER 2); its full name.
    FiltersEntered(&'a [u8]),
    /// They apply no more (FILTER 2).
    FiltersLeft,
    /// An item is looked at for a list (FLIST 2): its path, and whether an argument named it.
    Listing(&'a [u8], Origin),
    /// The first list is made (FLIST 2), and sent (FLIST 3).
    ListMade,
    /// A list begins to arrive for a directory of this number (FLIST 2).
    ListArrives(i32),
    /// A name of a list has arrived (FLIST 2).
    NameArrived(&'a [u8]),
    /// A list has arrived whole, with so many names (FLIST 2).
    ListArrived(usize),
    /// The numbers of a list (FLIST 3): its first index and its length.
    ListRange(Ndx, usize),
    /// No list follows (FLIST 3).
    ListsEnd,
    /// The generator starts (GENR 1).
    GeneratorStarts,
    /// The generator comes to an entry (GENR 1).
    Considered(&'a [u8], Ndx),
    /// The generator enters a phase (GENR 1).
    GeneratorPhase(u8),
    /// The generator is done (GENR 1).
    GeneratorEnds,
    /// A receiving side starts (RECV 1).
    ReceivingSideStarts,
    /// The destination is looked at, for so many entries (RECV 1).
    DestinationNamed(usize, &'a [u8]),
    /// The receiver starts, with so many entries (RECV 1).
    ReceiverStarts(usize),
    /// The receiver comes to an item (RECV 1).
    Received(&'a [u8]),
    /// A finished file gets its name (RECV 1).
    Renaming(&'a [u8], &'a [u8]),
    /// The receiver enters a phase (RECV 1).
    ReceiverPhase(u8),
    /// The receiver is done (RECV 1).
    ReceiverEnds,
    /// A sending side starts (SEND 1).
    SendingSideStarts,
    /// The sender starts to answer (SEND 1).
    SenderStarts,
    /// The sender comes to an item (SEND 1).
    Asked(Ndx, &'a [u8]),
    /// A file was sent (SEND 1).
    Sent(&'a [u8]),
    /// The sender enters a phase (SEND 1).
    SenderPhase(u8),
    /// The sender is done (SEND 1).
    SenderEnds,
    /// A basis is summed for an entry (DELTASUM 2), of this length.
    Summed(Ndx, SumHead),
    /// A source is open (DELTASUM 2): its name and length; the request's sums.
    SourceOpened(&'a [u8], u64, SumHead),
    /// A block was found (DELTASUM 2).
    Matched {
        /// Where in the source.
        at: u64,
        /// End of what was matched before.
        last: u64,
        /// The block.
        block: u32,
        /// Its length.
        len: usize,
    },
    /// The source was searched (DELTASUM 2).
    Searched(SumHead),
    /// What the search of one file counted (DELTASUM 2).
    Tallied {
        /// Weak sums whose strong sums differed.
        false_alarms: u64,
        /// Weak sums found in the table.
        hash_hits: u64,
        /// Blocks matched.
        matches: u64,
    },
    /// A basis is open at the receiver (DELTASUM 2).
    BasisOpened(&'a [u8], u64),
    /// Literal bytes have arrived for an offset (DELTASUM 3).
    DataArrived(usize, u64),
    /// The sum of a file has arrived (DELTASUM 2).
    SumArrived,
    /// A directory is searched for what is extraneous (DEL 2).
    Scanned(&'a [u8]),
    /// An item is to be deleted (DEL 2); nested: with its directory.
    Deleting {
        /// Its path.
        path: &'a [u8],
        /// Its mode, kind included.
        mode: u32,
        /// Why it goes.
        why: Going,
    },
    /// The content of a directory is deleted (DEL 3).
    DeletingContent(&'a [u8], Going),
    /// A device, pipe or socket is made (GENR 1).
    NodeMade {
        /// Its path.
        path: &'a [u8],
        /// Its mode, kind included.
        mode: u32,
        /// Its device number.
        rdev: Rdev,
    },
    /// An owner or group is set (OWN 1).
    OwnerSet {
        /// User or group.
        kind: IdKind,
        /// The item.
        path: &'a [u8],
        /// As it is.
        from: u32,
        /// As it will be.
        to: u32,
    },
    /// A backup was made (BACKUP 1).
    BackedUp(&'a [u8], BackupBy),
    /// The groups that this process is in (OWN 2).
    OwnGroups(&'a [u32]),
    /// An id was mapped (OWN 2).
    Mapped {
        /// User or group.
        kind: IdKind,
        /// The sender's number.
        id: u32,
        /// Its name there.
        name: &'a [u8],
        /// Our number.
        to: u32,
    },
}

/// Why an item goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Going {
    /// It is extraneous.
    Extraneous,
    /// Its directory goes.
    Nested,
    /// It stands where an item of another kind will be.
    MakesWay {
        /// That kind.
        kind: FileKind,
        /// Whether the content of a directory goes too.
        recurses: bool,
    },
}

/// How an item came to be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An argument names it.
    Argument,
    /// Its directory was read.
    Directory,
}

/// How a backup was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupBy {
    /// The item was renamed.
    Rename,
    /// The item got a second name.
    Link,
    /// The item was copied or made anew.
    Copy,
}

impl Context {
    /// Whether somebody looks into a topic at a level.
    pub fn traces(&self, topic: Topic, level: u8) -> bool {
        self.options.report.traces.level(topic) >= level
    }

    /// Reports what happened if somebody looks.
    pub fn trace(&self, topic: Topic, level: u8, who: Who, trace: Trace<'_>) {
        if self.traces(topic, level) {
            self.report(Event::Trace(who, trace));
        }
    }
}

/// Reports which rule decides about a name, if one does.
pub(crate) fn trace_rule(ctx: &Context, who: Who, chain: &Chain, path: RelPath<'_>, is_dir: bool) {
    let Some((rule, list)) = chain.explain(path, is_dir) else { return };
    let slash: &[u8] = if rule.flags.contains(RuleFlags::DIR_ONLY) { b"/" } else { b"" };
    let is_secret = rule.flags.contains(RuleFlags::FROM_FILE) || list.starts_with(b" [per-dir ");
    let pattern = match is_secret {
        true => b"<rule from a file read earlier>".to_vec(),
        false => [&rule.pattern[..], slash].concat(),
    };
    let is_excluded = rule.kind != RuleKind::Include;
    let path = path.as_bytes();
    ctx.report(Event::Trace(
        who,
        Trace::Judged { path, is_dir, is_excluded, pattern: &pattern, list: &list },
    ));
}

/// Reports a list that has arrived, name by name.
pub(crate) fn trace_list(ctx: &Context, who: Who, segment: &Segment) {
    if !ctx.traces(Topic::Flist, 2) {
        return;
    }
    if let Some((dir, _)) = segment.dir() {
        ctx.trace(Topic::Flist, 2, who, Trace::ListArrives(dir.0));
    }
    for (_, entry) in segment.iter() {
        ctx.trace(Topic::Flist, 2, who, Trace::NameArrived(entry.wire_path()));
    }
    ctx.trace(Topic::Flist, 2, who, Trace::ListArrived(segment.len()));
    ctx.trace(Topic::Flist, 3, who, Trace::ListRange(segment.start(), segment.len()));
}

/// Reports which owner and group an item is about to get.
pub(crate) fn trace_owner(ctx: &Context, who: Who, path: &[u8], made: &Meta, want: &Attributes) {
    for (kind, from, to) in [(IdKind::User, made.uid, want.uid), (IdKind::Group, made.gid, want.gid)] {
        if let Some(to) = to.filter(|to| *to != from) {
            ctx.trace(Topic::Own, 1, who, Trace::OwnerSet { kind, path, from, to });
        }
    }
}
