//! Programs that a module runs: before, after, and for names.
//!
//! They run as the daemon's user and outside of any chroot. What a client said reaches them in the
//! environment; inside the command itself only values without a meaning to a shell are put, quoted.
//! Wire: protocol/doc/03-daemon.md#311-per-connection-set-up-and-hooks

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use suisei_engine::sys::users::Converter;

use super::config::{environment, expand};

/// Most output of a hook that a client is shown.
const OUTPUT_MAX: u64 = 5 << 10;
/// Longest answer of a name converter.
const ANSWER_MAX: u64 = 1024;

/// Variables of one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<String, Vec<u8>>);

impl Variables {
    /// Sets one.
    pub fn set(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Returns one, of this connection or of the process.
    pub fn value(&self, name: &str) -> Option<Vec<u8>> {
        self.0.get(name).cloned().or_else(|| environment(name))
    }

    fn give_to(&self, command: &mut Command) {
        for (name, value) in &self.0 {
            let value: Vec<u8> = value.iter().copied().filter(|b| *b != 0).collect();
            command.env(name, OsStr::from_bytes(&value));
        }
    }
}

/// A command that would hand a client's text to a shell as more than a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsafe(pub String);

/// Whether hooks are switched off altogether.
pub fn are_disabled() -> bool {
    std::env::var_os("RSYNC_NO_XFER_EXEC").is_some()
}

/// Puts variables into a command: those of the connection quoted, if they are harmless at all.
pub fn fill_in(command: &[u8], variables: &Variables) -> Result<Vec<u8>, Unsafe> {
    let refused = std::cell::RefCell::new(None);
    let filled = expand(command, &|name| {
        let value = variables.value(name)?;
        if !name.starts_with("RSYNC_") {
            return Some(value);
        }
        if value.iter().any(|byte| is_special(*byte)) {
            refused.borrow_mut().get_or_insert(name.to_owned());
        }
        Some([b"'", value.as_slice(), b"'"].concat())
    });
    match refused.into_inner() {
        Some(name) => Err(Unsafe(name)),
        None => Ok(filled),
    }
}

fn is_special(byte: u8) -> bool {
    byte.is_ascii_control() || byte.is_ascii_whitespace() || b"'\"`$\\;&|<>()*?[]#!~{}".contains(&byte)
}

fn shell(command: &[u8], variables: &Variables) -> Command {
    let program = std::env::var_os("RSYNC_SHELL").filter(|shell| !shell.is_empty());
    let mut shell = Command::new(program.unwrap_or_else(|| "/bin/sh".into()));
    shell.arg("-c").arg(OsStr::from_bytes(command));
    variables.give_to(&mut shell);
    shell
}

/// Runs a command with bytes as its standard input. Returns its end and what it printed.
pub fn run(command: &[u8], variables: &Variables, input: &[u8]) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut child = shell(command, variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input is none the worse.
        let _ = stdin.write_all(input);
    }
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(OUTPUT_MAX).read_to_end(&mut output)?;
    }
    Ok((child.wait()?, output))
}

/// Starts a program that answers questions about names, line by line.
pub fn converter(command: &[u8], variables: &Variables) -> io::Result<Converter> {
    let mut child = shell(command, variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (Some(mut questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let mut answers = BufReader::new(answers);
    Ok(Box::new(move |question| {
        questions.write_all(&[question, b"\n"].concat()).ok()?;
        let mut answer = Vec::new();
        // An answer without an end is none.
        answers.by_ref().take(ANSWER_MAX).read_until(b'\n', &mut answer).ok()?;
        let line = answer.strip_suffix(b"\n")?;
        Some(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
    }))
}

/// Returns the number that a status is in the words of `wait`.
pub fn raw_status(status: ExitStatus) -> i32 {
    status.into_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(user: &str) -> Variables {
        let mut variables = Variables::default();
        variables.set("RSYNC_USER_NAME", user);
        variables.set("OTHER", "a b");
        variables
    }

    #[test]
    fn what_a_client_said_is_quoted_or_refused() {
        let fill = |user: &str| fill_in(b"log %RSYNC_USER_NAME% %OTHER% %RSYNC_NONE%", &variables(user));
        assert_eq!(fill("bob").unwrap(), b"log 'bob' a b %RSYNC_NONE%");
        assert_eq!(fill("").unwrap(), b"log '' a b %RSYNC_NONE%");
        for user in ["b b", "b'b", "$(id)", "`id`", "a;b", "a\nb", "a|b", "\\", "{a,b}", "~", "a*", "\x7f"] {
            assert_eq!(fill(user), Err(Unsafe("RSYNC_USER_NAME".into())), "{user:?}");
        }
    }

    #[test]
    fn a_converter_answers_line_by_line() {
        let command = b"while read k v; do echo \"$k-$v-$RSYNC_USER_NAME\"; done";
        let mut ask = converter(command, &variables("bob")).unwrap();
        assert_eq!(ask(b"uid 7").unwrap(), b"uid-7-bob");
        assert_eq!(ask(b"grp some group").unwrap(), b"grp-some group-bob");
        assert_eq!(converter(b"printf unfinished", &variables("bob")).unwrap()(b"uid 7"), None);
    }

    #[test]
    fn a_hook_has_its_input_and_its_variables() {
        let (status, output) =
            run(b"cat; printf %s \"$RSYNC_USER_NAME\"; exit 3", &variables("$(id) x"), b"hello\n").unwrap();
        assert_eq!((status.code(), output.as_slice()), (Some(3), b"hello\n$(id) x".as_slice()));
        assert_eq!(raw_status(status), 3 << 8);
    }
}
