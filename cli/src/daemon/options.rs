//! The command line of a daemon: a set of options of its own.
//!
//! Wire: protocol/doc/03-daemon.md#36-listening-daemon

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use suisei_protocol::session::Version;

use crate::exit::Refusal;
use crate::options::number;
use crate::options::row::Given;
use crate::options::rows;
use crate::options::typed::Family;

/// What a daemon's command line says.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // each is the option of its name
pub struct DaemonOptions {
    pub address: Option<Vec<u8>>,
    /// KiB per second; 0: no limit.
    pub bwlimit: u64,
    pub config: Option<Vec<u8>>,
    pub overrides: Vec<(Vec<u8>, Vec<u8>)>,
    pub no_detach: bool,
    pub port: Option<i32>,
    pub log_file: Option<Vec<u8>>,
    pub log_file_format: Option<Vec<u8>>,
    pub sockopts: Option<Vec<u8>>,
    pub family: Family,
    pub verbose: u32,
    pub protocol: Option<Version>,
    pub temp_dir: Option<Vec<u8>>,
    /// `--server`: one connection over a remote shell.
    pub server: bool,
    pub help: bool,
}

/// Long name, letter, whether it takes a value.
const OPTIONS: [(&str, Option<u8>, bool); 20] = [
    ("address", None, true),
    ("bwlimit", None, true),
    ("config", None, true),
    ("daemon", None, false),
    ("detach", None, false),
    ("dparam", Some(b'M'), true),
    ("help", Some(b'h'), false),
    ("ipv4", Some(b'4'), false),
    ("ipv6", Some(b'6'), false),
    ("log-file", None, true),
    ("log-file-format", None, true),
    ("no-detach", None, false),
    ("no-v", None, false),
    ("no-verbose", None, false),
    ("port", None, true),
    ("protocol", None, true),
    ("server", None, false),
    ("sockopts", None, true),
    ("temp-dir", Some(b'T'), true),
    ("verbose", Some(b'v'), false),
];

/// Whether a command line asks for a daemon: `--daemon` as an option of its own.
pub fn is_asked(words: &[OsString]) -> bool {
    let mut words = words.iter().map(|word| word.as_bytes());
    while let Some(word) = words.next() {
        match word {
            b"--" | b"." => return false,
            b"--daemon" => return true,
            [b'-', b'-', name @ ..] if !name.contains(&b'=') => {
                let row = rows().find(|row| row.long_names().any(|known| known.as_bytes() == name));
                if row.is_some_and(|row| row.value.is_some()) {
                    words.next();
                }
            }
            [b'-', letters @ ..] if !letters.is_empty() && !letters.starts_with(b"-") => {
                let valued = |letter: u8| {
                    let is_it = |short: char| short as u32 == u32::from(letter);
                    rows().any(|row| row.short.is_some_and(is_it) && row.value.is_some())
                };
                let first = letters.iter().position(|letter| valued(*letter));
                if first.is_some_and(|at| at + 1 == letters.len()) {
                    words.next();
                }
            }
            _ => {}
        }
    }
    false
}

/// Reads the words, the program's name left out. Words that are no options say nothing.
pub fn read(words: &[OsString]) -> Result<DaemonOptions, Refusal> {
    let mut options = DaemonOptions::default();
    let mut words = words.iter().map(OsString::as_os_str).map(OsStr::as_bytes);
    while let Some(word) = words.next() {
        match word {
            b"--" => break,
            [b'-', b'-', body @ ..] => {
                let (name, attached) = match body.iter().position(|b| *b == b'=') {
                    Some(at) => (&body[..at], Some(&body[at + 1..])),
                    None => (body, None),
                };
                let known = OPTIONS.iter().find(|(long, ..)| long.as_bytes() == name);
                let (long, _, valued) = known.ok_or_else(|| refusal(word, "unknown option"))?;
                match (*valued, attached) {
                    (false, None) => options.set(long, b"", word)?,
                    (false, Some(_)) => return Err(refusal(word, "option does not take an argument")),
                    (true, Some(value)) => options.set(long, value, word)?,
                    (true, None) => {
                        let value = words.next().ok_or_else(|| refusal(word, "missing argument"))?;
                        options.set(long, value, value)?;
                    }
                }
            }
            [b'-', letters @ ..] if !letters.is_empty() => options.bundle(word, letters, &mut words)?,
            _ => {}
        }
    }
    Ok(options)
}

impl DaemonOptions {
    fn bundle<'a>(
        &mut self,
        word: &[u8],
        letters: &[u8],
        words: &mut impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), Refusal> {
        for (at, letter) in letters.iter().enumerate() {
            if *letter == b'=' && at > 0 {
                return Err(refusal(word, "option does not take an argument"));
            }
            let known = OPTIONS.iter().find(|(_, short, _)| *short == Some(*letter));
            let (long, _, valued) = known.ok_or_else(|| refusal(word, "unknown option"))?;
            if !valued {
                self.set(long, b"", word)?;
                continue;
            }
            let rest = &letters[at + 1..];
            if !rest.is_empty() {
                return self.set(long, rest.strip_prefix(b"=").unwrap_or(rest), word);
            }
            let value = words.next().ok_or_else(|| refusal(word, "missing argument"))?;
            return self.set(long, value, value);
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &[u8], word: &[u8]) -> Result<(), Refusal> {
        let text = || Some(value.to_vec());
        match name {
            "address" => self.address = text(),
            "bwlimit" => self.bwlimit = u64::try_from(integer(value, word)?).unwrap_or_default(),
            "config" => self.config = text(),
            "dparam" => match value.iter().position(|b| *b == b'=') {
                Some(at) => {
                    let (name, value) = (value[..at].trim_ascii(), value[at + 1..].trim_ascii());
                    self.overrides.push((name.to_vec(), value.to_vec()));
                }
                None => {
                    let text = [b"--dparam value is missing an '=': ", value].concat();
                    return Err(with_hint(text));
                }
            },
            "detach" => self.no_detach = false,
            "no-detach" => self.no_detach = true,
            "help" => self.help = true,
            "ipv4" => self.family = Family::V4,
            "ipv6" => self.family = Family::V6,
            "log-file" => self.log_file = text(),
            "log-file-format" => self.log_file_format = text(),
            "port" => self.port = Some(integer(value, word)?),
            "protocol" => self.protocol = u32::try_from(integer(value, word)?).ok().and_then(Version::new),
            "sockopts" => self.sockopts = text(),
            "temp-dir" => self.temp_dir = text(),
            "server" => self.server = true,
            "verbose" => self.verbose = self.verbose.saturating_add(1),
            "no-verbose" | "no-v" => self.verbose = 0,
            _ => {}
        }
        Ok(())
    }
}

fn integer(value: &[u8], word: &[u8]) -> Result<i32, Refusal> {
    number::int(&Given { on: true, value, word }).map_err(|_| refusal(word, "invalid numeric value"))
}

fn refusal(word: &[u8], why: &str) -> Refusal {
    with_hint([b"rsync: ", word, b": ", why.as_bytes(), b" (in daemon mode)"].concat())
}

fn with_hint(mut text: Vec<u8>) -> Refusal {
    text.extend_from_slice(b"\n(Type \"rsync --daemon --help\" for assistance with daemon mode.)");
    Refusal::usage(text)
}

/// The usage of a daemon, behind the version.
pub const USAGE: &str = "\n\
    Usage: rsync --daemon [OPTION]...\n\
    --daemon                 run as an rsync daemon\n\
    --address=ADDRESS        bind to the specified address\n\
    --bwlimit=KIB            limit socket I/O bandwidth\n\
    --config=FILE            specify alternate rsyncd.conf file\n\
    --dparam=OVERRIDE, -M    override global daemon config parameter\n\
    --no-detach              do not detach from the parent\n\
    --port=PORT              listen on alternate port number\n\
    --log-file=FILE          override the \"log file\" setting\n\
    --log-file-format=FMT    override the \"log format\" setting\n\
    --sockopts=OPTIONS       specify custom TCP options\n\
    --verbose, -v            increase verbosity\n\
    --ipv4, -4               prefer IPv4\n\
    --ipv6, -6               prefer IPv6\n\
    --help, -h               show this help (when used with --daemon)\n\
    \n\
    If you were not trying to invoke rsync as a daemon, avoid using any of the\n\
    daemon-specific rsync options.  See also the rsyncd.conf(5) manpage.\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn refused(line: &str) -> String {
        String::from_utf8(read(&words(line)).unwrap_err().text).unwrap()
    }

    #[test]
    fn a_daemon_is_asked_for_by_an_option_of_its_own() {
        assert!(is_asked(&words("--daemon")));
        assert!(is_asked(&words("-v --server --daemon .")));
        assert!(!is_asked(&words("-a --exclude --daemon a b")));
        assert!(!is_asked(&words("-af --daemon a b")));
        assert!(!is_asked(&words("a -- --daemon")));
        assert!(!is_asked(&words("--server . --daemon")));
    }

    #[test]
    fn its_options_are_its_own() {
        let options = read(&words(
            "--daemon -vM port=8 -M=list=no --no-detach --config c --bwlimit=1536 -4 --port=0x10 extra",
        ))
        .unwrap();
        assert_eq!(options.overrides[1], (b"list".to_vec(), b"no".to_vec()));
        assert_eq!((options.verbose, options.bwlimit, options.port), (1, 1536, Some(16)));
        assert!(options.no_detach && options.config.as_deref() == Some(b"c") && options.family == Family::V4);
        let hint = "\n(Type \"rsync --daemon --help\" for assistance with daemon mode.)";
        for (line, text) in [
            ("--daemon --bogus", "rsync: --bogus: unknown option (in daemon mode)"),
            ("--daemon -a", "rsync: -a: unknown option (in daemon mode)"),
            ("--daemon --port=x", "rsync: --port=x: invalid numeric value (in daemon mode)"),
            ("--daemon --port", "rsync: --port: missing argument (in daemon mode)"),
            ("--daemon -M foo", "--dparam value is missing an '=': foo"),
        ] {
            assert_eq!(refused(line), format!("{text}{hint}"));
        }
    }
}
