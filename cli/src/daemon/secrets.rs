//! Logins: who may, and by which password.
//!
//! A client learns nothing of why a login failed; the log does.
//! Wire: protocol/doc/03-daemon.md#33-authentication

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bstr::ByteSlice;
use suisei_engine::sys::users;
use suisei_engine::tree::open_operator_file;
use suisei_protocol::session::AuthDigest;

use super::config::Settings;
use crate::glob;
use crate::output::reason;

/// Longest line of a secrets file.
const LINE_MAX: usize = 1023;

/// What a login changes about the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// Nothing.
    AsConfigured,
    /// `:ro`.
    ReadOnly,
    /// `:rw`.
    ReadWrite,
}

/// Why a login failed, for the log only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed(pub String);

fn failed<T>(why: impl Into<String>) -> Result<T, Failed> {
    Err(Failed(why.into()))
}

/// The names that `auth users` lists, one by one.
///
/// A leading comma means that only commas separate.
fn entries(list: &[u8]) -> Vec<Vec<u8>> {
    let only_commas = list.first() == Some(&b',');
    let separates = |b: &u8| *b == b',' || (!only_commas && b" \t\r\n".contains(b));
    list.split(separates).map(|entry| entry.trim().to_vec()).filter(|entry| !entry.is_empty()).collect()
}

/// The first rule that matches: what it grants, and the group that made it match.
#[derive(Debug, PartialEq, Eq)]
enum Ruling {
    Denied,
    Granted(Grant, Option<Vec<u8>>),
}

fn rule(list: &[u8], user: &[u8], groups: &dyn Fn(&[u8]) -> Vec<Vec<u8>>) -> Option<Ruling> {
    for entry in entries(list) {
        let (pattern, option) = match entry.rfind_byte(b':') {
            Some(at) => (entry[..at].to_vec(), entry[at + 1..].to_ascii_lowercase()),
            None => (entry.clone(), Vec::new()),
        };
        let group = match pattern.strip_prefix(b"@") {
            Some(pattern) => match groups(user).into_iter().find(|group| glob::matches(pattern, group)) {
                Some(group) => Some(group),
                None => continue,
            },
            None if glob::matches(&pattern, user) => None,
            None => continue,
        };
        let grant = match option.as_slice() {
            [b'd', ..] => return Some(Ruling::Denied),
            [b'r', b'o', ..] => Grant::ReadOnly,
            [b'r', b'w', ..] => Grant::ReadWrite,
            _ => Grant::AsConfigured,
        };
        return Some(Ruling::Granted(grant, group));
    }
    None
}

/// Checks the line that answers a challenge: `USER RESPONSE`. Returns the user and what is granted.
pub fn check(
    answer: &[u8],
    challenge: &str,
    digest: AuthDigest,
    settings: &Settings<'_>,
) -> Result<(Vec<u8>, Grant), (Vec<u8>, Failed)> {
    let Some((user, response)) = answer.split_once_str(b" ") else {
        return Err((answer.to_vec(), Failed("no response".into())));
    };
    let judged = judge(user, response, challenge, digest, settings);
    judged.map(|grant| (user.to_vec(), grant)).map_err(|why| (user.to_vec(), why))
}

fn judge(
    user: &[u8],
    response: &[u8],
    challenge: &str,
    digest: AuthDigest,
    settings: &Settings<'_>,
) -> Result<Grant, Failed> {
    let (grant, group) = match rule(&settings.text("auth users"), user, &users::groups_of) {
        None => return failed("no matching rule"),
        Some(Ruling::Denied) => return failed("denied by rule"),
        Some(Ruling::Granted(grant, group)) => (grant, group),
    };
    let file = settings.text("secrets file");
    if file.is_empty() {
        return failed("no secrets file");
    }
    let accepts = |password: &[u8]| digest.accepts(password, challenge.as_bytes(), response);
    search(&file, settings.flag("strict modes"), user, group.as_deref(), &accepts)?;
    Ok(grant)
}

/// Looks for a line of the user, or of the group that let him in, whose password is right. Only
/// the first line of either counts.
fn search(
    file: &[u8],
    strict: bool,
    user: &[u8],
    group: Option<&[u8]>,
    accepts: &dyn Fn(&[u8]) -> bool,
) -> Result<(), Failed> {
    if user.is_empty() || user.starts_with(b"#") {
        return failed("invalid username");
    }
    let path = Path::new(OsStr::from_bytes(file));
    let unusable = |why: String| Failed(format!("{}: {why}", path.display()));
    let opened = open_operator_file(path).map_err(|error| unusable(reason(&error)))?;
    let meta = opened.metadata().map_err(|error| unusable(reason(&error)))?;
    if strict && meta.mode() & 0o006 != 0 {
        return Err(unusable("secrets file must not be other-accessible (see strict modes option)".into()));
    }
    if strict && users::effective_uid() == 0 && meta.uid() != 0 {
        return Err(unusable(
            "secrets file must be owned by root when running as root (see strict modes)".into(),
        ));
    }
    let mut wanted: Vec<Vec<u8>> = vec![user.to_vec()];
    wanted.extend(group.map(|group| [b"@", group].concat()));
    let mut why = "secret not found";
    for line in BufReader::new(opened).split(b'\n') {
        let mut line = line.map_err(|error| unusable(reason(&error)))?;
        line.truncate(LINE_MAX);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let Some((name, password)) = line.split_once_str(b":") else { continue };
        let Some(at) = wanted.iter().position(|wanted| wanted == name) else { continue };
        if accepts(password) {
            return Ok(());
        }
        why = "password mismatch";
        wanted.remove(at);
    }
    failed(why)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn groups(user: &[u8]) -> Vec<Vec<u8>> {
        match user {
            b"ann" => vec![b"staff".to_vec(), b"Some Group".to_vec()],
            _ => Vec::new(),
        }
    }

    fn ruling(list: &str, user: &str) -> Option<Ruling> {
        rule(list.as_bytes(), user.as_bytes(), &groups)
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let granted = |grant| Some(Ruling::Granted(grant, None));
        assert_eq!(ruling("bob:ro, ann:RW b*:deny", "bob"), granted(Grant::ReadOnly));
        assert_eq!(ruling("bob:ro, ann:RW b*:deny", "ann"), granted(Grant::ReadWrite));
        assert_eq!(ruling("bob:ro, ann:RW b*:deny", "bill"), Some(Ruling::Denied));
        assert_eq!(ruling("bob", "Bob"), None);
        assert_eq!(ruling("bob:whatever", "bob"), granted(Grant::AsConfigured));
        let by_group = Some(Ruling::Granted(Grant::AsConfigured, Some(b"staff".to_vec())));
        assert_eq!(ruling("@st*", "ann"), by_group);
        assert_eq!(ruling("@staff", "bob"), None);
    }

    #[test]
    fn a_leading_comma_lets_names_hold_blanks() {
        assert_eq!(ruling(", @Some Group:deny, ann", "ann"), Some(Ruling::Denied));
        assert_eq!(ruling("@Some Group:deny ann", "ann"), Some(Ruling::Granted(Grant::AsConfigured, None)));
    }

    #[test]
    fn the_first_line_of_a_user_and_of_his_group_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets");
        std::fs::write(&path, "# c\nann:a:b\r\nann:second\n@staff:shared\nbob:x\n#x:y\n").unwrap();
        let name = path.as_os_str().as_bytes();
        let set_mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let find = |user: &str, group: Option<&str>, password: &str| {
            let group = group.map(str::as_bytes);
            search(name, true, user.as_bytes(), group, &|candidate| candidate == password.as_bytes())
        };
        set_mode(0o660);
        assert!(find("ann", None, "a:b").is_ok());
        assert!(find("ann", None, "second").is_err(), "only the first line counts");
        assert!(find("ann", None, "shared").is_err());
        assert!(find("ann", Some("staff"), "shared").is_ok());
        assert!(find("bob", Some("other"), "shared").is_err());
        assert!(find("#x", None, "y").is_err());
        assert!(find("", None, "").is_err());
        set_mode(0o604);
        assert!(find("ann", None, "a:b").unwrap_err().0.contains("other-accessible"));
        assert!(search(name, false, b"ann", None, &|candidate| candidate == b"a:b").is_ok());
        assert!(search(b"/nonexistent", true, b"ann", None, &|_| true).is_err());
    }
}
