//! The sender's user and group ids in ours.
//!
//! An id is mapped once and the answer kept, so that all files of one owner get the same one. A
//! name counts if it came before the id was first asked for: with incremental recursion it comes
//! inside the first entry of that id, otherwise behind the whole list.
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#1-owner-and-group-mapping-receiving-side-only

use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use suisei_protocol::flist::{IdKind, IdName};

use crate::sys::users;

/// Maps the sender's ids, each once, with the answer cached. Shared by generator and receiver.
#[derive(Debug, Default)]
pub struct IdMap {
    numeric: bool,
    /// Groups that this process may give files to; nothing: all.
    own_groups: Option<Vec<u32>>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    users: HashMap<u32, Id<u32>>,
    groups: HashMap<u32, Id<MappedGroup>>,
}

/// What is known of one id of the sender.
#[derive(Debug)]
enum Id<T> {
    Named(Vec<u8>),
    Mapped(T),
}

/// What to do with a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedGroup {
    /// The local number.
    pub gid: u32,
    /// Whether this process may give a file to that group.
    pub settable: bool,
}

impl IdMap {
    /// Starts with an empty cache. `numeric`: `--numeric-ids`. `root`: the process may chown.
    pub fn new(numeric: bool, root: bool) -> Self {
        IdMap { numeric, own_groups: (!root).then(users::groups), known: Mutex::default() }
    }

    /// Learns the sender's names; the first name of an id counts.
    pub fn learn(&self, names: &[IdName]) {
        if self.numeric || names.is_empty() {
            return;
        }
        let mut known = self.lock();
        for IdName { kind, id, name } in names {
            // Number 0 keeps its number, whatever it is called.
            if *id == 0 || name.is_empty() {
                continue;
            }
            match kind {
                IdKind::User => drop(known.users.entry(*id).or_insert_with(|| Id::Named(name.clone()))),
                IdKind::Group => drop(known.groups.entry(*id).or_insert_with(|| Id::Named(name.clone()))),
            }
        }
    }

    /// Maps a user.
    pub fn uid(&self, sender: u32) -> u32 {
        map(&mut self.lock().users, sender, |name| name.and_then(users::user_id).unwrap_or(sender))
    }

    /// Maps a group.
    pub fn gid(&self, sender: u32) -> MappedGroup {
        map(&mut self.lock().groups, sender, |name| {
            let gid = name.and_then(users::group_id).unwrap_or(sender);
            let settable = self.own_groups.as_ref().is_none_or(|own| own.contains(&gid));
            MappedGroup { gid, settable }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // The maps are whole after every step.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the cached answer for an id, or keeps the one that `resolve` gives for its name.
fn map<T: Copy>(ids: &mut HashMap<u32, Id<T>>, sender: u32, resolve: impl FnOnce(Option<&[u8]>) -> T) -> T {
    match ids.entry(sender) {
        Entry::Occupied(mut known) => {
            let answer = match known.get() {
                Id::Mapped(answer) => return *answer,
                Id::Named(name) => resolve(Some(name)),
            };
            known.insert(Id::Mapped(answer));
            answer
        }
        Entry::Vacant(unknown) => {
            let answer = resolve(None);
            unknown.insert(Id::Mapped(answer));
            answer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(kind: IdKind, id: u32, name: &[u8]) -> IdName {
        IdName { kind, id, name: name.to_vec() }
    }

    /// A group that is not numbered alike everywhere, and its number here.
    fn local_group() -> (Vec<u8>, u32) {
        let gid = (1..200).find(|&gid| users::group_name(gid).is_some()).unwrap();
        (users::group_name(gid).unwrap(), gid)
    }

    #[test]
    fn a_known_name_gives_the_local_number_and_an_unknown_one_the_same() {
        let (group, gid) = local_group();
        let map = IdMap::new(false, true);
        map.learn(&[name(IdKind::Group, 70_001, &group), name(IdKind::User, 70_002, b"no such user")]);
        assert_eq!(map.gid(70_001), MappedGroup { gid, settable: true });
        assert_eq!(map.uid(70_002), 70_002);
        assert_eq!(map.uid(70_001), 70_001, "users and groups are two spaces");
    }

    #[test]
    fn the_first_name_counts_and_an_answer_stays() {
        let (group, gid) = local_group();
        let map = IdMap::new(false, true);
        map.learn(&[name(IdKind::Group, 70_001, &group), name(IdKind::Group, 70_001, b"no such group")]);
        assert_eq!(map.gid(70_001).gid, gid);
        assert_eq!(map.gid(70_003).gid, 70_003);
        map.learn(&[name(IdKind::Group, 70_003, &group)]);
        assert_eq!(map.gid(70_003).gid, 70_003);
    }

    #[test]
    fn number_zero_and_numeric_ids_ignore_names() {
        let (group, _) = local_group();
        let map = IdMap::new(false, true);
        map.learn(&[name(IdKind::Group, 0, &group), name(IdKind::Group, 70_001, b"")]);
        assert_eq!((map.gid(0).gid, map.gid(70_001).gid), (0, 70_001));
        let map = IdMap::new(true, true);
        map.learn(&[name(IdKind::Group, 70_001, &group)]);
        assert_eq!(map.gid(70_001).gid, 70_001);
    }

    #[test]
    fn an_ordinary_process_sets_only_its_own_groups() {
        let map = IdMap::new(true, false);
        assert!(map.gid(rustix::process::getegid().as_raw()).settable);
        assert!(!map.gid(3_999_999_999).settable);
        assert!(IdMap::new(true, true).gid(3_999_999_999).settable);
    }
}
