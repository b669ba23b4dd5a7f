//! Whom a connection runs as.
//!
//! Wire: protocol/doc/03-daemon.md#311-per-connection-set-up-and-hooks

use std::io;

use suisei_engine::sys::{process, users};

use super::config::Settings;

/// The user that a daemon of root runs as if nothing is said.
const NOBODY: &[u8] = b"nobody";
/// Names of the group that goes with it.
const NO_GROUPS: [&[u8]; 2] = [b"nogroup", b"nobody"];

/// Whom a connection will run as; what is not said stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    uid: Option<u32>,
    /// The first is the primary one.
    gids: Vec<u32>,
}

/// A user or group that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unknown {
    /// The user.
    User(Vec<u8>),
    /// The group.
    Group(Vec<u8>),
}

impl Identity {
    /// Works out what `uid` and `gid` of a module say.
    pub fn of(settings: &Settings<'_>) -> Result<Identity, Unknown> {
        let root = users::effective_uid() == 0;
        let said = settings.non_empty("uid").or_else(|| root.then(|| NOBODY.to_vec()));
        let uid = match said {
            Some(name) => Some(user(&name).ok_or(Unknown::User(name))?),
            None => None,
        };
        let gids = groups(&settings.text("gid"), uid)?;
        if gids.is_empty() && root {
            let nobody = NO_GROUPS.iter().find_map(|name| users::group_id(name));
            let gid = nobody.ok_or_else(|| Unknown::Group(NO_GROUPS[0].to_vec()))?;
            return Ok(Identity { uid, gids: vec![gid] });
        }
        Ok(Identity { uid, gids })
    }

    /// What `daemon uid` and `daemon gid` say: nothing changes without them.
    pub fn of_daemon(settings: &Settings<'_>) -> Result<Identity, Unknown> {
        let uid = match settings.non_empty("daemon uid") {
            Some(name) => Some(user(&name).ok_or(Unknown::User(name))?),
            None => None,
        };
        Ok(Identity { uid, gids: groups(&settings.text("daemon gid"), uid)? })
    }

    /// Gives the groups up. First, while it may be done.
    pub fn assume_groups(&self) -> io::Result<()> {
        process::set_groups(&self.gids)
    }

    /// Becomes the user. There is no way back.
    pub fn assume_user(&self) -> io::Result<()> {
        self.uid.map_or(Ok(()), process::set_user)
    }
}

fn user(name: &[u8]) -> Option<u32> {
    users::user_id(name).or_else(|| number(name))
}

fn number(name: &[u8]) -> Option<u32> {
    std::str::from_utf8(name).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

/// Reads a list of groups; `*` first stands for all groups of the user.
fn groups(list: &[u8], uid: Option<u32>) -> Result<Vec<u32>, Unknown> {
    let only_commas = list.first() == Some(&b',');
    let mut gids = Vec::new();
    let separates = |b: &u8| *b == b',' || (!only_commas && matches!(b, b' ' | b'\t'));
    for (at, name) in list.split(separates).map(<[u8]>::trim_ascii).filter(|n| !n.is_empty()).enumerate() {
        if name == b"*" && at == 0 {
            let uid = uid.unwrap_or_else(users::effective_uid);
            let all = users::user_name(uid).map(|name| users::group_ids_of(&name)).unwrap_or_default();
            if all.is_empty() {
                return Err(Unknown::Group(name.to_vec()));
            }
            gids = all;
            continue;
        }
        let gid = users::group_id(name).or_else(|| number(name));
        gids.push(gid.ok_or_else(|| Unknown::Group(name.to_vec()))?);
    }
    Ok(gids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_names_numbers_and_all_of_a_user() {
        let root = users::group_name(0).unwrap();
        let list = [b"7, ".as_slice(), &root, b"\t9"].concat();
        assert_eq!(groups(&list, None), Ok(vec![7, 0, 9]));
        assert_eq!(groups(b", 7 ,8", None), Ok(vec![7, 8]));
        assert_eq!(groups(b"", None), Ok(vec![]));
        assert_eq!(groups(b"no such", None), Err(Unknown::Group(b"no".to_vec())));
        assert!(groups(b"* 4294", Some(0)).unwrap().ends_with(&[4294]));
    }
}
