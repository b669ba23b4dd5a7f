//! The built-in ssh transport: for machines without an `ssh` program, or by `--rsh=builtin`.
//!
//! It checks `~/.ssh/known_hosts`, logs in by agent, default keys or a password asked on the
//! terminal, and runs the remote command on a channel, which [`bridge`] joins to a pair of pipes.
//! It reads no `~/.ssh/config`; `--rsh='builtin -p PORT -i KEYFILE -l USER'` says what that would.
//! Wire: protocol/doc/02-session-start.md#21-command-that-is-run

mod bridge;
mod trust;

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ssh2::Session;
use suisei_engine::link::Stream;

pub use bridge::Bridge;

use super::socket::Dialing;
use super::spec::Machine;
use super::terminal;
use crate::exit::{Code, Refusal};
use crate::options::environment::Environment;
use crate::options::typed::Connect;
use crate::output::info::DebugLevels;
use crate::output::Screen;

const PORT: u16 = 22;

/// Default key files, in the order they are tried.
const KEYS: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];

/// How often a password may be wrong.
const PASSWORD_TRIES: usize = 3;

/// What it takes to reach a machine.
pub struct Caller<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Address family and the remote program.
    pub connect: &'a Connect,
    /// For the user, the home directory.
    pub environment: &'a Environment,
    /// For complaints.
    pub screen: &'a Screen,
    /// This end's role in messages.
    pub who: &'a str,
    /// Set by a signal.
    pub interrupted: &'a AtomicBool,
    /// What was typed behind `builtin`.
    pub settings: Settings,
}

/// What is typed behind `builtin`, in ssh's spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    port: u16,
    key: Option<PathBuf>,
    user: Option<Vec<u8>>,
}

impl Settings {
    /// Reads `-p PORT`, `-i KEYFILE` and `-l USER`.
    pub fn parse(words: &[Vec<u8>]) -> Result<Settings, Refusal> {
        let mut settings = Settings { port: PORT, key: None, user: None };
        for pair in words.chunks(2) {
            let bad =
                || Refusal::usage([b"rsync: the built-in ssh does not know ".as_slice(), &pair[0]].concat());
            let value = pair.get(1).ok_or_else(bad)?;
            match pair[0].as_slice() {
                b"-p" => {
                    settings.port =
                        std::str::from_utf8(value).ok().and_then(|n| n.parse().ok()).ok_or_else(bad)?
                }
                b"-i" => settings.key = Some(PathBuf::from(OsStr::from_bytes(value))),
                b"-l" => settings.user = Some(value.clone()),
                _ => return Err(bad()),
            }
        }
        Ok(settings)
    }
}

impl Caller<'_> {
    /// Runs the server's words on the machine.
    pub fn run(&self, server: &[Vec<u8>]) -> Result<(Bridge, Stream), Refusal> {
        let (session, socket) = self.session()?;
        self.log_in(&session)?;
        let program = self.connect.rsync_path.clone().unwrap_or_else(|| b"rsync".to_vec());
        let words: Vec<Vec<u8>> = std::iter::once(program).chain(server.iter().cloned()).collect();
        let command = String::from_utf8(words.join(&b' ')).map_err(|_| {
            let text = "the built-in ssh transport sends arguments in UTF-8 only: use -s, or an ssh program";
            Refusal::new(Code::Unsupported, text)
        })?;
        let failed = |error: ssh2::Error| self.failed("cannot run the remote command", &error);
        let mut channel = session.channel_session().map_err(failed)?;
        channel.exec(&command).map_err(failed)?;
        bridge::start(session, channel, socket)
            .map_err(|error| Refusal::new(Code::Ipc, format!("rsync: [{}] ssh: {error}", self.who)))
    }

    fn failed(&self, what: &str, error: &ssh2::Error) -> Refusal {
        let host = String::from_utf8_lossy(&self.machine.host);
        Refusal::with_code(255, format!("ssh: {what} at {host}: {}", error.message()))
    }

    fn refused(&self, text: String) -> Refusal {
        Refusal::with_code(255, text)
    }

    fn home(&self, name: &str) -> PathBuf {
        let home = self.environment.non_empty("HOME").unwrap_or(b"/");
        Path::new(OsStr::from_bytes(home)).join(".ssh").join(name)
    }

    /// Connects and checks the host's key. A host may hold keys of several kinds, of which we
    /// know only one: so a mismatch is settled only when no kind matches.
    fn session(&self) -> Result<(Session, OwnedFd), Refusal> {
        let kinds = [
            None,
            Some("ssh-ed25519"),
            Some("ecdsa-sha2-nistp256"),
            Some("rsa-sha2-512,rsa-sha2-256,ssh-rsa"),
        ];
        for kind in kinds {
            let (session, socket) = match self.greet(kind) {
                Ok(greeted) => greeted,
                Err(refusal) if kind.is_none() => return Err(refusal),
                Err(_) => continue,
            };
            match trust::check(&session, &self.machine.host, self.settings.port, &self.home("known_hosts")) {
                trust::Verdict::Known => return Ok((session, socket)),
                trust::Verdict::Unknown(key) => {
                    self.ask_to_trust(&session, &key)?;
                    return Ok((session, socket));
                }
                trust::Verdict::Other => {}
            }
        }
        let host = String::from_utf8_lossy(&self.machine.host);
        Err(self.refused(format!("ssh: the host key of {host} is not the one in known_hosts: refused")))
    }

    /// Connects and agrees on keys; the second value is the connection, for `poll`.
    fn greet(&self, key_kinds: Option<&str>) -> Result<(Session, OwnedFd), Refusal> {
        let plain = Connect { family: self.connect.family, ..Connect::default() };
        let dialing = Dialing {
            wishes: &plain,
            debug: &DebugLevels::default(),
            who: self.who,
            screen: self.screen,
            interrupted: self.interrupted,
        };
        let socket = dialing
            .connect(&self.machine.host, u32::from(self.settings.port))
            .map_err(|refusal| Refusal { code: 255, ..refusal })?;
        let mut session = Session::new().map_err(|error| self.failed("cannot start", &error))?;
        if let Some(kinds) = key_kinds {
            session
                .method_pref(ssh2::MethodType::HostKey, kinds)
                .map_err(|error| self.failed("cannot start", &error))?;
        }
        let polled = socket.try_clone().map_err(|error| self.refused(format!("ssh: dup: {error}")))?;
        session.set_tcp_stream(socket);
        session.handshake().map_err(|error| self.failed("cannot agree", &error))?;
        Ok((session, polled))
    }

    fn ask_to_trust(&self, session: &Session, key: &trust::HostKey) -> Result<(), Refusal> {
        let host = String::from_utf8_lossy(&self.machine.host);
        let question = format!(
            "The authenticity of host '{host}' can't be established.\n{} key fingerprint is {}.\n\
             Are you sure you want to continue connecting (yes/no)? ",
            key.kind, key.fingerprint
        );
        match terminal::confirm(&question, self.interrupted) {
            Ok(Some(true)) => {
                let path = self.home("known_hosts");
                trust::remember(session, &self.machine.host, self.settings.port, key, &path)
                    .map_err(|error| self.refused(format!("ssh: cannot add to {}: {error}", path.display())))
            }
            Ok(Some(false)) => Err(self.refused("ssh: host key verification failed".to_owned())),
            Ok(None) | Err(_) => Err(self.refused(format!(
                "ssh: the host key of {host} ({}) is unknown, and there is no terminal to ask: refused",
                key.fingerprint
            ))),
        }
    }

    fn log_in(&self, session: &Session) -> Result<(), Refusal> {
        let user = match self.machine.user.as_ref().or(self.settings.user.as_ref()) {
            Some(user) => String::from_utf8_lossy(user).into_owned(),
            None => {
                let name =
                    self.environment.non_empty("USER").or_else(|| self.environment.non_empty("LOGNAME"));
                String::from_utf8_lossy(name.unwrap_or(b"root")).into_owned()
            }
        };
        if session.userauth_agent(&user).is_ok() && session.authenticated() {
            return Ok(());
        }
        let keys = self.settings.key.clone().into_iter().chain(KEYS.iter().map(|name| self.home(name)));
        for path in keys.filter(|path| path.exists()) {
            if session.userauth_pubkey_file(&user, None, &path, None).is_ok() && session.authenticated() {
                return Ok(());
            }
        }
        let host = String::from_utf8_lossy(&self.machine.host).into_owned();
        for _ in 0..PASSWORD_TRIES {
            let Ok(Some(password)) =
                terminal::password(&format!("{user}@{host}'s password: "), self.interrupted)
            else {
                break;
            };
            let password = String::from_utf8_lossy(&password).into_owned();
            if session.userauth_password(&user, &password).is_ok() && session.authenticated() {
                return Ok(());
            }
        }
        Err(self.refused(format!("ssh: {user}@{host}: permission denied")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_spelled_as_for_ssh() {
        let words = |list: &[&str]| list.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        let settings = Settings::parse(&words(&["-p", "2222", "-i", "/k", "-l", "me"])).unwrap();
        let expected = Settings { port: 2222, key: Some("/k".into()), user: Some(b"me".to_vec()) };
        assert_eq!(settings, expected);
        assert!(Settings::parse(&words(&["-p"])).is_err());
        assert!(Settings::parse(&words(&["-o", "x=y"])).is_err());
    }
}
