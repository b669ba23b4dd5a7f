//! Real roles on temporary trees, over both links, at every version.

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;

use suisei_engine::options::{DeleteWhen, Partial};
use suisei_engine::TransferOptions;
use suisei_protocol::filter::{Rule, RuleFlags, RuleKind};
use suisei_protocol::transfer::Compressor;

use support::{
    age, archive, bytes, content_of, deleting, local, noise, snapshot, Field, Outcome, Remote, Way,
};

const VERSIONS: [u32; 6] = [27, 28, 29, 30, 31, 32];

/// Runs every way that there is, each on a fresh field.
fn every_way(options: &TransferOptions, prepare: impl Fn(&Field), check: impl Fn(&str, &Field, &Outcome)) {
    for version in VERSIONS {
        for way in [None, Some(Way::Push), Some(Way::Pull)] {
            let field = Field::new();
            prepare(&field);
            let sources = vec![content_of(&field.src())];
            let outcome = match way {
                None => local(options, version, sources, &bytes(&field.dst())),
                Some(way) => Remote::new(options, version, way).run(sources, &bytes(&field.dst())),
            };
            check(&format!("{version} {way:?}"), &field, &outcome);
        }
    }
}

#[test]
fn a_new_tree_arrives_whole_and_a_second_run_is_clean() {
    for incremental in [true, false] {
        let mut options = archive();
        options.select.incremental = incremental;
        every_way(&options, Field::fill_source, |what, field, outcome| {
            assert_eq!(outcome.code, 0, "{what}: {outcome:?}");
            assert_eq!(snapshot(&field.src()), snapshot(&field.dst()), "{what}");
            let again = local(&options, 32, vec![content_of(&field.src())], &bytes(&field.dst()));
            assert_eq!((again.code, again.transferred), (0, 0), "{what}: {again:?}");
            assert!(again.lines.is_empty(), "{what}: {again:?}");
        });
    }
}

#[test]
fn each_way_of_deleting_leaves_the_source_tree() {
    use DeleteWhen::{After, Before, Delay, During};
    for when in [Before, During, Delay, After] {
        let options = deleting(archive(), when);
        let prepare = |field: &Field| {
            field.fill_source();
            field.write("dst/extra", "x");
            field.write("dst/d/gone/deep/file", "x");
            field.write("dst/a.txt", "other words\n");
        };
        every_way(&options, prepare, |what, field, outcome| {
            assert_eq!(outcome.code, 0, "{what} {when:?}: {outcome:?}");
            assert_eq!(snapshot(&field.src()), snapshot(&field.dst()), "{what} {when:?}");
        });
    }
}

#[test]
fn a_changed_file_is_rebuilt_from_its_basis() {
    let options = archive();
    let old = noise(500_000, 3);
    let mut new = old.clone();
    new.splice(1000..1010, *b"inserted here");
    new.truncate(480_000);
    let prepare = |field: &Field| {
        field.write("src/big", &new);
        field.write("dst/big", &old);
        age(&field.dst().join("big"), 999_999_000);
    };
    every_way(&options, prepare, |what, field, outcome| {
        assert_eq!(outcome.code, 0, "{what}: {outcome:?}");
        assert_eq!(fs::read(field.dst().join("big")).unwrap(), new, "{what}");
        assert!(outcome.matched > 400_000, "{what}: {outcome:?}");
        assert!(outcome.literal < 20_000, "{what}: {outcome:?}");
    });
}

#[test]
fn every_compressor_carries_literals_and_history() {
    let old = [noise(300_000, 4), vec![b'z'; 100_000]].concat();
    let mut new = old.clone();
    new.splice(150_000..150_000, noise(50_000, 9));
    new.extend_from_slice(&vec![b'q'; 70_000]);
    let compressors = [Compressor::Zlib, Compressor::Zlibx, Compressor::Zstd, Compressor::Lz4];
    for version in VERSIONS {
        for compressor in compressors {
            for way in [Way::Push, Way::Pull] {
                let field = Field::new();
                field.write("src/big", &new);
                field.write("src/new", noise(100_000, 5));
                field.write("src/zeros", vec![0; 300_000]);
                field.write("dst/big", &old);
                age(&field.dst().join("big"), 999_999_000);
                let outcome = Remote::new(&archive(), version, way)
                    .compressed(compressor)
                    .run(vec![content_of(&field.src())], &bytes(&field.dst()));
                assert_eq!(outcome.code, 0, "{version} {compressor:?} {way:?}: {outcome:?}");
                assert_eq!(
                    snapshot(&field.src()),
                    snapshot(&field.dst()),
                    "{version} {compressor:?} {way:?}"
                );
            }
        }
    }
}

#[test]
fn hard_links_stay_together() {
    let mut options = archive();
    options.preserve.hard_links = true;
    for incremental in [true, false] {
        options.select.incremental = incremental;
        let prepare = |field: &Field| {
            field.write("src/one", "linked");
            fs::create_dir(field.src().join("zz")).unwrap();
            fs::hard_link(field.src().join("one"), field.src().join("zz/two")).unwrap();
            fs::hard_link(field.src().join("one"), field.src().join("three")).unwrap();
            field.write("src/lone", "alone");
        };
        every_way(&options, prepare, |what, field, outcome| {
            assert_eq!(outcome.code, 0, "{what}: {outcome:?}");
            assert_eq!(snapshot(&field.src()), snapshot(&field.dst()), "{what}");
        });
    }
}

#[test]
fn checksums_find_what_times_hide() {
    let mut options = archive();
    options.compare.checksum = true;
    let prepare = |field: &Field| {
        field.write("src/same", "equal");
        field.write("dst/same", "equal");
        age(&field.dst().join("same"), 5);
        field.write("src/hidden", "new..");
        field.write("dst/hidden", "old..");
    };
    every_way(&options, prepare, |what, field, outcome| {
        assert_eq!(outcome.code, 0, "{what}: {outcome:?}");
        assert_eq!(outcome.transferred, 1, "{what}: {outcome:?}");
        assert_eq!(snapshot(&field.src()), snapshot(&field.dst()), "{what}");
    });
}

#[test]
fn in_place_and_append_keep_the_inode() {
    let mut in_place = archive();
    in_place.place.inplace = true;
    let mut append = in_place.clone();
    append.place.append = suisei_engine::options::Append::Plain;
    let mut verify = in_place.clone();
    verify.place.append = suisei_engine::options::Append::Verify;
    for options in [in_place, append, verify] {
        let new = noise(300_000, 6);
        let prepare = |field: &Field| {
            field.write("src/log", &new);
            field.write("dst/log", &new[..170_000]);
            age(&field.dst().join("log"), 999_999_000);
            field.write("src/fresh", "fresh");
            fs::hard_link(field.dst().join("log"), field.root.path().join("same-inode")).unwrap();
        };
        every_way(&options, prepare, |what, field, outcome| {
            assert_eq!(outcome.code, 0, "{what}: {outcome:?}");
            assert_eq!(fs::read(field.dst().join("log")).unwrap(), new, "{what}");
            let ino = |path| fs::metadata(path).unwrap().ino();
            assert_eq!(ino(field.dst().join("log")), ino(field.root.path().join("same-inode")), "{what}");
            assert_eq!(fs::read(field.dst().join("fresh")).unwrap(), b"fresh", "{what}");
        });
    }
}

#[test]
fn an_append_onto_other_data_is_done_again() {
    let mut options = archive();
    options.place.inplace = true;
    options.place.append = suisei_engine::options::Append::Verify;
    let prepare = |field: &Field| {
        field.write("src/log", noise(100_000, 7));
        field.write("dst/log", noise(60_000, 8));
        age(&field.dst().join("log"), 999_999_000);
    };
    every_way(&options, prepare, |what, field, outcome| {
        assert_eq!(outcome.code, 0, "{what}: {outcome:?}");
        assert_eq!(snapshot(&field.src()), snapshot(&field.dst()), "{what}");
    });
}

#[test]
fn backups_and_delayed_updates_end_in_the_same_tree() {
    let mut options = archive();
    options.place.backup = true;
    options.place.backup_suffix = b"~".to_vec();
    let mut delayed = archive();
    delayed.place.delay_updates = true;
    delayed.place.partial = Partial::Dir(b".~tmp~".to_vec());
    for (options, backup) in [(options, true), (delayed, false)] {
        let prepare = |field: &Field| {
            field.fill_source();
            field.write("dst/d/b.txt", "old words\n");
        };
        every_way(&options, prepare, |what, field, outcome| {
            assert_eq!(outcome.code, 0, "{what}: {outcome:?}");
            assert_eq!(fs::read(field.dst().join("d/b.txt")).unwrap(), b"world!\n", "{what}");
            let kept = fs::read(field.dst().join("d/b.txt~")).ok();
            assert_eq!(kept.as_deref(), backup.then_some(&b"old words\n"[..]), "{what}");
            assert!(!field.dst().join("d/.~tmp~").exists(), "{what}");
        });
    }
}

#[test]
fn a_dry_run_says_the_same_and_changes_nothing() {
    let options = deleting(archive(), DeleteWhen::During);
    let mut dry = options.clone();
    dry.dry_run = true;
    let prepare = |field: &Field| {
        field.fill_source();
        field.write("dst/extra", "x");
        field.write("dst/a.txt", "other words\n");
    };
    for version in [29, 30, 32] {
        for way in [Way::Push, Way::Pull] {
            let run = |options: &TransferOptions| {
                let field = Field::new();
                prepare(&field);
                let before = snapshot(&field.dst());
                let outcome = Remote::new(options, version, way)
                    .run(vec![content_of(&field.src())], &bytes(&field.dst()));
                assert_eq!(outcome.code, 0, "{outcome:?}");
                (outcome.lines, snapshot(&field.dst()) == before)
            };
            let (said, unchanged) = run(&dry);
            assert!(unchanged, "{version} {way:?}");
            let (done, _) = run(&options);
            assert_eq!(said, done, "{version} {way:?}");
        }
    }
}

#[test]
fn filters_travel_and_protect() {
    let mut options = deleting(archive(), DeleteWhen::During);
    options.select.filters =
        vec![Rule { kind: RuleKind::Exclude, flags: RuleFlags::empty(), pattern: b"*.o".to_vec() }];
    let prepare = |field: &Field| {
        field.fill_source();
        field.write("src/d/new.o", "object");
        field.write("dst/keep.o", "object");
        field.write("dst/extra", "x");
    };
    every_way(&options, prepare, |what, field, outcome| {
        assert_eq!(outcome.code, 0, "{what}: {outcome:?}");
        assert!(field.dst().join("keep.o").exists(), "{what}");
        assert!(!field.dst().join("d/new.o").exists(), "{what}");
        assert!(!field.dst().join("extra").exists(), "{what}");
    });
}

#[test]
fn one_file_may_get_another_name() {
    for version in VERSIONS {
        for way in [None, Some(Way::Push), Some(Way::Pull)] {
            let field = Field::new();
            field.write("src/a", "content");
            let source = vec![bytes(&field.src().join("a"))];
            let target = bytes(&field.dst().join("b"));
            let outcome = match way {
                None => local(&archive(), version, source, &target),
                Some(way) => Remote::new(&archive(), version, way).run(source, &target),
            };
            assert_eq!(outcome.code, 0, "{version} {way:?}: {outcome:?}");
            assert_eq!(fs::read(field.dst().join("b")).unwrap(), b"content", "{version} {way:?}");
        }
    }
}

#[test]
fn a_destination_that_cannot_be_made_ends_both_ends_with_code_11() {
    for version in VERSIONS {
        for way in [Way::Push, Way::Pull] {
            let field = Field::new();
            field.fill_source();
            let target = bytes(&field.root.path().join("no/such/dir/"));
            let outcome = Remote::new(&archive(), version, way).run(vec![content_of(&field.src())], &target);
            // Below 31 the other end only sees the connection close.
            let expected = if version >= 31 { 11 } else { 12 };
            assert_eq!(outcome.code, expected, "{version} {way:?}: {outcome:?}");
        }
    }
}

#[test]
fn a_missing_source_is_an_error_and_nothing_else() {
    for version in VERSIONS {
        for way in [None, Some(Way::Push), Some(Way::Pull)] {
            let field = Field::new();
            let source = vec![bytes(&field.src().join("nothing"))];
            let outcome = match way {
                None => local(&archive(), version, source, &bytes(&field.dst())),
                Some(way) => Remote::new(&archive(), version, way).run(source, &bytes(&field.dst())),
            };
            assert_eq!(outcome.code, 23, "{version} {way:?}: {outcome:?}");
            assert!(snapshot(&field.dst()).len() == 1, "{version} {way:?}");
        }
    }
}

#[test]
fn source_files_are_removed_once_they_are_in_place() {
    let mut options = archive();
    options.place.remove = suisei_engine::options::Remove::SourceFiles;
    every_way(&options, Field::fill_source, |what, field, outcome| {
        assert_eq!(outcome.code, 0, "{what}: {outcome:?}");
        let left: Vec<_> =
            snapshot(&field.src()).into_iter().filter(|(_, words)| !words.starts_with("dir")).collect();
        assert!(left.is_empty(), "{what}: {left:?}");
        assert_eq!(fs::read(field.dst().join("d/b.txt")).unwrap(), b"world!\n", "{what}");
    });
}
