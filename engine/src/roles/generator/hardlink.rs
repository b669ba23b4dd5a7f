//! Hard-link groups: who is asked for, who waits, who is linked to whom, in which order.
//!
//! ```text
//! Ahead ──walk──► InFlight ──success──► leader of the group; everyone else is linked to it
//!   │                └─────failure───► gone; the next candidate is asked for
//!   ├──► Waiting    another member is in flight
//!   └──► Postponed  nothing is there, and a later member is still ahead
//! ```
//!
//! This module keeps the books; links are made in [`super::link`].
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#2-hard-links--h, protocol/doc/11-incremental-recursion.md#8-hard-links-over-segments

use std::collections::HashMap;

use suisei_protocol::flist::{EntryRef, HardLink, Ndx, RelPath, RelPathBuf, Segment};

/// Names a group for the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupKey {
    /// Number of the first member sent.
    Number(i32),
    /// The sender's device and inode.
    Inode(i64, i64),
}

impl GroupKey {
    fn of(entry: EntryRef<'_>) -> Option<GroupKey> {
        // A directory has no second name, whatever a peer says.
        match entry.hard_link().filter(|_| !entry.is_dir() && !entry.is_blank())? {
            HardLink::Group { group, .. } => Some(GroupKey::Number(group)),
            HardLink::Inode { dev, ino } => Some(GroupKey::Inode(dev, ino)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ahead,
    InFlight,
    Waiting,
    Postponed,
}

/// Members that are not finished, in index order, and the one that is.
#[derive(Debug, Default)]
struct Group {
    members: Vec<(Ndx, State)>,
    leader: Option<RelPathBuf>,
}

/// What a member does when the walk reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// It is linked to this file.
    Link(RelPathBuf),
    /// It waits for the member that is in flight.
    Wait,
    /// It is treated like any file.
    Proceed,
}

/// All groups of the run.
#[derive(Debug, Default)]
pub struct Groups {
    groups: HashMap<GroupKey, Group>,
    /// Groups of one are none once the whole list is known.
    drop_singles: bool,
}

impl Groups {
    /// Starts without groups. `whole`: the first segment is all there is.
    pub fn new(whole: bool) -> Self {
        Groups { groups: HashMap::new(), drop_singles: whole }
    }

    /// Adds the members of a new segment behind those that are known.
    pub fn learn(&mut self, segment: &Segment) {
        for (ndx, entry) in segment.iter() {
            if let Some(key) = GroupKey::of(entry) {
                self.groups.entry(key).or_default().members.push((ndx, State::Ahead));
            }
        }
        if self.drop_singles {
            self.groups.retain(|_, group| group.members.len() > 1);
        }
    }

    /// Returns the group of an entry.
    pub fn key(&self, entry: EntryRef<'_>) -> Option<GroupKey> {
        GroupKey::of(entry).filter(|key| self.groups.contains_key(key))
    }

    /// Decides what a member does now that the walk has reached it (or comes back to it).
    pub fn turn(&mut self, key: GroupKey, ndx: Ndx) -> Turn {
        let Some(group) = self.groups.get_mut(&key) else { return Turn::Proceed };
        if let Some(leader) = group.leader.clone() {
            group.remove(ndx);
            return Turn::Link(leader);
        }
        if group.members.iter().any(|&(other, state)| other != ndx && state == State::InFlight) {
            group.set(ndx, State::Waiting);
            return Turn::Wait;
        }
        Turn::Proceed
    }

    /// Postpones a member that would have to be asked for, if a later one is still ahead.
    pub fn postpone(&mut self, key: GroupKey, ndx: Ndx) -> bool {
        let Some(group) = self.groups.get_mut(&key) else { return false };
        let later = group.members.iter().any(|&(other, state)| other > ndx && state == State::Ahead);
        if later {
            group.set(ndx, State::Postponed);
        }
        later
    }

    /// Notes that a member was asked for.
    pub fn asked(&mut self, key: GroupKey, ndx: Ndx) {
        if let Some(group) = self.groups.get_mut(&key) {
            group.set(ndx, State::InFlight);
        }
    }

    /// Makes a finished member the leader. Returns those to be linked to it now: the waiting ones
    /// in ascending order, then the postponed ones in descending order.
    pub fn lead(&mut self, key: GroupKey, ndx: Ndx, path: RelPath<'_>) -> Vec<Ndx> {
        let Some(group) = self.groups.get_mut(&key) else { return Vec::new() };
        group.remove(ndx);
        group.leader = Some(path.to_owned());
        let of = |state| group.members.iter().filter(move |member| member.1 == state).map(|member| member.0);
        let followers: Vec<Ndx> = of(State::Waiting).chain(of(State::Postponed).rev()).collect();
        group.members.retain(|member| member.1 == State::Ahead);
        followers
    }

    /// Gives up a member that was skipped or failed. Whether the group now needs a candidate.
    pub fn give_up(&mut self, key: GroupKey, ndx: Ndx) -> bool {
        let Some(group) = self.groups.get_mut(&key) else { return false };
        group.remove(ndx);
        group.needs_candidate()
    }

    /// Returns the member to be asked for after others failed: the last one that stands back.
    /// It is still counted as standing back, until it is asked for or finished.
    pub fn candidate(&mut self, key: GroupKey) -> Option<Ndx> {
        let group = self.groups.get(&key)?;
        group.needs_candidate().then(|| group.members.last().map(|member| member.0)).flatten()
    }
}

impl Group {
    fn set(&mut self, ndx: Ndx, state: State) {
        if let Ok(at) = self.members.binary_search_by_key(&ndx, |member| member.0) {
            self.members[at].1 = state;
        }
    }

    fn remove(&mut self, ndx: Ndx) {
        if let Ok(at) = self.members.binary_search_by_key(&ndx, |member| member.0) {
            self.members.remove(at);
        }
    }

    /// Members stand back, and nobody is on the way for whom they could.
    fn needs_candidate(&self) -> bool {
        let on_the_way = |state| matches!(state, State::Ahead | State::InFlight);
        self.leader.is_none() && !self.members.is_empty() && !self.members.iter().any(|m| on_the_way(m.1))
    }
}

#[cfg(test)]
mod tests {
    use suisei_protocol::flist::{EntryFlags, Extra, Mode, NewEntry, SegmentBuilder};

    use super::*;

    const KEY: GroupKey = GroupKey::Number(1);

    /// A segment of files; names that start with `h` are one inode.
    fn segment(start: i32, names: &[&str]) -> Segment {
        let mut builder = SegmentBuilder::new(Ndx(start), None);
        for name in names {
            let entry = NewEntry {
                path: name.as_bytes(),
                mode: Mode(0o100_644),
                size: 1,
                mtime: 0,
                mtime_nsec: 0,
                uid: 0,
                gid: 0,
                flags: EntryFlags::empty(),
            };
            let hard_link = name.starts_with('h').then_some(HardLink::Group { group: 1, first: false });
            builder.push(entry, Extra { hard_link, ..Extra::default() }).unwrap();
        }
        builder.finish()
    }

    fn groups(names: &[&str]) -> Groups {
        let mut groups = Groups::new(true);
        groups.learn(&segment(0, names));
        groups
    }

    fn leader() -> RelPath<'static> {
        RelPath::new(b"leader")
    }

    #[test]
    fn with_nothing_there_the_last_is_asked_for_and_the_others_follow_backwards() {
        let mut groups = groups(&["ha", "hb", "hc"]);
        for ndx in [Ndx(0), Ndx(1)] {
            assert_eq!(groups.turn(KEY, ndx), Turn::Proceed);
            assert!(groups.postpone(KEY, ndx));
        }
        assert_eq!(groups.turn(KEY, Ndx(2)), Turn::Proceed);
        assert!(!groups.postpone(KEY, Ndx(2)));
        groups.asked(KEY, Ndx(2));
        assert_eq!(groups.lead(KEY, Ndx(2), leader()), [Ndx(1), Ndx(0)]);
    }

    /// Captured: an outdated `c` of a to e is transferred, then `d => c, e => c, b => c, a => c`.
    #[test]
    fn waiting_members_follow_before_postponed_ones() {
        let mut groups = groups(&["ha", "hb", "hc", "hd", "he"]);
        assert!(groups.postpone(KEY, Ndx(0)) && groups.postpone(KEY, Ndx(1)));
        groups.asked(KEY, Ndx(2));
        assert_eq!(groups.turn(KEY, Ndx(3)), Turn::Wait);
        assert_eq!(groups.turn(KEY, Ndx(4)), Turn::Wait);
        assert_eq!(groups.lead(KEY, Ndx(2), leader()), [Ndx(3), Ndx(4), Ndx(1), Ndx(0)]);
    }

    #[test]
    fn members_behind_a_leader_are_linked_when_the_walk_reaches_them() {
        let mut groups = groups(&["ha", "hb", "hc"]);
        assert!(groups.postpone(KEY, Ndx(0)));
        assert_eq!(groups.lead(KEY, Ndx(1), leader()), [Ndx(0)]);
        assert_eq!(groups.turn(KEY, Ndx(2)), Turn::Link(leader().to_owned()));
    }

    #[test]
    fn after_a_failure_the_last_that_stands_back_is_asked_for() {
        let mut groups = groups(&["ha", "hb", "hc"]);
        assert!(groups.postpone(KEY, Ndx(0)) && groups.postpone(KEY, Ndx(1)));
        groups.asked(KEY, Ndx(2));
        assert_eq!(groups.candidate(KEY), None, "one is in flight");
        assert!(groups.give_up(KEY, Ndx(2)));
        assert_eq!(groups.candidate(KEY), Some(Ndx(1)));
        assert_eq!(groups.turn(KEY, Ndx(1)), Turn::Proceed);
        assert!(!groups.postpone(KEY, Ndx(1)));
        groups.asked(KEY, Ndx(1));
        assert!(groups.give_up(KEY, Ndx(1)));
        assert_eq!(groups.candidate(KEY), Some(Ndx(0)));
        assert!(!groups.give_up(KEY, Ndx(0)));
    }

    #[test]
    fn a_later_segment_joins_the_group_and_outlives_its_leader() {
        let mut groups = Groups::new(false);
        groups.learn(&segment(1, &["ha", "x"]));
        groups.learn(&segment(4, &["hb"]));
        assert!(groups.postpone(KEY, Ndx(1)), "the later member is known");
        groups.asked(KEY, Ndx(4));
        assert_eq!(groups.lead(KEY, Ndx(4), leader()), [Ndx(1)]);
        let last = segment(6, &["hc"]);
        groups.learn(&last);
        assert_eq!(groups.key(last.get(0).unwrap()), Some(KEY));
        assert_eq!(groups.turn(KEY, Ndx(6)), Turn::Link(leader().to_owned()));
    }

    #[test]
    fn a_single_member_of_a_whole_list_is_an_ordinary_file() {
        let mut groups = Groups::new(true);
        let list = segment(0, &["ha", "x"]);
        groups.learn(&list);
        assert_eq!(groups.key(list.get(0).unwrap()), None);
    }
}
