//! The environment variables that change what was typed.
//!
//! Wire: protocol/doc/24-environment-and-exit.md#1-environment-variables

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// The environment variables that change what was typed, read once at the start.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    values: Vec<(&'static str, Vec<u8>)>,
}

impl Environment {
    const NAMES: [&'static str; 20] = [
        "RSYNC_RSH",
        "RSYNC_OLD_ARGS",
        "RSYNC_PROTECT_ARGS",
        "RSYNC_PARTIAL_DIR",
        "RSYNC_CHECKSUM_LIST",
        "RSYNC_COMPRESS_LIST",
        "RSYNC_PASSWORD",
        "RSYNC_PROXY",
        "RSYNC_CONNECT_PROG",
        "RSYNC_SHELL",
        "RSYNC_ICONV",
        "RSYNC_MAX_ALLOC",
        "LC_ALL",
        "LC_CTYPE",
        "LANG",
        "USER",
        "LOGNAME",
        "HOME",
        "CVSIGNORE",
        "PATH",
    ];

    /// Reads the environment of this process.
    pub fn of_process() -> Environment {
        let read =
            |name: &'static str| std::env::var_os(name).map(|value: OsString| (name, value.into_vec()));
        Environment { values: Self::NAMES.into_iter().filter_map(read).collect() }
    }

    /// Takes the variables of a test.
    pub fn of(values: &[(&'static str, &str)]) -> Environment {
        Environment {
            values: values.iter().map(|(name, value)| (*name, value.as_bytes().to_vec())).collect(),
        }
    }

    /// Returns the value of a variable.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_slice())
    }

    /// Returns the value of a variable if it is not empty.
    pub fn non_empty(&self, name: &str) -> Option<&[u8]> {
        self.value(name).filter(|value| !value.is_empty())
    }

    /// Returns the number that a variable starts with, 0 if there is none.
    pub fn number(&self, name: &str) -> u32 {
        let digits: Vec<u8> =
            self.value(name).unwrap_or_default().iter().copied().take_while(u8::is_ascii_digit).collect();
        std::str::from_utf8(&digits).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}
