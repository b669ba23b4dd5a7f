//! The lines of `--debug`: what somebody sees who looks into the works.
//!
//! They name functions of stock's, which users know and search for.
//! Wire: protocol/doc/22-output.md#3-verbosity---info---debug

use bstr::ByteSlice;
use suisei_engine::observe::Who;
use suisei_engine::trace::{BackupBy, Going, Origin, Topic, Topics, Trace};
use suisei_protocol::filter::{Rule, RuleFlags, RuleKind};
use suisei_protocol::flist::{FileKind, IdKind};
use suisei_protocol::transfer::SumHead;

use super::human::Human;
use super::info::{Debug, DebugLevels};
use super::words::role;
use crate::remote::spec::{Kind, Machine};

/// Returns what the engine is to report for these levels.
pub fn topics(levels: &DebugLevels) -> Topics {
    let mut topics = Topics::default();
    for (topic, word) in [
        (Topic::Backup, Debug::Backup),
        (Topic::Del, Debug::Del),
        (Topic::Deltasum, Debug::Deltasum),
        (Topic::Filter, Debug::Filter),
        (Topic::Flist, Debug::Flist),
        (Topic::Genr, Debug::Genr),
        (Topic::Own, Debug::Own),
        (Topic::Recv, Debug::Recv),
        (Topic::Send, Debug::Send),
    ] {
        topics.set(topic, levels.of(word));
    }
    topics
}

/// Which ends of a run report through this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// In the process that the user started, the other end elsewhere.
    Here,
    /// In the process that a client started.
    There,
    /// Both in one process.
    Both,
}

/// Returns the lines of a trace, without newlines: names in them may hold some.
pub fn lines(who: Who, trace: &Trace<'_>, ends: Ends) -> Vec<Vec<u8>> {
    let name = role(who);
    let text = |text: String| vec![text.into_bytes()];
    let named =
        |before: &str, path: &[u8], after: &str| vec![[before.as_bytes(), path, after.as_bytes()].concat()];
    let pid = std::process::id();
    match *trace {
        Trace::Judged { path, is_dir, is_excluded, pattern, list } => {
            let verb = match (who, is_excluded) {
                (Who::Generator, true) => "protecting",
                (Who::Generator, false) => "risking",
                (_, true) => "hiding",
                (_, false) => "showing",
            };
            let kind = if is_dir { "directory" } else { "file" };
            let front = format!("[{name}] {verb} {kind} ");
            vec![[front.as_bytes(), path, b" because of pattern ", pattern, list].concat()]
        }
        Trace::RuleAdded(rule) => vec![rule_added(name, rule)],
        Trace::FiltersEntered(dir) => named(&format!("[{name}] pushing local filters for "), dir, ""),
        Trace::FiltersLeft => text(format!("[{name}] popping local filters")),
        Trace::Listing(path, origin) => {
            let depth = if origin == Origin::Argument { 0 } else { 2 };
            named(&format!("[{name}] make_file("), path, &format!(",*,{depth})"))
        }
        Trace::ListMade => text("send_file_list done".into()),
        Trace::ListArrives(dir) => text(format!("[{name}] receiving flist for dir {dir}")),
        Trace::NameArrived(path) => named("recv_file_name(", path, ")"),
        Trace::ListArrived(count) => {
            vec![format!("received {count} names").into_bytes(), b"recv_file_list done".to_vec()]
        }
        Trace::ListRange(start, used) => {
            let high = i64::try_from(used).unwrap_or(i64::MAX) - 1;
            text(format!("[{name}] flist start={}, used={used}, low=0, high={high}", start.0))
        }
        Trace::ListsEnd => text(format!("[{name}] flist_eof=1")),
        Trace::GeneratorStarts => text(format!("generator starting pid={pid}")),
        Trace::Considered(path, ndx) => named("recv_generator(", path, &format!(",{})", ndx.0)),
        Trace::GeneratorPhase(phase) => text(format!("generate_files phase={phase}")),
        Trace::GeneratorEnds => text("generate_files finished".into()),
        Trace::ReceivingSideStarts if ends == Ends::Here => Vec::new(),
        Trace::ReceivingSideStarts => text(format!("server_recv(2) starting pid={pid}")),
        Trace::DestinationNamed(count, path) => named(&format!("get_local_name count={count} "), path, ""),
        Trace::ReceiverStarts(count) => text(format!("recv_files({count}) starting")),
        Trace::Received(path) => named("recv_files(", path, ")"),
        Trace::Renaming(from, to) => vec![[b"renaming ", from, b" to ", to].concat()],
        Trace::ReceiverPhase(phase) => text(format!("recv_files phase={phase}")),
        Trace::ReceiverEnds => text("recv_files finished".into()),
        Trace::SendingSideStarts if ends != Ends::There => Vec::new(),
        Trace::SendingSideStarts => text(format!("server_sender starting pid={pid}")),
        Trace::SenderStarts => text("send_files starting".into()),
        Trace::Asked(ndx, path) => named(&format!("send_files({}, ", ndx.0), path, ")"),
        Trace::Sent(path) => named("sender finished ", path, ""),
        Trace::SenderPhase(phase) => text(format!("send_files phase={phase}")),
        Trace::SenderEnds => text("send files finished".into()),
        _ => work_lines(trace),
    }
}

/// The same for blocks, deletions, backups and owners.
fn work_lines(trace: &Trace<'_>) -> Vec<Vec<u8>> {
    let text = |text: String| vec![text.into_bytes()];
    let named =
        |before: &str, path: &[u8], after: &str| vec![[before.as_bytes(), path, after.as_bytes()].concat()];
    match *trace {
        Trace::Summed(ndx, head) => {
            vec![format!("generating and sending sums for {}", ndx.0).into_bytes(), sums(head)]
        }
        Trace::SourceOpened(path, size, head) => {
            let mut lines = named("send_files mapped ", path, &format!(" of size {}", number(size)));
            lines.extend(named("calling match_sums ", path, ""));
            if head.count > 0 {
                lines.push(b"built hash table".to_vec());
                lines.push(format!("hash search b={} len={}", head.block_len, number(size)).into_bytes());
            }
            lines
        }
        Trace::Matched { at, last, block, len } => {
            text(format!("match at {at} last_match={last} j={block} len={len} n={}", at.saturating_sub(last)))
        }
        Trace::Searched(head) if head.count == 0 => text("sending file_sum".into()),
        Trace::Searched(_) => vec![b"done hash search".to_vec(), b"sending file_sum".to_vec()],
        Trace::Tallied { false_alarms, hash_hits, matches } => {
            text(format!("false_alarms={false_alarms} hash_hits={hash_hits} matches={matches}"))
        }
        Trace::BasisOpened(path, size) => named("recv mapped ", path, &format!(" of size {}", number(size))),
        Trace::DataArrived(len, at) => text(format!("data recv {len} at {}", number(at))),
        Trace::SumArrived => text("got file_sum".into()),
        Trace::Scanned(path) => named("delete_in_dir(", path, ")"),
        Trace::Deleting { path, mode, why } => {
            named("delete_item(", path, &format!(") mode={mode:o} flags={}", flags(why)))
        }
        Trace::DeletingContent(path, why) => {
            let flags = if why == Going::Nested { 6 } else { flags(why) };
            named("delete_dir_contents(", path, &format!(") flags={flags}"))
        }
        Trace::NodeMade { path, mode, rdev } => {
            named("mknod(", path, &format!(", 0{mode:o}, [{},{}])", rdev.major, rdev.minor))
        }
        Trace::OwnerSet { kind, path, from, to } => {
            named(&format!("set {} of ", id_kind(kind)), path, &format!(" from {from} to {to}"))
        }
        Trace::BackedUp(path, by) => {
            let how = match by {
                BackupBy::Rename => "RENAME",
                BackupBy::Link => "HLINK",
                BackupBy::Copy => "COPY",
            };
            named(&format!("make_backup: {how} "), path, " successful.")
        }
        Trace::OwnGroups(groups) => {
            let noun = if groups.len() == 1 { "gid" } else { "gids" };
            let list: String = groups.iter().map(|group| format!(" {group}")).collect();
            text(format!("process has {} {noun}: {list}", groups.len()))
        }
        Trace::Mapped { kind, id, name, to } => {
            let kind = id_kind(kind);
            vec![format!("{kind} {id}({}) maps to {to}", name.as_bstr()).into_bytes()]
        }
        // The rest is about lists and roles.
        _ => Vec::new(),
    }
}

/// Returns the line that shows a rule (FILTER 2), without its newline.
pub fn rule_added(who: &str, rule: &Rule) -> Vec<u8> {
    let mut line = format!("[{who}] add_rule(").into_bytes();
    line.push(match rule.kind {
        RuleKind::Include => b'+',
        RuleKind::Exclude => b'-',
        RuleKind::DirMerge => b':',
    });
    for (flag, letter) in [
        (RuleFlags::ABSOLUTE, b'/'),
        (RuleFlags::NEGATE, b'!'),
        (RuleFlags::NO_INHERIT, b'n'),
        (RuleFlags::WORDS, b'w'),
        (RuleFlags::EXCLUDE_SELF, b'e'),
        (RuleFlags::XATTR, b'x'),
        (RuleFlags::SENDER, b's'),
        (RuleFlags::RECEIVER, b'r'),
        (RuleFlags::PERISHABLE, b'p'),
    ] {
        if rule.flags.contains(flag) {
            line.push(letter);
        }
    }
    line.push(b' ');
    line.extend_from_slice(&rule.pattern);
    let tail: &[u8] = if rule.flags.contains(RuleFlags::DIR_ONLY) { b"/)" } else { b")" };
    line.extend_from_slice(tail);
    if rule.kind != RuleKind::DirMerge && rule.flags.contains(RuleFlags::CVS) {
        line.extend_from_slice(b" [global CVS]");
    }
    line
}

/// Returns the lines that take a command apart (CMD 2), each with its newline: the shell, the machine
/// and the path that were named, and the words that are run.
pub fn command_words(shell: Option<&[u8]>, machine: &Machine, path: &[u8], words: &[Vec<u8>]) -> Vec<u8> {
    let null = |text: Option<&[u8]>| text.unwrap_or(b"<NULL>").to_vec();
    let host = Some(&machine.host[..]).filter(|_| machine.kind != Kind::Here);
    let mut lines = [
        b"cmd=".to_vec(),
        null(shell),
        b" machine=".to_vec(),
        null(host),
        b" user=".to_vec(),
        null(machine.user.as_deref()),
        b" path=".to_vec(),
        path.to_vec(),
        b"\n".to_vec(),
    ]
    .concat();
    for (at, word) in words.iter().enumerate() {
        lines.extend([format!("cmd[{at}]=").as_bytes(), word, b" "].concat());
    }
    lines.push(b'\n');
    lines
}

/// Returns the line that shows words behind `front` (CMD 1), without its newline. Unusual words
/// stand in quotes.
pub fn shown_words(front: &str, words: &[Vec<u8>]) -> Vec<u8> {
    let mut line = front.as_bytes().to_vec();
    for word in words {
        let plain = |b: &u8| b.is_ascii_alphanumeric() || b",.-_=+@/".contains(b);
        let quote: &[u8] = if word.is_empty() || !word.iter().all(plain) { b"\"" } else { b"" };
        line.extend([b" ", quote, word, quote].concat());
    }
    line.extend(format!("  ({} args)", words.len()).into_bytes());
    line
}

fn number(n: u64) -> String {
    Human::Plain.bytes(n)
}

fn id_kind(kind: IdKind) -> &'static str {
    match kind {
        IdKind::User => "uid",
        IdKind::Group => "gid",
    }
}

/// The number that stands for a reason.
fn flags(why: Going) -> u8 {
    match why {
        Going::Extraneous => 2,
        Going::Nested => 4,
        Going::MakesWay { kind, recurses } => {
            let way = match kind {
                FileKind::Directory => 16,
                FileKind::Symlink => 32,
                kind if kind.is_device() => 64,
                kind if kind.is_special() => 128,
                _ => 8,
            };
            way + if recurses { 2 } else { 0 }
        }
    }
}

fn sums(head: SumHead) -> Vec<u8> {
    let SumHead { count, block_len, sum_len, remainder, .. } = head;
    let length = head.basis_len();
    format!("count={count} rem={remainder} blength={block_len} s2length={sum_len} flength={length}")
        .into_bytes()
}
