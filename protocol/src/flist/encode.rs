//! Entries as they are sent: a whole segment per call, in index order, so that the order of
//! transmission and the order of indexes are one.
//!
//! Wire: protocol/doc/10-file-list.md#3-field-order-of-one-entry

use std::borrow::Cow;
use std::collections::HashMap;

use super::acl::{AclKind, AclWriter};
use super::flags::{Form, Previous, WireFlags};
use super::ids::put_name;
use super::xattr::XattrEncoder;
use super::{EntryFlags, EntryRef, FileKind, HardLink, IdKind, Rdev, Segment};
use crate::session::Session;
use crate::wire::{put_i32, put_longint, put_varint, put_varint30, put_varlong, put_varlong30};

/// Names that were not sent yet.
pub(super) type Names<'a> = HashMap<(IdKind, u32), &'a [u8]>;

/// Longest common prefix that a length byte can name.
const PREFIX_MAX: usize = 255;

/// Encodes the entries of all segments of a run.
#[derive(Debug)]
pub struct EntryEncoder {
    form: Form,
    previous: Previous,
    acls: AclWriter,
    xattrs: XattrEncoder,
}

impl EntryEncoder {
    /// Starts before the first list.
    pub fn new(session: &Session) -> Self {
        EntryEncoder {
            form: Form::new(session),
            previous: Previous::default(),
            acls: AclWriter::default(),
            xattrs: XattrEncoder::default(),
        }
    }

    /// Appends all entries of a segment and its end mark.
    ///
    /// From version 30 on the entries' hard links are groups, below they are inodes. The names of
    /// the segment's ids go inline, if the session has them there.
    pub fn encode(&mut self, segment: &Segment, out: &mut Vec<u8>) {
        let mut names = Names::new();
        if self.form.inline_names {
            names.extend(segment.id_names().iter().map(|name| ((name.kind, name.id), name.name.as_slice())));
        }
        for (ndx, entry) in segment.iter() {
            self.put_entry(ndx.0, segment.start().0, entry, &mut names, out);
        }
        let error = i32::from(segment.io_errors().bits());
        self.form.width.put_end(error, self.form.safe_end, out);
    }

    fn put_entry(
        &mut self,
        number: i32,
        start: i32,
        entry: EntryRef<'_>,
        names: &mut Names<'_>,
        out: &mut Vec<u8>,
    ) {
        let name = self.form.wire_name(entry);
        let name = name.as_ref();
        let prefix =
            name.iter().zip(&self.previous.name).take(PREFIX_MAX).take_while(|(a, b)| a == b).count();
        let suffix = &name[prefix..];
        let mut flags = self.form.kind_flags(entry) | self.same_flags(entry);
        flags.set(WireFlags::SAME_NAME, prefix > 0);
        flags.set(WireFlags::LONG_NAME, suffix.len() > 255);
        let link = self.form.link_of(number, entry);
        flags |= self.link_flags(link);
        let mut unsent = |same, kind, id| {
            let name = if flags.contains(same) { None } else { names.remove(&(kind, id)) };
            name.filter(|name| !name.is_empty())
        };
        let user_name = unsent(WireFlags::SAME_UID, IdKind::User, entry.uid());
        let group_name = unsent(WireFlags::SAME_GID, IdKind::Group, entry.gid());
        if user_name.is_some() {
            flags |= WireFlags::USER_NAME_FOLLOWS;
        }
        if group_name.is_some() {
            flags |= WireFlags::GROUP_NAME_FOLLOWS;
        }

        let flags = self.form.width.fill(flags, entry.is_dir());
        self.form.width.put(flags, out);
        if prefix > 0 {
            out.push(prefix as u8);
        }
        if flags.contains(WireFlags::LONG_NAME) {
            put_varint30(suffix.len() as i32, self.form.version, out);
        } else {
            out.push(suffix.len() as u8);
        }
        out.extend_from_slice(suffix);
        let mut abbreviated = false;
        if let Some(HardLink::Group { group, first: false }) = link {
            put_varint(group, out);
            abbreviated = group >= start;
        }
        if !abbreviated {
            self.form.put_numbers(flags, entry, user_name, group_name, out);
            self.form.put_extra(flags, entry, link, out);
        }
        if self.form.acls && entry.kind() != FileKind::Symlink {
            self.acls.put(AclKind::Access, entry.access_acl(), names, out);
            if entry.is_dir() {
                self.acls.put(AclKind::Default, entry.default_acl(), names, out);
            }
        }
        if self.form.xattrs {
            self.xattrs.put(entry.xattrs().map(|list| &**list), out);
        }
        self.previous.name.clear();
        self.previous.name.extend_from_slice(name);
        self.remember(entry, link);
    }

    /// Returns the bits for what equals the previous entry's.
    fn same_flags(&self, entry: EntryRef<'_>) -> WireFlags {
        let previous = &self.previous;
        let layout = &self.form.layout;
        // Until a first name was sent, ids are sent even if they are 0.
        let started = !previous.name.is_empty();
        let mut flags = WireFlags::empty();
        flags.set(WireFlags::SAME_MODE, entry.mode().0 == previous.mode);
        flags.set(WireFlags::SAME_TIME, entry.mtime() == previous.mtime);
        flags.set(WireFlags::SAME_UID, !layout.uid || (started && entry.uid() == previous.uid));
        flags.set(WireFlags::SAME_GID, !layout.gid || (started && entry.gid() == previous.gid));
        if layout.atimes && !entry.is_dir() {
            flags.set(WireFlags::SAME_ATIME, entry.atime().unwrap_or(0) == previous.atime);
        }
        if self.form.sends_device(entry.kind()) {
            let rdev = entry.rdev().unwrap_or_default();
            match self.form.version.has_extended_flags() {
                true => flags.set(WireFlags::SAME_RDEV_MAJOR, rdev.major == previous.rdev.major),
                false => flags.set(WireFlags::SAME_RDEV, rdev == previous.rdev),
            }
        }
        flags
    }

    fn link_flags(&self, link: Option<HardLink>) -> WireFlags {
        match link {
            None => WireFlags::empty(),
            Some(HardLink::Group { first: true, .. }) => WireFlags::HARD_LINKED | WireFlags::FIRST_OF_GROUP,
            Some(HardLink::Group { first: false, .. }) => WireFlags::HARD_LINKED,
            Some(HardLink::Inode { dev, .. }) if self.form.version.has_extended_flags() => {
                let same = if dev == self.previous.dev { WireFlags::SAME_DEV } else { WireFlags::empty() };
                WireFlags::HARD_LINKED | same
            }
            Some(HardLink::Inode { .. }) => WireFlags::empty(),
        }
    }

    fn remember(&mut self, entry: EntryRef<'_>, link: Option<HardLink>) {
        let kind = entry.kind();
        let previous = &mut self.previous;
        previous.mode = entry.mode().0;
        previous.mtime = entry.mtime();
        previous.uid = entry.uid();
        previous.gid = entry.gid();
        if self.form.layout.atimes && !entry.is_dir() {
            previous.atime = entry.atime().unwrap_or(0);
        }
        if self.form.sends_device(kind) {
            previous.rdev = entry.rdev().unwrap_or_default();
        } else if !self.form.version.has_extended_flags() {
            // Behind a special, peers may differ in what "same" means: it equals no device then.
            previous.rdev = match self.form.sends_special(kind) {
                true => Rdev { major: u32::MAX, minor: u32::MAX },
                false => Rdev::default(),
            };
        }
        if let Some(HardLink::Inode { dev, .. }) = link {
            previous.dev = dev;
        }
    }
}

impl Form {
    /// Returns a name in the charset of the wire. The walk listed none that cannot be converted.
    fn wire_name<'a>(&self, entry: EntryRef<'a>) -> Cow<'a, [u8]> {
        match self.names {
            Some(charset) => charset.path_to_utf8(entry.wire_path()).0,
            None => Cow::Borrowed(entry.wire_path()),
        }
    }

    /// Returns a symlink's target in the charset of the wire.
    fn wire_target<'a>(&self, entry: EntryRef<'a>) -> Cow<'a, [u8]> {
        let target = entry.link_target().unwrap_or(b"");
        match self.targets {
            Some(charset) => charset.path_to_utf8(target).0,
            None => Cow::Borrowed(target),
        }
    }

    fn sends_device(&self, kind: FileKind) -> bool {
        self.layout.devices && kind.is_device()
    }

    /// Whether a special file carries a (meaningless) device field.
    fn sends_special(&self, kind: FileKind) -> bool {
        self.layout.specials && kind.is_special() && self.version.sends_rdev_of_specials()
    }

    /// Returns the bits that depend on the entry alone.
    fn kind_flags(&self, entry: EntryRef<'_>) -> WireFlags {
        let mut flags = WireFlags::empty();
        let kind = entry.kind();
        if kind == FileKind::Directory {
            flags |= self.directory_flags(entry.flags());
        }
        if self.sends_special(kind) {
            flags |= match self.version.has_extended_flags() {
                true => WireFlags::SAME_RDEV_MAJOR,
                false => WireFlags::SAME_RDEV,
            };
        }
        let split_minor = self.version.has_extended_flags() && !self.version.has_varints();
        if split_minor && (self.sends_device(kind) || self.sends_special(kind)) {
            flags.set(WireFlags::BYTE_MINOR, entry.rdev().unwrap_or_default().minor <= 0xFF);
        }
        flags.set(WireFlags::MTIME_NSEC, self.version.has_nanoseconds() && entry.mtime_nsec() != 0);
        let crtime_is_mtime = entry.crtime().is_none_or(|crtime| crtime == entry.mtime());
        flags.set(WireFlags::CRTIME_IS_MTIME, self.layout.crtimes && crtime_is_mtime);
        flags
    }

    /// Wire: protocol/doc/10-file-list.md#8-directory-flags-top-content-implied
    fn directory_flags(&self, flags: EntryFlags) -> WireFlags {
        let content = flags.contains(EntryFlags::CONTENT_DIR);
        let top = flags.contains(EntryFlags::TOP_DIR) && content;
        let mut wire = WireFlags::empty();
        if self.version.flags_directory_content() {
            wire.set(WireFlags::TOP_DIR, top || (flags.contains(EntryFlags::IMPLIED_DIR) && !content));
            wire.set(WireFlags::NO_CONTENT_DIR, !content);
        } else {
            wire.set(WireFlags::TOP_DIR, top);
        }
        wire
    }

    /// Returns the hard link as this version sends it.
    fn link_of(&self, number: i32, entry: EntryRef<'_>) -> Option<HardLink> {
        if !self.layout.hard_links || entry.is_dir() {
            return None;
        }
        match entry.hard_link() {
            Some(HardLink::Group { .. }) if !self.version.has_hard_link_groups() => None,
            Some(HardLink::Inode { .. }) if self.version.has_hard_link_groups() => None,
            // At 27 every regular file has these fields. No real device is sent as 0.
            None if !self.version.has_extended_flags() && entry.is_regular() => {
                Some(HardLink::Inode { dev: 0, ino: number.into() })
            }
            Some(HardLink::Inode { .. }) if !self.version.has_extended_flags() && !entry.is_regular() => None,
            link => link,
        }
    }

    /// Appends fields 6 to 15.
    fn put_numbers(
        &self,
        flags: WireFlags,
        entry: EntryRef<'_>,
        user_name: Option<&[u8]>,
        group_name: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        let Form { version, ref layout, .. } = *self;
        put_varlong30(i64::try_from(entry.size()).unwrap_or(i64::MAX), 3, version, out);
        if !flags.contains(WireFlags::SAME_TIME) {
            match version.has_varints() {
                true => put_varlong(entry.mtime(), 4, out),
                false => put_i32(entry.mtime() as u32 as i32, out),
            }
        }
        if flags.contains(WireFlags::MTIME_NSEC) {
            put_varint(entry.mtime_nsec() as i32, out);
        }
        if layout.crtimes && !flags.contains(WireFlags::CRTIME_IS_MTIME) {
            put_varlong(entry.crtime().unwrap_or(entry.mtime()), 4, out);
        }
        if !flags.contains(WireFlags::SAME_MODE) {
            put_i32(entry.mode().0 as i32, out);
        }
        if layout.atimes && !entry.is_dir() && !flags.contains(WireFlags::SAME_ATIME) {
            put_varlong(entry.atime().unwrap_or(0), 4, out);
        }
        if layout.uid && !flags.contains(WireFlags::SAME_UID) {
            put_varint30(entry.uid() as i32, version, out);
            user_name.into_iter().for_each(|name| put_name(name, out));
        }
        if layout.gid && !flags.contains(WireFlags::SAME_GID) {
            put_varint30(entry.gid() as i32, version, out);
            group_name.into_iter().for_each(|name| put_name(name, out));
        }
    }

    /// Appends fields 16 to 19.
    fn put_extra(&self, flags: WireFlags, entry: EntryRef<'_>, link: Option<HardLink>, out: &mut Vec<u8>) {
        let kind = entry.kind();
        self.put_rdev(flags, entry, out);
        if kind == FileKind::Symlink && self.layout.links {
            let target = self.wire_target(entry);
            put_varint30(target.len() as i32, self.version, out);
            out.extend_from_slice(&target);
        }
        if let Some(HardLink::Inode { dev, ino }) = link {
            if !(self.version.has_extended_flags() && flags.contains(WireFlags::SAME_DEV)) {
                put_longint(dev, out);
            }
            put_longint(ino, out);
        }
        if self.layout.checksum && (kind == FileKind::Regular || !self.version.checksums_regular_only()) {
            // Zeros where there is no sum: a file that could not be read, or no file at all.
            let sum = entry.checksum().filter(|sum| sum.len() == self.sum_len);
            match sum {
                Some(sum) => out.extend_from_slice(sum),
                None => out.resize(out.len() + self.sum_len, 0),
            }
        }
    }

    fn put_rdev(&self, flags: WireFlags, entry: EntryRef<'_>, out: &mut Vec<u8>) {
        let device = self.sends_device(entry.kind());
        let rdev = if device { entry.rdev().unwrap_or_default() } else { Rdev::default() };
        if !self.version.has_extended_flags() {
            if device && !flags.contains(WireFlags::SAME_RDEV) {
                put_i32(rdev.to_linux() as i32, out);
            }
            return;
        }
        if !device && !self.sends_special(entry.kind()) {
            return;
        }
        if !flags.contains(WireFlags::SAME_RDEV_MAJOR) {
            put_varint30(rdev.major as i32, self.version, out);
        }
        match self.version.has_varints() {
            true => put_varint(rdev.minor as i32, out),
            false if flags.contains(WireFlags::BYTE_MINOR) => out.push(rdev.minor as u8),
            false => put_i32(rdev.minor as i32, out),
        }
    }
}
