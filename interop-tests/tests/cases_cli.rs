//! Cases from public reports that concern the command line and what is made of it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use suisei_interop_tests::lines::comparable;
use suisei_interop_tests::peers::{has_stock, ours, Peer};
use walkdir::WalkDir;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("run").tempdir().expect("a temporary folder");
    for (name, text) in [("a.txt", "one\n"), ("test.txt", "two\n"), ("sub/b", "three\n")] {
        let path = folder.path().join("src").join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
        std::fs::write(path, text).expect("writable");
    }
    folder
}

fn script(path: &Path, text: &str) {
    std::fs::write(path, text).expect("writable");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("the script is ours");
}

fn run(work: &Path, program: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k5", "60"]).arg(program).args(words).current_dir(work).stdin(Stdio::null());
    command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC").env("HOME", work);
    for name in ["RSYNC_RSH", "RSYNC_OLD_ARGS", "RSYNC_PROTECT_ARGS"] {
        command.env_remove(name);
    }
    command.output().expect("timeout(1) is installed")
}

fn names(dir: &Path) -> Vec<String> {
    let entries = WalkDir::new(dir).min_depth(1).sort_by_file_name().into_iter().flatten();
    entries.map(|e| e.path().strip_prefix(dir).expect("below").display().to_string()).collect()
}

/// A remote shell that joins its words, as sshd does, and notes them.
fn shell(work: &Path) {
    let log = work.join("log");
    let text = format!("#!/bin/sh\nshift\nprintf '%s\\n' \"$*\" >>{}\nexec sh -c \"$*\"\n", log.display());
    script(&work.join("rsh"), &text);
}

fn sent(work: &Path) -> String {
    std::fs::read_to_string(work.join("log")).unwrap_or_default()
}

/// The server speaks version 27, takes no modifiers in rules, and leaves without a word when a
/// rule does not suit it: an exclude with `--delete` must work or be refused by name.
#[test]
fn c14_an_old_server_gets_a_plain_exclude_and_is_spared_what_it_cannot_read() {
    if !has_stock() {
        return;
    }
    for server in [Peer::Stock, Peer::Ours] {
        let folder = folder();
        let work = folder.path();
        shell(work);
        std::fs::create_dir(work.join("dst")).expect("writable");
        for name in ["dst/test.txt", "dst/extra"] {
            std::fs::write(work.join(name), "old\n").expect("writable");
        }
        let path = format!("--rsync-path={}", server.program().display());
        // The far end of the report knows version 27 only.
        let base = ["-e", "./rsh", &path, "--protocol=27", "-M--protocol=27"];
        let plain = [&base[..], &["-av", "--delete", "--exclude=test.txt", "src/", "far:dst/"]].concat();
        let output = run(work, &ours(), &plain);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(names(&work.join("dst")), ["a.txt", "sub", "sub/b", "test.txt"]);
        assert_eq!(std::fs::read_to_string(work.join("dst/test.txt")).expect("it stayed"), "old\n");

        // A rule that version 27 cannot carry is refused before anything changes.
        std::fs::write(work.join("dst/extra"), "old\n").expect("writable");
        std::fs::remove_file(work.join("dst/a.txt")).expect("it is there");
        let modern =
            [&base[..], &["-av", "--delete", "--filter=dir-merge .rules", "src/", "far:dst/"]].concat();
        let output = run(work, &ours(), &modern);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("filter rules are too modern for remote rsync"), "{text}");
        assert_eq!(names(&work.join("dst")), ["extra", "sub", "sub/b", "test.txt"]);
    }
}

#[test]
fn c15_options_that_programs_use_are_accepted_and_do_what_stock_does() {
    if !has_stock() {
        return;
    }
    for options in [
        &["-a", "--info=progress2"][..],
        &["-a", "--append-verify"],
        &["-a", "--compress-choice=zstd"],
        &["-a", "--ignore-missing-args", "nothing-there"],
        &["-a", "--protect-args"],
        &["-a", "--secluded-args"],
        &["-av", "--delete-delay"],
        &["-av", "--copy-unsafe-links"],
        &["-a", "--delete-delay", "--append-verify", "--info=progress2", "--compress-choice=zstd"],
    ] {
        for far in [false, true] {
            let answers = [Peer::Stock, Peer::Ours].map(|client| {
                let folder = folder();
                let work = folder.path();
                shell(work);
                std::os::unix::fs::symlink("../outside", work.join("src/link")).expect("writable");
                std::fs::write(work.join("outside"), "far away\n").expect("writable");
                std::fs::create_dir(work.join("dst")).expect("writable");
                std::fs::write(work.join("dst/a.txt"), "on").expect("writable");
                std::fs::write(work.join("dst/extra"), "old\n").expect("writable");
                let end = ["src/", if far { "far:dst/" } else { "dst/" }];
                let words = [options, &["-e", "./rsh", "--rsync-path=/usr/bin/rsync"], &end].concat();
                let output = run(work, &client.program(), &words);
                let out = comparable(&output.stdout, work);
                let progress = |line: &String| !line.contains('%');
                (
                    output.status.code(),
                    out.into_iter().filter(progress).collect::<Vec<_>>(),
                    comparable(&output.stderr, work),
                    names(&work.join("dst")),
                    std::fs::read(work.join("dst/a.txt")).ok(),
                )
            });
            assert_eq!(answers[0].0, Some(0), "{options:?} {answers:?}");
            assert_eq!(answers[1], answers[0], "{options:?} far: {far}");
        }
    }
}

/// Programs take the word behind `version`, and the number behind `protocol version`.
#[test]
fn c15_probes_of_the_version_find_what_they_look_for() {
    for option in ["--version", "-V"] {
        let output = run(Path::new("/"), &ours(), &[option]);
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let first = text.lines().next().unwrap_or_default();
        let words: Vec<&str> = first.split_whitespace().collect();
        assert_eq!(words[..2], ["rsync", "version"], "{first}");
        let numbers: Vec<u32> = words[2].split('.').map(|part| part.parse().expect("a number")).collect();
        assert!(numbers.as_slice() >= &[3, 1, 0][..], "{first}");
        assert_eq!(words[3..5], ["protocol", "version"], "{first}");
        assert_eq!(words[5].parse::<u32>().ok(), Some(32), "{first}");
        // Others look for words in the list of capabilities.
        for word in ["Capabilities:", "symtimes", "inplace", "append", "secluded-args"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(text.contains("suisei"), "{text}");
    }
}

/// `-VV` has the keys of stock, so that a program that reads them finds each.
#[test]
fn c15_the_version_as_json_has_the_keys_of_stock() {
    if !has_stock() {
        return;
    }
    let keys = |program: &Path| {
        let output = run(Path::new("/"), program, &["-VV"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut keys: Vec<String> = text
            .split('"')
            .skip(1)
            .step_by(2)
            .zip(text.split('"').skip(2).step_by(2))
            .filter(|(_, behind)| behind.starts_with(':'))
            .map(|(key, _)| key.to_owned())
            .collect();
        keys.sort();
        keys
    };
    let (stock, ours) = (keys(Path::new("/usr/bin/rsync")), keys(&ours()));
    let only_stock: Vec<_> = stock.iter().filter(|key| !ours.contains(key)).collect();
    // Whose program it is, is another matter.
    assert_eq!(only_stock, ["caveat", "copyright", "url"]);
}

/// The wrapper of the report takes the words apart: `--server`, `--sender` or not, one bundle with
/// `e.` and letters at its end, then `.` and the path.
#[test]
fn c16_the_capabilities_stand_where_a_wrapper_looks_for_them() {
    if !has_stock() {
        return;
    }
    for words in [
        &["-a", "src/", "far:dst/"][..],
        &["-avz", "far:src/", "back/"],
        &["-rt", "--delete", "src/", "far:dst/"],
    ] {
        let answers = [Peer::Stock, Peer::Ours].map(|client| {
            let folder = folder();
            let work = folder.path();
            shell(work);
            let words = [&["-e", "./rsh", "--rsync-path=/usr/bin/rsync"], words].concat();
            let output = run(work, &client.program(), &words);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            sent(work)
        });
        assert_eq!(answers[1], answers[0]);
        let line: Vec<&str> = answers[1].split_whitespace().collect();
        let bundle =
            line.iter().find(|word| word.starts_with('-') && !word.starts_with("--")).expect("a bundle");
        let (_, capabilities) = bundle.split_once("e.").expect("capabilities");
        assert!(capabilities.len() > 3 && capabilities.chars().all(|c| c.is_ascii_alphabetic()), "{bundle}");
    }
}

#[test]
fn c37_a_path_with_spaces_arrives_as_it_was_typed() {
    if !has_stock() {
        return;
    }
    for server in [Peer::Stock, Peer::Ours] {
        let folder = folder();
        let work = folder.path();
        shell(work);
        let path = format!("--rsync-path={}", server.program().display());
        let base = ["-r", "-e", "./rsh", path.as_str()];
        // Plainly: one directory of that name.
        let output = run(work, &ours(), &[&base[..], &["src/", "far:my own dir/"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(work.join("my own dir/a.txt").exists());
        // And back.
        let output = run(work, &ours(), &[&base[..], &["far:my own dir/", "back/"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(work.join("back/sub/b").exists());
    }
}

#[test]
fn c37_quotes_inside_an_argument_are_part_of_the_name_and_we_say_so() {
    if !has_stock() {
        return;
    }
    let folder = folder();
    let work = folder.path();
    shell(work);
    let words = ["-r", "-e", "./rsh", "--rsync-path=/usr/bin/rsync", "src/", "far:'my own dir'/"];
    let output = run(work, &ours(), &words);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(work.join("'my own dir'/a.txt").exists());
    assert!(text.contains("the quotes in 'my own dir'/ are part of the name"), "{text}");
    // Nobody is bothered who quotes nothing, or who has old arguments.
    let output =
        run(work, &ours(), &["-r", "-e", "./rsh", "--rsync-path=/usr/bin/rsync", "src/", "far:it's/"]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn c37_old_args_leave_the_words_to_the_remote_shell() {
    if !has_stock() {
        return;
    }
    for words in [
        &["--old-args", "src/", "far:'my own dir'/"][..],
        &["--old-args", "far:src/a.txt src/test.txt", "back/"],
    ] {
        let answers = [Peer::Stock, Peer::Ours].map(|client| {
            let folder = folder();
            let work = folder.path();
            shell(work);
            let words = [&["-r", "-e", "./rsh", "--rsync-path=/usr/bin/rsync"], words].concat();
            let output = run(work, &client.program(), &words);
            let err = comparable(&output.stderr, work);
            (output.status.code(), err, names(work), sent(work))
        });
        assert_eq!(answers[0].0, Some(0), "{answers:?}");
        assert_eq!(answers[1], answers[0]);
    }
}

#[test]
fn help_shows_ten_options_before_all_of_them() {
    for words in [&["--help"][..], &["-h"], &["--help", "--nobody-knows"]] {
        let output = run(Path::new("/"), &ours(), words);
        assert!(output.status.success() && output.stderr.is_empty());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (_, rest) = text.split_once("\nTo begin with").expect("the first options");
        let (first, all) = rest.split_once("\nAll options").expect("all options");
        assert_eq!(first.lines().filter(|line| line.starts_with('-')).count(), 10, "{first}");
        for option in
            ["--archive, -a", "--dry-run, -n", "--delete ", "--exclude=PATTERN", "--rsh, -e=COMMAND"]
        {
            assert!(first.contains(&format!("\n{option}")), "{option}: {first}");
            assert!(all.contains(&format!("\n{option}")), "{option}: {all}");
        }
        assert!(all.lines().filter(|line| line.starts_with('-')).count() > 100, "{all}");
    }
}
