//! The words that go to a remote shell, against those that stock rsync was seen to send.
//!
//! The table is recorded by `fixtures/record_server_args.sh`. Here it is replayed in the process:
//! parse, resolve, route, write.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use suisei::exit::Refusal;
use suisei::options::environment::Environment;
use suisei::options::server_args::{self, Far};
use suisei::options::{meaning, parse};
use suisei::plan::plan;
use suisei::remote::rsh;
use suisei::remote::spec::Route;
use suisei_protocol::session::Direction;

type Words = Vec<Vec<u8>>;

/// One recorded case.
#[derive(Debug, Default)]
struct Case {
    line: usize,
    run: Words,
    env: Words,
    rsh: Option<Words>,
    stdin: Option<Words>,
    refused: Option<(u8, String)>,
}

fn words(fields: &[&str]) -> Words {
    let unescape = |field: &&str| {
        let mut out = Vec::new();
        let mut bytes = field.bytes();
        while let Some(byte) = bytes.next() {
            out.push(match byte {
                b'\\' => match bytes.next() {
                    Some(b't') => b'\t',
                    Some(b'n') => b'\n',
                    Some(other) => other,
                    None => b'\\',
                },
                _ => byte,
            });
        }
        out
    };
    fields.iter().map(unescape).collect()
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/tables/server_args.txt");
    let text = std::fs::read_to_string(path).expect("the table is there");
    let mut cases: Vec<Case> = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let rest = words(&fields[1..]);
        if fields[0] == "run" {
            cases.push(Case { line: at + 1, run: rest, ..Case::default() });
            continue;
        }
        let case = cases.last_mut().expect("a case begins with run");
        match fields[0] {
            "env" => case.env = rest,
            "rsh" => case.rsh = Some(rest),
            "stdin" => case.stdin = Some(rest),
            "refused" => case.refused = Some((fields[1].parse().expect("a code"), fields[2].to_owned())),
            other => panic!("unknown row {other}"),
        }
    }
    cases
}

fn environment(case: &Case) -> Environment {
    let names =
        ["RSYNC_OLD_ARGS", "RSYNC_PROTECT_ARGS", "RSYNC_PARTIAL_DIR", "RSYNC_ICONV", "RSYNC_MAX_ALLOC"];
    let text: Vec<String> = case.env.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let pairs: Vec<(&str, &str)> = text
        .iter()
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (*names.iter().find(|known| **known == name).expect("a known variable"), value))
        .collect();
    let pairs: Vec<(&'static str, &str)> = pairs
        .into_iter()
        .map(|(name, value)| (*names.iter().find(|known| **known == name).expect("a known variable"), value))
        .collect();
    Environment::of(&pairs)
}

fn replay(case: &Case) -> Result<(Words, Option<Words>), Refusal> {
    let mut arguments: Vec<OsString> = vec!["-e".into(), "dump".into()];
    arguments.extend(case.run.iter().map(|word| OsString::from_vec(word.clone())));
    let plan = plan(parse::parse(&arguments)?, &environment(case))?.expect("there are operands");
    let (machine, direction, paths) = match &plan.route {
        Route::Push { machine, path, .. } => (machine, Direction::Sending, vec![path.clone()]),
        Route::Pull { machine, paths, .. } => (machine, Direction::Receiving, paths.clone()),
        Route::Local { .. } | Route::Replay { .. } => return Err(Refusal::usage("local")),
    };
    let server = server_args::write(&plan.wishes, direction, &paths, Far::Shell);
    let words = rsh::words(b"dump", &plan.wishes.typed.connect, machine, &server.line)?;
    Ok((words[1..].to_vec(), server.secluded))
}

fn shown(words: &Words) -> String {
    words.iter().map(|word| format!("{:?} ", String::from_utf8_lossy(word))).collect()
}

#[test]
fn server_words_are_those_of_stock() {
    let mut wrong = Vec::new();
    let cases = cases();
    for case in &cases {
        let run = format!("line {}: {}", case.line, shown(&case.run));
        match (replay(case), &case.rsh, &case.refused) {
            (Ok((line, secluded)), Some(rsh), None) => {
                if line != *rsh || secluded != case.stdin {
                    let ours = format!("{} | {:?}", shown(&line), secluded.as_ref().map(shown));
                    let stock = format!("{} | {:?}", shown(rsh), case.stdin.as_ref().map(shown));
                    wrong.push(format!("{run}\n  ours  {ours}\n  stock {stock}"));
                }
            }
            (Err(refusal), None, Some((code, text))) => {
                let ours = String::from_utf8_lossy(&refusal.text).into_owned();
                if refusal.code != *code || ours.lines().next() != Some(text) {
                    wrong.push(format!("{run}\n  ours  {} {ours}\n  stock {code} {text}", refusal.code));
                }
            }
            (ours, rsh, refused) => {
                wrong.push(format!("{run}\n  ours  {ours:?}\n  stock {rsh:?} {refused:?}"))
            }
        }
    }
    assert!(cases.len() > 1200, "only {} cases", cases.len());
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Takes the backslashes away that a remote shell takes away.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = word.iter().copied();
    while let Some(byte) = bytes.next() {
        out.push(if byte == b'\\' { bytes.next().unwrap_or(byte) } else { byte });
    }
    out
}

#[test]
fn a_server_reads_every_recorded_line() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in cases() {
        let Some(rsh) = &case.rsh else { continue };
        let Some(start) = rsh.iter().position(|word| word == b"--server") else { continue };
        // What the user made up for the other end alone is refused as stock refuses it.
        let is_made_up = |word: &Vec<u8>| {
            [&b"--foo"[..], b"--baz", b"--x", b"-y", b"--use-qsort"]
                .iter()
                .any(|made_up| word.starts_with(made_up))
        };
        let line: Words = rsh[start..].iter().map(|word| unescaped(word)).collect();
        let secluded = case.stdin.as_ref().map(|words| words[1..].to_vec());
        if line.iter().chain(secluded.iter().flatten()).any(is_made_up) {
            continue;
        }
        count += 1;
        let read = server_args::read(&line, secluded.as_deref());
        let resolved = read.and_then(|words| meaning::resolve(words.typed, &Environment::of(&[])));
        if let Err(refusal) = resolved {
            let text = String::from_utf8_lossy(&refusal.text).into_owned();
            if !text.ends_with(": not supported yet") {
                wrong.push(format!("line {}: {}\n  {text}", case.line, shown(&line)));
            }
        }
    }
    assert!(count > 1000, "only {count} lines");
    assert!(wrong.is_empty(), "{} of {count} lines are refused:\n{}", wrong.len(), wrong.join("\n"));
}
