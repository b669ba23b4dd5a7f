//! What a pulling client lets into its list: names that it asked for and did not exclude. A
//! directory that is only the parent of something requested is no content directory, whatever the
//! sender says, so that nothing in it is deleted.
//!
//! Wire: protocol/doc/10-file-list.md#the-request-list-check-7

use std::sync::mpsc::Sender;
use std::sync::Arc;

use bstr::ByteSlice;
use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::filter::{Rule, RuleFlags, RuleKind};
use suisei_protocol::flist::{EntryFlags, EntryRef, RelPath, Segment};
use suisei_protocol::message::{FromReceiver, ToReceiver};

use crate::filter::{Chain, FilterSide, Verdict};
use crate::link::Inbox;
use crate::options::Select;
use crate::{Context, Failure};

/// The source arguments of a pull, host (or module) removed, and names of a local `--files-from`.
#[derive(Debug, Clone, Default)]
pub struct Requested {
    /// Source arguments.
    pub arguments: Vec<Vec<u8>>,
    /// Names below the single source argument.
    pub names: Option<Vec<Vec<u8>>>,
}

/// Why a name may be in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// It was asked for, or lies in what was.
    Requested,
    /// It is a parent of something requested.
    Parent,
    /// For none.
    Nothing,
}

/// The compiled request list.
#[derive(Debug)]
struct Requests {
    requested: Chain,
    parents: Chain,
    asks_for_root: bool,
}

impl Requests {
    fn new(requested: &Requested, select: &Select, lists_only: bool) -> Self {
        let mut wanted = Vec::new();
        let mut parents = Vec::new();
        let mut asks_for_root = false;
        for name in requested.names.as_ref().unwrap_or(&requested.arguments) {
            let name = active_part(name, select.relative);
            asks_for_root |= name.is_empty();
            add_rules(&name, select, lists_only, &mut wanted);
            if select.relative {
                for slash in name.find_iter("/") {
                    parents.push(include(&name[..slash], b"", RuleFlags::DIR_ONLY));
                }
            }
        }
        Requests {
            requested: Chain::new(&wanted, FilterSide::Sender, false),
            parents: Chain::new(&parents, FilterSide::Sender, false),
            asks_for_root,
        }
    }

    fn reason(&self, path: RelPath<'_>, is_dir: bool) -> Reason {
        let included = |chain: &Chain| matches!(chain.verdict(path, is_dir), Verdict::Included(_));
        if path.is_root() {
            return if self.asks_for_root { Reason::Requested } else { Reason::Parent };
        }
        if included(&self.requested) {
            Reason::Requested
        } else if is_dir && included(&self.parents) {
            Reason::Parent
        } else {
            Reason::Nothing
        }
    }
}

/// Returns the part of an argument that becomes a name: clean, and empty for the content of the
/// directory that it names.
fn active_part(argument: &[u8], relative: bool) -> Vec<u8> {
    let part = if relative {
        match argument.find("/./") {
            Some(at) => &argument[at + 3..],
            None => argument,
        }
    } else {
        match argument.rfind_byte(b'/') {
            Some(slash) => &argument[slash + 1..],
            None => argument,
        }
    };
    let parts: Vec<&[u8]> = part.split_str("/").filter(|p| !p.is_empty() && *p != b".").collect();
    bstr::join("/", parts)
}

fn has_wildcard(name: &[u8]) -> bool {
    name.iter().any(|b| b"*?[".contains(b))
}

/// Writes a name as a pattern in which backslashes are what the user meant by them.
fn pattern(name: &[u8], is_wild: bool) -> Vec<u8> {
    let name_is_wild = has_wildcard(name);
    let mut out = Vec::with_capacity(name.len() + 4);
    let mut bytes = name.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.peek() {
            Some(b'*' | b'?' | b'[') if name_is_wild => {
                out.push(byte);
                out.extend(bytes.next());
            }
            Some(b']') if !name_is_wild => {}
            _ if is_wild || name_is_wild => out.extend_from_slice(b"\\\\"),
            _ => out.push(byte),
        }
    }
    out
}

fn include(name: &[u8], tail: &[u8], flags: RuleFlags) -> Rule {
    let is_wild = has_wildcard(name) || has_wildcard(tail);
    let pattern = [b"/", &pattern(name, is_wild)[..], tail].concat();
    Rule { kind: RuleKind::Include, flags, pattern }
}

fn add_rules(name: &[u8], select: &Select, lists_only: bool, rules: &mut Vec<Rule>) {
    let inner: &[u8] = if select.recursive {
        b"**"
    } else if select.dirs || lists_only {
        b"*"
    } else {
        b""
    };
    let tail = if name.is_empty() { inner.to_vec() } else { [b"/", inner].concat() };
    if !name.is_empty() {
        rules.push(include(name, b"", RuleFlags::empty()));
    }
    if !inner.is_empty() {
        rules.push(include(name, &tail, RuleFlags::empty()));
    }
    if name.contains(&b'[') {
        // A shell passes a glob on as it stands if nothing matches it.
        let literal = name.replace("[", "\\[");
        rules.push(include(&literal, b"", RuleFlags::empty()));
        if !inner.is_empty() {
            rules.push(include(&literal, &tail, RuleFlags::empty()));
        }
    }
}

/// An inbox that lets no list through which holds what nobody asked for.
pub(crate) struct Checked<I> {
    inner: I,
    requests: Option<Requests>,
    excludes: Option<Chain>,
}

impl<I> Checked<I> {
    /// Wraps the inbox of a receiving side. Without `requested` nothing is checked.
    pub(crate) fn new(ctx: &Context, inner: I, requested: Option<Requested>) -> Self {
        let options = &ctx.options;
        let requested = requested.filter(|_| !options.select.trust_sender);
        let rules = &options.select.filters;
        let has_merge_files = rules.iter().any(|rule| rule.kind == RuleKind::DirMerge);
        let checks_filters = requested.is_some() && !has_merge_files && !rules.is_empty();
        Checked {
            inner,
            requests: requested.map(|r| Requests::new(&r, &options.select, options.report.list_only)),
            excludes: checks_filters.then(|| Chain::new(rules, FilterSide::Sender, options.delete.excluded)),
        }
    }

    fn check(&self, segment: Arc<Segment>) -> Result<Arc<Segment>, Failure> {
        let Some(requests) = &self.requests else { return Ok(segment) };
        for (_, entry) in segment.iter() {
            self.check_entry(requests, entry)?;
        }
        let changed = segment.map_flags(|entry| {
            if entry.is_dir() && requests.reason(entry.path(), true) == Reason::Parent {
                (entry.flags() - EntryFlags::CONTENT_DIR) | EntryFlags::TOP_DIR | EntryFlags::IMPLIED_DIR
            } else {
                entry.flags()
            }
        });
        Ok(changed.map_or(segment, Arc::new))
    }

    fn check_entry(&self, requests: &Requests, entry: EntryRef<'_>) -> Result<(), Failure> {
        let (path, is_dir) = (entry.path(), entry.is_dir());
        let named = || path.as_bytes().to_str_lossy().into_owned();
        if requests.reason(path, is_dir) == Reason::Nothing {
            return Err(Failure::Protocol(PeerMisbehaved::UnrequestedName(named()).into()));
        }
        let excluded = self.excludes.as_ref().is_some_and(|chain| chain.verdict(path, is_dir).is_excluded());
        if excluded && !path.is_root() {
            return Err(Failure::Protocol(PeerMisbehaved::ExcludedName(named()).into()));
        }
        Ok(())
    }

    fn pass<L>(&self, message: ToReceiver<L>) -> Result<ToReceiver<L>, Failure> {
        match message {
            ToReceiver::Segment(segment) => Ok(ToReceiver::Segment(self.check(segment)?)),
            other => Ok(other),
        }
    }
}

impl<L, I: Inbox<ToReceiver<L>>> Inbox<ToReceiver<L>> for Checked<I> {
    fn recv(&mut self) -> Result<ToReceiver<L>, Failure> {
        let message = self.inner.recv()?;
        self.pass(message)
    }

    fn try_recv(&mut self) -> Result<Option<ToReceiver<L>>, Failure> {
        let message = self.inner.try_recv()?;
        message.map(|message| self.pass(message)).transpose()
    }

    fn add_history(&mut self, block: &[u8]) -> Result<(), Failure> {
        self.inner.add_history(block)
    }

    fn wants_history(&self) -> bool {
        self.inner.wants_history()
    }

    fn hurry_by(&mut self, generator: Sender<FromReceiver>) {
        self.inner.hurry_by(generator);
    }

    fn bytes_read(&self) -> u64 {
        self.inner.bytes_read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_names() {
        let table: [(&str, bool, &str); 9] = [
            ("src/", false, ""),
            ("a/src", false, "src"),
            (".", false, ""),
            ("", false, ""),
            ("a//./b/c/", true, "b/c"),
            ("/abs/dir", true, "abs/dir"),
            ("./x", true, "x"),
            ("dir/..", false, ".."),
            ("a/./b", false, "b"),
        ];
        for (argument, relative, expected) in table {
            assert_eq!(active_part(argument.as_bytes(), relative).as_bstr(), expected, "{argument}");
        }
    }

    #[test]
    fn backslashes_mean_what_the_remote_shell_makes_of_them() {
        assert_eq!(pattern(br"a\b", false), br"a\b");
        assert_eq!(pattern(br"a\b", true), br"a\\b");
        assert_eq!(pattern(br"a\*b*", true), br"a\*b*");
        assert_eq!(pattern(br"a\q*", true), br"a\\q*");
        assert_eq!(pattern(br"a\]", false), b"a]");
    }

    fn reason(arguments: &[&str], options: (bool, bool), path: &str, is_dir: bool) -> Reason {
        let select = Select { recursive: options.0, relative: options.1, ..Select::default() };
        let arguments = arguments.iter().map(|a| a.as_bytes().to_vec()).collect();
        let requests = Requests::new(&Requested { arguments, names: None }, &select, false);
        requests.reason(RelPath::new(path.as_bytes()), is_dir)
    }

    #[test]
    fn only_requested_names_pass() {
        use Reason::{Nothing, Parent, Requested};
        assert_eq!(reason(&["d/f"], (false, false), "f", false), Requested);
        assert_eq!(reason(&["d/f"], (false, false), "g", false), Nothing);
        assert_eq!(reason(&["src"], (true, false), "src/a/b", false), Requested);
        assert_eq!(reason(&["src"], (true, false), "other/a", false), Nothing);
        assert_eq!(reason(&["src/"], (true, false), "a/b", false), Requested);
        assert_eq!(reason(&["src/"], (true, false), ".", true), Requested);
        assert_eq!(reason(&["src"], (true, false), ".", true), Parent);
        assert_eq!(reason(&["a/b/c"], (true, true), "a/b", true), Parent);
        assert_eq!(reason(&["a/b/c"], (true, true), "a/x", true), Nothing);
        assert_eq!(reason(&["a/b/c"], (true, true), "a/b/c/d", false), Requested);
        assert_eq!(reason(&["*.c"], (false, false), "x.c", false), Requested);
        assert_eq!(reason(&["*.c"], (false, false), "x.h", false), Nothing);
    }
}
