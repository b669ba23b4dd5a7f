//! What a run of 5,000 files shows, ours beside stock's: the same lines in the same columns.
//!
//! ```text
//! cargo run -p suisei-interop-tests --bin side_by_side
//! ```
//!
//! For `-v`, `--stats`, `-P` and `--info=progress2` both programs copy the same tree into a fresh
//! folder, locally and over a shell. Shown are the first and the last lines of each, left stock's,
//! right ours. Below stands how many lines differ once digits of rates, times and raw byte counts
//! are made equal: shape and columns must then be the same.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use suisei_interop_tests::peers::{has_stock, remote_shell, Peer};
use suisei_interop_tests::trees;

/// Files of the tree.
const FILES: usize = 5_000;
/// Directories they lie in.
const DIRS: usize = 50;
/// Lines shown from either end of an output.
const SHOWN: usize = 6;
/// Width of the left column.
const WIDTH: usize = 62;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    if !has_stock() {
        return Err("stock rsync 3.5 is needed".into());
    }
    if std::env::var_os("SUISEI_BIN").is_none() {
        std::env::set_var("SUISEI_BIN", std::env::current_exe()?.with_file_name("suisei"));
    }
    let folder = tempfile::Builder::new().prefix("side").tempdir()?;
    let work = folder.path();
    trees::regular(&work.join("src"), DIRS, FILES);
    let mut differing = 0;
    for options in ["-av", "-a --stats", "-aP", "-a --info=progress2"] {
        for road in ["local", "push", "pull"] {
            let stock = shown(work, Peer::Stock, options, road)?;
            let ours = shown(work, Peer::Ours, options, road)?;
            println!("\n== {options} {road}: stock {} lines, ours {} lines", stock.len(), ours.len());
            side_by_side(&stock, &ours);
            let (left, right) = (shapes(&stock), shapes(&ours));
            let differ = left.symmetric_difference(&right).count();
            println!("   lines whose shape only one of them has: {differ}");
            differing += differ;
        }
    }
    println!("\n{differing} differ");
    if differing > 0 {
        return Err("the outputs differ in shape".into());
    }
    Ok(())
}

/// Copies the tree afresh, and returns the lines that the client shows.
fn shown(work: &Path, peer: Peer, options: &str, road: &str) -> Outcome<Vec<String>> {
    let _ = fs::remove_dir_all(work.join("dst"));
    let shell = remote_shell(work);
    let mut command = Command::new(peer.program());
    command.args(options.split(' ')).current_dir(work).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    if road != "local" {
        command.arg("-e").arg(format!("sh {}", shell.display()));
        command.arg(format!("--rsync-path={}", peer.program().display()));
    }
    command.args(match road {
        "push" => ["src/", "far:dst/"],
        "pull" => ["far:src/", "dst/"],
        _ => ["src/", "dst/"],
    });
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{peer:?} {options} {road}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.split(['\r', '\n']).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn side_by_side(stock: &[String], ours: &[String]) {
    let row = |left: Option<&String>, right: Option<&String>| {
        let text = |line: Option<&String>| line.cloned().unwrap_or_default();
        println!("   {:WIDTH$}| {}", text(left), text(right));
    };
    for n in 0..SHOWN.min(stock.len().max(ours.len())) {
        row(stock.get(n), ours.get(n));
    }
    println!("   ...");
    for n in (1..=SHOWN).rev() {
        let from_end = |lines: &[String]| lines.len().checked_sub(n).map(|at| lines[at].clone());
        row(from_end(stock).as_ref(), from_end(ours).as_ref());
    }
}

/// The kinds of lines: names and counts that depend on the tree stay, measured numbers become `#`.
fn shapes(lines: &[String]) -> std::collections::BTreeSet<String> {
    lines.iter().filter_map(|line| shape(line)).collect()
}

fn shape(line: &str) -> Option<String> {
    if line.contains('%') {
        // Only a finished file's counts are certain; the columns are those of every update.
        let columns: String = line.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
        let (front, tail) = columns.split_at_checked(15)?;
        let bytes = if front.chars().all(|c| " #,".contains(c)) { "BYTES" } else { front };
        let unit = ["kB/s", "MB/s", "GB/s"].iter().find_map(|unit| tail.find(unit))?;
        let counts = if tail.contains("(xfr#") { " (xfr#N, to-chk=N/N)" } else { "" };
        return Some(format!("{bytes} unit at {unit}{counts}"));
    }
    let measured = ["sent ", "Total bytes", "File list", "total size is "];
    if measured.iter().any(|label| line.starts_with(label)) {
        let mut text = String::new();
        for c in line.chars() {
            match c {
                '0'..='9' if text.ends_with('#') => {}
                '0'..='9' => text.push('#'),
                ',' | '.' if text.ends_with('#') => {}
                c => text.push(c),
            }
        }
        return Some(text);
    }
    Some(line.to_owned())
}
