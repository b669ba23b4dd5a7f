//! The whole role against a scripted receiver, on real trees.

use std::fs;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::mpsc::{channel, Sender};

use suisei_protocol::flist::{DirNdx, EntryFlags, Extra, HardLink, IoErrors, Mode, NewEntry, SegmentBuilder};

use super::*;
use crate::options::{DeleteWhen, Partial};
use crate::source::tests::{self as support, Heard};
use crate::tree::{SymlinkPolicy, Tree};
use crate::TransferOptions;

/// An outbox that writes requests down as text and answers them at once, as a receiver would.
struct Wire {
    sent: Vec<String>,
    answers: Sender<FromReceiver>,
    dones: u32,
    /// Fates in the order of requests; then everything is placed.
    fates: Vec<Fate>,
    dry: bool,
}

impl Outbox<ToSender> for Wire {
    fn send(&mut self, message: ToSender) -> Result<(), Failure> {
        self.sent.push(match message {
            ToSender::Item { ndx, item } => shown("item", ndx, &item),
            ToSender::Want { ndx, item, basis } => {
                if !self.dry {
                    let fate = if self.fates.is_empty() { Fate::Placed } else { self.fates.remove(0) };
                    self.answers.send(FromReceiver::Finished(ndx, fate)).unwrap();
                }
                format!("{} {}/{}", shown("want", ndx, &item), basis.head.count, basis.head.sum_len)
            }
            ToSender::Succeeded(ndx) => format!("succeeded {ndx}"),
            ToSender::Done => {
                self.dones += 1;
                self.answers.send(FromReceiver::DoneSeen(self.dones)).unwrap();
                "done".into()
            }
            ToSender::Deleted(counts) => format!("deleted {}", counts.total()),
        });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

fn shown(what: &str, ndx: Ndx, item: &Item) -> String {
    let basis = item.basis.map(|basis| format!(" {basis:?}")).unwrap_or_default();
    let xname = item.xname.as_deref().map(|name| format!(" => {}", String::from_utf8_lossy(name)));
    format!("{what} {ndx} {:04x}{basis}{}", item.flags.bits(), xname.unwrap_or_default())
}

/// An entry in short: a name with `/` behind is a directory, `@TARGET` makes a symlink, `&N` puts
/// a file into hard-link group N, `!` (last) is an error at the sender. Files have 5 bytes and
/// changed at second 1000.
fn push(builder: &mut SegmentBuilder, text: &str) {
    if text == "!" {
        return builder.set_io_errors(IoErrors::GENERAL);
    }
    let mut extra = Extra::default();
    let mut mode = 0o100_644;
    let mut size = 5;
    let mut name = text;
    if let Some((before, target)) = text.split_once('@') {
        (name, mode) = (before, 0o120_777);
        extra.link_target = Some(target.as_bytes().into());
    } else if let Some((before, group)) = text.split_once('&') {
        name = before;
        extra.hard_link = Some(HardLink::Group { group: group.parse().unwrap(), first: false });
    } else if let Some(before) = text.strip_suffix('/') {
        (name, mode, size) = (before, 0o040_755, 0);
    }
    let entry = NewEntry {
        path: name.as_bytes(),
        mode: Mode(mode),
        size,
        mtime: 1000,
        mtime_nsec: 0,
        uid: 0,
        gid: 0,
        flags: if mode == 0o040_755 { EntryFlags::CONTENT_DIR } else { EntryFlags::empty() },
    };
    builder.push(entry, extra).unwrap();
}

fn whole(names: &[&str]) -> Vec<FromReceiver> {
    let mut builder = SegmentBuilder::new(Ndx(0), None);
    names.iter().for_each(|name| push(&mut builder, name));
    vec![FromReceiver::Segment(Arc::new(builder.finish())), FromReceiver::ListEnd]
}

/// The first list, then one segment for each further list, headed by its directory.
fn incremental(lists: &[(&str, &[&str])]) -> Vec<FromReceiver> {
    let mut start = 1;
    let mut messages = Vec::new();
    for (n, (dir, names)) in lists.iter().enumerate() {
        let listed = (n > 0).then(|| {
            let mut builder = SegmentBuilder::new(Ndx(0), None);
            push(&mut builder, dir);
            (DirNdx(n as i32), Arc::new(builder.finish().get(0).unwrap().to_owned()))
        });
        let mut builder = SegmentBuilder::new(Ndx(start), listed);
        names.iter().for_each(|name| push(&mut builder, name));
        start += names.len() as i32 + 1;
        messages.push(FromReceiver::Segment(Arc::new(builder.finish())));
    }
    messages.push(FromReceiver::ListEnd);
    messages
}

struct Ran {
    sent: Vec<String>,
    heard: Arc<Heard>,
    ctx: Context,
}

fn run_with(
    root: &Path,
    version: u32,
    options: TransferOptions,
    messages: Vec<FromReceiver>,
    fates: &[Fate],
) -> Ran {
    let recursion = match &messages[0] {
        FromReceiver::Segment(segment) if segment.start() == Ndx(0) => Recursion::Whole,
        _ => Recursion::Incremental,
    };
    let dry = options.dry_run;
    let (ctx, heard) = support::context(support::session(version, recursion), options);
    let tree = Arc::new(Tree::open(root, SymlinkPolicy::Refuse).unwrap());
    let destination = Destination::new(tree, None);
    let (answers, inbox) = channel();
    messages.into_iter().for_each(|message| answers.send(message).unwrap());
    let mut wire = Wire { sent: Vec::new(), answers, dones: 0, fates: fates.to_vec(), dry };
    run(&ctx, &destination, inbox, &mut wire).unwrap();
    Ran { sent: wire.sent, heard, ctx }
}

fn run_on(root: &Path, options: TransferOptions, messages: Vec<FromReceiver>) -> Ran {
    run_with(root, 32, options, messages, &[])
}

fn archive() -> TransferOptions {
    let mut options = TransferOptions::default();
    options.preserve.times = true;
    options.preserve.links = true;
    options.preserve.hard_links = true;
    options.select.recursive = true;
    options
}

/// Makes a file of 5 bytes that changed at second 1000.
fn put(root: &Path, name: &str) {
    put_old(root, name, "12345", 1000);
}

fn put_old(root: &Path, name: &str, content: &str, seconds: u64) {
    fs::write(root.join(name), content).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    fs::File::options().write(true).open(root.join(name)).unwrap().set_modified(time).unwrap();
}

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_whole_list_is_walked_in_order_and_the_ladder_climbed() {
    let root = temp();
    put(root.path(), "same");
    put_old(root.path(), "changed", "1234", 900);
    let ran =
        run_on(root.path(), archive(), whole(&["./", "changed", "link@to", "new", "same", "d/", "d/f"]));
    assert_eq!(
        ran.sent,
        [
            "item 0 0008",
            "want 1 800c 1/2",
            "item 2 6002",
            "want 3 a000 0/0",
            "item 5 6000",
            "want 6 a000 0/0",
            "done",
            "done",
            "done",
            "done",
            "done"
        ]
    );
    assert_eq!(fs::read_link(root.path().join("link")).unwrap(), Path::new("to"));
    for dir in ["d", "."] {
        assert_eq!(fs::metadata(root.path().join(dir)).unwrap().mtime(), 1000, "{dir}: times come last");
    }
}

#[test]
fn each_version_has_its_ladder() {
    for (version, dones) in [(27, 3), (28, 3), (29, 4), (30, 4), (31, 5), (32, 5)] {
        let root = temp();
        let ran = run_with(root.path(), version, archive(), whole(&["./", "f"]), &[]);
        assert_eq!(ran.sent.iter().filter(|sent| *sent == "done").count(), dones, "{version}");
        let items = ran.sent.iter().any(|sent| sent.starts_with("item"));
        assert_eq!(items, version >= 29, "old versions know requests only");
    }
}

/// Captured with stock 3.5.0: the worked example of the specification.
#[test]
fn segments_are_finished_in_order_with_directories_at_their_gaps() {
    let root = temp();
    let lists: &[(&str, &[&str])] =
        &[("", &["./", "f0", "A/", "B/"]), ("A/", &["A/f1", "A/AA/"]), ("A/AA/", &["A/AA/f2"]), ("B/", &[])];
    let ran = run_on(root.path(), archive(), incremental(lists));
    assert_eq!(
        ran.sent,
        [
            "item 0 0008",
            "want 2 a000 0/0",
            "done",
            "item 5 6000",
            "want 6 a000 0/0",
            "done",
            "item 8 6000",
            "want 9 a000 0/0",
            "done",
            "item 10 6000",
            "done",
            "done",
            "done",
            "done",
            "done",
        ]
    );
    for dir in [".", "A", "A/AA", "B"] {
        assert_eq!(fs::metadata(root.path().join(dir)).unwrap().mtime(), 1000, "{dir}");
        assert_eq!(fs::metadata(root.path().join(dir)).unwrap().mode() & 0o777 & 0o700, 0o700, "{dir}");
    }
}

#[test]
fn a_redo_comes_with_full_sums_before_its_done() {
    let root = temp();
    put_old(root.path(), "f", &"x".repeat(2000), 900);
    let fates = [Fate::Redo, Fate::Placed];
    let ran = run_with(root.path(), 32, archive(), whole(&["./", "f"]), &fates);
    assert_eq!(ran.sent[1..4], ["want 1 800c 3/2", "done", "want 1 800c 3/16"]);
    let lists: &[(&str, &[&str])] = &[("", &["./", "f"])];
    let ran = run_with(root.path(), 32, archive(), incremental(lists), &fates);
    let wants: Vec<&String> = ran.sent.iter().filter(|sent| *sent != "done").collect();
    assert_eq!(wants, ["want 2 800c 3/2", "want 2 800c 3/16"]);
}

#[test]
fn a_failed_directory_takes_its_content_along() {
    let root = temp();
    fs::create_dir(root.path().join("f")).unwrap();
    fs::write(root.path().join("f/x"), "").unwrap();
    put(root.path(), "d");
    let mut options = archive();
    options.select.ignore_existing = false;
    options.select.existing_only = true;
    let ran = run_on(root.path(), options, whole(&["./", "f", "n", "m/", "m/x"]));
    assert_eq!(ran.sent[1..], ["done"; 5]);
    let heard = ran.heard.take().join("\n");
    assert!(
        heard.contains("f NotEmpty") && heard.contains("could not make way for new regular file: f"),
        "{heard}"
    );
    assert!(
        heard.contains("n NotCreating(Regular)") && heard.contains("m NotCreating(Directory)"),
        "{heard}"
    );
    assert!(!heard.contains("m/x"), "{heard}");
    assert!(ran.ctx.has_transfer_error());
}

#[test]
fn a_dry_run_tells_the_same_and_changes_nothing() {
    let names = ["./", "a&1", "b&1", "l@t", "over", "d/", "d/e/", "d/e/f"];
    let mut sent = Vec::new();
    for dry_run in [false, true] {
        let root = temp();
        fs::create_dir(root.path().join("over")).unwrap();
        let mut options = archive();
        options.dry_run = dry_run;
        let ran = run_on(root.path(), options, whole(&names));
        let mut lines = ran.sent;
        lines.sort();
        sent.push(lines);
        assert_eq!(root.path().join("d").exists(), !dry_run);
        assert_eq!(root.path().join("over").is_dir(), dry_run);
    }
    // Without a receiver nothing is really there to link to.
    sent[0].retain(|line| !line.contains("=>"));
    sent[1].retain(|line| !line.contains("=>"));
    assert_eq!(sent[0], sent[1]);
}

#[test]
fn hard_links_follow_the_member_that_is_in_place() {
    let root = temp();
    put(root.path(), "c");
    put_old(root.path(), "e", "old", 1000);
    let ran = run_on(root.path(), archive(), whole(&["a&1", "b&1", "c&1", "d&1", "e&1"]));
    // Captured with stock 3.5.0: `b => c, a => c, d => c, e => c`.
    assert_eq!(
        ran.sent[..4],
        ["item 1 7000 => c", "item 0 7000 => c", "item 3 7000 => c", "item 4 5004 => c"]
    );
    assert_eq!(fs::metadata(root.path().join("c")).unwrap().nlink(), 5);
    let again = run_on(root.path(), archive(), whole(&["a&1", "b&1", "c&1", "d&1", "e&1"]));
    assert_eq!(again.sent, ["done"; 5]);
}

#[test]
fn a_group_whose_last_member_fails_asks_for_the_one_before() {
    let root = temp();
    let fates = [Fate::Failed, Fate::NotSent];
    let lists: &[(&str, &[&str])] = &[("", &["a&1", "b&1", "c&1"])];
    let ran = run_with(root.path(), 32, archive(), incremental(lists), &fates);
    assert_eq!(ran.sent[..3], ["want 3 a000 0/0", "want 2 a000 0/0", "want 1 a000 0/0"]);
    let ran = run_with(root.path(), 32, archive(), whole(&["a&1", "b&1", "c&1"]), &fates);
    assert_eq!(ran.sent[..4], ["want 2 a000 0/0", "done", "want 1 a000 0/0", "want 0 a000 0/0"]);
}

#[test]
fn deletion_during_the_walk_reports_and_counts() {
    let root = temp();
    fs::create_dir_all(root.path().join("extra/sub")).unwrap();
    put(root.path(), "extra/sub/x");
    put(root.path(), "gone");
    put(root.path(), "f");
    let mut options = archive();
    options.delete.when = Some(DeleteWhen::During);
    let ran = run_on(root.path(), options.clone(), whole(&["./", "f"]));
    assert_eq!(ran.sent[1..], ["done", "done", "done", "deleted 4", "done", "done"]);
    assert!(!root.path().join("extra").exists() && root.path().join("f").exists());

    put(root.path(), "gone");
    options.delete.when = Some(DeleteWhen::Delay);
    let ran = run_on(root.path(), options.clone(), whole(&["./", "f"]));
    assert_eq!(ran.sent[ran.sent.len() - 4..], ["done", "deleted 1", "done", "done"]);
    assert_eq!(
        fs::metadata(root.path()).unwrap().mtime(),
        1000,
        "the time is put right after late deletions"
    );

    put(root.path(), "kept");
    let mut messages = whole(&["./", "f"]);
    let mut builder = SegmentBuilder::new(Ndx(0), None);
    push(&mut builder, "./");
    builder.set_io_errors(IoErrors::GENERAL);
    messages[0] = FromReceiver::Segment(Arc::new(builder.finish()));
    options.delete.when = Some(DeleteWhen::After);
    let ran = run_on(root.path(), options, messages);
    assert_eq!(ran.heard.take().iter().filter(|line| *line == "DeletionSkipped").count(), 1);
    assert!(root.path().join("kept").exists());
}

#[test]
fn an_error_holds_back_deletions_from_its_own_list_on() {
    let root = temp();
    for dir in ["", "a/", "z/"] {
        fs::create_dir_all(root.path().join(dir)).unwrap();
        put(root.path(), &format!("{dir}extra"));
    }
    let mut options = archive();
    options.preserve.hard_links = false;
    options.delete.when = Some(DeleteWhen::During);
    let lists: &[(&str, &[&str])] = &[("", &["./", "a/", "z/"]), ("a/", &[]), ("z/", &["!"])];
    run_on(root.path(), options, incremental(lists));
    let left = ["extra", "a/extra", "z/extra"].map(|name| root.path().join(name).exists());
    assert_eq!(left, [false, false, true], "as in stock, though all lists had arrived");
}

#[test]
fn early_statistics_precede_the_delayed_done() {
    let root = temp();
    let mut options = archive();
    options.delete.when = Some(DeleteWhen::During);
    options.place.delay_updates = true;
    options.place.partial = Partial::Dir(b".~tmp~".to_vec());
    options.place.remove = Remove::SourceFiles;
    let ran = run_with(root.path(), 32, options, whole(&["./", "a&1", "b&1"]), &[Fate::Delayed]);
    assert_eq!(
        ran.sent[1..],
        ["want 2 a000 0/0", "done", "done", "deleted 0", "succeeded 2", "done", "done", "done"],
        "links wait for what is delayed"
    );
}

#[test]
fn a_partial_file_is_the_basis_and_goes_when_it_is_of_no_use() {
    let root = temp();
    fs::create_dir(root.path().join(".p")).unwrap();
    put_old(root.path(), ".p/f", &"y".repeat(800), 1);
    let mut options = archive();
    options.place.partial = Partial::Dir(b".p".to_vec());
    let ran = run_on(root.path(), options.clone(), whole(&["f"]));
    assert_eq!(ran.sent[0], "want 0 a800 PartialDir 2/2");
    put(root.path(), "f");
    assert_eq!(run_on(root.path(), options, whole(&["f"])).sent, ["done"; 5]);
    assert!(!root.path().join(".p").exists());
}

#[test]
fn files_written_in_place_are_backed_up_first() {
    let root = temp();
    put_old(root.path(), "f", &"z".repeat(800), 900);
    let mut options = archive();
    options.place.inplace = true;
    options.place.backup = true;
    options.place.backup_suffix = b"~".to_vec();
    let ran = run_on(root.path(), options.clone(), whole(&["f"]));
    assert_eq!(ran.sent[0], "want 0 880c Backup 2/2");
    assert_eq!(fs::read(root.path().join("f~")).unwrap(), "z".repeat(800).into_bytes());
    options.delta.whole_file = true;
    fs::remove_file(root.path().join("f~")).unwrap();
    assert_eq!(run_on(root.path(), options, whole(&["f"])).sent[0], "want 0 800c 0/0");
    assert!(root.path().join("f~").exists());
}

#[test]
fn appending_sends_a_head_without_sums() {
    let root = temp();
    put_old(root.path(), "f", "123", 1000);
    let mut options = archive();
    options.place.append = crate::options::Append::Plain;
    options.place.inplace = true;
    options.delta.whole_file = true;
    let ran = run_on(root.path(), options.clone(), whole(&["f"]));
    assert_eq!(ran.sent[0], "want 0 8004 1/2", "appending overrides whole files");
    put_old(root.path(), "f", "1234567", 1000);
    assert_eq!(run_on(root.path(), options, whole(&["f"])).sent, ["done"; 5]);
}

#[test]
fn items_of_another_kind_make_way() {
    let root = temp();
    put(root.path(), "l");
    symlink("elsewhere", root.path().join("f")).unwrap();
    put(root.path(), "d");
    let ran = run_on(root.path(), archive(), whole(&["./", "f", "l@t", "d/", "d/x"]));
    assert_eq!(ran.sent[1..5], ["want 1 a000 0/0", "item 2 6002", "item 3 6000", "want 4 a000 0/0"]);
    assert!(fs::symlink_metadata(root.path().join("f")).is_err());
    assert!(root.path().join("d").is_dir());
}

#[test]
fn a_directory_without_rights_gets_them_while_it_changes() {
    let root = temp();
    fs::create_dir(root.path().join("d")).unwrap();
    fs::set_permissions(root.path().join("d"), fs::Permissions::from_mode(0o555)).unwrap();
    let ran = run_on(root.path(), archive(), whole(&["./", "d/", "d/l@t"]));
    assert!(ran.sent.contains(&"item 2 6002".to_string()));
    assert_eq!(fs::metadata(root.path().join("d")).unwrap().mode() & 0o777, 0o555);
}

#[test]
fn an_entry_without_its_directory_is_refused() {
    let root = temp();
    let (ctx, _) = support::context(support::session(32, Recursion::Whole), archive());
    let tree = Arc::new(Tree::open(root.path(), SymlinkPolicy::Refuse).unwrap());
    let destination = Destination::new(tree, None);
    let (answers, inbox) = channel();
    whole(&["./", "d/f"]).into_iter().for_each(|message| answers.send(message).unwrap());
    let mut wire = Wire { sent: Vec::new(), answers, dones: 0, fates: Vec::new(), dry: false };
    let failure = run(&ctx, &destination, inbox, &mut wire).unwrap_err();
    assert_eq!(failure.exit_code(), 2);
}

#[test]
fn listing_asks_for_nothing_and_names_directories_with_their_content() {
    let root = temp();
    let mut options = archive();
    options.report.list_only = true;
    let lists: &[(&str, &[&str])] = &[("", &["./", "f0", "A/"]), ("A/", &["A/f1"])];
    let ran = run_on(root.path(), options, incremental(lists));
    assert_eq!(ran.sent, ["done"; 6]);
    let heard = ran.heard.take();
    assert_eq!(heard.iter().filter(|line| line.starts_with("Listed")).count(), 4);
    assert!(fs::read_dir(root.path()).unwrap().next().is_none());
}

#[test]
fn unchanged_items_are_confirmed_when_sources_are_to_go() {
    let root = temp();
    put(root.path(), "f");
    symlink("t", root.path().join("l")).unwrap();
    let mut options = archive();
    options.place.remove = Remove::SourceFiles;
    options.report.up_to_date = true;
    let ran = run_on(root.path(), options, whole(&["f", "l@t", "n"]));
    let l = ran.sent.iter().position(|sent| sent == "succeeded 1").unwrap();
    assert_eq!(ran.sent[0], "item 0 0000");
    assert_eq!(ran.sent[1], "succeeded 0");
    assert!(l < ran.sent.len() && ran.sent.contains(&"succeeded 2".to_string()));
    assert!(ran.heard.take().contains(&"f UpToDate".to_string()));
}

#[test]
fn significant_flags_are_those_of_the_specification() {
    // What `is_worth_sending` builds on.
    let only_carriers = ItemFlags::BASIS_TYPE_FOLLOWS | ItemFlags::XNAME_FOLLOWS | ItemFlags::LOCAL_CHANGE;
    assert!(only_carriers.significant().is_empty());
}
