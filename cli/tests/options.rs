//! Each row of the command line: every spelling is read, and a negation undoes what stands before
//! it, not what stands behind it.

use std::ffi::OsString;

use suisei::options::environment::Environment;
use suisei::options::row::{Row, Support};
use suisei::options::typed::Typed;
use suisei::options::{meaning, parse, rows};

fn read(words: &[String]) -> Typed {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    parse::parse(&words)
        .unwrap_or_else(|refusal| panic!("{words:?}: {}", String::from_utf8_lossy(&refusal.text)))
}

/// A value that the option takes.
fn sample(row: &Row) -> &'static str {
    match row.long {
        "stderr" => "all",
        "outbuf" => "L",
        "info" | "debug" => "del",
        "remote-option" => "--x",
        "compress-choice" => "lz4",
        "checksum-choice" => "md5",
        "chown" => "a:b",
        "max-alloc" => "2g",
        "protocol" => "31",
        "confine-root" => "/",
        _ => "7",
    }
}

/// The spellings that switch a row on, each as the words of a command line.
fn on_spellings(row: &Row) -> Vec<Vec<String>> {
    let mut spellings = Vec::new();
    for name in row.long_names() {
        match row.value {
            None => spellings.push(vec![format!("--{name}")]),
            Some(_) => {
                spellings.push(vec![format!("--{name}={}", sample(row))]);
                spellings.push(vec![format!("--{name}"), sample(row).to_owned()]);
            }
        }
    }
    if let Some(letter) = row.short {
        match row.value {
            None => spellings.push(vec![format!("-{letter}")]),
            Some(_) => {
                spellings.push(vec![format!("-{letter}{}", sample(row))]);
                spellings.push(vec![format!("-{letter}={}", sample(row))]);
                spellings.push(vec![format!("-{letter}"), sample(row).to_owned()]);
            }
        }
    }
    spellings
}

fn works(row: &Row) -> bool {
    !matches!(row.support, Support::Never(_))
}

fn shown(typed: &Typed) -> String {
    format!("{typed:?}")
}

#[test]
fn all_spellings_of_a_row_mean_the_same() {
    for row in rows().filter(|row| works(row)) {
        let spellings = on_spellings(row);
        let first = shown(&read(&spellings[0]));
        for spelling in &spellings {
            assert_eq!(shown(&read(spelling)), first, "{spelling:?}");
        }
    }
}

#[test]
fn each_row_that_works_changes_something() {
    let nothing = shown(&Typed::default());
    // On already: these only undo their negations. A daemon reads its words by other rules.
    let defaults = ["inc-recursive", "implied-dirs", "motd", "daemon"];
    for row in rows().filter(|row| row.support == Support::Full && !defaults.contains(&row.long)) {
        let given = &on_spellings(row)[0];
        assert_ne!(shown(&read(given)), nothing, "{given:?}");
    }
}

#[test]
fn the_last_of_an_option_and_its_negation_counts() {
    for row in rows().filter(|row| works(row) && !row.off.is_empty()) {
        for on in on_spellings(row) {
            for off in row.off.iter().map(|name| vec![format!("--{name}")]) {
                let forget = |mut typed: Typed| {
                    typed.not_yet.clear();
                    // A lone -h asks for help.
                    typed.output.show = None;
                    shown(&typed)
                };
                let (alone_on, alone_off) = (forget(read(&on)), forget(read(&off)));
                let (on_off, off_on) = (
                    forget(read(&[on.clone(), off.clone()].concat())),
                    forget(read(&[off, on.clone()].concat())),
                );
                // -A has implied -p by then.
                if row.long != "acls" && row.long != "write-devices" {
                    assert_eq!(on_off, alone_off, "{on:?} then its negation");
                }
                assert_eq!(off_on, alone_on, "a negation, then {on:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    for row in rows().filter(|row| row.support == Support::NotYet) {
        for spelling in on_spellings(row) {
            let refusal = parse::refuse_not_yet(&read(&spelling)).expect_err("refused");
            assert_eq!(refusal.code, 4);
            assert_eq!(
                String::from_utf8(refusal.text).unwrap(),
                format!("rsync: {}: not supported yet", row.name())
            );
        }
    }
}

fn resolved(line: &str) -> Result<meaning::Wishes, String> {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let text = |refusal: suisei::exit::Refusal| String::from_utf8(refusal.text).unwrap();
    meaning::resolve(parse::parse(&words).map_err(text)?, &Environment::of(&[])).map_err(text)
}

#[test]
fn archive_is_its_parts_until_one_is_taken_away() {
    let options = resolved("-a --no-o -H a b").unwrap().transfer(
        Vec::new(),
        suisei_protocol::session::Version::NEWEST,
        true,
    );
    let keep = options.preserve;
    assert!(
        keep.links
            && keep.perms
            && keep.times
            && keep.group
            && keep.devices
            && keep.specials
            && keep.hard_links
    );
    assert!(!keep.owner);
    assert!(options.select.recursive && options.delta.whole_file);
}

#[test]
fn a_backup_beside_its_file_leaves_directory_times_alone() {
    let options = |line: &str| {
        resolved(line).unwrap().transfer(Vec::new(), suisei_protocol::session::Version::NEWEST, true)
    };
    assert!(options("-ab a b").preserve.omit_dir_times);
    assert!(!options("-ab --backup-dir=x a b").preserve.omit_dir_times);
    assert_eq!(options("-ab a b").place.backup_suffix, b"~");
}

#[test]
fn deletion_follows_the_version() {
    use suisei_engine::options::DeleteWhen;
    use suisei_protocol::session::Version;
    let when = |line: &str, version| resolved(line).unwrap().deletion_time(version);
    assert_eq!(when("-r --delete a b", Version::NEWEST), Some(DeleteWhen::During));
    assert_eq!(when("-r --delete a b", Version::OLDEST), Some(DeleteWhen::Before));
    assert_eq!(when("-r --delete-excluded a b", Version::NEWEST), Some(DeleteWhen::During));
    assert_eq!(when("-r --delete-delay a b", Version::OLDEST), Some(DeleteWhen::Delay));
    assert_eq!(when("-r a b", Version::NEWEST), None);
}

#[test]
fn a_listing_needs_no_directories_asked_for() {
    let listing = resolved("--delete h:a").unwrap();
    assert!(listing.listing && listing.dirs && !listing.recursive);
    let names = resolved("-a --files-from=/dev/null a b").unwrap();
    assert!(names.relative && names.dirs && !names.recursive);
}
