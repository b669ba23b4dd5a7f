//! What the destination argument means, once the first list is known.
//!
//! Wire: protocol/doc/20-transfer.md#17-destination-argument

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use bstr::ByteSlice;
use suisei_protocol::flist::{EntryRef, FileKind, RelPath, RelPathBuf};

use super::alternates::Alternates;
use crate::failure::reason;
use crate::observe::{Event, Who};
use crate::sys::confine;
use crate::tree::{is_untrusted, Dir, SymlinkPolicy, Tree, Trust};
use crate::{Context, Failure};

/// Where entries go.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The directory that receives.
    pub tree: Arc<Tree>,
    /// Single-file mode: the one entry's name there.
    pub rename: Option<RelPathBuf>,
    /// Whether the directory was made for this run: its own entry is a new item.
    pub is_new: bool,
    /// Other directories that may hold the same files.
    pub alternates: Alternates,
}

/// What the first list says about the destination.
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstList {
    /// Number of entries, those of a second segment included.
    pub entries: usize,
    /// Kind of the only entry.
    pub only_kind: Option<FileKind>,
}

impl Destination {
    /// Returns the path of an entry below the tree.
    pub fn path<'a>(&'a self, entry: EntryRef<'a>) -> RelPath<'a> {
        match &self.rename {
            Some(name) => name.as_path(),
            None => entry.path(),
        }
    }

    /// Opens, and if need be makes, the destination `named` for such a list.
    pub fn resolve(ctx: &Context, named: &[u8], list: FirstList) -> Result<Destination, Failure> {
        let named = if named.is_empty() { b".".as_slice() } else { named };
        if ctx.options.report.list_only {
            let tree = Arc::new(Tree::missing(as_path(named)));
            return Ok(Destination::new(tree, None));
        }
        // Stock confines what options name, not where the transfer goes.
        let trust = Trust { confine_root: None, ..ctx.options.trust.clone() };
        let mut destination = Resolution { ctx, named, list, links: policy(ctx), trust }.run()?;
        destination.alternates = Alternates::open(ctx, &destination.tree);
        Ok(destination)
    }

    /// Receives into a directory, without alternates. `rename` is the name in single-file mode.
    pub(crate) fn new(tree: Arc<Tree>, rename: Option<RelPathBuf>) -> Destination {
        Destination { tree, rename, is_new: false, alternates: Alternates::default() }
    }
}

fn policy(ctx: &Context) -> SymlinkPolicy {
    if ctx.options.select.keep_dirlinks {
        SymlinkPolicy::FollowDirs
    } else {
        SymlinkPolicy::Refuse
    }
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Splits a name at its last component: the directory (`.` if none is named) and the name.
fn split(named: &[u8]) -> (&[u8], &[u8]) {
    let trimmed = named.trim_end_with(|c| c == '/');
    match trimmed.rfind_byte(b'/') {
        Some(0) => (b"/", &trimmed[1..]),
        Some(slash) => (&trimmed[..slash], &trimmed[slash + 1..]),
        None => (b".", trimmed),
    }
}

/// What stands at the name.
enum Standing {
    Directory,
    Other,
    Nothing,
}

struct Resolution<'a> {
    ctx: &'a Context,
    named: &'a [u8],
    list: FirstList,
    links: SymlinkPolicy,
    trust: Trust,
}

impl Resolution<'_> {
    fn run(&self) -> Result<Destination, Failure> {
        let hidden = self.ctx.options.select.hidden.as_deref();
        if hidden
            .is_some_and(|hidden| hidden.hides(&full_name(self.named).into_bytes(), self.ends_in_slash()))
        {
            let named = String::from_utf8_lossy(self.named);
            return Err(Failure::Selection {
                text: format!("ERROR: daemon has excluded destination \"{named}\""),
            });
        }
        match self.standing()? {
            Standing::Directory => self.enter(self.named),
            Standing::Other => self.over_other(),
            Standing::Nothing => self.new_name(),
        }
    }

    fn standing(&self) -> Result<Standing, Failure> {
        let (parent, name) = split(self.named);
        // The root, `.` and `..` have no parent that could be asked; they are directories.
        if name.is_empty() || name == b"." || name == b".." {
            return match self.open(as_path(self.named)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Standing::Nothing),
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(self.cannot_stat(&error)),
                _ => Ok(Standing::Directory),
            };
        }
        // Whoever owns a symlink on the way: what is entered is opened by the rules.
        let found = Tree::open(as_path(parent), self.links).and_then(|tree| tree.root().stat_following(name));
        match found {
            Ok(Some(meta)) if meta.kind() == FileKind::Directory => Ok(Standing::Directory),
            Ok(Some(_)) if self.ends_in_slash() => {
                Err(self.cannot_stat(&io::Error::from_raw_os_error(rustix::io::Errno::NOTDIR.raw_os_error())))
            }
            Ok(Some(_)) => Ok(Standing::Other),
            Ok(None) => Ok(Standing::Nothing),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Standing::Nothing),
            // Outside of what a confined process may see there is nothing.
            Err(error) if is_outside(&error) => Ok(Standing::Nothing),
            Err(error) => Err(self.cannot_stat(&error)),
        }
    }

    /// Opens a directory by the rules for destinations; says why if the owner of a symlink is the
    /// reason that it fails.
    fn open(&self, path: &Path) -> io::Result<Tree> {
        Tree::open_trusted(path, self.links, &self.trust)
            .inspect_err(|error| self.ctx.note_untrusted(Who::ReceivingSide, error))
    }

    fn parent(&self, parent: &[u8]) -> io::Result<Arc<Dir>> {
        self.open(as_path(parent))?.dir(RelPath::ROOT)
    }

    fn ends_in_slash(&self) -> bool {
        self.named.ends_with(b"/")
    }

    fn is_dry(&self) -> bool {
        self.ctx.options.dry_run
    }

    fn enter(&self, path: &[u8]) -> Result<Destination, Failure> {
        // A directory that may not be searched can be held, but nothing below it reached.
        let opened = self
            .open(as_path(path))
            .map(|tree| tree.keeping(self.ctx.privileges()))
            .and_then(|tree| tree.root().check_search().map(|()| tree));
        match opened {
            Ok(tree) => Ok(Destination::new(Arc::new(tree), None)),
            Err(error) => Err(self.cannot_enter("change_dir#1", &error)),
        }
    }

    fn cannot_enter(&self, call: &str, error: &io::Error) -> Failure {
        let name = full_name(self.named);
        let slash = if self.ends_in_slash() && call != "change_dir#2" { "/" } else { "" };
        selection(&format!("{call} \"{name}{slash}\"{} failed", place()), error)
    }

    fn over_other(&self) -> Result<Destination, Failure> {
        if self.list.entries > 1 {
            let text = "ERROR: destination must be a directory when copying more than 1 file".into();
            return Err(Failure::Selection { text });
        }
        if self.list.only_kind == Some(FileKind::Directory) {
            let text = "ERROR: cannot overwrite non-directory with a directory".into();
            return Err(Failure::Selection { text });
        }
        let (parent, name) = split(self.named);
        self.single(parent, name)
    }

    fn new_name(&self) -> Result<Destination, Failure> {
        let (parent, name) = split(self.named);
        let becomes_directory = self.list.entries > 1 || self.ends_in_slash();
        let made = if self.ctx.options.place.mkpath {
            self.make_levels(if becomes_directory { self.named } else { parent })?
        } else {
            0
        };
        if !becomes_directory {
            if self.list.entries == 0 {
                let tree = Arc::new(Tree::missing(as_path(self.named)));
                return Ok(Destination::new(tree, None));
            }
            if made > 0 && self.is_dry() {
                let tree = Arc::new(Tree::missing(as_path(parent)));
                return Ok(Destination::new(tree, Some(RelPathBuf::new(name.to_vec()))));
            }
            return self.single(parent, name);
        }
        if made == 0 && !self.is_dry() {
            let made = self.parent(parent).and_then(|dir| dir.mkdir(name, 0o777));
            if let Err(error) = made {
                if is_untrusted(&error) {
                    let call = if self.ctx.options.place.mkpath { "change_dir#1" } else { "change_dir#2" };
                    return Err(self.cannot_enter(call, &error));
                }
                let text = format!(
                    "rsync: [Receiver] mkdir \"{}\"{} failed: {}",
                    full_name(trimmed(self.named)),
                    place(),
                    reason(&error)
                );
                return Err(Failure::FileIo { text });
            }
        }
        if made == 0 || self.is_dry() {
            let path = shown(self.named);
            self.ctx.report(Event::DestinationCreated { path: &path, levels: 0 });
        }
        if self.is_dry() {
            return Ok(Destination::new(Arc::new(Tree::missing(as_path(self.named))), None));
        }
        // What --mkpath made is no new item, as in stock.
        Ok(Destination { is_new: made == 0, ..self.enter(self.named)? })
    }

    /// Single-file mode.
    fn single(&self, parent: &[u8], name: &[u8]) -> Result<Destination, Failure> {
        match self.open(as_path(parent)) {
            Ok(tree) => {
                let tree = Arc::new(tree.keeping(self.ctx.privileges()));
                Ok(Destination::new(tree, Some(RelPathBuf::new(name.to_vec()))))
            }
            Err(error) => {
                let what = format!("change_dir#3 \"{}\"{} failed", full_name(parent), place());
                Err(selection(&what, &error))
            }
        }
    }

    /// `--mkpath`: makes what is missing of a directory, and returns how many levels that were.
    fn make_levels(&self, path: &[u8]) -> Result<u32, Failure> {
        let mut levels = 0;
        let mut there = path.trim_end_with(|c| c == '/');
        while !there.is_empty() && there != b"." {
            match Tree::open_trusted(as_path(there), self.links, &self.trust) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => levels += 1,
                _ => break,
            }
            there = split(there).0;
        }
        if levels > 0 && !self.is_dry() {
            if let Err(error) = Tree::create(as_path(path), self.links, &self.trust) {
                if is_untrusted(&error) {
                    self.ctx.note_untrusted(Who::ReceivingSide, &error);
                    return Err(self.cannot_enter("change_dir#1", &error));
                }
                let (name, place) = (full_name(path), place());
                let text = format!("rsync: [Receiver] mkpath \"{name}\"{place} failed: {}", reason(&error));
                return Err(Failure::FileIo { text });
            }
        }
        if levels > 0 {
            self.ctx.report(Event::DestinationCreated { path: &shown(path), levels });
        }
        Ok(levels)
    }

    fn cannot_stat(&self, error: &io::Error) -> Failure {
        let name = full_name(self.named);
        let slash = if self.ends_in_slash() { "/" } else { "" };
        selection(&format!("ERROR: cannot stat destination \"{name}{slash}\"{}", place()), error)
    }
}

/// Drops slashes at the end, but not the root itself.
fn trimmed(path: &[u8]) -> &[u8] {
    let trimmed = path.trim_end_with(|c| c == '/');
    if trimmed.is_empty() {
        path
    } else {
        trimmed
    }
}

/// Returns a destination as it is said to be made: where a module is the whole root, from there.
fn shown(path: &[u8]) -> Vec<u8> {
    let path = trimmed(path);
    match confine::is_whole_root() && !path.starts_with(b"/") {
        true => [b"/", path].concat(),
        false => path.to_vec(),
    }
}

/// Returns the absolute form of a destination.
fn full_name(path: &[u8]) -> String {
    let full = Tree::missing(as_path(path)).full_name(RelPath::ROOT);
    let full = if confine::root().is_some() { full.trim_start_with(|c| c == '/').to_vec() } else { full };
    let named = match full.strip_suffix(b"/.") {
        Some(b"") => b"/",
        Some(named) => named,
        None => &full,
    };
    String::from_utf8_lossy(named).into_owned()
}

/// Returns what messages say behind a name in a confined process.
fn place() -> String {
    String::from_utf8_lossy(&confine::label()).into_owned()
}

/// Whether a confined process was kept from what it asked for.
fn is_outside(error: &io::Error) -> bool {
    confine::root().is_some() && crate::sys::is(error, rustix::io::Errno::LOOP)
}

fn selection(what: &str, error: &io::Error) -> Failure {
    Failure::Selection { text: format!("rsync: [Receiver] {what}: {}", reason(error)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_at_their_last_component() {
        let table = ["d: . d", "a/d//: a d", "/d: / d", "/a/d: /a d", "/: . ", "..: . .."];
        for line in table {
            let (named, expected) = line.split_once(": ").unwrap();
            let (parent, name) = split(named.as_bytes());
            assert_eq!([parent, name].join(&b' '), expected.as_bytes(), "{named}");
        }
    }
}
