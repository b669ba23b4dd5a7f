//! Where a daemon password comes from: a file, the environment, or the terminal.
//!
//! Wire: protocol/doc/03-daemon.md#33-authentication

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::AtomicBool;

use suisei_engine::tree::{Trust, Wanted};

use super::terminal;
use crate::exit::{Code, Refusal};
use crate::named;
use crate::options::environment::Environment;
use crate::output::reason;

/// How much of a password file is read, in bytes.
const FILE_MAX: u64 = 511;

/// Returns the name to log in with.
pub fn user(typed: Option<&[u8]>, environment: &Environment) -> Vec<u8> {
    let named = typed.or_else(|| environment.value("USER")).or_else(|| environment.value("LOGNAME"));
    named.filter(|name| !name.is_empty()).unwrap_or(b"nobody").to_vec()
}

/// Finds the password. `who` names this end's role in messages.
pub fn find(
    file: Option<&[u8]>,
    trust: &Trust,
    environment: &Environment,
    who: &str,
    interrupted: &AtomicBool,
) -> Result<Vec<u8>, Refusal> {
    if let Some(path) = file {
        return from_file(path, who, trust);
    }
    if let Some(password) = environment.value("RSYNC_PASSWORD") {
        return Ok(password.to_vec());
    }
    match terminal::password("Password: ", interrupted) {
        Ok(Some(password)) => Ok(password),
        Ok(None) => {
            let text = "The daemon wants a password, and there is no terminal to ask for it: \
                use --password-file or RSYNC_PASSWORD.";
            Err(Refusal::new(Code::Start, text))
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(Refusal::silent(Code::Signal)),
        Err(error) => Err(Refusal::new(Code::Start, format!("cannot read a password: {}", reason(&error)))),
    }
}

fn from_file(path: &[u8], who: &str, trust: &Trust) -> Result<Vec<u8>, Refusal> {
    let mut text = Vec::new();
    let content = if path == b"-" {
        io::stdin().lock().take(FILE_MAX).read_to_end(&mut text)
    } else {
        open(path, who, trust)?.take(FILE_MAX).read_to_end(&mut text)
    };
    let end = text.iter().position(|b| matches!(b, b'\r' | b'\n')).unwrap_or(text.len());
    if content.is_err() || end == 0 {
        return Err(Refusal::usage([b"ERROR: failed to read a password from ".as_slice(), path].concat()));
    }
    text.truncate(end);
    Ok(text)
}

fn open(name: &[u8], who: &str, trust: &Trust) -> Result<File, Refusal> {
    let failed = |error: io::Error| {
        let (before, after) = (format!("rsync: [{who}] could not open password file "), reason(&error));
        let preface = named::preface(&error);
        Refusal::usage([&preface[..], before.as_bytes(), name, b": ", after.as_bytes()].concat())
    };
    let own = rustix::process::geteuid().as_raw();
    let file = named::open(name, trust, Wanted::Any).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if meta.mode() & 0o006 != 0 {
        return Err(Refusal::usage("ERROR: password file must not be other-accessible"));
    }
    if own == 0 && meta.uid() != 0 {
        return Err(Refusal::usage("ERROR: password file must be owned by root when running as root"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_password_file_must_be_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pw");
        fs::write(&path, "s3cret\nmore\n").unwrap();
        let name = path.as_os_str().as_bytes();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(from_file(name, "Receiver", &Trust::default()).unwrap(), b"s3cret");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
        let refusal = from_file(name, "Receiver", &Trust::default()).unwrap_err();
        assert_eq!(refusal.text, b"ERROR: password file must not be other-accessible");
        let refusal = from_file(b"/nonexistent/pw", "Receiver", &Trust::default()).unwrap_err();
        assert!(refusal.text.ends_with(b"No such file or directory (2)"));
    }

    #[test]
    fn the_user_is_the_typed_one_then_the_environments() {
        let environment = Environment::of(&[("LOGNAME", "log"), ("USER", "me")]);
        assert_eq!(user(Some(b"typed"), &environment), b"typed");
        assert_eq!(user(None, &environment), b"me");
        assert_eq!(user(None, &Environment::of(&[])), b"nobody");
    }
}
