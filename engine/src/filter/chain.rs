//! What decides about one name: the rules in order, and the merge files in their places.
//!
//! Wire: protocol/doc/13-filters.md#5-deciding

use std::io;

use suisei_protocol::filter::{Directive, Rule, RuleFlags, RuleKind};
use suisei_protocol::flist::RelPath;
use suisei_protocol::limits::PATH_MAX;

use super::cvs;
use super::file::{Form, LineEnd};
use super::merge::{read_above, read_member, MergeFile};
use super::parse::NESTING_MAX;
use super::pattern::{Name, Pattern};
use crate::tree::{open_named_file, Tree, Trust, Wanted};

const SIDES: RuleFlags = RuleFlags::SENDER.union(RuleFlags::RECEIVER);

/// Which side of the transfer asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterSide {
    /// The sender: does a name exist for the transfer?
    Sender,
    /// The receiving side: is a local name protected from deletion?
    Receiver,
}

/// What a chain says of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// No rule matched: included.
    NoMatch,
    /// This rule includes it.
    Included(&'a Rule),
    /// This rule excludes it (hides it on a sender, protects it on a receiver).
    Excluded(&'a Rule),
}

impl Verdict<'_> {
    /// Whether the name is excluded.
    pub fn is_excluded(&self) -> bool {
        matches!(self, Verdict::Excluded(_))
    }
}

/// The rules of one side, with the per-directory merge files of the current directory.
#[derive(Debug, Clone)]
pub struct Chain {
    side: FilterSide,
    delete_excluded: bool,
    lines: LineEnd,
    trust: Trust,
    nodes: Vec<Node>,
    /// Merge files that are active, those of the rules first.
    merges: Vec<MergeFile>,
    /// Directories whose merge files were read, the current one last.
    frames: Vec<Frame>,
    root: Option<Vec<u8>>,
    /// Whether names of extended attributes are judged, rather than those of files.
    of_xattrs: bool,
}

/// One place of a list of rules.
#[derive(Debug, Clone)]
enum Node {
    Rule(Rule, Pattern),
    /// The rules of an active merge file, by its number.
    Merge(usize),
}

/// What was read in one directory.
#[derive(Debug, Clone)]
struct Frame {
    /// Below the root of the transfer; nothing for a directory above it.
    dir: Option<Vec<u8>>,
    lists: Vec<MergeList>,
    /// How many merge files were active before.
    merges_before: usize,
}

/// The rules of one merge file of one directory.
#[derive(Debug, Clone)]
struct MergeList {
    merge: usize,
    nodes: Vec<Node>,
    /// It has a `!`: what it would inherit does not count.
    is_cleared: bool,
}

/// How a question is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Perishable {
    Counts,
    Ignored,
}

impl Chain {
    /// Starts at the root of a transfer. `delete_excluded` makes side-less rules sender-only.
    pub fn new(rules: &[Rule], side: FilterSide, delete_excluded: bool) -> Self {
        Chain::of(rules, side, delete_excluded, false)
    }

    /// Takes the rules for names of extended attributes only.
    pub fn of_xattrs(rules: &[Rule], side: FilterSide, delete_excluded: bool) -> Self {
        Chain::of(rules, side, delete_excluded, true)
    }

    fn of(rules: &[Rule], side: FilterSide, delete_excluded: bool, of_xattrs: bool) -> Self {
        let mut chain = Chain {
            side,
            delete_excluded,
            lines: LineEnd::Newline,
            trust: Trust::default(),
            nodes: Vec::new(),
            merges: Vec::new(),
            frames: Vec::new(),
            root: None,
            of_xattrs,
        };
        let mut nodes = Vec::with_capacity(rules.len());
        for rule in rules {
            nodes.extend(chain.node(rule.clone()));
        }
        chain.nodes = nodes;
        chain
    }

    /// Says what ends a line of a merge file.
    pub fn with_line_end(mut self, lines: LineEnd) -> Self {
        self.lines = lines;
        self
    }

    /// Says how far merge files are trusted.
    pub fn with_trust(mut self, trust: &Trust) -> Self {
        self.trust = trust.clone();
        self
    }

    /// Names the absolute path that rules with `/` see as the root of the transfer: in a daemon
    /// the path inside the module. Without it the path of the first tree entered is taken.
    pub fn with_root(mut self, path: &[u8]) -> Self {
        self.root = Some(without_slash(path.to_vec()));
        self
    }

    /// Makes `dir` the current directory: leaves directories that do not hold it, and reads its
    /// merge files and those of directories on the way to it from `tree`. Directories are entered in
    /// pre-order. Unreadable merge files are errors of the caller to report; missing ones are not.
    /// A file whose text is wrong gives [`io::ErrorKind::InvalidData`] around a
    /// [`FilterError`](super::FilterError), which ends a run with its exit code.
    pub fn enter(&mut self, tree: &Tree, dir: RelPath<'_>) -> io::Result<()> {
        let root = self.root.get_or_insert_with(|| root_of(tree)).clone();
        if self.merges.is_empty() {
            return Ok(());
        }
        let path = below_root(dir);
        while let Some(frame) = self.frames.last() {
            match &frame.dir {
                Some(own) if holds(own, path) => break,
                _ => self.leave(),
            }
        }
        let known = match self.frames.last() {
            Some(frame) => frame.dir.as_ref().map_or(0, Vec::len),
            None => {
                // The root itself is read only if it is entered; what lies between is.
                let first = path.split(|&byte| byte == b'/').next().unwrap_or_default();
                self.enter_above(&join(&root, first))?;
                if path.is_empty() {
                    return self.enter_dir(tree, path, &root);
                }
                0
            }
        };
        let ends = (known + 1..path.len()).filter(|&end| path[end] == b'/').collect::<Vec<_>>();
        for end in ends.into_iter().chain((known < path.len()).then_some(path.len())) {
            self.enter_dir(tree, &path[..end], &root)?;
        }
        Ok(())
    }

    /// Judges a name in (or below) the current directory.
    pub fn verdict(&self, path: RelPath<'_>, is_dir: bool) -> Verdict<'_> {
        self.judge(path, is_dir, Perishable::Counts)
    }

    /// The same while a directory is being deleted: perishable rules do not count.
    pub fn verdict_in_deletion(&self, path: RelPath<'_>, is_dir: bool) -> Verdict<'_> {
        self.judge(path, is_dir, Perishable::Ignored)
    }

    /// Returns the rule that decides about a name, and what the list is called that it stands in, if
    /// that is not the user's: ` [per-dir NAME]` or ` [global CVS]`.
    pub fn explain(&self, path: RelPath<'_>, is_dir: bool) -> Option<(&Rule, Vec<u8>)> {
        let root = self.root.as_deref().unwrap_or_default();
        let name = Name { path: path.as_bytes(), is_dir, root };
        let (rule, merge) = self.first_match(&self.nodes, name, Perishable::Counts, 0)?;
        let list = match merge.and_then(|merge| self.merges.get(merge)) {
            Some(merge) => [b" [per-dir ", &merge.name[..], b"]"].concat(),
            None if rule.flags.contains(RuleFlags::CVS) => b" [global CVS]".to_vec(),
            None => Vec::new(),
        };
        Some((rule, list))
    }

    /// Whether per-directory files take part.
    pub fn has_merges(&self) -> bool {
        !self.merges.is_empty()
    }

    fn judge(&self, path: RelPath<'_>, is_dir: bool, perishable: Perishable) -> Verdict<'_> {
        let root = self.root.as_deref().unwrap_or_default();
        let name = Name { path: path.as_bytes(), is_dir, root };
        match self.first_match(&self.nodes, name, perishable, 0) {
            None => Verdict::NoMatch,
            Some((rule, _)) if rule.kind == RuleKind::Include => Verdict::Included(rule),
            Some((rule, _)) => Verdict::Excluded(rule),
        }
    }

    /// Returns the first rule that matches, and the merge file that it stands in.
    fn first_match<'a>(
        &'a self,
        nodes: &'a [Node],
        name: Name<'_>,
        perishable: Perishable,
        depth: usize,
    ) -> Option<(&'a Rule, Option<usize>)> {
        nodes.iter().find_map(|node| match node {
            Node::Rule(rule, _)
                if perishable == Perishable::Ignored && rule.flags.contains(RuleFlags::PERISHABLE) =>
            {
                None
            }
            Node::Rule(rule, pattern) => pattern.matches(name).then_some((rule, None)),
            Node::Merge(merge) if depth < NESTING_MAX => {
                self.match_in_merge(*merge, name, perishable, depth + 1)
            }
            Node::Merge(_) => None,
        })
    }

    /// The rules of the current directory first, then what it inherits.
    fn match_in_merge(
        &self,
        merge: usize,
        name: Name<'_>,
        perishable: Perishable,
        depth: usize,
    ) -> Option<(&Rule, Option<usize>)> {
        let is_inherited = self.merges.get(merge).is_some_and(MergeFile::is_inherited);
        for frame in self.frames.iter().rev() {
            if let Some(list) = frame.lists.iter().find(|list| list.merge == merge) {
                let found = self.first_match(&list.nodes, name, perishable, depth);
                let found = found.map(|(rule, inner)| (rule, inner.or(Some(merge))));
                if found.is_some() || list.is_cleared {
                    return found;
                }
            }
            if !is_inherited {
                break;
            }
        }
        None
    }

    /// Prepares a rule; nothing if it says nothing here.
    fn node(&mut self, mut rule: Rule) -> Option<Node> {
        if rule.flags.contains(RuleFlags::XATTR) != self.of_xattrs {
            return None;
        }
        let is_merge = rule.kind == RuleKind::DirMerge;
        let only_sender =
            self.delete_excluded && !is_merge && !rule.flags.intersects(SIDES | RuleFlags::RECEIVED);
        if only_sender {
            rule.flags |= RuleFlags::SENDER;
        }
        let own = match self.side {
            FilterSide::Sender => RuleFlags::SENDER,
            FilterSide::Receiver => RuleFlags::RECEIVER,
        };
        let counts = !rule.flags.intersects(SIDES) || rule.flags.intersects(own | RuleFlags::RECEIVED);
        if !counts {
            return None;
        }
        if !is_merge {
            let pattern = Pattern::new(&rule);
            return Some(Node::Rule(rule, pattern));
        }
        let merge = MergeFile::new(&rule);
        if merge.name.is_empty() || self.merges.iter().any(|other| other.name == merge.name) {
            return None;
        }
        self.merges.push(merge);
        Some(Node::Merge(self.merges.len() - 1))
    }

    fn leave(&mut self) {
        if let Some(frame) = self.frames.pop() {
            self.merges.truncate(frame.merges_before);
        }
    }

    /// Reads the files above the first directory that is entered.
    fn enter_above(&mut self, first: &[u8]) -> io::Result<()> {
        let wanted: Vec<Vec<Vec<u8>>> = self.merges.iter().map(|merge| merge.parents_of(first)).collect();
        let Some(longest) = wanted.iter().max_by_key(|dirs| dirs.len()).cloned() else { return Ok(()) };
        for dir in longest {
            self.frames.push(Frame { dir: None, lists: Vec::new(), merges_before: self.merges.len() });
            for (merge, dirs) in wanted.iter().enumerate() {
                if dirs.contains(&dir) {
                    let name = self.merges[merge].name.clone();
                    if let Some(content) = read_above(&dir, &name, &self.trust)? {
                        self.read(merge, &content, &dir)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn enter_dir(&mut self, tree: &Tree, path: &[u8], root: &[u8]) -> io::Result<()> {
        let merges_before = self.merges.len();
        self.frames.push(Frame { dir: Some(path.to_vec()), lists: Vec::new(), merges_before });
        let dir = match tree.dir(RelPath::new(if path.is_empty() { b"." } else { path })) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let mut failed = Ok(());
        let mut merge = 0;
        // Files that are read may name more files.
        while let Some(file) = self.merges.get(merge) {
            let name = file.name.clone();
            match read_member(&dir, &name, &self.trust) {
                Ok(Some(content)) => self.read(merge, &content, &join(root, path))?,
                Ok(None) => {}
                Err(error) => failed = Err(error),
            }
            merge += 1;
        }
        failed
    }

    /// Takes in the content of a merge file of the directory `dir`, an absolute path.
    fn read(&mut self, merge: usize, content: &[u8], dir: &[u8]) -> io::Result<()> {
        let file = &self.merges[merge];
        let origin = join(dir, &file.name);
        let form = Form::of_merge(file.flags, self.lines);
        let mut list = MergeList { merge, nodes: Vec::new(), is_cleared: false };
        self.take_in(form, content, &origin, Some(dir), &mut list, 0)?;
        if let Some(frame) = self.frames.last_mut() {
            frame.lists.push(list);
        }
        Ok(())
    }

    fn take_in(
        &mut self,
        form: Form,
        content: &[u8],
        origin: &[u8],
        anchor: Option<&[u8]>,
        list: &mut MergeList,
        depth: usize,
    ) -> io::Result<()> {
        for directive in form.directives(content, origin) {
            match directive.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))? {
                Directive::Clear => {
                    list.nodes.clear();
                    list.is_cleared = true;
                }
                Directive::CvsList { kind, flags } => {
                    for rule in cvs::rules(kind, flags) {
                        list.nodes.extend(self.node(rule));
                    }
                }
                Directive::Rule(rule) if rule.pattern.len() >= PATH_MAX => {}
                Directive::Rule(mut rule) => {
                    self.exclude_merge_file(&rule.pattern, rule.flags, list);
                    if let (true, Some(dir)) = (is_anchored(&rule), anchor) {
                        rule.pattern = [dir, &rule.pattern].concat();
                        rule.flags |= RuleFlags::ABSOLUTE;
                    }
                    list.nodes.extend(self.node(rule));
                }
                Directive::Merge { name, flags } if depth < NESTING_MAX => {
                    self.exclude_merge_file(&name, flags, list);
                    let content = read_named(&name, &self.trust)?;
                    let form = Form::of_merge(flags, self.lines);
                    self.take_in(form, &content, &name, None, list, depth + 1)?;
                }
                Directive::Merge { .. } => {}
            }
        }
        Ok(())
    }

    fn exclude_merge_file(&mut self, name: &[u8], flags: RuleFlags, list: &mut MergeList) {
        if flags.contains(RuleFlags::EXCLUDE_SELF) {
            list.nodes.extend(Rule::excluding_file(name).ok().and_then(|rule| self.node(rule)));
        }
    }
}

/// Whether a rule of a per-directory file belongs to that directory.
fn is_anchored(rule: &Rule) -> bool {
    rule.kind != RuleKind::DirMerge
        && rule.pattern.starts_with(b"/")
        && !rule.flags.contains(RuleFlags::ABSOLUTE)
}

/// Reads a file that a `.` rule inside a merge file names. Unlike that file, it must exist.
fn read_named(name: &[u8], trust: &Trust) -> io::Result<Vec<u8>> {
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;

    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name));
    let mut content = Vec::new();
    open_named_file(path, Wanted::Regular, trust)?.read_to_end(&mut content)?;
    Ok(content)
}

/// The absolute path of a tree.
fn root_of(tree: &Tree) -> Vec<u8> {
    let mut name = tree.full_name(RelPath::new(b"."));
    if name.ends_with(b"/.") {
        name.pop();
    }
    without_slash(name)
}

/// Whether a directory is `path`, or holds it.
fn holds(dir: &[u8], path: &[u8]) -> bool {
    dir.is_empty() || path.strip_prefix(dir).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
}

/// The path of a directory below the root; empty for the root itself.
fn below_root(dir: RelPath<'_>) -> &[u8] {
    if dir.is_root() {
        b""
    } else {
        let path = dir.as_bytes();
        path.strip_prefix(b"/").unwrap_or(path)
    }
}

fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    match name {
        b"" => dir.to_vec(),
        _ => [dir, b"/", name].concat(),
    }
}

fn without_slash(mut path: Vec<u8>) -> Vec<u8> {
    while path.last() == Some(&b'/') {
        path.pop();
    }
    path
}

#[cfg(test)]
mod tests;
