//! Measurements side by side with stock rsync, on real trees. Run as root on Linux:
//!
//! ```text
//! cargo run --release -p suisei-interop-tests --bin measure -- real-trees /usr/share /usr/lib
//! cargo run --release -p suisei-interop-tests --bin measure -- first-file
//! cargo run --release -p suisei-interop-tests --bin measure -- delta
//! ```
//!
//! `real-trees` copies each folder over every road to `TMPDIR` and checks each copy with stock rsync.
//! `first-file` times the start of a transfer of 2,000 and of 200,000 files over a pipe and states
//! the peak memory of both ends. `delta` pushes a changed 512 MiB image to a stock daemon.

use std::error::Error;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use suisei_interop_tests::daemon::{Daemon, PASSWORD};
use suisei_interop_tests::peers::{has_stock, remote_shell, Peer};
use suisei_interop_tests::sshd::Sshd;
use suisei_interop_tests::trees;

const STOCK: &str = "/usr/bin/rsync";

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    if !has_stock() {
        return Err("stock rsync 3.5 is needed".into());
    }
    if std::env::var_os("SUISEI_BIN").is_none() {
        let beside = std::env::current_exe()?.with_file_name("suisei");
        std::env::set_var("SUISEI_BIN", beside);
    }
    match what.as_str() {
        "real-trees" => real_trees(&arguments.map(PathBuf::from).collect::<Vec<_>>()),
        "first-file" => first_file(),
        "delta" => delta(),
        _ => Err("say real-trees FOLDER.., first-file or delta".into()),
    }
}

fn run(work: &Path, program: &Path, args: &[&str]) -> Result<(Output, Duration), Box<dyn Error>> {
    let start = Instant::now();
    let mut command = Command::new(program);
    let output =
        command.args(args).current_dir(work).env("RSYNC_PASSWORD", PASSWORD).stdin(Stdio::null()).output()?;
    Ok((output, start.elapsed()))
}

/// Copies `src` to `dst` by each road, checks the copy with stock, and runs once more.
fn real_trees(folders: &[PathBuf]) -> Outcome {
    let folder = tempfile::Builder::new().prefix("trees").tempdir()?;
    let work = folder.path();
    let sshd = Sshd::start(work).ok_or("sshd is needed")?;
    let daemon = Daemon::start(work);
    let (ours, stock) = (Peer::Ours.program(), PathBuf::from(STOCK));
    let ours_path = format!("--rsync-path={}", ours.display());
    let shell = sshd.shell();
    for source in folders {
        let (near, far) = (format!("{}/", source.display()), format!("127.0.0.1:{}/", source.display()));
        let far_dst = format!("127.0.0.1:{}/dst/", work.display());
        let (url, url_dst) =
            (daemon.url("whole", near.trim_start_matches('/')), daemon.url("locked", "dst/"));
        let stock_path = "--rsync-path=/usr/bin/rsync";
        let roads: [(&str, &PathBuf, Vec<&str>); 8] = [
            ("local", &ours, vec![&near, "dst/"]),
            ("push, stock server over sshd", &ours, vec!["-e", &shell, stock_path, &near, &far_dst]),
            ("pull, stock server over sshd", &ours, vec!["-e", &shell, stock_path, &far, "dst/"]),
            ("pull from a stock daemon", &ours, vec![&url, "dst/"]),
            ("push to a stock daemon", &ours, vec![&near, &url_dst]),
            ("stock client pushes to us", &stock, vec!["-e", &shell, &ours_path, &near, &far_dst]),
            ("stock client pulls from us", &stock, vec!["-e", &shell, &ours_path, &far, "dst/"]),
            ("stock alone, local", &stock, vec![&near, "dst/"]),
        ];
        println!("{}", source.display());
        for (name, program, places) in roads {
            let _ = fs::remove_dir_all(work.join("dst"));
            let args = [&["-aH", "--numeric-ids"][..], &places].concat();
            let (first, time) = run(work, program, &args)?;
            let (check, _) = run(work, &stock, &["-naHic", "--numeric-ids", "--delete", &near, "dst/"])?;
            let (again, again_time) = run(work, program, &[&["--stats"], &args[..]].concat())?;
            let text = String::from_utf8_lossy(&again.stdout).into_owned();
            let moved =
                text.lines().find(|l| l.starts_with("Number of regular files transferred")).unwrap_or("?");
            println!(
                "  {name:30} exit {:?}, {:.2} s; differences {}; second run {:.2} s, {moved}",
                first.status.code().unwrap_or(-1),
                time.as_secs_f64(),
                check.stdout.split(|&b| b == b'\n').filter(|l| !l.is_empty()).count(),
                again_time.as_secs_f64()
            );
            print!("{}", String::from_utf8_lossy(&first.stderr));
            print!(
                "{}",
                String::from_utf8_lossy(&check.stdout)
                    .lines()
                    .take(5)
                    .map(|l| format!("    {l}\n"))
                    .collect::<String>()
            );
        }
    }
    Ok(())
}

/// Times the start of a transfer over a pipe, both ends the same program, push and pull.
fn first_file() -> Outcome {
    let folder = tempfile::Builder::new().prefix("first").tempdir_in("/dev/shm")?;
    let work = folder.path();
    let shell = remote_shell(work);
    for (name, dirs, per_dir) in [("2,000 files", 4, 500), ("200,000 files", 400, 500)] {
        for d in 0..dirs {
            let dir = work.join(format!("src/d{d:03}"));
            fs::create_dir_all(&dir)?;
            for f in 0..per_dir {
                fs::write(dir.join(format!("file-{f:04}.txt")), b"x")?;
            }
        }
        for round in 1..=3 {
            for peer in [Peer::Stock, Peer::Ours] {
                for place in ["push", "pull"] {
                    first_file_once(work, &shell, peer, place, &format!("{name}, round {round}"))?;
                }
            }
        }
        fs::remove_dir_all(work.join("src"))?;
    }
    Ok(())
}

fn first_file_once(work: &Path, shell: &Path, peer: Peer, place: &str, name: &str) -> Outcome {
    let _ = fs::remove_dir_all(work.join("dst"));
    let program = peer.program();
    let server =
        format!("--rsync-path=/usr/bin/time -q -f %M -o {}/far {}", work.display(), program.display());
    let places = if place == "push" { ["src/", "far:dst/"] } else { ["far:src/", "dst/"] };
    let start = Instant::now();
    let mut child = Command::new("/usr/bin/time")
        .args(["-q", "-f", "%M", "-o", "near"])
        .arg(&program)
        .args(["-a", "-e"])
        .arg(shell)
        .arg(server)
        .args(places)
        .current_dir(work)
        .spawn()?;
    let wanted = work.join("dst/d000/file-0000.txt");
    let mut first = None;
    while first.is_none() {
        if wanted.exists() {
            first = Some(start.elapsed());
        } else if child.try_wait()?.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let status = child.wait()?;
    let memory =
        |file: &str| fs::read_to_string(work.join(file)).ok().and_then(|t| t.trim().parse::<u64>().ok());
    println!(
        "{name}: {peer:?} {place}: first file {:.1} ms, all {:.2} s, client {} KB, server {} KB, exit {:?}",
        first.unwrap_or_default().as_secs_f64() * 1e3,
        start.elapsed().as_secs_f64(),
        memory("near").unwrap_or(0),
        memory("far").unwrap_or(0),
        status.code()
    );
    Ok(())
}

/// Pushes an image with 200 scattered changes and an insertion near its front to a stock daemon.
fn delta() -> Outcome {
    let folder = tempfile::Builder::new().prefix("delta").tempdir_in("/dev/shm")?;
    let work = folder.path();
    let daemon = Daemon::start(work);
    fs::create_dir(work.join("src"))?;
    let image = trees::bytes(4, 512 << 20);
    fs::write(work.join("src/image.raw"), &image)?;
    let mut old = image;
    old.splice(70_001..70_001, *b"inserted");
    fs::write(work.join("old.raw"), &old)?;
    let file = fs::File::options().write(true).open(work.join("old.raw"))?;
    for i in 0..200u64 {
        file.write_all_at(&trees::bytes(1000 + i, 4096), 100_000 + i * 2_600_000)?;
    }
    drop((file, old));
    trees::set_time(&work.join("old.raw"), 1, 0);
    for round in 1..=3 {
        for peer in [Peer::Stock, Peer::Ours] {
            let _ = fs::remove_dir_all(work.join("dst"));
            fs::create_dir(work.join("dst"))?;
            let copied =
                Command::new("cp").args(["-a", "old.raw", "dst/image.raw"]).current_dir(work).status()?;
            assert!(copied.success(), "cp copies the old image");
            let url = daemon.url("locked", "dst/");
            let (output, time) = run(work, &peer.program(), &["-a", "--stats", "src/", &url])?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let literal = text.lines().find(|l| l.starts_with("Literal data")).unwrap_or("?");
            let same = Command::new("cmp")
                .args(["-s", "src/image.raw", "dst/image.raw"])
                .current_dir(work)
                .status()?;
            println!(
                "round {round}: {peer:?}: {:.2} s, {literal}, same: {}",
                time.as_secs_f64(),
                same.success()
            );
        }
    }
    Ok(())
}
