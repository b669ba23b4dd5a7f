//! The local link and the remote one leave equal trees and tell the same story.

mod support;

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};

use suisei_engine::options::DeleteWhen;
use suisei_engine::TransferOptions;

use support::{age, archive, bytes, content_of, deleting, local, noise, snapshot, Field, Remote, Way};

/// A source and an older destination that differ in every way.
fn fill(field: &Field) {
    field.fill_source();
    field.write("dst/a.txt", "hello\n");
    age(&field.dst().join("a.txt"), 900_000_000);
    field.write("dst/d/b.txt", "longer than before\n");
    field.write("dst/run.sh", "#!/bin/sh\n");
    fs::set_permissions(field.dst().join("run.sh"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("elsewhere", field.dst().join("link")).unwrap();
    field.write("dst/hollow", "a file where a directory goes");
    field.write("dst/gone/file", "x");
    field.write("src/grown", noise(90_000, 2));
    field.write("dst/grown", &noise(90_000, 2)[..40_000]);
    field.age_directories(1_000_000_000);
}

/// Runs one link; returns the tree and the story, which is told in list order but for deletions,
/// whose place depends on what was in flight.
fn story(
    options: &TransferOptions,
    version: u32,
    way: Option<Way>,
) -> (impl PartialEq + std::fmt::Debug, Vec<String>) {
    let field = Field::new();
    fill(&field);
    let sources = vec![content_of(&field.src())];
    let outcome = match way {
        None => local(options, version, sources, &bytes(&field.dst())),
        Some(way) => Remote::new(options, version, way).run(sources, &bytes(&field.dst())),
    };
    assert_eq!(outcome.code, 0, "{version} {way:?}: {outcome:?}");
    let mut lines = outcome.lines;
    lines.sort_by_key(|line| !line.starts_with("deleted"));
    (snapshot(&field.dst()), lines)
}

#[test]
fn trees_and_events_are_equal() {
    let plain = archive();
    let mut whole = deleting(archive(), DeleteWhen::Before);
    whole.delta.whole_file = true;
    let mut careful = deleting(archive(), DeleteWhen::Delay);
    careful.compare.checksum = true;
    careful.preserve.hard_links = true;
    let mut one_list = plain.clone();
    one_list.select.incremental = false;
    for options in [plain, whole, careful, one_list] {
        for version in [29, 30, 31, 32] {
            let reference = story(&options, version, None);
            for way in [Way::Push, Way::Pull] {
                assert_eq!(story(&options, version, Some(way)), reference, "{version} {way:?}");
            }
        }
    }
}
