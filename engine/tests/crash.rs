//! A run that is killed anywhere leaves the old file or the new one, never a third state; the
//! only other thing that may stay is a temp file.

mod support;

use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

use support::{age, archive, bytes, content_of, local, noise, Field};

/// Names the field in the child.
const FIELD: &str = "SUISEI_CRASH_FIELD";
const FILES: usize = 24;

fn content(i: usize, generation: u64) -> Vec<u8> {
    noise(1 + (i * 37_123) % 400_000, generation * 1000 + i as u64)
}

/// The child: copies over and over again until it is killed.
#[test]
#[ignore = "runs in a child of the test below"]
fn child() {
    let Ok(root) = std::env::var(FIELD) else { return };
    let root = std::path::Path::new(&root);
    let mut options = archive();
    options.compare.ignore_times = true;
    loop {
        for whole_file in [true, false] {
            options.delta.whole_file = whole_file;
            local(&options, 32, vec![content_of(&root.join("src"))], &bytes(&root.join("dst")));
        }
    }
}

fn spawn(field: &Field) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child", "--quiet"])
        .env(FIELD, field.root.path())
        .spawn()
        .unwrap()
}

#[test]
fn old_file_or_new_file_and_no_third_state() {
    let field = Field::new();
    for i in 0..FILES {
        field.write(&format!("src/f{i}"), content(i, 2));
    }
    for round in 0..12u64 {
        for i in 0..FILES {
            let name = format!("dst/f{i}");
            field.write(&name, content(i, 1));
            age(&field.root.path().join(name), 999_999_000);
        }
        let mut child = spawn(&field);
        // Long enough to be in the middle of it, at another place each time.
        std::thread::sleep(Duration::from_millis(5 + round * 11));
        child.kill().unwrap();
        child.wait().unwrap();
        for item in fs::read_dir(field.dst()).unwrap() {
            let item = item.unwrap();
            let name = item.file_name().into_string().unwrap();
            if let Some(i) = name.strip_prefix('f').and_then(|i| i.parse::<usize>().ok()) {
                let found = fs::read(item.path()).unwrap();
                assert!(found == content(i, 1) || found == content(i, 2), "{name} after round {round}");
            } else {
                assert!(name.starts_with(".f"), "{name} is neither a file nor a temp file");
                fs::remove_file(item.path()).unwrap();
            }
        }
        assert_eq!(fs::read_dir(field.dst()).unwrap().count(), FILES, "round {round}");
    }
}
