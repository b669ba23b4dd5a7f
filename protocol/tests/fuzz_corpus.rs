//! The kept inputs of the fuzz targets, as ordinary tests.

use std::fs;
use std::path::Path;

use suisei_protocol::fuzzing::TARGETS;

#[test]
fn every_kept_input_passes_its_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, target) in TARGETS {
        let inputs = fs::read_dir(corpus.join(name)).unwrap_or_else(|e| panic!("no corpus for {name}: {e}"));
        let mut ran = 0;
        for input in inputs {
            let path = input.unwrap().path();
            println!("{}", path.display());
            target(&fs::read(&path).unwrap());
            ran += 1;
        }
        assert!(ran > 0, "no input for {name}");
    }
}

#[test]
fn every_target_has_its_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for (name, _) in TARGETS {
        let text = fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(text.contains(&format!("fuzzing::{name}(input)")));
        assert!(manifest.contains(&format!("name = \"{name}\"")));
    }
    let files = fs::read_dir(folder.join("fuzz_targets")).unwrap().count();
    assert_eq!(files, TARGETS.len(), "a target file that is not in TARGETS");
}
