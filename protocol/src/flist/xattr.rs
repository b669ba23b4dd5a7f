//! Extended attributes of entries: lists that entries share, with long values abbreviated.
//!
//! The values themselves travel with items, see [`crate::transfer::XattrExchange`].
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#in-the-file-list

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use md5::{Digest, Md5};

use crate::error::{Decode, PeerMisbehaved};
use crate::limits::{
    XATTRS_MAX, XATTR_INLINE_MAX, XATTR_LISTS_MAX, XATTR_LIST_MAX, XATTR_NAME_MAX, XATTR_VALUE_MAX,
};
use crate::wire::{put_varint, Reader};

/// Longest value that travels in the file list itself, in bytes.
pub const XATTR_WHOLE_MAX: usize = 32;

/// A value as an entry carries it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum XattrValue {
    /// The value: at most 32 bytes.
    Whole(Box<[u8]>),
    /// What stands for a longer one.
    Digest {
        /// Its length in bytes.
        len: u32,
        /// Its MD5, without any seed.
        md5: [u8; 16],
    },
}

impl XattrValue {
    /// Abbreviates a value if it is long.
    pub fn of(value: &[u8]) -> XattrValue {
        if value.len() <= XATTR_WHOLE_MAX {
            return XattrValue::Whole(value.into());
        }
        let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
        XattrValue::Digest { len, md5: Md5::digest(value).into() }
    }

    /// Returns the length of the value itself.
    pub fn value_len(&self) -> usize {
        match self {
            XattrValue::Whole(value) => value.len(),
            XattrValue::Digest { len, .. } => *len as usize,
        }
    }

    /// Whether only a digest is here.
    pub fn is_long(&self) -> bool {
        matches!(self, XattrValue::Digest { .. })
    }

    /// Whether this stands for `value`.
    pub fn stands_for(&self, value: &[u8]) -> bool {
        self.value_len() == value.len() && *self == XattrValue::of(value)
    }
}

/// One attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Xattr {
    /// Its name on the wire, without NUL.
    pub name: Box<[u8]>,
    /// Its value.
    pub value: XattrValue,
}

/// The attributes of one or more entries. Two lists are equal if their attributes are.
#[derive(Debug, Clone)]
pub struct XattrList {
    id: u32,
    items: Vec<Xattr>,
}

impl PartialEq for XattrList {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl Eq for XattrList {}

impl Hash for XattrList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.items.hash(state);
    }
}

impl XattrList {
    /// Returns what tells this list from the others of the run.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the attributes in order: the first one has number 1.
    pub fn items(&self) -> &[Xattr] {
        &self.items
    }

    /// Returns the attribute of a number.
    pub fn by_number(&self, number: u32) -> Option<&Xattr> {
        self.items.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Returns the long values with their numbers.
    pub fn long_values(&self) -> impl Iterator<Item = (u32, &Xattr)> {
        (1..).zip(&self.items).filter(|(_, xattr)| xattr.value.is_long())
    }

    /// What the list costs to keep, in bytes.
    fn cost(&self) -> usize {
        self.items.iter().map(|xattr| xattr.name.len() + 64).sum::<usize>() + 64
    }
}

/// The lists of a sender: equal ones become one.
#[derive(Debug, Default)]
pub struct XattrTable {
    lists: HashSet<Arc<XattrList>>,
}

impl XattrTable {
    /// Returns the list of these attributes, which are sorted by name here. Nothing stands for
    /// the list without attributes.
    pub fn list(&mut self, mut items: Vec<Xattr>) -> Option<Arc<XattrList>> {
        if items.is_empty() {
            return None;
        }
        items.sort_by(|a, b| a.name.cmp(&b.name));
        let list = XattrList { id: self.lists.len() as u32, items };
        if let Some(known) = self.lists.get(&list) {
            return Some(known.clone());
        }
        let list = Arc::new(list);
        self.lists.insert(list.clone());
        Some(list)
    }
}

/// Encodes the attributes of entries.
#[derive(Debug, Default)]
pub(super) struct XattrEncoder {
    /// Wire numbers by id; none is the list without attributes.
    numbers: HashMap<Option<u32>, i32>,
}

impl XattrEncoder {
    /// Appends an entry's field.
    pub(super) fn put(&mut self, list: Option<&XattrList>, out: &mut Vec<u8>) {
        let next = self.numbers.len() as i32;
        let number = *self.numbers.entry(list.map(XattrList::id)).or_insert(next);
        if number < next {
            return put_varint(number + 1, out);
        }
        put_varint(0, out);
        let items = list.map_or(&[][..], XattrList::items);
        put_varint(items.len() as i32, out);
        for Xattr { name, value } in items {
            put_varint(name.len() as i32 + 1, out);
            put_varint(value.value_len() as i32, out);
            out.extend_from_slice(name);
            out.push(0);
            match value {
                XattrValue::Whole(bytes) => out.extend_from_slice(bytes),
                XattrValue::Digest { md5, .. } => out.extend_from_slice(md5),
            }
        }
    }
}

/// An entry's field as it was taken; it counts once the whole entry is accepted.
#[derive(Debug)]
pub(super) enum TakenXattrs {
    /// A list that came before.
    Known(Option<Arc<XattrList>>),
    /// A new list.
    New(Vec<Xattr>),
}

/// Decodes the attributes of entries.
#[derive(Debug, Default)]
pub(super) struct XattrDecoder {
    lists: Vec<Option<Arc<XattrList>>>,
    cost: usize,
}

impl XattrDecoder {
    /// Takes an entry's field, and changes nothing.
    pub(super) fn take(&self, reader: &mut Reader<'_>) -> Decode<TakenXattrs> {
        let number = reader.varint()?;
        if number != 0 {
            let known = usize::try_from(number).ok().and_then(|number| self.lists.get(number - 1));
            let text = "an entry names a list of attributes that was not sent";
            let known = known.ok_or(PeerMisbehaved::RuleWithCode { text, code: 12 })?;
            return Ok(TakenXattrs::Known(known.clone()));
        }
        let count = bounded("xattr count", reader.varint()?, 0, XATTRS_MAX)?;
        // What is allocated grows with what has arrived, not with what was announced.
        let mut items = Vec::with_capacity(count.min(64));
        let (mut inline, mut announced) = (0, 0);
        for _ in 0..count {
            let name_len = bounded("xattr name length", reader.varint()?, 1, XATTR_NAME_MAX)?;
            let len = bounded("xattr value length", reader.varint()?, 0, XATTR_VALUE_MAX)?;
            inline += name_len + len.min(XATTR_WHOLE_MAX);
            announced += name_len + len;
            if inline > XATTR_INLINE_MAX || announced > XATTR_LIST_MAX {
                return Err(PeerMisbehaved::Rule("a list of attributes is too long").into());
            }
            items.push(take_xattr(reader, name_len, len)?);
        }
        Ok(TakenXattrs::New(items))
    }

    /// Keeps what was taken, and returns the entry's list.
    pub(super) fn keep(&mut self, taken: TakenXattrs) -> Result<Option<Arc<XattrList>>, PeerMisbehaved> {
        let items = match taken {
            TakenXattrs::Known(list) => return Ok(list),
            TakenXattrs::New(items) => items,
        };
        let list = XattrList { id: self.lists.len() as u32, items };
        self.cost += list.cost();
        if self.cost > XATTR_LISTS_MAX {
            return Err(PeerMisbehaved::Rule("the lists of attributes are too many"));
        }
        let list = (!list.items.is_empty()).then(|| Arc::new(list));
        self.lists.push(list.clone());
        Ok(list)
    }
}

fn take_xattr(reader: &mut Reader<'_>, name_len: usize, len: usize) -> Decode<Xattr> {
    let name = match reader.take(name_len)? {
        [name @ .., 0] if !name.contains(&0) => name.into(),
        _ => {
            let text = "the name of an attribute is not terminated";
            return Err(PeerMisbehaved::RuleWithCode { text, code: 11 }.into());
        }
    };
    let value = match len {
        0..=XATTR_WHOLE_MAX => XattrValue::Whole(reader.take(len)?.into()),
        _ => XattrValue::Digest { len: len as u32, md5: reader.take_array()? },
    };
    Ok(Xattr { name, value })
}

fn bounded(field: &'static str, value: i32, min: usize, max: usize) -> Result<usize, PeerMisbehaved> {
    usize::try_from(value)
        .ok()
        .filter(|n| (min..=max).contains(n))
        .ok_or(PeerMisbehaved::OutOfRange { field, value: value.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Stop;

    fn xattr(name: &str, value: &[u8]) -> Xattr {
        Xattr { name: name.as_bytes().into(), value: XattrValue::of(value) }
    }

    /// The capture of the specification: an empty list, one with a long value, the same again.
    fn captured() -> Vec<u8> {
        let digest =
            [0x5B, 0x3A, 0x2A, 0x93, 0xE7, 0x4C, 0x8B, 0x48, 0x2E, 0x20, 0x69, 0x9B, 0xBD, 0xFC, 0xBB, 0x91];
        let long = [&b"\x0a\x28user.long\0"[..], &digest].concat();
        [b"\0\0\0\x02", &long[..], b"\x0b\x03user.short\0abc\x02"].concat()
    }

    #[test]
    fn captured_lists_decode_and_encode() {
        let bytes = captured();
        let mut decoder = XattrDecoder::default();
        let mut reader = Reader::new(&bytes);
        let mut lists = Vec::new();
        for _ in 0..3 {
            let taken = decoder.take(&mut reader).unwrap();
            lists.push(decoder.keep(taken).unwrap());
        }
        assert!(reader.rest().is_empty());
        assert_eq!(lists[0], None);
        let list = lists[1].as_ref().unwrap();
        assert_eq!(list.items(), [xattr("user.long", &[b'L'; 40]), xattr("user.short", b"abc")]);
        assert_eq!(list.long_values().map(|(number, _)| number).collect::<Vec<_>>(), [1]);
        assert!(Arc::ptr_eq(list, lists[2].as_ref().unwrap()));
        let mut again = Vec::new();
        let mut encoder = XattrEncoder::default();
        lists.iter().for_each(|list| encoder.put(list.as_deref(), &mut again));
        assert_eq!(again, bytes);
        for end in 2..bytes.len() - 1 {
            let mut reader = Reader::new(&bytes[2..end]);
            assert!(matches!(XattrDecoder::default().take(&mut reader), Err(Stop::Short)), "{end}");
        }
    }

    #[test]
    fn lies_are_refused_with_their_codes() {
        for (bytes, code) in [
            (&b"\x01"[..], 12),
            (b"\xff\xff\xff\xff\xff", 12),
            (b"\0\xc1\x01\0", 2),
            (b"\0\x01\0\0", 2),
            (b"\0\x01\x90\x01\0", 2),
            (b"\0\x01\x02\x01abx", 11),
            (b"\0\x01\x03\x01\0a\0x", 11),
            (b"\0\x01\x02\xe8\x01\0\0a\0", 2),
        ] {
            let Err(Stop::Bad(error)) = XattrDecoder::default().take(&mut Reader::new(bytes)) else {
                panic!("{bytes:x?} is a lie");
            };
            assert_eq!(error.exit_code(), code, "{bytes:x?}");
        }
    }

    #[test]
    fn equal_lists_become_one_whatever_their_order() {
        let mut table = XattrTable::default();
        let one = table.list(vec![xattr("user.b", b"2"), xattr("user.a", b"1")]).unwrap();
        let other = table.list(vec![xattr("user.a", b"1"), xattr("user.b", b"2")]).unwrap();
        let third = table.list(vec![xattr("user.a", b"1")]).unwrap();
        assert!(Arc::ptr_eq(&one, &other));
        assert_ne!(one.id(), third.id());
        assert_eq!(table.list(Vec::new()), None);
        assert_eq!(one.by_number(2), Some(&xattr("user.b", b"2")));
        assert_eq!((one.by_number(0), one.by_number(3)), (None, None));
    }

    #[test]
    fn a_digest_stands_for_its_value_only() {
        let long = XattrValue::of(&[7; 33]);
        assert!(long.is_long() && long.stands_for(&[7; 33]));
        assert!(!long.stands_for(&[8; 33]) && !long.stands_for(&[7; 34]));
        assert!(!XattrValue::of(&[7; 32]).is_long());
    }
}
