//! The lists of user and group names that follow a whole file list.
//!
//! Wire: protocol/doc/10-file-list.md#7-id-lists

use super::{IdKind, IdName};
use crate::error::Decode;
use crate::limits::ID_NAME_MAX;
use crate::session::{Compat, Recursion, Session, Version};
use crate::wire::{put_varint30, Reader};

/// One row of an id list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IdRow {
    /// A name; more follow.
    Name(IdName),
    /// The end of the list, with the name of id 0 if the peer has one and sends it.
    End(Option<IdName>),
}

/// Which id lists a session has, and their form.
#[derive(Debug, Clone)]
pub(crate) struct IdLists {
    version: Version,
    /// Whether the end of a list carries the name of id 0.
    id0_names: bool,
    users: bool,
    groups: bool,
}

impl IdLists {
    pub(crate) fn new(session: &Session) -> Self {
        let any = session.recursion == Recursion::Whole && !session.layout.numeric_ids;
        let acls = session.layout.acls && session.version.has_acls_and_xattrs();
        IdLists {
            version: session.version,
            id0_names: session.compat.contains(Compat::ID0_NAMES),
            users: any && (session.layout.uid || acls),
            groups: any && (session.layout.gid || acls),
        }
    }

    /// Returns the list that comes after `last` (nothing: the first list).
    pub(crate) fn after(&self, last: Option<IdKind>) -> Option<IdKind> {
        match last {
            None if self.users => Some(IdKind::User),
            None | Some(IdKind::User) if self.groups => Some(IdKind::Group),
            _ => None,
        }
    }

    /// Takes one row of a list.
    pub(crate) fn take_row(&self, kind: IdKind, reader: &mut Reader<'_>) -> Decode<IdRow> {
        let id = reader.varint30(self.version)? as u32;
        if id == 0 && !self.id0_names {
            return Ok(IdRow::End(None));
        }
        let name = IdName { kind, id, name: take_name(reader)?.to_vec() };
        Ok(match id {
            0 => IdRow::End(Some(name).filter(|name| !name.name.is_empty())),
            _ => IdRow::Name(name),
        })
    }

    /// Appends all lists.
    pub(crate) fn put(&self, names: &[IdName], out: &mut Vec<u8>) {
        let mut last = None;
        while let Some(kind) = self.after(last) {
            last = Some(kind);
            let of_kind = || names.iter().filter(|name| name.kind == kind);
            for row in of_kind().filter(|row| row.id != 0 && !row.name.is_empty()) {
                put_varint30(row.id as i32, self.version, out);
                put_name(&row.name, out);
            }
            put_varint30(0, self.version, out);
            if self.id0_names {
                put_name(of_kind().find(|row| row.id == 0).map_or(b"", |row| &row.name), out);
            }
        }
    }
}

/// Takes a name of at most 255 bytes.
pub(super) fn take_name<'a>(reader: &mut Reader<'a>) -> Decode<&'a [u8]> {
    let length = reader.u8()?;
    reader.take(usize::from(length))
}

/// Appends a name, cut to 255 bytes.
pub(super) fn put_name(name: &[u8], out: &mut Vec<u8>) {
    let name = &name[..name.len().min(ID_NAME_MAX)];
    out.push(name.len() as u8);
    out.extend_from_slice(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(version: u32, id0_names: bool) -> IdLists {
        IdLists { version: Version::new(version).unwrap(), id0_names, users: true, groups: true }
    }

    fn name(kind: IdKind, id: u32, name: &str) -> IdName {
        IdName { kind, id, name: name.into() }
    }

    fn read(lists: &IdLists, bytes: &[u8]) -> Vec<IdName> {
        let mut reader = Reader::new(bytes);
        let mut names = Vec::new();
        let mut last = None;
        while let Some(kind) = lists.after(last) {
            match lists.take_row(kind, &mut reader).unwrap() {
                IdRow::Name(name) => names.push(name),
                IdRow::End(name) => {
                    names.extend(name);
                    last = Some(kind);
                }
            }
        }
        assert_eq!(reader.consumed(), bytes.len());
        names
    }

    #[test]
    fn captured_lists_with_the_name_of_id_0() {
        let bytes = b"\x01\x06daemon\x00\x04root\x02\x03bin\x00\x04root";
        let names = [
            name(IdKind::User, 1, "daemon"),
            name(IdKind::User, 0, "root"),
            name(IdKind::Group, 2, "bin"),
            name(IdKind::Group, 0, "root"),
        ];
        assert_eq!(read(&lists(32, true), bytes), names);
        let mut out = Vec::new();
        lists(32, true).put(&names, &mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn old_lists_never_name_id_0_and_cut_long_names() {
        let mut out = Vec::new();
        lists(29, false)
            .put(&[name(IdKind::User, 0, "root"), name(IdKind::Group, 7, &"g".repeat(300))], &mut out);
        assert_eq!(out[..9], [0, 0, 0, 0, 7, 0, 0, 0, 255]);
        assert_eq!(read(&lists(29, false), &out), [name(IdKind::Group, 7, &"g".repeat(255))]);
    }

    #[test]
    fn an_id_above_31_bits_is_no_negative_number() {
        let mut out = Vec::new();
        lists(32, true).put(&[name(IdKind::User, u32::MAX - 1, "nobody")], &mut out);
        assert_eq!(read(&lists(32, true), &out), [name(IdKind::User, u32::MAX - 1, "nobody")]);
    }
}
