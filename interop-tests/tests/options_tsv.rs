//! The list of options in `protocol/doc/23-options.tsv`: each one is an option of ours, with all its
//! spellings, and something uses it against stock.
//!
//! The program is asked, not its source: an unknown spelling is refused by name, a missing or a
//! superfluous value too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use suisei_interop_tests::peers::ours;
use suisei_interop_tests::scenarios::scenarios;

/// Options that cannot be used yet. An entry that can be used fails the test.
const PENDING: &[&str] =
    &["max-alloc", "compress-threads", "zt", "stop-after", "time-limit", "stop-at", "qsort"];

/// What a row of the table cannot show, and the test that shows it: option, file, test.
const TESTED: &[(&str, &str, &str)] = &[
    ("help", "cases_cli.rs", "help_shows_ten_options_before_all_of_them"),
    ("version", "cases_cli.rs", "c15_probes_of_the_version_find_what_they_look_for"),
    ("port", "environment.rs", "rsync_port_is_told_to_the_shell_of_a_daemon_session"),
    ("rsh", "environment.rs", "home_holds_aliases"),
    ("server", "refusals.rs", "what_cannot_be_is_refused_in_the_words_of_stock"),
    ("sender", "refusals.rs", "what_cannot_be_is_refused_in_the_words_of_stock"),
    ("contimeout", "daemon_client.rs", "contimeout_ends_a_connection_that_nobody_answers"),
    ("password-file", "daemon_client.rs", "password_files_log_in_if_nobody_else_can_read_them"),
    ("address", "daemon_client.rs", "address_port_and_sockopts_shape_the_connection"),
    ("sockopts", "daemon_client.rs", "address_port_and_sockopts_shape_the_connection"),
    ("early-input", "daemon_client.rs", "early_input_reaches_the_daemon_before_the_arguments"),
    ("motd", "daemon_client.rs", "a_greeting_is_shown_unless_it_is_not_wanted"),
    ("daemon", "daemon_options.rs", "a_daemon_takes_each_option_of_its_own"),
    ("config", "daemon_options.rs", "a_daemon_takes_each_option_of_its_own"),
    ("detach", "daemon_process.rs", "a_detached_daemon_tells_its_number_until_a_signal_ends_it"),
    ("(daemon) address", "daemon_options.rs", "a_daemon_listens_where_and_as_it_is_told"),
    ("(daemon) bwlimit", "daemon_options.rs", "a_daemon_takes_each_option_of_its_own"),
    ("(daemon) ipv4", "daemon_options.rs", "a_daemon_listens_where_and_as_it_is_told"),
    ("(daemon) ipv6", "daemon_options.rs", "a_daemon_listens_where_and_as_it_is_told"),
    ("(daemon) log-file", "daemon_options.rs", "a_daemon_takes_each_option_of_its_own"),
    ("(daemon) log-file-format", "daemon_options.rs", "a_daemon_takes_each_option_of_its_own"),
    ("(daemon) port", "daemon_options.rs", "a_daemon_takes_each_option_of_its_own"),
    ("(daemon) sockopts", "daemon_options.rs", "a_daemon_takes_each_option_of_its_own"),
    ("(daemon) protocol", "daemon_options.rs", "a_daemon_listens_where_and_as_it_is_told"),
    ("(daemon) server", "daemon_process.rs", "a_remote_shell_leads_to_a_daemon_for_one"),
    ("(daemon) temp-dir", "daemon_options.rs", "a_daemon_takes_each_option_of_its_own"),
    ("(daemon) verbose", "daemon_options.rs", "a_daemon_takes_each_option_of_its_own"),
    ("(daemon) help", "daemon_options.rs", "the_help_of_a_daemon_names_its_options"),
    ("rsync-path", "environment.rs", "rsync_rsh_names_the_remote_shell"),
];

/// One line of the list.
struct Entry {
    /// `--long` or `-s`, or `(daemon) long`.
    name: String,
    long: Option<String>,
    short: Option<char>,
    takes_value: bool,
    off: Vec<String>,
    daemon: bool,
}

fn entries() -> Vec<Entry> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/doc/23-options.tsv");
    let text = std::fs::read_to_string(path).expect("the list is there");
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let (daemon, long) = match fields[0].strip_prefix("(daemon) ") {
            Some(long) => (true, long),
            None => (matches!(fields[0], "config" | "dparam" | "detach"), fields[0]),
        };
        let long = Some(long.to_owned()).filter(|long| long != "-");
        let short = fields[1].chars().next().filter(|&c| c != '-');
        let off = fields[4].split(' ').filter(|form| form.starts_with("--no-") && *form != "--no-X");
        Entry {
            name: match (&long, short) {
                (Some(_), _) => fields[0].to_owned(),
                (None, short) => short.into_iter().collect(),
            },
            long,
            short,
            takes_value: !fields[2].starts_with("none"),
            off: off.map(str::to_owned).collect(),
            daemon,
        }
    };
    text.lines().skip(1).map(parse).collect()
}

/// A value that the option takes.
fn sample(name: &str) -> &'static str {
    match name.trim_start_matches("(daemon) ") {
        "stderr" => "all",
        "outbuf" => "L",
        "info" | "debug" => "none",
        "remote-option" => "-v",
        "compress-choice" | "zc" => "zlib",
        "checksum-choice" | "cc" => "md5",
        "chown" | "usermap" | "groupmap" => "0:0",
        "chmod" => "u+x",
        "copy-as" => "root",
        "max-alloc" => "2g",
        "protocol" => "31",
        "stop-at" => "2999-01-01",
        "filter" => "-_x",
        "confine-root" => "/",
        "iconv" => ".",
        "bwlimit" => "1000",
        "dparam" => "pidfile=x",
        _ => "7",
    }
}

/// Runs the program with words that end before any transfer, and returns what it complains about.
fn complaint(words: &[String]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("src")).expect("writable");
    let mut command = Command::new("timeout");
    command.arg("20").arg(ours()).args(words).current_dir(folder.path()).stdin(Stdio::null());
    let output = command.output().expect("timeout(1) is installed");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn words(entry: &Entry, option: &str) -> Vec<String> {
    // A daemon must not find a configuration to start with.
    let mode = if entry.daemon { vec!["--daemon", "--config=/nonexistent"] } else { Vec::new() };
    mode.into_iter().chain([option]).map(str::to_owned).collect()
}

/// Returns what is wrong with the spellings of an option.
fn check_spellings(entry: &Entry, wrong: &mut Vec<String>) {
    let on = entry.long.iter().map(|long| format!("--{long}"));
    for option in on.chain(entry.short.map(|short| format!("-{short}"))) {
        let bare = complaint(&[words(entry, &option), vec!["--no-such-option".into()]].concat());
        let valued = complaint(&words(entry, &format!("{option}={}", sample(&entry.name))));
        let alone = complaint(&words(entry, &option));
        if bare.contains(&format!("{option}: unknown option")) {
            wrong.push(format!("{option} is unknown"));
        } else if entry.takes_value != alone.contains("missing argument") {
            wrong.push(format!("{option} alone: {alone}"));
        } else if entry.takes_value == valued.contains("option does not take an argument") {
            wrong.push(format!("{option} with a value: {valued}"));
        }
    }
    for off in &entry.off {
        if complaint(&words(entry, off)).contains("unknown option") {
            wrong.push(format!("{off} is unknown"));
        }
    }
}

/// Whether a run with the option is refused because it cannot be done yet.
fn is_pending(entry: &Entry) -> bool {
    let mut option = match (&entry.long, entry.short) {
        (Some(long), _) => format!("--{long}"),
        (None, short) => short.map(|short| format!("-{short}")).unwrap_or_default(),
    };
    let is_daemon = entry.daemon || entry.name == "daemon";
    if entry.takes_value {
        option = format!("{option}={}", sample(&entry.name));
    }
    if matches!(entry.name.as_str(), "server" | "sender" | "help" | "version") {
        return false;
    }
    let words = if is_daemon {
        // An unknown option ends a daemon that could start.
        vec!["--daemon".to_owned(), "--config=/nonexistent".to_owned(), option]
    } else {
        vec![option, "src/".to_owned(), "dst".to_owned()]
    };
    complaint(&words).contains("not supported yet")
}

/// All options that rows of the table use: long names, and letters.
fn used() -> (BTreeSet<String>, BTreeSet<char>) {
    let (mut long, mut short) = (BTreeSet::new(), BTreeSet::new());
    for row in scenarios() {
        for word in row.options.split(' ') {
            match word.strip_prefix("--") {
                Some(name) => {
                    let name = name.split('=').next().unwrap_or_default();
                    long.insert(name.to_owned());
                }
                None => short.extend(word.strip_prefix('-').unwrap_or_default().chars()),
            }
        }
    }
    (long, short)
}

fn has_test(file: &str, test: &str) -> bool {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", file].iter().collect();
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.contains(&format!("#[test]\nfn {test}()"))
}

#[test]
fn every_option_of_stock_is_one_of_ours() {
    let entries = entries();
    assert!(entries.len() > 150, "only {} options", entries.len());
    let mut wrong = Vec::new();
    for entry in &entries {
        let pending = is_pending(entry);
        match (pending, PENDING.contains(&entry.name.as_str())) {
            (true, true) => continue,
            (true, false) => wrong.push(format!("{} is not supported yet", entry.name)),
            (false, true) => wrong.push(format!("{} is no longer pending", entry.name)),
            (false, false) => check_spellings(entry, &mut wrong),
        }
    }
    assert!(wrong.is_empty(), "{} things are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_option_of_stock_is_used_against_it() {
    let (long, short) = used();
    let mut wrong = Vec::new();
    for entry in entries() {
        let in_table = !entry.name.starts_with("(daemon)")
            && (entry.long.as_ref().is_some_and(|name| long.contains(name))
                || entry.short.is_some_and(|letter| short.contains(&letter)));
        let tests: Vec<_> = TESTED.iter().filter(|(option, ..)| *option == entry.name).collect();
        if PENDING.contains(&entry.name.as_str()) {
            continue;
        }
        for (_, file, test) in tests.iter().filter(|(_, file, test)| !has_test(file, test)) {
            wrong.push(format!("{}: there is no test {test} in {file}", entry.name));
        }
        if !in_table && tests.is_empty() {
            wrong.push(format!("{}: nothing uses it", entry.name));
        }
    }
    assert!(wrong.is_empty(), "{} things are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
