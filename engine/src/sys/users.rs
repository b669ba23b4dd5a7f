//! Users and groups: names of numbers, numbers of names, and who this process is.

use std::sync::{Mutex, OnceLock, PoisonError};

use nix::unistd::{Gid, Group, Uid, User};

/// Answers one question of a name converter (`uid 7`, `usr ann`): a line without its end.
pub type Converter = Box<dyn FnMut(&[u8]) -> Option<Vec<u8>> + Send>;

static CONVERTER: OnceLock<Mutex<Converter>> = OnceLock::new();

/// From now on names and numbers are looked up by this. Only the first call counts.
///
/// Wire: protocol/doc/03-daemon.md#311-per-connection-set-up-and-hooks
pub fn convert_by(converter: Converter) {
    let _ = CONVERTER.set(Mutex::new(converter));
}

/// Asks the converter; nothing if there is none. A name that is no line is not asked for.
fn ask(kind: &str, of: &[u8]) -> Option<Option<Vec<u8>>> {
    let converter = CONVERTER.get()?;
    if of.is_empty() || of.iter().any(u8::is_ascii_control) {
        return Some(None);
    }
    let question = [kind.as_bytes(), b" ", of].concat();
    let answer = converter.lock().unwrap_or_else(PoisonError::into_inner)(&question);
    Some(answer.filter(|answer| !answer.is_empty()))
}

/// The same for a number: an answer that is none is a failure, never 0.
fn ask_number(kind: &str, name: &[u8]) -> Option<Option<u32>> {
    let answer = ask(kind, name)?;
    let digits = |answer: Vec<u8>| {
        let text = String::from_utf8(answer).ok()?;
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    };
    Some(answer.and_then(digits))
}

/// Returns the name of a user.
pub fn user_name(uid: u32) -> Option<Vec<u8>> {
    if let Some(answer) = ask("uid", uid.to_string().as_bytes()) {
        return answer;
    }
    Some(User::from_uid(Uid::from_raw(uid)).ok()??.name.into_bytes())
}

/// Returns the name of a group.
pub fn group_name(gid: u32) -> Option<Vec<u8>> {
    if let Some(answer) = ask("gid", gid.to_string().as_bytes()) {
        return answer;
    }
    Some(Group::from_gid(Gid::from_raw(gid)).ok()??.name.into_bytes())
}

/// Returns the number of a user.
pub fn user_id(name: &[u8]) -> Option<u32> {
    if let Some(answer) = ask_number("usr", name) {
        return answer;
    }
    Some(User::from_name(std::str::from_utf8(name).ok()?).ok()??.uid.as_raw())
}

/// Returns the number of a group.
pub fn group_id(name: &[u8]) -> Option<u32> {
    if let Some(answer) = ask_number("grp", name) {
        return answer;
    }
    Some(Group::from_name(std::str::from_utf8(name).ok()?).ok()??.gid.as_raw())
}

/// Returns the numbers of all groups of a user, that of the user record first.
pub fn group_ids_of(user: &[u8]) -> Vec<u32> {
    let Ok(name) = std::ffi::CString::new(user) else { return Vec::new() };
    let record = std::str::from_utf8(user).ok().and_then(|user| User::from_name(user).ok().flatten());
    let Some(record) = record else { return Vec::new() };
    group_list(&name, record.gid)
}

#[cfg(not(target_vendor = "apple"))]
fn group_list(name: &std::ffi::CStr, first: Gid) -> Vec<u32> {
    let found = nix::unistd::getgrouplist(name, first).unwrap_or_else(|_| vec![first]);
    found.into_iter().map(Gid::as_raw).collect()
}

#[cfg(target_vendor = "apple")]
fn group_list(_name: &std::ffi::CStr, first: Gid) -> Vec<u32> {
    vec![first.as_raw()]
}

/// Returns the names of all groups of a user.
pub fn groups_of(user: &[u8]) -> Vec<Vec<u8>> {
    group_ids_of(user).into_iter().filter_map(group_name).collect()
}

/// Returns the effective user id.
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the effective group and the supplementary groups.
pub fn groups() -> Vec<u32> {
    let mut groups = vec![rustix::process::getegid().as_raw()];
    groups.extend(rustix::process::getgroups().unwrap_or_default().into_iter().map(|gid| gid.as_raw()));
    groups
}

/// Returns the process umask, read once.
///
/// Without `/proc` reading it means setting it for a moment: then the first call must come before
/// threads create files, so `run` makes it.
pub fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        told_umask().unwrap_or_else(|| {
            let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
            rustix::process::umask(mask);
            #[allow(clippy::useless_conversion)]
            u32::from(mask.as_raw_mode())
        })
    })
}

/// Returns what Linux tells about this process.
fn told_umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_umask_is_told_as_it_is_set() {
        let set = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        rustix::process::umask(set);
        assert_eq!(umask(), set.bits());
    }

    #[test]
    fn root_is_known_both_ways_and_strangers_are_not() {
        assert_eq!(user_name(0).as_deref(), Some(&b"root"[..]));
        assert_eq!(user_id(b"root"), Some(0));
        assert_eq!(group_id(&group_name(0).unwrap()), Some(0));
        assert_eq!(user_name(3_999_999_999), None);
        assert_eq!(user_id(b"no such user"), None);
        assert_eq!(group_id(b"\xff\xfe"), None);
    }
}
