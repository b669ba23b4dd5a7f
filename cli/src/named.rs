//! Files that options name: lists, rules, secrets. Opened by the rules for the operator's paths.
//!
//! Wire: protocol/doc/24-environment-and-exit.md#10-paths-that-the-operator-names

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use suisei_engine::context::UNTRUSTED;
use suisei_engine::tree::{is_untrusted, open_named_file, Trust, Wanted};

use crate::exit::Refusal;

/// Opens a file, or whatever is wanted, for reading.
pub fn open(path: &[u8], trust: &Trust, wanted: Wanted) -> io::Result<File> {
    open_named_file(Path::new(OsStr::from_bytes(path)), wanted, trust)
}

/// Returns the lines that stand in front of a refusal for this error: why a symlink is not
/// followed, or nothing.
pub fn preface(error: &io::Error) -> Vec<u8> {
    match is_untrusted(error) {
        true => [UNTRUSTED.as_bytes(), b"\n"].concat(),
        false => Vec::new(),
    }
}

/// Opens a list of `--files-from`.
pub fn open_list(path: &[u8], trust: &Trust, wanted: Wanted) -> Result<File, Refusal> {
    open(path, trust, wanted).map_err(|error| {
        let text = crate::output::reason(&error);
        let why = text.rsplit_once(" (").map_or(text.as_str(), |(why, _)| why);
        let why = if path.is_empty() { "Invalid argument" } else { why };
        let before = preface(&error);
        Refusal::usage(
            [&before[..], b"rsync: failed to open files-from file ", path, b": ", why.as_bytes()].concat(),
        )
    })
}
