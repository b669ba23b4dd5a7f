//! What an operand names: a local path, `host:path`, `host::module`, or `rsync://host/module`.
//!
//! Wire: protocol/doc/03-daemon.md#31-client-side-address-forms

use crate::exit::{Code, Refusal};

/// How a machine is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `host:path`: a remote shell.
    Shell,
    /// `host::module` or a URL: a daemon.
    Daemon,
    /// This one: a server of our own, for a local run whose ends differ.
    Here,
}

/// Another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// How it is reached.
    pub kind: Kind,
    /// What stands before the last `@`.
    pub user: Option<Vec<u8>>,
    /// Its name or address, without brackets; may be empty.
    pub host: Vec<u8>,
    /// The port of a URL, digits as typed.
    pub port: Option<u32>,
}

impl Machine {
    /// Returns this machine, as the far end of a local run.
    pub fn here() -> Machine {
        Machine { kind: Kind::Here, user: None, host: Vec::new(), port: None }
    }
}

/// What an operand names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// A path on this machine.
    Local(Vec<u8>),
    /// A path on another machine.
    Remote(Machine, Vec<u8>),
}

/// Reads one operand.
pub fn operand(text: &[u8]) -> Operand {
    if let Some((machine, path)) = url(text) {
        return Operand::Remote(machine, path.to_vec());
    }
    match host_prefix(text) {
        Some((user, host, rest)) => {
            let (kind, path) = match rest.strip_prefix(b":") {
                Some(path) => (Kind::Daemon, path),
                None => (Kind::Shell, rest),
            };
            let machine = Machine { kind, user: user.map(<[u8]>::to_vec), host: host.to_vec(), port: None };
            Operand::Remote(machine, path.to_vec())
        }
        None => Operand::Local(text.to_vec()),
    }
}

/// Splits `host:path`; nothing if the text names something local.
pub fn split_host(text: &[u8]) -> Option<(Machine, Vec<u8>)> {
    match operand(text) {
        Operand::Remote(machine, path) => Some((machine, path)),
        Operand::Local(_) => None,
    }
}

fn url(text: &[u8]) -> Option<(Machine, &[u8])> {
    const SCHEME: &[u8] = b"rsync://";
    let rest = text.get(SCHEME.len()..).filter(|_| text[..SCHEME.len()].eq_ignore_ascii_case(SCHEME))?;
    let (user, rest) = split_user(rest, b"/");
    let (host, rest) = host(rest)?;
    let (port, rest) = match rest.strip_prefix(b":") {
        None => (None, rest),
        Some(rest) => {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let port = std::str::from_utf8(&rest[..digits]).ok().and_then(|text| text.parse().ok());
            (port, &rest[digits..])
        }
    };
    let path = match rest {
        [] => rest,
        [b'/', path @ ..] => path,
        _ => return None,
    };
    let machine = Machine { kind: Kind::Daemon, user: user.map(<[u8]>::to_vec), host: host.to_vec(), port };
    Some((machine, path))
}

/// Splits `user@` off: at the last `@` before the host can end.
fn split_user<'a>(text: &'a [u8], ends: &[u8]) -> (Option<&'a [u8]>, &'a [u8]) {
    let end = text.iter().position(|b| ends.contains(b)).unwrap_or(text.len());
    match text[..end].iter().rposition(|&b| b == b'@') {
        Some(at) => (Some(&text[..at]), &text[at + 1..]),
        None => (None, text),
    }
}

/// A user, a host, and what follows.
type HostParts<'a> = (Option<&'a [u8]>, &'a [u8], &'a [u8]);

/// Splits `[user@]host:`.
fn host_prefix(text: &[u8]) -> Option<HostParts<'_>> {
    let (user, rest) = split_user(text, b":/");
    let (host, rest) = host(rest)?;
    Some((user, host, rest.strip_prefix(b":")?))
}

/// Splits a host off: a bracketed address, or what stands before `:` or `/`.
fn host(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(inner) = text.strip_prefix(b"[") {
        let end = inner.iter().position(|&b| b == b']' || b == b'/')?;
        let rest = inner[end..].strip_prefix(b"]")?;
        return matches!(rest, [] | [b'/' | b':', ..]).then_some((&inner[..end], rest));
    }
    let end = text.iter().position(|b| b":/[]".contains(b)).unwrap_or(text.len());
    match text.get(end) {
        Some(b'[' | b']') => None,
        _ => Some((&text[..end], &text[end..])),
    }
}

/// Whether a path looks as if it had been quoted for a remote shell once more: a component in a
/// pair of quotes.
pub fn is_quoted_twice(path: &[u8]) -> bool {
    [b'\'', b'"'].iter().any(|quote| {
        let opens =
            path.iter().enumerate().position(|(at, b)| b == quote && (at == 0 || path[at - 1] == b'/'));
        let closes = path
            .iter()
            .enumerate()
            .rposition(|(at, b)| b == quote && path.get(at + 1).is_none_or(|&next| next == b'/'));
        opens.zip(closes).is_some_and(|(opens, closes)| opens + 1 < closes)
    })
}

/// Where a run leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Everything is here.
    Local {
        /// What to copy.
        sources: Vec<Vec<u8>>,
        /// Where to; nothing lists.
        destination: Option<Vec<u8>>,
    },
    /// From a batch file to here.
    Replay {
        /// Where to.
        destination: Vec<u8>,
    },
    /// From here to another machine.
    Push {
        /// What to copy.
        sources: Vec<Vec<u8>>,
        /// Which machine.
        machine: Machine,
        /// Where to, on that machine.
        path: Vec<u8>,
    },
    /// From another machine to here.
    Pull {
        /// Which machine.
        machine: Machine,
        /// What to copy, on that machine.
        paths: Vec<Vec<u8>>,
        /// Where to; nothing lists.
        destination: Option<Vec<u8>>,
    },
}

/// Works out where a run leads. `old_args`: an empty destination stands for `.`.
pub fn route(operands: &[Vec<u8>], old_args: bool) -> Result<Route, Refusal> {
    let (sources, destination) = match operands {
        [] => return Err(Refusal::usage("")),
        [source] => (std::slice::from_ref(source), None),
        [sources @ .., destination] => (sources, Some(destination)),
    };
    let first = operand(&sources[0]);
    match destination.map(|text| (text, operand(text))) {
        Some((_, Operand::Remote(machine, path))) => push(sources, &first, machine, path),
        Some((text, Operand::Local(_))) if text.is_empty() && !old_args => {
            Err(Refusal::usage("Empty destination arg specified (use \".\" or see --old-args)."))
        }
        other => {
            let destination =
                other.map(|(text, _)| if text.is_empty() { b".".to_vec() } else { text.clone() });
            match first {
                Operand::Remote(machine, path) => pull(sources, machine, path, destination),
                Operand::Local(_) => local(sources, destination),
            }
        }
    }
}

fn local(sources: &[Vec<u8>], destination: Option<Vec<u8>>) -> Result<Route, Refusal> {
    all_local(sources)?;
    Ok(Route::Local { sources: sources.to_vec(), destination })
}

fn all_local(sources: &[Vec<u8>]) -> Result<(), Refusal> {
    for source in sources {
        if source.is_empty() {
            return Err(Refusal::usage("Empty source arg specified."));
        }
        if matches!(operand(source), Operand::Remote(..)) {
            return Err(Refusal::usage([b"Unexpected remote arg: ".as_slice(), source].concat()));
        }
    }
    Ok(())
}

fn push(sources: &[Vec<u8>], first: &Operand, machine: Machine, path: Vec<u8>) -> Result<Route, Refusal> {
    if matches!(first, Operand::Remote(..)) {
        return Err(Refusal::usage("The source and destination cannot both be remote."));
    }
    check_machine(&machine, &path)?;
    all_local(sources)?;
    Ok(Route::Push { sources: sources.to_vec(), machine, path })
}

fn pull(
    sources: &[Vec<u8>],
    machine: Machine,
    first: Vec<u8>,
    destination: Option<Vec<u8>>,
) -> Result<Route, Refusal> {
    check_machine(&machine, &first)?;
    let mut paths = vec![first];
    for source in &sources[1..] {
        match operand(source) {
            Operand::Local(_) => {
                let text = [b"Unexpected local arg: ".as_slice(), source].concat();
                let hint = b"\nIf arg is a remote file/dir, prefix it with a colon (:).";
                return Err(Refusal::usage([text.as_slice(), hint].concat()));
            }
            Operand::Remote(other, path) => {
                let nameless = other.host.is_empty() && other.user.is_none() && other.port.is_none();
                let same_port = other.port.is_none() || machine.port.is_none() || other.port == machine.port;
                let same = other.host == machine.host && other.user == machine.user && same_port;
                if !nameless && !same {
                    return Err(Refusal::usage("All source args must come from the same machine."));
                }
                if other.kind != machine.kind {
                    return Err(Refusal::usage("All source args must use the same hostspec format."));
                }
                paths.push(path);
            }
        }
    }
    Ok(Route::Pull { machine, paths, destination })
}

fn check_machine(machine: &Machine, path: &[u8]) -> Result<(), Refusal> {
    match machine.kind {
        Kind::Shell if machine.host.starts_with(b"-") => {
            Err(Refusal::usage("Invalid remote host: hostnames may not start with '-'."))
        }
        Kind::Daemon if path.starts_with(b"/") => {
            Err(Refusal::new(Code::Start, "ERROR: The remote path must start with a module name not a /"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_quotes_around_a_component_was_meant_for_a_shell() {
        for path in ["'a b'", "\"a b\"/", "/x/'a b'/c", "'a/b c'"] {
            assert!(is_quoted_twice(path.as_bytes()), "{path}");
        }
        for path in ["it's", "rock'n'roll", "5' 6\"", "'", "''", "a 'b", "plain"] {
            assert!(!is_quoted_twice(path.as_bytes()), "{path}");
        }
    }

    fn show(text: &str) -> String {
        let s = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match operand(text.as_bytes()) {
            Operand::Local(path) => format!("local {}", s(&path)),
            Operand::Remote(m, path) => {
                let user = m.user.map_or("-".to_owned(), |user| s(&user));
                let port = m.port.map_or("-".to_owned(), |port| port.to_string());
                format!("{:?} {user} {} {port} {}", m.kind, s(&m.host), s(&path))
            }
        }
    }

    #[test]
    fn operands_name_what_stock_takes_them_for() {
        for (text, expected) in [
            ("h:p", "Shell - h - p"),
            ("h:", "Shell - h - "),
            ("a@b@h:p", "Shell a@b h - p"),
            ("@h:p", "Shell  h - p"),
            ("u@:p", "Shell u  - p"),
            (":p", "Shell -  - p"),
            ("h::m/p", "Daemon - h - m/p"),
            ("::m", "Daemon -  - m"),
            ("h::/m", "Daemon - h - /m"),
            ("[::1]:p", "Shell - ::1 - p"),
            ("u@[fe80::1%eth0]::m", "Daemon u fe80::1%eth0 - m"),
            ("rsync://h/m/p", "Daemon - h - m/p"),
            ("RSYNC://u@h:77/m", "Daemon u h 77 m"),
            ("rsync://[::1]:77/m", "Daemon - ::1 77 m"),
            ("rsync://h", "Daemon - h - "),
            ("rsync://", "Daemon -  - "),
            ("rsync://h:x/m", "Shell - rsync - //h:x/m"),
            ("a/b:c", "local a/b:c"),
            ("./h:p", "local ./h:p"),
            ("/h:p", "local /h:p"),
            ("[::1", "local [::1"),
            ("[::1]", "local [::1]"),
            ("[::1]x:p", "local [::1]x:p"),
            ("a[b]:c", "local a[b]:c"),
            ("h:a:b", "Shell - h - a:b"),
            ("h:a@b", "Shell - h - a@b"),
            ("plain", "local plain"),
        ] {
            assert_eq!(show(text), expected, "{text}");
        }
    }

    #[test]
    fn routes_that_make_no_sense_are_refused_in_the_words_of_stock() {
        let refused = |words: &[&str]| {
            let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            let refusal = route(&words, false).unwrap_err();
            format!(
                "{} {}",
                refusal.code,
                String::from_utf8(refusal.text).unwrap().lines().next().unwrap_or_default()
            )
        };
        assert_eq!(refused(&["h:a", "g:b"]), "1 The source and destination cannot both be remote.");
        assert_eq!(refused(&["h:a", "g:b", "d"]), "1 All source args must come from the same machine.");
        assert_eq!(refused(&["h:a", "u@h:b", "d"]), "1 All source args must come from the same machine.");
        assert_eq!(refused(&["h:a", "::b", "d"]), "1 All source args must use the same hostspec format.");
        assert_eq!(refused(&["h:a", "b", "d"]), "1 Unexpected local arg: b");
        assert_eq!(refused(&["src", "h:a", "g:b"]), "1 Unexpected remote arg: h:a");
        assert_eq!(refused(&["src", "-h:b"]), "1 Invalid remote host: hostnames may not start with '-'.");
        assert_eq!(refused(&["", "d"]), "1 Empty source arg specified.");
        assert_eq!(refused(&["src", ""]), "1 Empty destination arg specified (use \".\" or see --old-args).");
        assert_eq!(
            refused(&["src", "h::/m"]),
            "5 ERROR: The remote path must start with a module name not a /"
        );
    }
}
