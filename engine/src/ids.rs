//! The sender's user and group ids in ours.
//!
//! An id is mapped once and the answer kept, so that all files of one owner get the same one. A
//! name counts if it came before the id was first asked for: with incremental recursion it comes
//! inside the first entry of that id, otherwise behind the whole list.
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#1-owner-and-group-mapping-receiving-side-only

mod rules;

use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use suisei_protocol::flist::{IdKind, IdName};
use suisei_protocol::session::Compat;

use self::rules::Rules;
use crate::observe::{Class, Problem, What, Who};
use crate::sys::users;
use crate::{Context, Failure};

/// Maps the sender's ids, each once, with the answer cached. Shared by generator and receiver.
#[derive(Debug, Default)]
pub struct IdMap {
    numeric: bool,
    root: bool,
    /// Groups that this process may give files to, if it is not root.
    own_groups: OnceLock<Vec<u32>>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    users: HashMap<u32, Id<u32>>,
    groups: HashMap<u32, Id<MappedGroup>>,
    user_rules: Rules,
    group_rules: Rules,
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
        IdMap { numeric, root, own_groups: OnceLock::new(), known: Mutex::default() }
    }

    /// Reads the rules of `--usermap` and `--groupmap`; reports names that nobody has here.
    ///
    /// A sender that cannot tell the name of id 0 is taken to call it root.
    pub fn read_rules(&self, ctx: &Context) -> Result<(), Failure> {
        let rewrite = &ctx.options.rewrite;
        let parse = |kind, text: &Option<Vec<u8>>| match text {
            None => Ok(Rules::default()),
            Some(text) => Rules::parse(kind, text, &mut |before, path| {
                let what = What::Sentence { before, path, after: "" };
                ctx.report_problem(Problem { who: Who::ReceivingSide, class: Class::Error, what });
            })
            .map_err(|error| Failure::Usage { text: error.to_string() }),
        };
        let user_rules = parse(IdKind::User, &rewrite.user_map)?;
        let group_rules = parse(IdKind::Group, &rewrite.group_map)?;
        let mut known = self.lock();
        (known.user_rules, known.group_rules) = (user_rules, group_rules);
        if !ctx.session.compat.contains(Compat::ID0_NAMES) && !self.numeric {
            known.users.insert(0, Id::Named(b"root".to_vec()));
            known.groups.insert(0, Id::Named(b"root".to_vec()));
        }
        Ok(())
    }

    /// Learns the sender's names; the first name of an id counts.
    pub fn learn(&self, names: &[IdName]) {
        if self.numeric || names.is_empty() {
            return;
        }
        let mut known = self.lock();
        for IdName { kind, id, name } in names.iter().filter(|name| !name.name.is_empty()) {
            match kind {
                IdKind::User => drop(known.users.entry(*id).or_insert_with(|| Id::Named(name.clone()))),
                IdKind::Group => drop(known.groups.entry(*id).or_insert_with(|| Id::Named(name.clone()))),
            }
        }
    }

    /// Maps a user.
    pub fn uid(&self, sender: u32) -> u32 {
        let Known { users, user_rules, .. } = &mut *self.lock();
        map(users, sender, |name| local(user_rules, sender, name, users::user_id))
    }

    /// Maps a group.
    pub fn gid(&self, sender: u32) -> MappedGroup {
        let Known { groups, group_rules, .. } = &mut *self.lock();
        map(groups, sender, |name| {
            let gid = local(group_rules, sender, name, users::group_id);
            let settable = self.root || self.own_groups.get_or_init(users::groups).contains(&gid);
            MappedGroup { gid, settable }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // The maps are whole after every step.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number here of an id: by rule, by name, or the same. Number 0 is never found by name.
fn local(rules: &Rules, id: u32, name: Option<&[u8]>, find: impl FnOnce(&[u8]) -> Option<u32>) -> u32 {
    let by_name = || name.filter(|_| id != 0).and_then(find);
    rules.target(id, name).or_else(by_name).unwrap_or(id)
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
