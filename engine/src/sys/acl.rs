//! Access control lists of one item, as Linux keeps them: in two extended attributes, whose bytes
//! are read and written here. Other systems have none that the protocol could carry.
//!
//! ```text
//! version   4 bytes LE   2
//! entries   8 bytes each, in this order of tags
//!   tag     2 bytes LE   1 owner, 2 user, 4 owning group, 8 group, 0x10 mask, 0x20 others
//!   access  2 bytes LE   0 to 7
//!   id      4 bytes LE   of a user or group; else 0xffffffff
//! ```
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#4-acls--a-implies--p-p30

use std::io;

use rustix::io::Errno;
use suisei_protocol::flist::{Acl, IdKind, NamedAccess};

use super::xattr::Held;

/// Which list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AclKind {
    /// Who may do what.
    Access,
    /// What members of a directory start with.
    Default,
}

impl AclKind {
    fn attribute(self) -> &'static [u8] {
        match self {
            AclKind::Access => b"system.posix_acl_access",
            AclKind::Default => b"system.posix_acl_default",
        }
    }
}

/// The version of the bytes.
const VERSION: [u8; 4] = 2u32.to_le_bytes();
/// Length of an entry.
const ENTRY: usize = 8;
/// Stands where an entry has no id.
const NO_ID: u32 = u32::MAX;

const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const OWNING_GROUP: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

/// Reads a list; nothing if there is none, or the file system has none.
pub fn read(item: &Held<'_>, kind: AclKind) -> io::Result<Option<Acl>> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    match item.value(kind.attribute())? {
        None => Ok(None),
        Some(bytes) => parse(&bytes).map(Some).ok_or_else(|| Errno::INVAL.into()),
    }
}

/// Sets a list. An access list also changes the mode.
pub fn set(item: &Held<'_>, kind: AclKind, acl: &Acl) -> io::Result<()> {
    if !cfg!(target_os = "linux") {
        return Err(Errno::OPNOTSUPP.into());
    }
    item.set(kind.attribute(), &format(acl))
}

/// Removes a list. None is no error.
pub fn remove(item: &Held<'_>, kind: AclKind) -> io::Result<()> {
    match item.remove(kind.attribute()) {
        Err(error) if super::is(&error, Errno::OPNOTSUPP) => Ok(()),
        answer => answer,
    }
}

/// Reads the bytes of an attribute; nothing if they are no list. Named entries are sorted.
fn parse(bytes: &[u8]) -> Option<Acl> {
    let entries = bytes.strip_prefix(&VERSION)?;
    if entries.len() % ENTRY != 0 {
        return None;
    }
    let mut acl = Acl::default();
    let mut named = Vec::new();
    for entry in entries.chunks_exact(ENTRY) {
        let tag = u16::from_le_bytes([entry[0], entry[1]]);
        let access = u8::try_from(u16::from_le_bytes([entry[2], entry[3]])).ok().filter(|&bits| bits <= 7)?;
        let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        match tag {
            OWNER => acl.user = Some(access),
            OWNING_GROUP => acl.group = Some(access),
            MASK => acl.mask = Some(access),
            OTHERS => acl.other = Some(access),
            USER => named.push(NamedAccess { kind: IdKind::User, id, access }),
            GROUP => named.push(NamedAccess { kind: IdKind::Group, id, access }),
            _ => return None,
        }
    }
    named.sort();
    acl.named = named.into();
    Some(acl)
}

/// Returns the bytes of a list. What it does not say of owner, group and others is nothing.
fn format(acl: &Acl) -> Vec<u8> {
    let mut out = VERSION.to_vec();
    let mut put = |tag: u16, access: u8, id: u32| {
        out.extend_from_slice(&tag.to_le_bytes());
        out.extend_from_slice(&u16::from(access).to_le_bytes());
        out.extend_from_slice(&id.to_le_bytes());
    };
    let of = |kind| acl.named.iter().filter(move |named| named.kind == kind);
    put(OWNER, acl.user.unwrap_or(0), NO_ID);
    of(IdKind::User).for_each(|named| put(USER, named.access, named.id));
    put(OWNING_GROUP, acl.group.unwrap_or(0), NO_ID);
    of(IdKind::Group).for_each(|named| put(GROUP, named.access, named.id));
    acl.mask.into_iter().for_each(|mask| put(MASK, mask, NO_ID));
    put(OTHERS, acl.other.unwrap_or(0), NO_ID);
    out
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn list() -> Acl {
        Acl {
            user: Some(6),
            group: Some(4),
            mask: Some(6),
            other: Some(0),
            named: [
                NamedAccess { kind: IdKind::User, id: 1, access: 6 },
                NamedAccess { kind: IdKind::User, id: 54_321, access: 7 },
                NamedAccess { kind: IdKind::Group, id: 2, access: 4 },
            ]
            .into(),
        }
    }

    #[test]
    fn bytes_are_read_as_they_are_written() {
        let bytes = format(&list());
        assert_eq!(bytes[..12], [2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255]);
        assert_eq!(bytes[12..20], [2, 0, 6, 0, 1, 0, 0, 0]);
        assert_eq!(parse(&bytes), Some(list()));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let bytes = format(&list());
        for broken in [&bytes[..3], &bytes[..bytes.len() - 1], &[3, 0, 0, 0], &[]] {
            assert_eq!(parse(broken), None);
        }
        let strange = [VERSION.as_slice(), &[1, 0, 8, 0, 255, 255, 255, 255]].concat();
        assert_eq!(parse(&strange), None);
        let strange = [VERSION.as_slice(), &[64, 0, 7, 0, 255, 255, 255, 255]].concat();
        assert_eq!(parse(&strange), None);
    }

    #[test]
    fn the_kernel_takes_and_gives_the_same() {
        let temp = tempfile::tempdir().unwrap();
        let dir = std::fs::File::open(temp.path()).unwrap();
        std::fs::write(temp.path().join("f"), "").unwrap();
        let file = Held::member(std::os::fd::AsFd::as_fd(&dir), b"f", false).unwrap();
        if let Err(error) = set(&file, AclKind::Access, &list()) {
            assert!(super::super::is(&error, Errno::OPNOTSUPP), "{error}");
            println!("skipped: this file system has no ACLs");
            return;
        }
        assert_eq!(read(&file, AclKind::Access).unwrap(), Some(list()));
        remove(&file, AclKind::Access).unwrap();
        assert_eq!(read(&file, AclKind::Access).unwrap(), None);
        let held = Held::open(std::os::fd::AsFd::as_fd(&dir));
        set(&held, AclKind::Default, &list()).unwrap();
        assert_eq!(read(&held, AclKind::Default).unwrap(), Some(list()));
        remove(&held, AclKind::Default).unwrap();
        remove(&held, AclKind::Default).unwrap();
    }
}
