//! Every row of the table, with stock at either end: same tree, same lines, same exit code.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use suisei_interop_tests::lines::{comparable, comparable_log};
use suisei_interop_tests::peers::{has_stock, ours, remote_shell, Mode, Peer, Run, User};
use suisei_interop_tests::scenarios::{scenarios, Before, Scenario};
use suisei_interop_tests::snapshot::{now, snapshot};
use suisei_interop_tests::trees;

/// How often a pair that differs is run again.
const ASKED_AGAIN: usize = 3;

/// What a run leaves behind.
#[derive(PartialEq, Eq)]
struct Outcome {
    code: Option<i32>,
    out: Vec<String>,
    err: Vec<String>,
    destination: Vec<String>,
    source: Vec<String>,
    also: Vec<String>,
}

/// Trees that are built once and copied for every run, and the program where all users reach it.
struct Templates {
    folder: tempfile::TempDir,
}

impl Templates {
    fn build() -> Templates {
        let folder = tempfile::tempdir().expect("a temporary folder");
        trees::mixed(&folder.path().join("mixed"));
        trees::older(&folder.path().join("older"));
        std::fs::copy(ours(), folder.path().join("suisei")).expect("the binary can be copied");
        let reachable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), reachable).expect("the folder is ours");
        Templates { folder }
    }

    fn copy(&self, name: &str, to: &Path) {
        let status = Command::new("cp").arg("-a").arg(self.folder.path().join(name)).arg(to).status();
        assert!(status.is_ok_and(|s| s.success()), "cp copies {name}");
    }
}

/// Which end is which, and as whom they run.
#[derive(Debug, Clone, Copy)]
struct Setting {
    mode: Mode,
    user: User,
    client: Peer,
    server: Peer,
}

/// Gives the trees to nobody, but for what is owned by others.
fn hand_over(work: &Path) {
    let id = User::NOBODY;
    let status = Command::new("find")
        .arg(work)
        .args(["-user", "0", "!", "-name", "null", "-exec", "chown", "-h", &format!("{id}:{id}"), "{}", "+"])
        .status();
    assert!(status.is_ok_and(|s| s.success()), "find and chown are installed");
    // chown(1) takes these bits away.
    let setuid = work.join("src/setuid");
    if setuid.exists() {
        let mode = std::fs::Permissions::from_mode(0o4755);
        std::fs::set_permissions(setuid, mode).expect("root may set any mode");
    }
}

fn outcome(templates: &Templates, row: &Scenario, setting: Setting) -> Outcome {
    let Setting { mode, user, client, server } = setting;
    let folder = tempfile::Builder::new().prefix("run").tempdir().expect("a temporary folder");
    let work = folder.path();
    templates.copy("mixed", &work.join("src"));
    trees::file(&work.join("src"), ".rules", b"- *.sh\n", 0o644);
    trees::set_time(&work.join("src"), trees::PAST + 10, 77);
    match row.before {
        Before::Absent => {}
        Before::Older => templates.copy("older", &work.join("dst")),
        Before::Same => {
            let status = Command::new("cp").arg("-a").arg(work.join("src")).arg(work.join("dst")).status();
            assert!(status.is_ok_and(|s| s.success()), "cp copies the source");
        }
    }
    row.prepare(work);
    remote_shell(work);
    if user == User::Nobody {
        hand_over(work);
    }
    let text = row.options.replace("{work}", work.to_str().expect("temporary folders have plain names"));
    let options: Vec<&str> = text.split(' ').filter(|w| !w.is_empty()).collect();
    let sources: Vec<&str> = row.sources.split(' ').collect();
    let start = now();
    let run = Run {
        work,
        client,
        server,
        mode,
        user,
        ours: &templates.folder.path().join("suisei"),
        options: &options,
        sources: &sources,
        destination: Some(row.destination).filter(|d| !d.is_empty()),
    };
    let output = run.output();
    Outcome {
        code: output.status.code(),
        out: comparable(&output.stdout, work),
        err: comparable(&output.stderr, work),
        destination: snapshot(&work.join("dst"), start),
        source: snapshot(&work.join("src"), start),
        also: row.also.iter().flat_map(|item| beside(work, item, start)).collect(),
    }
}

/// Returns the lines of an item beside the two trees, each with the item's name; of a log its text.
fn beside(work: &Path, item: &str, start: u64) -> Vec<String> {
    let path = work.join(item);
    let lines = match std::fs::read(&path) {
        Ok(text) if item.ends_with("log") => comparable_log(&text, work),
        _ => snapshot(&path, start),
    };
    lines.into_iter().map(|line| format!("{item}: {line}")).collect()
}

/// Returns what differs, line by line.
fn difference(what: &str, expected: &[String], got: &[String], report: &mut String) {
    for line in expected.iter().filter(|l| !got.contains(l)) {
        report.push_str(&format!("    {what} -{line}\n"));
    }
    for line in got.iter().filter(|l| !expected.contains(l)) {
        report.push_str(&format!("    {what} +{line}\n"));
    }
    if report.is_empty() && expected != got {
        report.push_str(&format!("    {what}: same lines, other counts\n"));
    }
}

fn compare(expected: &Outcome, got: &Outcome) -> String {
    let mut report = String::new();
    if expected.code != got.code {
        report.push_str(&format!("    exit -{:?} +{:?}\n", expected.code, got.code));
    }
    difference("out", &expected.out, &got.out, &mut report);
    difference("err", &expected.err, &got.err, &mut report);
    difference("dst", &expected.destination, &got.destination, &mut report);
    difference("src", &expected.source, &got.source, &mut report);
    difference("also", &expected.also, &got.also, &mut report);
    report
}

fn check(templates: &Templates, row: &Scenario) -> (usize, Vec<String>) {
    let mut runs = 0;
    let mut failures = Vec::new();
    let only = |variable: &str, value: &dyn std::fmt::Debug| {
        std::env::var(variable).is_ok_and(|only| format!("{value:?}") != only)
    };
    let settings = row.modes().iter().flat_map(|&mode| User::all().iter().map(move |&user| (mode, user)));
    // Whom a daemon of root runs as is its configuration's, which the tests of its own cover.
    let settings = settings.filter(|(mode, user)| !mode.is_daemon() || *user == User::Caller);
    for (mode, user) in settings {
        if only("SUISEI_MODE", &mode) || only("SUISEI_USER", &user) {
            continue;
        }
        let run = |client, server| outcome(templates, row, Setting { mode, user, client, server });
        let expected = run(Peer::Stock, Peer::Stock);
        assert!(!matches!(expected.code, Some(126 | 127)), "timeout(1) and setpriv(1) start programs");
        let pairs: &[(Peer, Peer)] = match mode {
            Mode::Local => &[(Peer::Ours, Peer::Ours)],
            _ => &[(Peer::Ours, Peer::Stock), (Peer::Stock, Peer::Ours), (Peer::Ours, Peer::Ours)],
        };
        for &(client, server) in pairs {
            runs += 1;
            let mut got = run(client, server);
            // Stock's two ends race here and there, and so does a pair with one of them: what
            // differs is asked again, with a fresh answer of stock beside the ones that are known.
            let mut answers = vec![];
            while got != expected && !answers.contains(&got) && answers.len() < ASKED_AGAIN {
                answers.push(run(Peer::Stock, Peer::Stock));
                if !answers.contains(&got) {
                    got = run(client, server);
                }
            }
            if got != expected && !answers.contains(&got) {
                let report = compare(&expected, &got);
                failures.push(format!(
                    "{:?} {:?} {mode:?} {user:?} client={client:?} server={server:?}\n{report}",
                    row.options, row.before
                ));
            }
        }
    }
    (runs, failures)
}

#[test]
fn every_row_agrees_with_stock() {
    if !has_stock() {
        return;
    }
    let only = std::env::var("SUISEI_ROW").ok();
    let templates = Templates::build();
    let rows = scenarios();
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0, Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if only.as_ref().is_some_and(|only| row.options != only) {
                        continue;
                    }
                    let (runs, failures) = check(&templates, row);
                    let mut results = results.lock().expect("no thread panics while it holds the results");
                    results.0 += runs;
                    results.1.extend(failures);
                }
            });
        }
    });
    let (runs, failures) = results.into_inner().expect("all threads ended");
    println!("{} rows, {runs} runs, {} differ", rows.len(), failures.len());
    assert!(failures.is_empty(), "{} of {runs} runs differ:\n{}", failures.len(), failures.join("\n"));
}
