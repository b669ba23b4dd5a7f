//! Cases from the field that concern literal runs, zlib histories and batches of old versions.

use std::path::Path;
use std::process::Command;

use suisei_interop_tests::peers::{has_stock, ours, Mode, Peer, Run, User};
use suisei_interop_tests::trees;

const BOTH: [Peer; 2] = [Peer::Stock, Peer::Ours];
/// Longest literal run that every known peer takes.
const RUN_MAX: usize = 32 << 10;

fn run(work: &Path, client: Peer, server: Peer, mode: Mode, options: &[&str]) -> Option<i32> {
    let (sources, destination) = (&["src/"], Some("dst/"));
    let ours = &*ours();
    let run = Run { work, ours, user: User::Caller, client, server, mode, options, sources, destination };
    let output = run.output();
    let code = output.status.code();
    if code != Some(0) {
        println!("{}", String::from_utf8_lossy(&output.stderr));
    }
    code
}

fn content(work: &Path, name: &str) -> Vec<u8> {
    std::fs::read(work.join(name)).unwrap_or_default()
}

/// Splits the token stream of `data` in a batch into its literal runs.
fn runs(batch: &[u8], data: &[u8]) -> (usize, Vec<usize>) {
    let first = batch.windows(64).position(|window| window == &data[..64]).expect("the data is there");
    let (mut at, mut lengths) = (first - 4, Vec::new());
    loop {
        let length = i32::from_le_bytes(batch[at..at + 4].try_into().expect("four bytes"));
        if length == 0 {
            return (first - 4, lengths);
        }
        lengths.push(usize::try_from(length).expect("no block matches"));
        at += 4 + length as usize;
    }
}

/// C10: 100 KB of random data, uncompressed, pushed and pulled; our runs never exceed 32 KiB, and
/// longer ones of others are taken.
#[test]
fn c10_literal_runs_are_short_and_long_ones_are_accepted() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    let data = trees::bytes(10, 100_000);
    trees::file(&work.join("src"), "random", &data, 0o644);
    for mode in [Mode::Push, Mode::Pull] {
        for (client, server) in [(Peer::Ours, Peer::Stock), (Peer::Stock, Peer::Ours)] {
            let _ = std::fs::remove_dir_all(work.join("dst"));
            let code = run(work, client, server, mode, &["-a", "--write-batch=batch"]);
            assert_eq!(code, Some(0), "{mode:?} {client:?}");
            assert!(content(work, "dst/random") == data, "{mode:?} {client:?}");
            let (_, lengths) = runs(&content(work, "batch"), &data);
            assert_eq!(lengths.iter().sum::<usize>(), data.len());
            assert!(lengths.iter().all(|&length| length <= RUN_MAX), "{mode:?} {client:?}: {lengths:?}");
        }
    }
    let batch = content(work, "batch");
    let (start, lengths) = runs(&batch, &data);
    let end = start + lengths.iter().map(|length| 4 + length).sum::<usize>();
    let mut long = batch[..start].to_vec();
    for piece in data.chunks(64 << 10) {
        long.extend_from_slice(&(piece.len() as u32).to_le_bytes());
        long.extend_from_slice(piece);
    }
    long.extend_from_slice(&batch[end..]);
    std::fs::write(work.join("long"), long).expect("writable");
    let _ = std::fs::remove_dir_all(work.join("dst"));
    let code = run(work, Peer::Ours, Peer::Ours, Mode::Local, &["-a", "--read-batch=long"]);
    assert_eq!(code, Some(0));
    assert!(content(work, "dst/random") == data);
}

/// C11: classic zlib at versions 30 and 32, 20 MB that match over more than 64 KiB and then differ.
#[test]
fn c11_zlib_survives_long_matches() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    let random = trees::bytes(11, 1 << 20);
    let data: Vec<u8> = random.iter().copied().cycle().take(20 << 20).collect();
    let mut before = data.clone();
    for at in [0, 200_000, 5 << 20, 9 << 20] {
        before[at..at + 1_000].fill(b'x');
    }
    trees::file(&work.join("src"), "big", &data, 0o644);
    for protocol in ["--protocol=30", "--protocol=32"] {
        for mode in [Mode::Push, Mode::Pull] {
            for (client, server) in [(Peer::Ours, Peer::Stock), (Peer::Stock, Peer::Ours)] {
                let _ = std::fs::remove_dir_all(work.join("dst"));
                trees::file(&work.join("dst"), "big", &before, 0o600);
                let options = ["-aI", "--zc=zlib", "--no-W", "-B131072", protocol];
                let code = run(work, client, server, mode, &options);
                assert_eq!(code, Some(0), "{protocol} {mode:?} {client:?}");
                assert!(content(work, "dst/big") == data, "{protocol} {mode:?} {client:?}");
            }
        }
    }
}

/// C13: batches of versions 29, 30 and 31 are read whoever wrote them, into the right tree.
#[test]
fn c13_batches_of_old_versions_are_exchanged() {
    if !has_stock() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = folder.path();
    trees::regular(&work.join("src"), 5, 60);
    trees::file(&work.join("src"), "changed", &trees::bytes(13, 50_000), 0o644);
    for protocol in ["--protocol=29", "--protocol=30", "--protocol=31"] {
        for writer in BOTH {
            for reader in BOTH {
                let _ = std::fs::remove_dir_all(work.join("dst"));
                trees::file(&work.join("dst"), "changed", &trees::bytes(13, 40_000), 0o644);
                let words = ["-a", protocol, "--only-write-batch=batch"];
                let code = run(work, writer, Peer::Stock, Mode::Push, &words);
                assert_eq!(code, Some(0), "{protocol} writer={writer:?}");
                let code = run(work, reader, Peer::Stock, Mode::Local, &["-a", "--read-batch=batch"]);
                assert_eq!(code, Some(0), "{protocol} writer={writer:?} reader={reader:?}");
                let check = Command::new("/usr/bin/rsync")
                    .args(["-nric", "--delete", "src/", "dst/"])
                    .current_dir(work)
                    .output()
                    .expect("stock rsync runs");
                let shown = String::from_utf8_lossy(&check.stdout).into_owned();
                assert!(
                    !shown.contains('>') && !shown.contains("deleting"),
                    "{writer:?} {reader:?}: {shown}"
                );
            }
        }
    }
}
