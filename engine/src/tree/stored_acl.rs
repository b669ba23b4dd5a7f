//! `--fake-super`: access control lists, kept in extended attributes of an ordinary item.
//!
//! ```text
//! owner, owning group, mask, others   4 bytes LE each: 0 to 7, or 0x80 where nothing is said
//! entries, users first, 8 bytes each
//!   id                                4 bytes LE
//!   access                            4 bytes LE: 0 to 7, and bit 31 for a user
//! ```
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#7-fake-super-one-side-only-invisible-on-the-wire

use std::io;

use suisei_protocol::flist::{Acl, IdKind, NamedAccess};

use super::{AclKind, HeldItem};

/// Stands where a list says nothing.
const NOTHING: u32 = 0x80;
/// Marks a user.
const USER: u32 = 1 << 31;

fn attribute(kind: AclKind) -> &'static [u8] {
    match (kind, cfg!(target_os = "linux")) {
        (AclKind::Access, true) => b"user.rsync.%aacl",
        (AclKind::Default, true) => b"user.rsync.%dacl",
        (AclKind::Access, false) => b"rsync.%aacl",
        (AclKind::Default, false) => b"rsync.%dacl",
    }
}

/// Reads a list; nothing if none is kept.
pub(super) fn read(item: &HeldItem<'_>, kind: AclKind) -> io::Result<Option<Acl>> {
    match item.value(attribute(kind))? {
        None => Ok(None),
        Some(bytes) => {
            let corrupt = || io::Error::new(io::ErrorKind::InvalidData, "corrupt ACL xattr");
            parse(&bytes).map(Some).ok_or_else(corrupt)
        }
    }
}

/// Keeps a list; one that says nothing, or none, goes.
pub(super) fn write(item: &HeldItem<'_>, kind: AclKind, acl: Option<&Acl>) -> io::Result<()> {
    match acl.filter(|acl| !acl.is_empty()) {
        Some(acl) => item.set(attribute(kind), &format(acl)),
        None => item.remove(attribute(kind)),
    }
}

fn parse(bytes: &[u8]) -> Option<Acl> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let access = |word: u32| u8::try_from(word).ok().filter(|&bits| bits <= 7);
    let object = |at: usize| match word(at)? {
        NOTHING => Some(None),
        word => access(word).map(Some),
    };
    let (objects, entries) = bytes.split_at_checked(16)?;
    if entries.len() % 8 != 0 {
        return None;
    }
    let mut named = Vec::new();
    for at in (objects.len()..bytes.len()).step_by(8) {
        let bits = word(at + 4)?;
        let kind = if bits & USER != 0 { IdKind::User } else { IdKind::Group };
        named.push(NamedAccess { kind, id: word(at)?, access: access(bits & !USER)? });
    }
    named.sort();
    Some(Acl {
        user: object(0)?,
        group: object(4)?,
        mask: object(8)?,
        other: object(12)?,
        named: named.into(),
    })
}

fn format(acl: &Acl) -> Vec<u8> {
    let mut out = Vec::new();
    for access in [acl.user, acl.group, acl.mask, acl.other] {
        out.extend_from_slice(&access.map_or(NOTHING, u32::from).to_le_bytes());
    }
    for named in &acl.named {
        let mark = if named.kind == IdKind::User { USER } else { 0 };
        out.extend_from_slice(&named.id.to_le_bytes());
        out.extend_from_slice(&(u32::from(named.access) | mark).to_le_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captured: `u:1:rw,g:2:r` on a file of mode 664.
    #[test]
    fn captured_bytes_are_read_and_written() {
        let bytes = [
            [0x80, 0, 0, 0, 4, 0, 0, 0, 6, 0, 0, 0, 0x80, 0, 0, 0],
            [1, 0, 0, 0, 6, 0, 0, 0x80, 2, 0, 0, 0, 4, 0, 0, 0],
        ]
        .concat();
        let acl = parse(&bytes).unwrap();
        assert_eq!((acl.user, acl.group, acl.mask, acl.other), (None, Some(4), Some(6), None));
        let user = NamedAccess { kind: IdKind::User, id: 1, access: 6 };
        let group = NamedAccess { kind: IdKind::Group, id: 2, access: 4 };
        assert_eq!(*acl.named, [user, group]);
        assert_eq!(format(&acl), bytes);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bytes in [&[][..], &[0; 15], &[0; 20], &[9; 16], &[0x81, 0, 0, 0].repeat(4)] {
            assert_eq!(parse(bytes), None);
        }
    }
}
