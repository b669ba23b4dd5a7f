//! ACLs, modes, owners and times beyond `-a`.

use std::path::Path;
use std::process::Command;

use super::Before::{Absent, Older, Same};
use super::{listing, row, Scenario};
use crate::peers::Mode;
use crate::trees::{file, set_time, PAST};

const REMOTE: &[Mode] = &[Mode::Push, Mode::Pull];

/// Gives files to other users, some of whom have names.
fn owners(work: &Path) {
    let src = work.join("src");
    for (name, owner) in [("one", "1:2"), ("block", "33:33"), ("run.sh", "54321:54322"), ("dir", "2:1")] {
        run("chown", &[owner], &src.join(name));
        set_time(&src.join(name), PAST, 0);
    }
}

/// Makes both trees writable for everybody.
fn open_to_all(work: &Path) {
    for name in ["", "src", "dst"] {
        run("chmod", &["a+rwx"], &work.join(name));
    }
}

/// Makes files old whose access times tell who read them, and a plain destination.
fn read_long_ago(work: &Path) {
    for tree in ["src", "dst"] {
        file(&work.join(tree), "text.txt", b"read me", 0o644);
        let find = ["-exec", "touch", "-h", "-a", "-d", "2001-01-01", "{}", "+"];
        let _ = Command::new("find").arg(work.join(tree)).args(find).output();
        run("touch", &["-h", "-d", "2002-02-02"], &work.join(tree).join("text.txt"));
    }
}

/// Gives the source lists of every kind: named users and groups with and without names, one with a
/// mask only, a default list, and some on what is no regular file.
fn acls(work: &Path) {
    let src = work.join("src");
    for (name, list) in [
        ("one", "u:1:rw,g:2:r"),
        ("block", "u:1:rw,g:2:r"),
        ("run.sh", "u:54321:rwx,u:33:r,g:54322:x"),
        ("text.txt", "m::r"),
        ("setuid", "u:7:rwx"),
        ("read-only", "u:2:-,g::-"),
        ("dir/file", "u:4:rx,m::x"),
        ("pipe", "g:3:rw"),
        ("dir", "u:1:rwx,d:u:1:rx,d:g:3:w"),
        ("empty-dir", "d:u::rwx,d:g::rx,d:o::-"),
        (".", "u:5:rx"),
    ] {
        run("setfacl", &["-m", list], &src.join(name));
    }
}

/// The same, with other lists at the destination.
fn acls_at_both(work: &Path) {
    acls(work);
    let dst = work.join("dst");
    for (name, list) in [
        ("one", "u:1:r,g:2:r"),
        ("block", "u:1:rw,g:2:r,g::-"),
        ("empty", "u:9:rwx"),
        ("dir", "d:u:9:rwx"),
        ("dir-2", "u:9:rwx,d:o::-"),
        ("with space", "u:1:rw"),
        ("extra-dir", "u:1:rwx,d:u:1:rwx"),
        (".", "d:u:9:r"),
    ] {
        run("setfacl", &["-m", list], &dst.join(name));
    }
}

/// Gives the destination, made here if need be, a default list: new items get what it says.
fn default_acl(work: &Path) {
    let _ = std::fs::create_dir(work.join("dst"));
    run("chown", &["--reference", &work.join("src").to_string_lossy()], &work.join("dst"));
    run("setfacl", &["-m", "d:u:7:rwx,d:g::rx,d:o::-"], &work.join("dst"));
}

/// Runs a command on a path; tools that need root fail quietly for others.
fn run(program: &str, arguments: &[&str], path: &Path) {
    let _ = Command::new(program).args(arguments).arg(path).output();
}

pub(super) const ROWS: &[Scenario] = &[
    // --chmod, on either side, with and without -p.
    row(Absent, "-ai --chmod=u=rwX,go=rX"),
    row(Older, "-ai --chmod=u=g,D+x --chmod=Fo-r"),
    row(Same, "-aii --chmod=D2755,F640"),
    row(Absent, "-rli --chmod=a+rwX,+t"),
    row(Older, "-rE --chmod=a+x"),
    row(Older, "-ai --chmod=ug+s --protocol=29"),
    row(Older, "-aic --chmod=go-rwx --delete -H"),
    listing("-r --chmod=u=rw,go= --list-only", "src/"),
    row(Absent, "-a --chmod=u+q"),
    row(Absent, "-a --chmod=u+x --chmod="),
    row(Absent, "-ai -M--chmod=Fo-r,u+w --chmod=Fg+w").only(REMOTE),
    // Maps.
    row(Absent, "-ai --usermap=*:7 --groupmap=*:8").with(owners),
    row(Older, "-aii --usermap=0-9:bin,:12,www-d*:4,root:5").with(owners),
    row(Same, "-ai --groupmap=54000-55000:sys,[dr]*:3,:1").with(owners),
    row(Same, "-ai --chown=daemon:sys").with(owners),
    row(Older, "-rti --chown=:sys").with(owners),
    row(Older, "-ai --chown=8:9 --numeric-ids").with(owners),
    row(Absent, "-ai --numeric-ids --usermap=root:7,0:8,:9").with(owners),
    row(Absent, "-ai --usermap=root:7 --protocol=29").with(owners),
    row(Absent, "-ai --usermap=daemon:7,bin:6 --groupmap=*:2 --protocol=30 --no-i-r").with(owners),
    row(Absent, "-ai --usermap=daemon:nobody-here,bin:5 --groupmap=1:x").with(owners),
    row(Absent, "-a --usermap=1x:5"),
    row(Absent, "-a --usermap=1:99999999999"),
    row(Absent, "-a --groupmap=1"),
    row(Absent, "-ai --usermap=*:1 --no-o").with(owners),
    row(Absent, "-a --chown=1 --usermap=2:3"),
    row(Absent, "-a --groupmap=1:2 --groupmap=2:3"),
    row(Absent, "-a --chown=:1 --chown=:2"),
    // Who may do what.
    row(Older, "-ai --no-super").with(owners),
    row(Older, "-ai -M--no-super").with(owners).only(REMOTE),
    row(Older, "-ai -M--super --super").with(owners).only(REMOTE),
    row(Older, "-ai --copy-as=daemon:bin").with(open_to_all).only(REMOTE),
    row(Older, "-rlt --copy-as=nobody").with(open_to_all).only(REMOTE),
    row(Absent, "-a --copy-as=no-such-user").only(REMOTE),
    row(Absent, "-a --copy-as=daemon:no-such-group").only(REMOTE),
    row(Absent, "-a --copy-as=3999999999").only(REMOTE),
    // Times.
    row(Same, "-aiU").with(read_long_ago),
    row(Same, "-aiUU").with(read_long_ago),
    row(Same, "-aic --open-noatime").with(read_long_ago),
    row(Older, "-aiUU --no-open-noatime").with(read_long_ago),
    row(Absent, "-aN"),
    // ACLs.
    row(Absent, "-aAi").with(acls),
    row(Older, "-aAi").with(acls_at_both),
    row(Same, "-aAii").with(acls_at_both),
    row(Same, "-aAin").with(acls_at_both),
    row(Older, "-aAiH --delete").with(acls_at_both),
    row(Older, "-aAXHi --no-i-r").with(acls_at_both),
    row(Older, "-aAi --numeric-ids").with(acls_at_both),
    row(Older, "-aAi --numeric-ids --no-i-r").with(acls_at_both),
    row(Older, "-aAi --usermap=daemon:8,54321:9 --groupmap=*:12").with(acls_at_both),
    row(Older, "-aAi --chmod=go-w,F+x").with(acls_at_both),
    row(Older, "-rAi").with(acls_at_both),
    row(Older, "-rAi --no-i-r").with(acls_at_both),
    row(Older, "-aAi --inplace").with(acls_at_both),
    row(Older, "-aAi --backup-dir=old").with(acls_at_both),
    row(Older, "-aAi --temp-dir={work}/src/dir").with(acls_at_both),
    row(Older, "-aAi --delay-updates").with(acls_at_both),
    row(Same, "-aAvv --ignore-existing").with(acls_at_both),
    row(Same, "-aAi --no-p").with(acls_at_both),
    row(Older, "-ai").with(acls_at_both),
    row(Absent, "-aA --protocol=29").with(acls).only(REMOTE),
    row(Older, "-aAi --protocol=29").with(acls_at_both).only(&[Mode::Local]),
    row(Older, "-aAi --protocol=30").with(acls_at_both),
    row(Older, "-aAi --protocol=31 --no-i-r").with(acls_at_both),
    row(Absent, "-aAi --chown=1:2").with(acls),
    row(Absent, "-aAi -M--fake-super").with(acls).only(REMOTE),
    row(Older, "-aAi -M--fake-super").with(acls_at_both).only(REMOTE),
    row(Absent, "-aAXi --fake-super").with(acls),
    row(Absent, "-rlti").with(default_acl),
    row(Absent, "-ai").with(default_acl),
    row(Absent, "-aAi").with(default_acl),
    row(Absent, "-rE --mkpath").with(default_acl),
    row(Older, "-rltiD --delete").with(default_acl),
];
