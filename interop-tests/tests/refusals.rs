//! Command lines that cannot be: the exit code and every line must be those of stock.
//!
//! The lines stand in `data/refusals.txt`. A client's own refusal is tried with one program, one of
//! the far end with stock and ours at either end of a push.

use std::path::Path;
use std::process::{Command, Stdio};

use suisei_interop_tests::lines::comparable;
use suisei_interop_tests::peers::{has_stock, ours, Mode, Peer, Run, User};

/// Options that are refused as a whole so far, so that their own refusals cannot be seen.
const PENDING: &[&str] = &["--max-alloc", "--stop-after", "--stop-at", "--time-limit"];

/// One line of the table.
struct Line {
    section: String,
    text: String,
    words: Vec<String>,
}

fn lines() -> Vec<Line> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/refusals.txt");
    let text = std::fs::read_to_string(path).expect("the table is there");
    let mut section = String::new();
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => section = name.to_owned(),
            None => lines.push(Line {
                section: section.clone(),
                text: line.to_owned(),
                words: words(&line.replace("@@", "src/ dst")),
            }),
        }
    }
    lines
}

/// Splits at spaces outside of single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Exit code, lines of standard output, lines of standard error.
type Answer = (Option<i32>, Vec<String>, Vec<String>);

fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("run").tempdir().expect("a temporary folder");
    std::fs::create_dir_all(folder.path().join("src/sub")).expect("writable");
    std::fs::write(folder.path().join("src/f"), "content\n").expect("writable");
    std::fs::write(folder.path().join("list"), "f\nsub\n").expect("writable");
    folder
}

fn alone(program: Peer, words: &[String]) -> Answer {
    let folder = folder();
    let mut command = Command::new("timeout");
    command.arg("-k5").arg("60").arg(program.program()).args(words);
    command
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", "/nonexistent");
    for name in ["RSYNC_RSH", "RSYNC_ICONV", "RSYNC_OLD_ARGS", "RSYNC_PROTECT_ARGS", "RSYNC_PARTIAL_DIR"] {
        command.env_remove(name);
    }
    answer(&mut command, folder.path())
}

fn push(client: Peer, server: Peer, words: &[String]) -> Answer {
    let folder = folder();
    let options: Vec<&str> = words.iter().map(String::as_str).collect();
    let ours = ours();
    let run = Run {
        ours: &ours,
        user: User::Caller,
        work: folder.path(),
        client,
        server,
        mode: Mode::Push,
        options: &options,
        sources: &["src/"],
        destination: Some("dst"),
    };
    answer(&mut run.command(), folder.path())
}

fn answer(command: &mut Command, work: &Path) -> Answer {
    let output = command.output().expect("timeout(1) is installed");
    // The usage is ours: that it is shown is what counts.
    let usage = |lines: Vec<String>| match lines.iter().any(|line| line.starts_with("Usage: ")) {
        true => lines
            .into_iter()
            .filter(|line| line.starts_with("rsync error: "))
            .chain(["usage".to_owned()])
            .collect(),
        false => lines,
    };
    let out = comparable(&output.stdout, work);
    let mut err = usage(comparable(&output.stderr, work));
    // A stock client may still be writing when the far end is gone.
    for line in err.iter_mut().filter(|line| line.ends_with(": Broken pipe (32)")) {
        *line = "rsync: connection unexpectedly closed (0 bytes received so far) [sender]".to_owned();
    }
    // Of a local copy one half of stock ends the other.
    err.retain(|line| !line.contains("received SIGUSR1"));
    err.sort();
    (output.status.code(), usage(out), err)
}

#[test]
fn what_cannot_be_is_refused_in_the_words_of_stock() {
    if !has_stock() {
        return;
    }
    let lines = lines();
    assert!(lines.len() > 120, "only {} lines", lines.len());
    let mut wrong = Vec::new();
    let mut pending: Vec<&str> = Vec::new();
    for line in &lines {
        let (expected, answers) = match line.section.as_str() {
            "client" | "server" => {
                (alone(Peer::Stock, &line.words), vec![("alone", alone(Peer::Ours, &line.words))])
            }
            "far" => (
                push(Peer::Stock, Peer::Stock, &line.words),
                vec![
                    ("client", push(Peer::Ours, Peer::Stock, &line.words)),
                    ("server", push(Peer::Stock, Peer::Ours, &line.words)),
                    ("both", push(Peer::Ours, Peer::Ours, &line.words)),
                ],
            ),
            other => panic!("unknown section {other}"),
        };
        assert_ne!(expected.0, Some(0), "stock accepts {}", line.text);
        for (ours, got) in answers {
            let unsupported = got.2.iter().any(|text| text.contains("not supported yet"));
            let named = PENDING.iter().filter(|option| unsupported && line.text.contains(**option));
            let before = pending.len();
            pending.extend(named);
            match pending.len() == before {
                false => {}
                true if got != expected => {
                    wrong.push(format!("{} ({ours})\n  stock {expected:?}\n  ours  {got:?}", line.text))
                }
                true => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} lines differ:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
    let done: Vec<_> = PENDING.iter().filter(|option| !pending.contains(option)).collect();
    assert!(done.is_empty(), "no longer pending: {done:?}");
}
