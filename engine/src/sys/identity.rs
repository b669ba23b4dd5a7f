//! Becoming another user for good.
//!
//! Wire: protocol/doc/24-environment-and-exit.md#9---copy-as

use std::ffi::CString;
use std::io;

use nix::unistd::{Gid, Uid, User};

use super::users;

/// Why this process did not become another user.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// No such user.
    #[error("Invalid copy-as user: {0}")]
    User(String),
    /// No such group.
    #[error("Invalid copy-as group: {0}")]
    Group(String),
    /// A call failed, or knows nothing of the user.
    #[error("{call} failed: {error}")]
    Call {
        /// Its name.
        call: &'static str,
        /// The reason.
        error: io::Error,
    },
}

/// A user to become.
#[derive(Debug)]
pub struct Identity {
    uid: u32,
    gid: u32,
    /// Whose groups are taken; nothing: the one group only.
    name: Option<CString>,
}

impl Identity {
    /// Looks up `USER[:GROUP]`. Without a group the user's own ones are taken.
    pub fn find(named: &[u8]) -> Result<Identity, Refused> {
        let mut parts = named.splitn(2, |&b| b == b':');
        let user = parts.next().unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let uid = number(user).or_else(|| users::user_id(user)).ok_or_else(|| Refused::User(text(user)))?;
        if let Some(group) = parts.next() {
            let gid = number(group).or_else(|| users::group_id(group));
            let gid = gid.ok_or_else(|| Refused::Group(text(group)))?;
            return Ok(Identity { uid, gid, name: None });
        }
        let own = User::from_uid(Uid::from_raw(uid)).ok().flatten();
        let own = own.ok_or(Refused::Call { call: "getpwuid", error: io::Error::from_raw_os_error(0) })?;
        Ok(Identity { uid, gid: own.gid.as_raw(), name: CString::new(own.name).ok() })
    }

    /// Whether this is root.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Gives up this process's user and groups for these. Every thread changes.
    pub fn take_on(&self) -> Result<(), Refused> {
        let failed = |call: &'static str| move |error: io::Error| Refused::Call { call, error };
        nix::unistd::setgid(Gid::from_raw(self.gid)).map_err(|error| failed("setgid")(error.into()))?;
        match &self.name {
            Some(name) => all_groups(name, self.gid).map_err(failed("setgroups"))?,
            None => only_group(self.gid).map_err(failed("setgroups"))?,
        }
        nix::unistd::setuid(Uid::from_raw(self.uid)).map_err(|error| failed("setuid")(error.into()))
    }
}

fn number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

fn only_group(gid: u32) -> io::Result<()> {
    // SAFETY: the call reads one number, which outlives it.
    answer(unsafe { nix::libc::setgroups(1, &gid) })
}

/// Takes all groups that the user is in.
#[allow(clippy::useless_conversion, clippy::cast_possible_wrap, clippy::unnecessary_cast)]
fn all_groups(name: &CString, gid: u32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    type Group = nix::libc::gid_t;
    #[cfg(not(target_os = "linux"))]
    type Group = nix::libc::c_int;
    // SAFETY: the call reads a NUL-terminated string that outlives it, and a number.
    answer(unsafe { nix::libc::initgroups(name.as_ptr(), gid as Group) })
}

fn answer(answer: nix::libc::c_int) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_exist_is_refused() {
        let refusal = |named: &str| Identity::find(named.as_bytes()).unwrap_err().to_string();
        assert_eq!(refusal("no such user"), "Invalid copy-as user: no such user");
        assert_eq!(refusal(""), "Invalid copy-as user: ");
        assert_eq!(refusal("0:no such group"), "Invalid copy-as group: no such group");
        assert!(refusal("3999999999").starts_with("getpwuid failed: "));
    }
}
