//! Alternate directories (`--compare-dest`, `--copy-dest`, `--link-dest`): opened once, each a
//! tree of its own, below which everything is looked up that the list or a peer names.
//!
//! Wire: protocol/doc/20-transfer.md#8---compare-dest---copy-dest---link-dest

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use bstr::ByteSlice;
use suisei_protocol::flist::RelPath;

use crate::observe::{Class, Problem, What, Who};
use crate::options::AlternateKind;
use crate::tree::{Absent, Dir, SymlinkPolicy, Tree};
use crate::Context;

/// The alternate directories of a run, in the order they were named.
#[derive(Debug, Clone, Default)]
pub struct Alternates {
    members: Vec<Member>,
}

#[derive(Debug, Clone)]
struct Member {
    /// For messages.
    name: Vec<u8>,
    /// Nothing if it cannot be used: it keeps its number.
    tree: Option<Arc<Tree>>,
}

impl Alternates {
    /// Opens the directories that the options name, relative ones from the destination. One that is
    /// missing is reported and left out.
    pub fn open(ctx: &Context, destination: &Tree) -> Alternates {
        let options = &ctx.options.alternates;
        let open = |named: &Vec<u8>| {
            let name = full_name(destination, named);
            let path = Path::new(OsStr::from_bytes(&name));
            let trust = &ctx.options.trust;
            let opened = match destination.is_missing() {
                true => Tree::open_trusted(path, SymlinkPolicy::Refuse, trust),
                false if named.is_empty() => destination.open_named(b".", Absent::Refuse, trust),
                false => destination.open_named(named, Absent::Refuse, trust),
            };
            let tree = match opened.map(|tree| tree.keeping(ctx.privileges())) {
                Ok(tree) => Some(Arc::new(tree)),
                Err(error) => {
                    let before = warning(options.kind, &error);
                    let what = What::Sentence { before, path: &name, after: "" };
                    ctx.report_problem(Problem { who: Who::ReceivingSide, class: Class::Warning, what });
                    None
                }
            };
            Member { name, tree }
        };
        Alternates { members: options.dirs.iter().map(open).collect() }
    }

    /// Returns how many were named.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether none was named.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the directory that holds `path` in the alternate of this number, if both exist.
    pub fn parent(&self, number: usize, path: RelPath<'_>) -> Option<Arc<Dir>> {
        self.members.get(number)?.tree.as_ref()?.parent(path).ok()
    }

    /// Returns the name of `path` in the alternate of this number, for messages.
    pub fn full_name(&self, number: usize, path: RelPath<'_>) -> Vec<u8> {
        let name = self.members.get(number).map_or(&b""[..], |member| &member.name);
        [name, b"/", path.as_bytes()].concat()
    }
}

/// Returns the path of an alternate directory, as messages show it.
fn full_name(destination: &Tree, named: &[u8]) -> Vec<u8> {
    let trimmed = named.trim_end_with(|c| c == '/');
    match named.first() {
        Some(b'/') if trimmed.is_empty() => b"/".to_vec(),
        Some(b'/') => trimmed.to_vec(),
        // From a destination that a dry run only imagines, no `..` leads anywhere on the disk.
        _ if destination.is_missing() => {
            let full = destination.full_name(RelPath::new(trimmed));
            Tree::missing(Path::new(OsStr::from_bytes(&full))).full_name(RelPath::ROOT)
        }
        _ => destination.full_name(RelPath::new(trimmed)),
    }
}

fn warning(kind: AlternateKind, error: &io::Error) -> &'static str {
    match (kind, error.kind() == io::ErrorKind::NotADirectory) {
        (AlternateKind::Compare, false) => "--compare-dest arg does not exist: ",
        (AlternateKind::Copy, false) => "--copy-dest arg does not exist: ",
        (AlternateKind::Link, false) => "--link-dest arg does not exist: ",
        (AlternateKind::Compare, true) => "--compare-dest arg is not a dir: ",
        (AlternateKind::Copy, true) => "--copy-dest arg is not a dir: ",
        (AlternateKind::Link, true) => "--link-dest arg is not a dir: ",
    }
}
