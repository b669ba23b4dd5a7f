//! The user's remote shell program: its words, its process, its end.
//!
//! Wire: protocol/doc/02-session-start.md#21-command-that-is-run

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::{Child, Command, Stdio};

use suisei_engine::link::Stream;

use super::spec::{Kind, Machine};
use crate::exit::{Code, Refusal};
use crate::options::environment::Environment;
use crate::options::typed::{Connect, Family};

/// The program if neither `-e` nor `RSYNC_RSH` names one.
const DEFAULT: &[u8] = b"ssh";

/// The code of a child that cannot be waited for.
const WAIT_FAILED: u8 = 21;

/// Splits a shell command at spaces. Quotes group; the same quote doubled inside stands for itself.
pub fn split(command: &[u8]) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = command.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' => words.extend(word.take()),
            b'\'' | b'"' => {
                let word = word.get_or_insert_with(Vec::new);
                loop {
                    match bytes.next() {
                        Some(b) if b != byte => word.push(b),
                        Some(_) if bytes.peek() == Some(&byte) => {
                            bytes.next();
                            word.push(byte);
                        }
                        Some(_) => break,
                        None => {
                            let text = format!("Missing trailing-{} in remote-shell command.", byte as char);
                            return Err(Refusal::usage(text));
                        }
                    }
                }
            }
            _ => word.get_or_insert_with(Vec::new).push(byte),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Returns the command that `-e` or the environment names, or the default.
pub fn command(connect: &Connect, environment: &Environment) -> Vec<u8> {
    let named = connect.rsh.as_deref().or_else(|| environment.value("RSYNC_RSH"));
    named.unwrap_or(DEFAULT).to_vec()
}

/// Returns all words to run on this machine.
pub fn words(
    command: &[u8],
    connect: &Connect,
    machine: &Machine,
    server: &[Vec<u8>],
) -> Result<Vec<Vec<u8>>, Refusal> {
    let mut words = split(command)?;
    let is_ssh = words.first().is_some_and(|program| basename(program) == b"ssh");
    let names_user = machine.kind == Kind::Daemon && words.iter().skip(1).any(|word| word.starts_with(b"-l"));
    if let Some(user) = machine.user.as_ref().filter(|_| !names_user) {
        words.push(b"-l".to_vec());
        words.push(user.clone());
    }
    match connect.family {
        Family::V4 if is_ssh => words.push(b"-4".to_vec()),
        Family::V6 if is_ssh => words.push(b"-6".to_vec()),
        _ => {}
    }
    words.push(machine.host.clone());
    words.push(connect.rsync_path.clone().unwrap_or_else(|| b"rsync".to_vec()));
    words.extend(server.iter().cloned());
    Ok(words)
}

fn basename(path: &[u8]) -> &[u8] {
    path.rsplit(|&b| b == b'/').next().unwrap_or(path)
}

/// A running remote shell.
#[derive(Debug)]
pub struct Shell {
    child: Child,
}

/// Runs the remote shell. `who` names this end's role in messages; `port`: told to the shell of a
/// daemon session.
pub fn spawn(words: &[Vec<u8>], who: &str, port: Option<u32>) -> Result<(Shell, Stream), Refusal> {
    let (program, arguments) = words.split_first().expect("a host stands among the words");
    let mut command = Command::new(OsStr::from_bytes(program));
    command.args(arguments.iter().map(|word| OsString::from_vec(word.clone())));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    // A shell must not open windows to ask for passwords unless the user prepared for that.
    if std::env::var_os("SSH_ASKPASS").is_none() {
        command.env_remove("DISPLAY");
    }
    if let Some(port) = port {
        command.env("RSYNC_PORT", port.to_string());
    }
    let mut child = command.spawn().map_err(|error| {
        let (before, after) = (format!("rsync: [{who}] Failed to exec "), crate::output::reason(&error));
        let text = [before.as_bytes(), program, b": ", after.as_bytes()];
        Refusal::new(Code::Ipc, text.concat())
    })?;
    let output = OwnedFd::from(child.stdin.take().expect("stdin is a pipe"));
    let input = OwnedFd::from(child.stdout.take().expect("stdout is a pipe"));
    // A larger pipe means fewer wake-ups; a system that refuses loses only speed.
    #[cfg(target_os = "linux")]
    for pipe in [&output, &input] {
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, 1 << 20);
    }
    Ok((Shell { child }, Stream { input, output, early: Vec::new() }))
}

impl Shell {
    /// Waits for its end and returns its exit code; a signal counts as none. Both pipes must be
    /// closed.
    pub fn wait(mut self) -> u8 {
        match self.child.wait() {
            Ok(status) => status.code().map_or(0, |code| code as u8),
            Err(_) => WAIT_FAILED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_words_follow_the_quotes() {
        let shown = |text: &str| {
            split(text.as_bytes()).map(|words| {
                words.iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect::<Vec<_>>()
            })
        };
        assert_eq!(shown("sh 'a b' \"c d\" 'it''s' x'y z'w").unwrap(), ["sh", "a b", "c d", "it's", "xy zw"]);
        assert_eq!(shown("  a   b ").unwrap(), ["a", "b"]);
        assert_eq!(shown("a '' \\ x").unwrap(), ["a", "", "\\", "x"]);
        assert_eq!(shown("a 'b").unwrap_err().text, b"Missing trailing-' in remote-shell command.");
    }
}
