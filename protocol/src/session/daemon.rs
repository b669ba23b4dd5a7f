//! The daemon's text phase, from the greeting to `OK`, as its client lives through it.
//!
//! Sans I/O, like the handshake that follows it. The argument block goes out after
//! [`DaemonEvent::Ready`]; see [`super::ArgumentBlock`].
//! Wire: protocol/doc/03-daemon.md#32-text-phase

use super::greeting::Missing;
use super::{take_line, AuthDigest, Greeting, Version};
use crate::error::{Decode, Error, Malformed, Misuse, PeerIncompatible, Stop};
use crate::limits::{DAEMON_LINE_MAX, EARLY_INPUT_MAX};
use crate::wire::Reader;

/// What a client asks of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleRequest {
    /// The list of modules.
    List,
    /// This module.
    Module(Vec<u8>),
}

impl ModuleRequest {
    /// Parses what a client's line says; nothing for an unknown `#` command. (`#early_input=N`
    /// is for [`early_input_length`].)
    pub fn parse(line: &[u8]) -> Option<ModuleRequest> {
        match line {
            b"" | b"#list" => Some(ModuleRequest::List),
            [b'#', ..] => None,
            name => Some(ModuleRequest::Module(name.to_vec())),
        }
    }
}

/// Returns the length that an early-input line announces; nothing if the line is another one.
///
/// Wire: protocol/doc/03-daemon.md#323-early-input
pub fn early_input_length(line: &[u8]) -> Option<Result<usize, PeerIncompatible>> {
    let digits = line.strip_prefix(b"#early_input=")?;
    let length = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok());
    let length = length.filter(|n| (1..=EARLY_INPUT_MAX).contains(n));
    Some(length.ok_or_else(|| PeerIncompatible::Daemon("@ERROR: invalid early_input length".to_owned())))
}

/// What a daemon's line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonEvent {
    /// A line of the message of the day, or of the list of modules. Hostile until escaped.
    Line(Vec<u8>),
    /// The module wants a login: [`DaemonClient::login`] comes next.
    LoginWanted,
    /// The module is open: arguments and handshake come next.
    Ready(Version),
    /// The list of modules is complete; the session is over.
    ListEnd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    ExpectGreeting,
    ExpectLine,
    LoginDue { challenge: Vec<u8> },
    Finished,
}

/// ```text
/// ExpectGreeting ─► ExpectLine ─► Finished        (OK, EXIT)
///                    ▲      │
///                    └ LoginDue                   (AUTHREQD, login)
/// ```
#[derive(Debug)]
pub struct DaemonClient {
    ours: Version,
    request: ModuleRequest,
    early_input: Vec<u8>,
    state: State,
    version: Version,
    digests: Option<Vec<u8>>,
    output: Vec<u8>,
}

impl DaemonClient {
    /// Starts with our greeting. Fails on a module name that is no line, and on early input of
    /// more than 5120 bytes; empty early input is none.
    pub fn new(ours: Version, request: ModuleRequest, early_input: Vec<u8>) -> Result<Self, Misuse> {
        if early_input.len() > EARLY_INPUT_MAX {
            return Err(Misuse::EarlyInput);
        }
        if let ModuleRequest::Module(name) = &request {
            if name.iter().any(|b| matches!(b, b'\n' | b'\r' | 0)) {
                let name = String::from_utf8_lossy(name).into_owned();
                return Err(Misuse::UnknownName { kind: "module", name });
            }
        }
        let output = Greeting::ours(ours).to_line();
        let state = State::ExpectGreeting;
        Ok(DaemonClient { ours, request, early_input, state, version: ours, digests: None, output })
    }

    /// Returns what is to be written now.
    pub fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Takes lines up to the first that means something to the caller, and says how many bytes
    /// they were. The rest must be fed again, with more behind it.
    ///
    /// `@ERROR` is [`PeerIncompatible::Daemon`].
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<DaemonEvent>), Error> {
        let mut reader = Reader::new(bytes);
        let mut consumed = 0;
        loop {
            match self.line(&mut reader) {
                Ok(None) => consumed = reader.consumed(),
                Ok(event) => return Ok((reader.consumed(), event)),
                Err(Stop::Short) => return Ok((consumed, None)),
                Err(Stop::Bad(error)) => return Err(error),
            }
        }
    }

    /// Answers [`DaemonEvent::LoginWanted`]; does nothing at any other time.
    ///
    /// Fails if the daemon knows no login digest that we know.
    pub fn login(&mut self, user: &[u8], password: &[u8]) -> Result<(), Error> {
        let State::LoginDue { challenge } = &self.state else { return Ok(()) };
        let digests = self.digests.as_deref();
        let digest = AuthDigest::choose(digests, self.version).ok_or_else(|| {
            PeerIncompatible::NoDigest(String::from_utf8_lossy(digests.unwrap_or_default()).into_owned())
        })?;
        let response = digest.response(password, challenge);
        self.output.extend_from_slice(&[user, b" ", response.as_bytes(), b"\n"].concat());
        self.state = State::ExpectLine;
        Ok(())
    }

    fn line(&mut self, reader: &mut Reader<'_>) -> Decode<Option<DaemonEvent>> {
        match self.state {
            State::ExpectGreeting => {
                let line = take_line(reader, DAEMON_LINE_MAX).map_err(|stop| match stop {
                    Stop::Bad(Error::Malformed(Malformed::Line)) => PeerIncompatible::NoGreeting.into(),
                    other => other,
                })?;
                self.greeted(&line)?;
                Ok(None)
            }
            State::ExpectLine => {
                let line = take_line(reader, DAEMON_LINE_MAX)?;
                Ok(Some(self.answered(line)?))
            }
            State::LoginDue { .. } | State::Finished => Err(Stop::Short),
        }
    }

    fn greeted(&mut self, line: &[u8]) -> Result<(), Error> {
        let greeting = Greeting::parse(line).ok_or(PeerIncompatible::NoGreeting)?;
        if let Some(missing) = greeting.missing() {
            let what = match missing {
                Missing::Subprotocol => "subprotocol value",
                Missing::Digests => "digest name list",
            };
            let line = String::from_utf8_lossy(line);
            return Err(PeerIncompatible::Daemon(format!("the server omitted the {what}: {line}")).into());
        }
        self.version = greeting.agree(self.ours)?;
        self.digests = greeting.digests;
        if !self.early_input.is_empty() {
            self.output.extend_from_slice(format!("#early_input={}\n", self.early_input.len()).as_bytes());
            self.output.append(&mut self.early_input);
        }
        if let ModuleRequest::Module(name) = &self.request {
            self.output.extend_from_slice(name);
        }
        self.output.push(b'\n');
        self.state = State::ExpectLine;
        Ok(())
    }

    fn answered(&mut self, line: Vec<u8>) -> Result<DaemonEvent, Error> {
        if line.starts_with(b"@ERROR") {
            return Err(PeerIncompatible::Daemon(String::from_utf8_lossy(&line).into_owned()).into());
        }
        let Some(answer) = line.strip_prefix(b"@RSYNCD: ") else { return Ok(DaemonEvent::Line(line)) };
        if let Some(challenge) = answer.strip_prefix(b"AUTHREQD ") {
            self.state = State::LoginDue { challenge: challenge.to_vec() };
            return Ok(DaemonEvent::LoginWanted);
        }
        let event = match answer {
            b"OK" => DaemonEvent::Ready(self.version),
            b"EXIT" => DaemonEvent::ListEnd,
            _ => return Ok(DaemonEvent::Line(line)),
        };
        self.state = State::Finished;
        Ok(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREETING: &[u8] = b"@RSYNCD: 32.0 sha512 sha256 sha1 md5 md4\n";

    fn client(module: &str) -> DaemonClient {
        let mut client =
            DaemonClient::new(Version::NEWEST, ModuleRequest::Module(module.into()), Vec::new()).unwrap();
        assert_eq!(client.output(), GREETING);
        client
    }

    fn events(client: &mut DaemonClient, input: &[u8]) -> (usize, Vec<DaemonEvent>) {
        let (mut at, mut all) = (0, Vec::new());
        loop {
            let (consumed, event) = client.feed(&input[at..]).unwrap();
            at += consumed;
            match event {
                Some(event) => all.push(event),
                None => return (at, all),
            }
        }
    }

    #[test]
    fn an_open_module_behind_a_motd() {
        let mut client = client("pub");
        let input = [GREETING, b"welcome\n\n@RSYNCD: OK\n\x81\xFF"].concat();
        let (at, all) = events(&mut client, &input);
        let line = |text: &[u8]| DaemonEvent::Line(text.to_vec());
        assert_eq!(all, [line(b"welcome"), line(b""), DaemonEvent::Ready(Version::NEWEST)]);
        assert_eq!(at, input.len() - 2, "the handshake's bytes are left alone");
        assert_eq!(client.output(), b"pub\n");
    }

    #[test]
    fn a_list_ends_the_session() {
        let mut client = DaemonClient::new(Version::NEWEST, ModuleRequest::List, Vec::new()).unwrap();
        let (_, all) =
            events(&mut client, &[GREETING, b"pub            \tpublic stuff\n@RSYNCD: EXIT\n"].concat());
        assert_eq!(all, [DaemonEvent::Line(b"pub            \tpublic stuff".to_vec()), DaemonEvent::ListEnd]);
        assert!(client.output().ends_with(b"md4\n\n"), "an empty line asks for the list");
    }

    #[test]
    fn the_worked_login() {
        let mut client = client("sec");
        let challenge =
            b"XNVUQyUXH4fePeHS0TobhL2hKveDQ8Vs22V1wrbGeIlKOgD66wvVVqClW9ckHFJe+1Et2kS9L9agoI+2mb++Ag";
        let input = [GREETING, b"@RSYNCD: AUTHREQD ", challenge, b"\n@RSYNCD: OK\n"].concat();
        let (at, all) = events(&mut client, &input);
        assert_eq!(all, [DaemonEvent::LoginWanted]);
        assert_eq!(client.output(), b"sec\n");
        client.login(b"bob", b"s3cret").unwrap();
        let answer =
            "bob owW6wlq9a2o2dL+7CkwgkkH4YN7GF7KYZmvHjUj52s/3G8781xoxhDjJKK8PNQZCMkmI3rUvUkqTm7RvDlCoxg\n";
        assert_eq!(client.output(), answer.as_bytes());
        assert_eq!(events(&mut client, &input[at..]).1, [DaemonEvent::Ready(Version::NEWEST)]);
    }

    #[test]
    fn captured_early_input() {
        let request = ModuleRequest::Module(b"pub".to_vec());
        let mut client = DaemonClient::new(Version::NEWEST, request, b"hello\n".to_vec()).unwrap();
        client.output();
        events(&mut client, GREETING);
        assert_eq!(client.output(), b"#early_input=6\nhello\npub\n");
        assert_eq!(early_input_length(b"#early_input=6"), Some(Ok(6)));
        assert!(matches!(early_input_length(b"#early_input=5121"), Some(Err(_))));
        assert_eq!(early_input_length(b"pub"), None);
    }

    #[test]
    fn refusals_end_with_5() {
        for answer in ["220 smtp ready\n", "@RSYNCD: 30\n", "@RSYNCD: 32.0\n", "\0"] {
            assert_eq!(client("pub").feed(answer.as_bytes()).unwrap_err().exit_code(), 5, "{answer:?}");
        }
        let input = [GREETING, b"@ERROR: Unknown module 'pub'\n"].concat();
        let error = client("pub").feed(&input).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.exit_code()), ("@ERROR: Unknown module 'pub'", 5));
        assert_eq!(client("pub").feed(b"@RSYNCD: 19.0\n").unwrap_err().exit_code(), 2);
    }

    #[test]
    fn old_daemons_lower_the_version_and_name_no_digest() {
        let mut client = client("sec");
        events(&mut client, b"@RSYNCD: 29\n@RSYNCD: AUTHREQD abc\n");
        client.output();
        client.login(b"bob", b"pw").unwrap();
        let expected = format!("bob {}\n", AuthDigest::OldMd4.response(b"pw", b"abc"));
        assert_eq!(client.output(), expected.as_bytes());
        assert_eq!(events(&mut client, b"@RSYNCD: OK\n").1, [DaemonEvent::Ready(Version::new(29).unwrap())]);
    }

    #[test]
    fn no_digest_in_common_ends_with_4() {
        let mut client = client("sec");
        events(&mut client, b"@RSYNCD: 32.0 blake3\n@RSYNCD: AUTHREQD abc\n");
        assert_eq!(client.login(b"bob", b"pw").unwrap_err().exit_code(), 4);
    }

    #[test]
    fn requests_of_a_client() {
        assert_eq!(ModuleRequest::parse(b""), Some(ModuleRequest::List));
        assert_eq!(ModuleRequest::parse(b"#list"), Some(ModuleRequest::List));
        assert_eq!(ModuleRequest::parse(b"#foo"), None);
        assert_eq!(ModuleRequest::parse(b"pub"), Some(ModuleRequest::Module(b"pub".to_vec())));
        assert!(
            DaemonClient::new(Version::NEWEST, ModuleRequest::Module(b"a\nb".to_vec()), Vec::new()).is_err()
        );
    }
}
