//! Trees on disk, and the lists they give.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use suisei_protocol::filter::{Rule, RuleFlags, RuleKind};
use suisei_protocol::flist::{EntryFlags, EntryRef, FileList, HardLink, IoErrors};
use suisei_protocol::session::{Compat, Direction, Layout, Recursion, Session, Side, Version};
use suisei_protocol::sum::SumKind;
use suisei_protocol::transfer::Compressor;

use super::*;
use crate::context::Reporter;
use crate::ids::IdMap;
use crate::observe::{Event, Note, Observer, What};
use crate::options::SourceLinks;
use crate::{Context, Failure, TransferOptions};

/// Keeps what was reported.
#[derive(Default)]
pub(crate) struct Heard(Mutex<Vec<String>>);

impl Heard {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Heard {
    fn event(&self, event: Event<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let line = match event {
            Event::Problem(problem) => match problem.what {
                What::Call { call, path, .. } | What::Reason { text: call, path, .. } => {
                    format!("{call} {}", text(path.rsplit(|&b| b == b'/').next().unwrap_or(path)))
                }
                What::Around { before, path, after, .. } => format!("{before}{}{}", text(path), text(after)),
                What::Sentence { before, path, after } => format!("{before}{}{after}", text(path)),
            },
            Event::Note(path, Note::SkippingDirectory) => {
                format!("skipping directory {}", text(path.as_bytes()))
            }
            Event::Note(path, note) => format!("{} {note:?}", text(path.as_bytes())),
            Event::Item(report) => {
                format!("{:?} {} {:?}", report.moment, text(report.long_name), report.item.flags)
            }
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

pub(crate) fn session(version: u32, recursion: Recursion) -> Session {
    Session {
        charset: None,
        side: Side::Client,
        direction: Direction::Sending,
        version: Version::new(version).unwrap(),
        compat: Compat::empty(),
        seed: 1,
        transfer_sum: SumKind::Xxh128,
        list_sum: SumKind::Xxh128,
        compressor: Compressor::None,
        compress_level: 0,
        layout: Layout { links: true, hard_links: true, recursive: true, ..Layout::default() },
        recursion,
    }
}

pub(crate) fn context(session: Session, options: TransferOptions) -> (Context, Arc<Heard>) {
    let heard = Arc::new(Heard::default());
    let interrupted = Arc::new(AtomicBool::new(false));
    let ctx =
        Context::new(session, options, heard.clone(), Reporter::Sender, IdMap::new(true, false), interrupted);
    (ctx, heard)
}

pub(crate) fn recursive() -> TransferOptions {
    let mut options = TransferOptions::default();
    options.select.recursive = true;
    options
}

pub(crate) fn arguments(root: &Path, names: &[&str]) -> Source {
    Source::new(names.iter().map(|name| format!("{}/{name}", root.display()).into_bytes()).collect())
}

fn shown(entry: EntryRef<'_>) -> String {
    let path = String::from_utf8_lossy(entry.wire_path()).into_owned();
    let flags = entry.flags();
    let marks = [(EntryFlags::TOP_DIR, 't'), (EntryFlags::CONTENT_DIR, 'c'), (EntryFlags::IMPLIED_DIR, 'i')];
    let marks: String =
        marks.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, mark)| *mark).collect();
    match (entry.is_dir(), marks.is_empty()) {
        (false, _) => path,
        (true, true) => format!("{path}/"),
        (true, false) => format!("{path}/ {marks}"),
    }
}

/// Lists everything: per segment its first index, the directory it lists, and its entries.
fn list(ctx: &Context, source: Source) -> Result<Vec<String>, Failure> {
    let mut lister = Lister::new(ctx);
    let mut list = FileList::new();
    let mut lines = Vec::new();
    let mut next = Some(lister.first(source)?);
    while let Some(Listed { segment, .. }) = next {
        let entries: Vec<String> = segment.iter().map(|(_, entry)| shown(entry)).collect();
        let dir =
            segment.dir().map(|(ndx, dir)| format!(" {}={}", ndx.0, shown(dir.entry()))).unwrap_or_default();
        lines.push(format!("{}{dir}: {}", segment.start(), entries.join(", ")));
        list.push(segment);
        next = lister.next(&mut list)?;
    }
    Ok(lines)
}

fn write(root: &Path, name: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, name).unwrap();
}

/// The tree of the specification's worked example.
pub(crate) fn worked_example() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for name in ["nt/f0", "nt/A/f1", "nt/A/AA/f2"] {
        write(root.path(), name);
    }
    fs::create_dir(root.path().join("nt/B")).unwrap();
    root
}

fn lines(
    version: u32,
    recursion: Recursion,
    options: TransferOptions,
    source: Source,
) -> (Vec<String>, Vec<String>, Context) {
    let (ctx, heard) = context(session(version, recursion), options);
    let lines = list(&ctx, source).unwrap();
    let heard = heard.take();
    (lines, heard, ctx)
}

#[test]
fn segments_are_numbered_as_in_the_worked_examples() {
    let root = worked_example();
    let (push, ..) = lines(32, Recursion::Incremental, recursive(), arguments(root.path(), &["nt/"]));
    assert_eq!(
        push,
        ["1: ./ tc, f0, A/ c, B/ c", "6 1=A/ c: A/f1, A/AA/ c", "9 3=A/AA/ c: A/AA/f2", "11 2=B/ c: "]
    );
    let (pull, _, ctx) = lines(32, Recursion::Incremental, recursive(), arguments(root.path(), &["nt"]));
    assert_eq!(
        pull,
        [
            "1: nt/ tc",
            "3 0=nt/ tc: nt/f0, nt/A/ c, nt/B/ c",
            "7 1=nt/A/ c: nt/A/f1, nt/A/AA/ c",
            "10 3=nt/A/AA/ c: nt/A/AA/f2",
            "12 2=nt/B/ c: "
        ]
    );
    assert_eq!(ctx.stats.listed.total(), 7);
    assert_eq!(ctx.stats.total_size.value(), 5 + 7 + 10);
}

#[test]
fn a_whole_list_is_one_segment_in_the_order_of_its_version() {
    let root = worked_example();
    let (new, ..) = lines(32, Recursion::Whole, recursive(), arguments(root.path(), &["nt/"]));
    assert_eq!(new, ["0: ./ tc, f0, A/ c, A/f1, A/AA/ c, A/AA/f2, B/ c"]);
    let (old, ..) = lines(28, Recursion::Whole, recursive(), arguments(root.path(), &["nt/"]));
    assert_eq!(old, ["0: ./ tc, A/ c, A/AA/ c, A/AA/f2, A/f1, B/ c, f0"]);
}

fn relative() -> TransferOptions {
    let mut options = recursive();
    options.select.relative = true;
    options.select.implied_dirs = true;
    options
}

#[test]
fn relative_arguments_are_listed_component_by_component() {
    let root = tempfile::tempdir().unwrap();
    for name in ["a/b/f", "a/b/g", "a/c/h"] {
        write(root.path(), name);
    }
    let names = ["./a/b/f", "./a/b/g", "./a/c/h"];
    let (segments, ..) = lines(32, Recursion::Incremental, relative(), arguments(root.path(), &names));
    let expected = ["1: a/ i", "3 0=a/ i: a/b/ i, a/c/ i", "6 1=a/b/ i: a/b/f, a/b/g", "9 2=a/c/ i: a/c/h"];
    assert_eq!(segments, expected);
    let (whole, ..) = lines(30, Recursion::Whole, relative(), arguments(root.path(), &names));
    assert_eq!(whole, ["0: a/ i, a/b/ i, a/b/f, a/b/g, a/c/ i, a/c/h"]);

    let mut bare = relative();
    bare.select.implied_dirs = false;
    let (whole, ..) = lines(29, Recursion::Whole, bare.clone(), arguments(root.path(), &names));
    assert_eq!(whole, ["0: a/b/f, a/b/g, a/c/h"], "below 30 the sender obeys --no-implied-dirs");
    let (whole, ..) = lines(30, Recursion::Whole, bare, arguments(root.path(), &names[..1]));
    assert_eq!(whole, ["0: a/ i, a/b/ i, a/b/f"], "from 30 on the receiver does");
}

#[test]
fn duplicate_directories_share_one_segment() {
    let root = tempfile::tempdir().unwrap();
    for name in ["a/b/f", "a/b/g", "a/c/h"] {
        write(root.path(), name);
    }
    let source = arguments(root.path(), &["a/b", "a/c", "a/b"]);
    let (twice, ..) = lines(32, Recursion::Incremental, recursive(), source);
    assert_eq!(twice, ["1: b/ tc, b/ tc, c/ tc", "5 0=b/ tc: b/f, b/g", "8 2=c/ tc: c/h"]);

    let source = arguments(root.path(), &["./a", "./a/b"]);
    let (nested, ..) = lines(32, Recursion::Incremental, relative(), source);
    let expected = [
        "1: a/ tc, a/ i",
        "4 0=a/ tc: a/b/ c, a/b/ tc, a/c/ c",
        "8 2=a/b/ c: a/b/f, a/b/g",
        "11 4=a/c/ c: a/c/h",
    ];
    assert_eq!(nested, expected);

    write(root.path(), "x/b/only");
    let source = arguments(root.path(), &["a/b", "x/b"]);
    let (merged, ..) = lines(32, Recursion::Incremental, recursive(), source);
    assert_eq!(merged, ["1: b/ tc, b/ tc", "4 0=b/ tc: b/f, b/g, b/only"]);
}

#[test]
fn every_entry_remembers_its_base_through_the_sort() {
    let root = tempfile::tempdir().unwrap();
    for name in ["x/c", "x/a", "y/b", "y/d"] {
        write(root.path(), name);
    }
    let (ctx, _) = context(session(32, Recursion::Whole), recursive());
    let mut lister = Lister::new(&ctx);
    let Listed { segment, roots, .. } = lister.first(arguments(root.path(), &["x/", "y/"])).unwrap();
    let mut read = Vec::new();
    for (position, (_, entry)) in segment.iter().enumerate() {
        if entry.is_regular() {
            let (mut file, _) = open(&ctx, roots.at(position).unwrap(), entry.wire_path()).unwrap();
            let mut text = String::new();
            std::io::Read::read_to_string(&mut file, &mut text).unwrap();
            read.push(text);
        }
    }
    assert_eq!(read, ["x/a", "y/b", "x/c", "y/d"]);
}

#[test]
fn excluded_directories_are_not_entered() {
    let root = worked_example();
    let mut options = recursive();
    let rule = |flags, pattern: &[u8]| Rule { kind: RuleKind::Exclude, flags, pattern: pattern.to_vec() };
    options.select.filters = vec![rule(RuleFlags::DIR_ONLY, b"AA"), rule(RuleFlags::empty(), b"f0")];
    let (segments, ..) =
        lines(32, Recursion::Incremental, options.clone(), arguments(root.path(), &["nt/", "nt/f0"]));
    assert_eq!(segments, ["1: ./ tc, A/ c, B/ c", "5 1=A/ c: A/f1", "7 2=B/ c: "]);
}

#[test]
fn merge_files_apply_where_stock_reads_them() {
    let root = tempfile::tempdir().unwrap();
    for name in ["p/q/r/x1", "p/q/x1", "p/q/r/x2", "p/x1", "p/q/r/x3"] {
        write(root.path(), name);
    }
    for (dir, rule) in [(".", "- x1\n"), ("p", "- x2\n"), ("p/q", "- x3\n")] {
        fs::write(root.path().join(dir).join(".rules"), rule).unwrap();
    }
    let mut options = recursive();
    options.select.filters =
        vec![Rule { kind: RuleKind::DirMerge, flags: RuleFlags::empty(), pattern: b".rules".to_vec() }];
    let (whole, ..) = lines(32, Recursion::Whole, options.clone(), arguments(root.path(), &["p"]));
    assert_eq!(whole, ["0: p/ tc, p/.rules, p/x1, p/q/ c, p/q/.rules, p/q/x1, p/q/r/ c, p/q/r/x1"]);
    options.select.relative = true;
    options.select.implied_dirs = true;
    for recursion in [Recursion::Whole, Recursion::Incremental] {
        let (deep, ..) = lines(32, recursion, options.clone(), arguments(root.path(), &["./p/q/r"]));
        assert!(deep.last().unwrap().ends_with("p/q/r/x1"), "{deep:?}");
        assert!(!deep.concat().contains("x2") && !deep.concat().contains("x3"), "{deep:?}");
    }
}

#[test]
fn arguments_that_are_not_there() {
    let root = worked_example();
    let names = ["nt/nope", "nodir/x", "nt/f0/x", "nt/f0"];
    let (segments, heard, ctx) = lines(32, Recursion::Whole, recursive(), arguments(root.path(), &names));
    assert_eq!(segments, ["0: f0"]);
    assert_eq!(heard, ["link_stat nope", "change_dir nodir", "change_dir f0"]);
    assert!(ctx.has_transfer_error());

    let (_, _, ctx) = lines(32, Recursion::Whole, recursive(), arguments(root.path(), &["nt/nope"]));
    assert!(ctx.io_errors().is_empty(), "a missing argument does not stop deletions");
    assert!(ctx.has_transfer_error());
    let (_, _, ctx) = lines(32, Recursion::Whole, recursive(), arguments(root.path(), &["nodir/x"]));
    assert_eq!(ctx.io_errors(), IoErrors::GENERAL);

    let mut options = recursive();
    options.select.ignore_missing_args = true;
    let (_, heard, ctx) = lines(32, Recursion::Whole, options.clone(), arguments(root.path(), &["nt/nope"]));
    assert!(heard.is_empty() && !ctx.has_transfer_error());
    options.select.delete_missing_args = true;
    let (segments, ..) = lines(32, Recursion::Whole, options, arguments(root.path(), &["nt/nope", "nt/f0"]));
    assert_eq!(segments, ["0: f0, nope"]);
}

#[test]
fn without_recursion_directories_are_skipped_or_listed_one_level_deep() {
    let root = worked_example();
    let mut options = TransferOptions::default();
    let source = || arguments(root.path(), &["nt", "nt/", "nt/f0"]);
    let (segments, heard, _) = lines(32, Recursion::Whole, options.clone(), source());
    assert_eq!(segments, ["0: f0"]);
    assert_eq!(heard, ["skipping directory nt", "skipping directory ."]);
    options.select.dirs = true;
    let (segments, ..) = lines(32, Recursion::Whole, options, source());
    assert_eq!(segments, ["0: ./ tc, f0, f0, A/, B/, nt/"]);
}

#[test]
fn symlinks_as_the_user_wants_them() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "l/d/x");
    for (target, name) in [("d", "l/dl"), ("nope", "l/dangling"), ("../d/x", "l/out"), ("d/x", "l/in")] {
        symlink(target, root.path().join(name)).unwrap();
    }
    write(root.path(), "d/x");
    let with = |links| {
        let mut options = recursive();
        options.select.symlinks = links;
        let (mut segments, heard, ctx) =
            lines(32, Recursion::Whole, options, arguments(root.path(), &["l/"]));
        (segments.remove(0), heard, ctx.io_errors())
    };
    let (kept, heard, _) = with(SourceLinks::Keep);
    assert_eq!(kept, "0: ./ tc, dangling, dl, in, out, d/ c, d/x");
    assert!(heard.is_empty());
    let (dirs, ..) = with(SourceLinks::FollowDirs);
    assert_eq!(dirs, "0: ./ tc, dangling, in, out, d/ c, d/x, dl/ c, dl/x");
    let (all, heard, errors) = with(SourceLinks::FollowAll);
    assert_eq!(all, "0: ./ tc, in, out, d/ c, d/x, dl/ c, dl/x");
    assert!(heard[0].starts_with("symlink has no referent: \"") && heard[0].ends_with("/l/dangling\""));
    assert_eq!(errors, IoErrors::GENERAL);
    let (unsafe_only, heard, _) = with(SourceLinks::FollowUnsafe);
    assert_eq!(unsafe_only, "0: ./ tc, dangling, dl, in, out, d/ c, d/x");
    assert!(heard[0].starts_with("out UnsafeLinkCopied"), "{heard:?}");
}

#[test]
fn a_relative_argument_may_lead_through_a_symlink_but_nothing_below_it_may() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "real/sub/x");
    symlink("real", root.path().join("link")).unwrap();
    let (through, ..) = lines(32, Recursion::Whole, relative(), arguments(root.path(), &["./link/sub"]));
    assert_eq!(through, ["0: link/ i, link/sub/ tc, link/sub/x"]);
    let (slash, ..) = lines(32, Recursion::Whole, relative(), arguments(root.path(), &["./link/"]));
    assert_eq!(slash, ["0: link/ tc, link/sub/ c, link/sub/x"]);
    let (bare, ..) = lines(32, Recursion::Whole, relative(), arguments(root.path(), &["./link"]));
    assert_eq!(bare, ["0: link"]);

    let (ctx, _) = context(session(32, Recursion::Whole), relative());
    let mut lister = Lister::new(&ctx);
    let Listed { segment, roots, .. } = lister.first(arguments(root.path(), &["./link/sub"])).unwrap();
    let position = segment.len() - 1;
    let base = roots.at(position).unwrap();
    assert!(open(&ctx, base, b"link/sub/x").is_ok());
    assert!(base.full_name(b"link/sub/x").ends_with(b"/link/sub/x"));
    fs::rename(root.path().join("real/sub"), root.path().join("moved")).unwrap();
    symlink("/etc", root.path().join("real/sub")).unwrap();
    assert!(open(&ctx, base, b"link/sub/passwd").is_err(), "a raced directory must not be followed");
}

#[test]
fn an_unreadable_directory_is_an_empty_segment_with_an_error() {
    let root = worked_example();
    let dir = root.path().join("nt/A");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o0)).unwrap();
    let is_root = crate::sys::users::effective_uid() == 0;
    let (segments, heard, ctx) =
        lines(32, Recursion::Incremental, recursive(), arguments(root.path(), &["nt/"]));
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    if !is_root {
        assert_eq!(segments[1], "6 1=A/ c: ");
        assert_eq!(heard, ["opendir A"]);
        assert_eq!(ctx.io_errors(), IoErrors::GENERAL);
    }
}

#[test]
fn hard_links_name_the_first_member_sent_over_segments() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "t/a");
    fs::create_dir(root.path().join("t/zz")).unwrap();
    fs::hard_link(root.path().join("t/a"), root.path().join("t/b")).unwrap();
    fs::hard_link(root.path().join("t/a"), root.path().join("t/zz/hard")).unwrap();
    let links = |version, recursion| {
        let (ctx, _) = context(session(version, recursion), recursive());
        let mut lister = Lister::new(&ctx);
        let mut list = FileList::new();
        let mut found = Vec::new();
        let mut next = Some(lister.first(arguments(root.path(), &["t/"])).unwrap());
        while let Some(Listed { segment, .. }) = next {
            found.extend(segment.iter().filter_map(|(ndx, entry)| Some((ndx.0, entry.hard_link()?))));
            list.push(segment);
            next = lister.next(&mut list).unwrap();
        }
        found
    };
    let group = |first| HardLink::Group { group: 2, first };
    assert_eq!(links(32, Recursion::Incremental), [(2, group(true)), (3, group(false)), (6, group(false))]);
    let old = links(29, Recursion::Whole);
    assert!(old.iter().all(|(_, link)| matches!(link, HardLink::Inode { .. }) && *link == old[0].1));
}

#[test]
fn names_restrict_the_transfer() {
    let root = tempfile::tempdir().unwrap();
    for name in ["a/b/f", "a/b/g", "a/c/h"] {
        write(root.path(), name);
    }
    let mut options = TransferOptions::default();
    options.select.relative = true;
    options.select.implied_dirs = true;
    options.select.dirs = true;
    let text = "a/b/f\n#c\n/a/c\n../a/b/../c/h\na/./c/\n";
    let names = || Names::Local { content: Box::new(text.as_bytes()), separator: Separator::Line };
    let dir = root.path().to_str().unwrap().as_bytes().to_vec();
    let (whole, ..) = lines(32, Recursion::Whole, options.clone(), Source::with_names(dir.clone(), names()));
    assert_eq!(whole, ["0: a/ i, a/b/ i, a/b/f, a/c/, a/c/ i, a/c/h, c/ tc, c/h"]);
    options.select.relative = false;
    let (flat, ..) = lines(32, Recursion::Whole, options.clone(), Source::with_names(dir, names()));
    assert_eq!(flat, ["0: ./ tc, f, h, h, c/"]);
    let missing = Source::with_names(b"/nonexistent-directory".to_vec(), names());
    let (ctx, _) = context(session(32, Recursion::Whole), options);
    assert_eq!(list(&ctx, missing).unwrap_err().exit_code(), 3);
}

#[test]
fn a_parent_in_a_relative_path_is_a_usage_error() {
    let root = worked_example();
    let (ctx, _) = context(session(32, Recursion::Whole), relative());
    let failure = list(&ctx, arguments(root.path(), &["./nt/../nt/f0"])).unwrap_err();
    assert_eq!(failure.exit_code(), 1);
    assert!(failure.to_string().starts_with("found \"..\" dir in relative path: "));
}
