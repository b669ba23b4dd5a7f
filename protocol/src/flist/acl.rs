//! Access control lists, as entries carry them: each once, then by its number.
//!
//! What a mode says of user, group and others is left out of an access list where it can be; a
//! receiver puts it back when it applies the list.
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#4-acls--a-implies--p-p30

use std::collections::HashMap;
use std::sync::Arc;

use super::encode::Names;
use super::ids::{put_name, take_name};
use super::IdKind;
use crate::error::{Decode, PeerMisbehaved};
use crate::limits::{ACLS_HELD_MAX, ACL_NAMED_MAX};
use crate::wire::{put_varint, Reader};

/// What one named user or group may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamedAccess {
    /// Whether the id is a user's or a group's.
    pub kind: IdKind,
    /// The sender's id.
    pub id: u32,
    /// Read 4, write 2, execute 1.
    pub access: u8,
}

/// One list, of either kind. An access list with nothing in it says no more than the mode; a
/// default list with nothing in it is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Acl {
    /// Access of the owner.
    pub user: Option<u8>,
    /// Access of the owning group.
    pub group: Option<u8>,
    /// The most that named entries and the owning group get.
    pub mask: Option<u8>,
    /// Access of all others.
    pub other: Option<u8>,
    /// Named users and groups: users by id, then groups by id.
    pub named: Box<[NamedAccess]>,
}

impl Acl {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Acl::default()
    }

    /// Returns what travels of a complete access list: what the mode of the file, with its nine
    /// permission bits, does not say already.
    pub fn without_mode(mut self, mode: u32) -> Acl {
        let of_group = Some((mode >> 3 & 7) as u8);
        (self.user, self.other) = (None, None);
        if self.mask.is_none() || self.group == of_group {
            self.group = None;
        }
        if !self.named.is_empty() && self.mask == of_group {
            self.mask = None;
        }
        self
    }

    /// Returns the nine permission bits that a file with this complete list shows.
    pub fn mode(&self) -> u32 {
        let bits = |access: Option<u8>| u32::from(access.unwrap_or(0));
        bits(self.user) << 6 | bits(self.mask.or(self.group)) << 3 | bits(self.other)
    }

    /// Returns the complete access list of a file with this mode: the opposite of
    /// [`Acl::without_mode`]. The group bits of the mode are the mask where there is one.
    pub fn with_mode(mut self, mode: u32) -> Acl {
        let of_group = (mode >> 3 & 7) as u8;
        self.user.get_or_insert((mode >> 6 & 7) as u8);
        self.other.get_or_insert((mode & 7) as u8);
        self.group.get_or_insert(of_group);
        if !self.named.is_empty() {
            self.mask.get_or_insert(of_group);
        }
        self
    }
}

/// Which of the two lists of an entry is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AclKind {
    Access,
    Default,
}

const USER: u8 = 1;
const GROUP: u8 = 2;
const MASK: u8 = 4;
const OTHER: u8 = 8;
const NAMED: u8 = 16;

/// The name of an id that stood in a list.
pub(super) type TakenName<'a> = (IdKind, u32, &'a [u8]);

/// A list as it was taken, before it is kept.
pub(super) enum Taken {
    /// One that was sent before.
    Known(Arc<Acl>),
    /// A new one, which gets the next number.
    New(Acl),
}

/// Both lists of an entry as they were taken.
#[derive(Default)]
pub(super) struct TakenAcls<'a> {
    pub(super) access: Option<Taken>,
    pub(super) default: Option<Taken>,
    pub(super) names: Vec<TakenName<'a>>,
}

/// The lists that arrived so far, by number, over the whole run.
#[derive(Debug, Default)]
pub(super) struct AclReader {
    access: Vec<Arc<Acl>>,
    default: Vec<Arc<Acl>>,
    /// Lists and named entries that are held.
    held: usize,
}

impl AclReader {
    /// Takes the lists of an entry; a directory has two.
    pub(super) fn take<'a>(&self, is_dir: bool, reader: &mut Reader<'a>) -> Decode<TakenAcls<'a>> {
        let mut taken = TakenAcls::default();
        taken.access = Some(self.take_one(AclKind::Access, reader, &mut taken.names)?);
        if is_dir {
            taken.default = Some(self.take_one(AclKind::Default, reader, &mut taken.names)?);
        }
        Ok(taken)
    }

    fn take_one<'a>(
        &self,
        kind: AclKind,
        reader: &mut Reader<'a>,
        names: &mut Vec<TakenName<'a>>,
    ) -> Decode<Taken> {
        let number = reader.varint()?;
        if number == 0 {
            return Ok(Taken::New(take_new(kind, reader, names)?));
        }
        let lists = match kind {
            AclKind::Access => &self.access,
            AclKind::Default => &self.default,
        };
        let known = usize::try_from(number).ok().and_then(|number| lists.get(number - 1));
        let known = known.ok_or(broken("an ACL has a number that was not sent"))?;
        Ok(Taken::Known(known.clone()))
    }

    /// Keeps a list if it is new, and returns it; nothing if it says nothing.
    pub(super) fn keep(
        &mut self,
        kind: AclKind,
        taken: Option<Taken>,
    ) -> Result<Option<Arc<Acl>>, PeerMisbehaved> {
        let acl = match taken {
            None => return Ok(None),
            Some(Taken::Known(acl)) => acl,
            Some(Taken::New(acl)) => {
                self.held += 1 + acl.named.len();
                if self.held > ACLS_HELD_MAX {
                    return Err(PeerMisbehaved::Rule("the file lists hold too many ACLs"));
                }
                let acl = Arc::new(acl);
                match kind {
                    AclKind::Access => self.access.push(acl.clone()),
                    AclKind::Default => self.default.push(acl.clone()),
                }
                acl
            }
        };
        Ok(Some(acl).filter(|acl| !acl.is_empty()))
    }
}

fn take_new<'a>(kind: AclKind, reader: &mut Reader<'a>, names: &mut Vec<TakenName<'a>>) -> Decode<Acl> {
    let flags = reader.u8()?;
    let mut object = |bit: u8| -> Decode<Option<u8>> {
        if flags & bit == 0 {
            return Ok(None);
        }
        Ok(Some(permissions(reader.varint()? as u32)?))
    };
    let (user, group) = (object(USER)?, object(GROUP)?);
    let (mask, other) = (object(MASK)?, object(OTHER)?);
    let mut acl = Acl { user, group, mask, other, named: Box::default() };
    if flags & NAMED == 0 {
        return Ok(acl);
    }
    let count = reader.varint()?;
    let count = usize::try_from(count)
        .ok()
        .filter(|&count| count <= ACL_NAMED_MAX)
        .ok_or(PeerMisbehaved::OutOfRange { field: "ACL count", value: count.into() })?;
    // Each takes two bytes at least, so a short input ends this early.
    let mut named = Vec::new();
    for _ in 0..count {
        let id = reader.varint()? as u32;
        let word = reader.varint()? as u32;
        let kind = if word & 2 != 0 { IdKind::User } else { IdKind::Group };
        if word & 1 != 0 {
            names.push((kind, id, take_name(reader)?));
        }
        named.push(NamedAccess { kind, id, access: permissions(word >> 2)? });
    }
    acl.named = named.into();
    if kind == AclKind::Default && !acl.named.is_empty() && acl.mask.is_none() {
        let all = acl.named.iter().fold(acl.group.unwrap_or(0), |all, named| all | named.access);
        acl.mask = Some(all);
    }
    Ok(acl)
}

fn permissions(bits: u32) -> Result<u8, PeerMisbehaved> {
    match bits {
        0..=7 => Ok(bits as u8),
        _ => Err(broken("an ACL has permissions that do not exist")),
    }
}

fn broken(text: &'static str) -> PeerMisbehaved {
    PeerMisbehaved::RuleWithCode { text, code: 12 }
}

/// The lists that were sent so far, with their numbers.
#[derive(Debug, Default)]
pub(super) struct AclWriter {
    access: HashMap<Acl, i32>,
    default: HashMap<Acl, i32>,
}

impl AclWriter {
    /// Appends a list or its number. `names` holds what was not sent yet of the ids' names.
    pub(super) fn put(&mut self, kind: AclKind, acl: Option<&Acl>, names: &mut Names<'_>, out: &mut Vec<u8>) {
        let sent = match kind {
            AclKind::Access => &mut self.access,
            AclKind::Default => &mut self.default,
        };
        let nothing = Acl::default();
        let acl = acl.unwrap_or(&nothing);
        if let Some(number) = sent.get(acl) {
            return put_varint(number + 1, out);
        }
        sent.insert(acl.clone(), sent.len() as i32);
        put_varint(0, out);
        put_new(acl, names, out);
    }
}

fn put_new(acl: &Acl, names: &mut Names<'_>, out: &mut Vec<u8>) {
    let objects = [(USER, acl.user), (GROUP, acl.group), (MASK, acl.mask), (OTHER, acl.other)];
    let mut flags = if acl.named.is_empty() { 0 } else { NAMED };
    for (bit, access) in objects {
        flags |= if access.is_some() { bit } else { 0 };
    }
    out.push(flags);
    for access in objects.into_iter().filter_map(|(_, access)| access) {
        put_varint(access.into(), out);
    }
    if acl.named.is_empty() {
        return;
    }
    put_varint(acl.named.len() as i32, out);
    for named in &acl.named {
        let name = names.remove(&(named.kind, named.id)).filter(|name| !name.is_empty());
        put_varint(named.id as i32, out);
        let kind = if named.kind == IdKind::User { 2 } else { 0 };
        put_varint(i32::from(named.access) << 2 | kind | i32::from(name.is_some()), out);
        if let Some(name) = name {
            put_name(name, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Stop;
    use crate::support::bytes;

    fn take(reader: &AclReader, is_dir: bool, text: &str) -> Result<(Option<Acl>, Option<Acl>), Stop> {
        let bytes = bytes(text);
        let mut cursor = Reader::new(&bytes);
        let taken = reader.take(is_dir, &mut cursor)?;
        assert_eq!(cursor.consumed(), bytes.len());
        let value = |taken: Option<Taken>| {
            taken.map(|taken| match taken {
                Taken::Known(acl) => (*acl).clone(),
                Taken::New(acl) => acl,
            })
        };
        Ok((value(taken.access), value(taken.default)))
    }

    fn named(kind: IdKind, id: u32, access: u8) -> NamedAccess {
        NamedAccess { kind, id, access }
    }

    #[test]
    fn captured_lists_are_read_and_written() {
        let mut reader = AclReader::default();
        let (access, _) = take(&reader, false, "00 12 04 02 01 1a 02 10").unwrap();
        let expected = Acl {
            group: Some(4),
            named: [named(IdKind::User, 1, 6), named(IdKind::Group, 2, 4)].into(),
            ..Acl::default()
        };
        assert_eq!(access.as_ref(), Some(&expected));
        let mut out = Vec::new();
        let mut writer = AclWriter::default();
        let mut names = Names::new();
        writer.put(AclKind::Access, None, &mut names, &mut out);
        writer.put(AclKind::Access, access.as_ref(), &mut names, &mut out);
        writer.put(AclKind::Access, access.as_ref(), &mut names, &mut out);
        assert_eq!(out, bytes("00 00 | 00 12 04 02 01 1a 02 10 | 02"));

        reader.keep(AclKind::Access, Some(Taken::New(Acl::default()))).unwrap();
        let (access, default) = take(&reader, true, "01 | 00 1f 07 05 05 05 01 01 16").unwrap();
        assert_eq!(access, Some(Acl::default()));
        let default = default.unwrap();
        assert_eq!((default.user, default.mask, default.named.len()), (Some(7), Some(5), 1));
    }

    #[test]
    fn a_name_goes_with_the_first_use_of_its_id() {
        let acl = Acl { named: [named(IdKind::User, 1, 6)].into(), ..Acl::default() };
        let again = Acl { named: [named(IdKind::User, 1, 4)].into(), ..Acl::default() };
        let mut names = Names::new();
        names.insert((IdKind::User, 1), b"daemon");
        let mut out = Vec::new();
        let mut writer = AclWriter::default();
        writer.put(AclKind::Access, Some(&acl), &mut names, &mut out);
        writer.put(AclKind::Access, Some(&again), &mut names, &mut out);
        assert_eq!(out, bytes("00 10 01 01 1b 06 \"daemon\" | 00 10 01 01 12"));
        let mut cursor = Reader::new(&out);
        let taken = AclReader::default().take(false, &mut cursor).unwrap();
        assert_eq!(taken.names, [(IdKind::User, 1, &b"daemon"[..])]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let reader = AclReader::default();
        for text in ["01", "ff ff ff ff ff", "00 01 08", "00 10 01 00 20", "00 10 f0 ff ff ff 7f"] {
            assert!(matches!(take(&reader, false, text), Err(Stop::Bad(_))), "{text}");
        }
        let mut reader = AclReader { held: ACLS_HELD_MAX, ..AclReader::default() };
        assert!(reader.keep(AclKind::Access, Some(Taken::New(Acl::default()))).is_err());
    }

    #[test]
    fn what_the_mode_says_is_left_out_and_put_back() {
        let full = Acl {
            user: Some(6),
            group: Some(4),
            mask: Some(6),
            other: Some(0),
            named: [named(IdKind::User, 1, 6)].into(),
        };
        let sent = full.clone().without_mode(0o660);
        assert_eq!((sent.user, sent.group, sent.mask, sent.other), (None, Some(4), None, None));
        assert_eq!(sent.with_mode(0o660), full);
        let plain = Acl { user: Some(6), group: Some(4), mask: None, other: Some(4), named: Box::default() };
        assert!(plain.clone().without_mode(0o644).is_empty());
        assert_eq!(Acl::default().with_mode(0o644), plain);
        let only_mask = Acl { mask: Some(4), ..plain };
        let sent = only_mask.without_mode(0o644);
        assert_eq!((sent.group, sent.mask), (None, Some(4)));
    }
}
