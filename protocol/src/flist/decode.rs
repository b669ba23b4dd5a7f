//! Entries as they arrive: one per call, with everything a receiver must check of a list.
//!
//! An entry is parsed whole before anything changes, so that a short read is simply tried again.
//! Wire: protocol/doc/10-file-list.md#3-field-order-of-one-entry

use std::borrow::Cow;
use std::collections::HashSet;

use super::acl::{AclKind, AclReader, TakenAcls};
use super::clean::clean_name;
use super::flags::{Form, Opening, Previous, WireFlags};
use super::ids::take_name;
use super::xattr::{TakenXattrs, XattrDecoder};
use super::{
    EntryFlags, EntryRef, Extra, FileKind, HardLink, IdKind, IdName, IoErrors, Mode, NewEntry, Rdev,
    SegmentBuilder, Unconverted,
};
use crate::error::{Decode, Error, Malformed, PeerMisbehaved};
use crate::limits::{ENTRIES_MAX, ID_NAMES_MAX, PATH_MAX};
use crate::session::Session;
use crate::wire::Reader;

/// What stood in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// An entry, now in the builder.
    Entry,
    /// The end of the list, with the sender's error bits where the end mark carries them.
    End(IoErrors),
}

/// Decodes the entries of all segments of a run.
#[derive(Debug)]
pub struct EntryDecoder {
    form: Form,
    previous: Previous,
    /// Below 30, while directories lie below a directory that was named by an argument: how many
    /// bytes of their names prove it.
    top: Option<usize>,
    /// Wire numbers of the hard-link groups that were declared.
    groups: HashSet<i32>,
    acls: AclReader,
    id_names: usize,
    xattrs: XattrDecoder,
}

/// One entry's fields, as the bytes say; "same" bits are resolved.
struct Parsed<'a> {
    flags: WireFlags,
    prefix: usize,
    suffix: &'a [u8],
    mode: Mode,
    size: u64,
    mtime: i64,
    mtime_nsec: u32,
    atime: Option<i64>,
    uid: u32,
    gid: u32,
    /// What "same device" will refer to.
    next_rdev: Rdev,
    extra: Extra,
    user_name: Option<&'a [u8]>,
    group_name: Option<&'a [u8]>,
    acls: TakenAcls<'a>,
    xattrs: Option<TakenXattrs>,
    /// Whether the fields are those of an earlier entry, already converted.
    is_copied: bool,
}

impl EntryDecoder {
    /// Starts before the first list.
    pub fn new(session: &Session) -> Self {
        EntryDecoder {
            form: Form::new(session),
            previous: Previous::default(),
            top: None,
            groups: HashSet::new(),
            acls: AclReader::default(),
            id_names: 0,
            xattrs: XattrDecoder::default(),
        }
    }

    /// Takes one entry and pushes it onto `list`, or takes the end of the list.
    pub fn decode(&mut self, reader: &mut Reader<'_>, list: &mut SegmentBuilder) -> Decode<Listed> {
        let flags = match self.form.width.take(reader)? {
            Opening::Entry(flags) => flags,
            Opening::End => return Ok(Listed::End(IoErrors::empty())),
            Opening::EndWithError => {
                self.form.check_error_end()?;
                return Ok(Listed::End(IoErrors::from_bits_truncate(reader.varint()? as u8)));
            }
        };
        if list.next_wire_number() as usize >= ENTRIES_MAX {
            return Err(PeerMisbehaved::Rule("the file lists hold too many entries").into());
        }
        let mut parsed = self.take_entry(flags, reader, list)?;
        if self.form.acls && parsed.mode.kind() != FileKind::Symlink {
            parsed.acls = self.acls.take(parsed.mode.kind() == FileKind::Directory, reader)?;
        }
        // An abbreviated hard link has this field too.
        if self.form.xattrs {
            parsed.xattrs = Some(self.xattrs.take(reader)?);
        }
        self.accept(parsed, list)?;
        Ok(Listed::Entry)
    }

    fn take_entry<'a>(
        &self,
        flags: WireFlags,
        reader: &mut Reader<'a>,
        list: &SegmentBuilder,
    ) -> Decode<Parsed<'a>> {
        let (prefix, suffix) = self.take_name(flags, reader)?;
        let group = self.take_group(flags, reader, list.next_wire_number())?;
        if let Some(HardLink::Group { group: first, first: false }) = group {
            if first >= list.start().0 {
                let leader =
                    usize::try_from(first - list.start().0).ok().and_then(|position| list.get(position));
                let leader =
                    leader.ok_or(PeerMisbehaved::Rule("a hard link names an entry that was not sent"))?;
                return Ok(self.copied(flags, prefix, suffix, group, leader));
            }
        }
        let mut parsed = self.take_numbers(flags, reader)?;
        (parsed.prefix, parsed.suffix) = (prefix, suffix);
        parsed.extra.hard_link = group;
        self.take_extra(&mut parsed, reader)?;
        Ok(parsed)
    }

    /// Takes fields 2 to 4.
    fn take_name<'a>(&self, flags: WireFlags, reader: &mut Reader<'a>) -> Decode<(usize, &'a [u8])> {
        let prefix = if flags.contains(WireFlags::SAME_NAME) { usize::from(reader.u8()?) } else { 0 };
        let suffix = if flags.contains(WireFlags::LONG_NAME) {
            reader.varint30(self.form.version)? as u32
        } else {
            u32::from(reader.u8()?)
        };
        if prefix > self.previous.name.len() {
            return Err(PeerMisbehaved::OutOfRange { field: "name prefix", value: prefix as i64 }.into());
        }
        let suffix = bounded("file name", suffix, PATH_MAX - prefix)?;
        Ok((prefix, reader.take(suffix)?))
    }

    /// Takes field 5: from version 30 on, the group of a hard link.
    fn take_group(&self, flags: WireFlags, reader: &mut Reader<'_>, number: i32) -> Decode<Option<HardLink>> {
        if !self.form.version.has_hard_link_groups() || !flags.contains(WireFlags::HARD_LINKED) {
            return Ok(None);
        }
        if flags.contains(WireFlags::FIRST_OF_GROUP) {
            return Ok(Some(HardLink::Group { group: number, first: true }));
        }
        let group = reader.varint()?;
        if group < 0 || group >= number {
            return Err(PeerMisbehaved::OutOfRange { field: "hard-link index", value: group.into() }.into());
        }
        if !self.groups.contains(&group) {
            return Err(PeerMisbehaved::Rule("a hard link names a group that was never declared").into());
        }
        Ok(Some(HardLink::Group { group, first: false }))
    }

    /// Copies the fields of an abbreviated hard link from the first entry of its group.
    fn copied<'a>(
        &self,
        flags: WireFlags,
        prefix: usize,
        suffix: &'a [u8],
        group: Option<HardLink>,
        leader: EntryRef<'_>,
    ) -> Parsed<'a> {
        Parsed {
            flags,
            prefix,
            suffix,
            mode: leader.mode(),
            size: leader.size(),
            mtime: leader.mtime(),
            mtime_nsec: leader.mtime_nsec(),
            atime: leader.atime(),
            uid: leader.uid(),
            gid: leader.gid(),
            next_rdev: leader.rdev().unwrap_or(self.previous.rdev),
            extra: Extra { hard_link: group, ..leader.extra().cloned().unwrap_or_default() },
            user_name: None,
            group_name: None,
            acls: TakenAcls::default(),
            xattrs: None,
            is_copied: true,
        }
    }

    /// Takes fields 6 to 15.
    fn take_numbers<'a>(&self, flags: WireFlags, reader: &mut Reader<'a>) -> Decode<Parsed<'a>> {
        let Form { version, ref layout, .. } = self.form;
        let size = reader.varlong30(3, version)?;
        let size = u64::try_from(size)
            .map_err(|_| PeerMisbehaved::RuleWithCode { text: "a file has a negative size", code: 4 })?;
        let mtime = match () {
            () if flags.contains(WireFlags::SAME_TIME) => self.previous.mtime,
            () if version.has_varints() => reader.varlong(4)?,
            () => i64::from(reader.i32()? as u32),
        };
        let mtime_nsec = match flags.contains(WireFlags::MTIME_NSEC) && version.has_nanoseconds() {
            true => nanoseconds(reader.varint()?)?,
            false => 0,
        };
        let crtime = match layout.crtimes {
            true if flags.contains(WireFlags::CRTIME_IS_MTIME) => Some(mtime),
            true => Some(reader.varlong(4)?),
            false => None,
        };
        let mode = match flags.contains(WireFlags::SAME_MODE) {
            true => self.previous.mode,
            false => reader.i32()? as u32 & 0xFFFF,
        };
        let kind = self.checked_kind(Mode(mode))?;
        let atime = match layout.atimes && kind != FileKind::Directory {
            true if flags.contains(WireFlags::SAME_ATIME) => Some(self.previous.atime),
            true => Some(reader.varlong(4)?),
            false => None,
        };
        let named = |flag| version.has_varints() && flags.contains(flag);
        let (mut uid, mut user_name) = (self.previous.uid, None);
        if layout.uid && !flags.contains(WireFlags::SAME_UID) {
            uid = reader.varint30(version)? as u32;
            user_name = named(WireFlags::USER_NAME_FOLLOWS).then(|| take_name(reader)).transpose()?;
        }
        let (mut gid, mut group_name) = (self.previous.gid, None);
        if layout.gid && !flags.contains(WireFlags::SAME_GID) {
            gid = reader.varint30(version)? as u32;
            group_name = named(WireFlags::GROUP_NAME_FOLLOWS).then(|| take_name(reader)).transpose()?;
        }
        Ok(Parsed {
            flags,
            prefix: 0,
            suffix: b"",
            mode: Mode(mode),
            size,
            mtime,
            mtime_nsec,
            atime,
            uid,
            gid,
            next_rdev: Rdev::default(),
            extra: Extra { atime, crtime, ..Extra::default() },
            user_name,
            group_name,
            acls: TakenAcls::default(),
            xattrs: None,
            is_copied: false,
        })
    }

    fn checked_kind(&self, mode: Mode) -> Result<FileKind, PeerMisbehaved> {
        match mode.try_kind() {
            Some(FileKind::Missing) if !self.form.layout.missing_args => None,
            kind => kind,
        }
        .ok_or(PeerMisbehaved::OutOfRange { field: "mode", value: mode.0.into() })
    }

    /// Takes fields 16 to 19.
    fn take_extra(&self, parsed: &mut Parsed<'_>, reader: &mut Reader<'_>) -> Decode<()> {
        let Form { version, ref layout, sum_len, .. } = self.form;
        let kind = parsed.mode.kind();
        (parsed.extra.rdev, parsed.next_rdev) = self.take_rdev(parsed.flags, kind, reader)?;
        if kind == FileKind::Symlink && layout.links {
            let length = reader.varint30(version)? as u32;
            let length = bounded("symlink target", length, PATH_MAX)?;
            parsed.extra.link_target = Some(reader.take(length)?.into());
        }
        if self.has_inode(parsed.flags, kind) {
            let same_dev = version.has_extended_flags() && parsed.flags.contains(WireFlags::SAME_DEV);
            let dev = if same_dev { self.previous.dev } else { reader.longint()? };
            parsed.extra.hard_link = Some(HardLink::Inode { dev, ino: reader.longint()? });
        }
        if layout.checksum && (kind == FileKind::Regular || !version.checksums_regular_only()) {
            let sum = reader.take(sum_len)?;
            parsed.extra.checksum = (kind == FileKind::Regular).then(|| sum.into());
        }
        Ok(())
    }

    /// Whether device and inode are present: at 27 they come with every regular file.
    fn has_inode(&self, flags: WireFlags, kind: FileKind) -> bool {
        let version = self.form.version;
        if version.has_hard_link_groups() {
            false
        } else if version.has_extended_flags() {
            flags.contains(WireFlags::HARD_LINKED)
        } else {
            self.form.layout.hard_links && kind == FileKind::Regular
        }
    }

    /// Takes the device number; returns it and what the next entry's "same" bits refer to.
    fn take_rdev(
        &self,
        flags: WireFlags,
        kind: FileKind,
        reader: &mut Reader<'_>,
    ) -> Decode<(Option<Rdev>, Rdev)> {
        let Form { version, ref layout, .. } = self.form;
        let previous = self.previous.rdev;
        let device = layout.devices && kind.is_device();
        let special = layout.specials && kind.is_special() && version.sends_rdev_of_specials();
        if !version.has_extended_flags() {
            let rdev = match device || special {
                false => return Ok((None, Rdev::default())),
                true if flags.contains(WireFlags::SAME_RDEV) => previous,
                true => Rdev::from_linux(reader.i32()? as u32),
            };
            return Ok((device.then_some(rdev), rdev));
        }
        if !device && !special {
            return Ok((None, previous));
        }
        let major = match flags.contains(WireFlags::SAME_RDEV_MAJOR) {
            true => previous.major,
            false => reader.varint30(version)? as u32,
        };
        let minor = match version.has_varints() {
            true => reader.varint()? as u32,
            false if flags.contains(WireFlags::BYTE_MINOR) => u32::from(reader.u8()?),
            false => reader.i32()? as u32,
        };
        let rdev = Rdev { major, minor };
        Ok((device.then_some(rdev), rdev))
    }

    /// Checks a parsed entry, pushes it, and makes it the previous one.
    fn accept(&mut self, mut parsed: Parsed<'_>, list: &mut SegmentBuilder) -> Result<(), Error> {
        self.previous.name.truncate(parsed.prefix);
        self.previous.name.extend_from_slice(parsed.suffix);
        let (name, unconverted) = self.form.convert(&self.previous.name, &mut parsed);
        let path = clean_name(&name, self.form.layout.relative)?;
        let kind = parsed.mode.kind();
        let is_root = matches!(&*path, b"." | b"/.");
        if is_root && kind != FileKind::Directory {
            return Err(PeerMisbehaved::Rule("the top of the transfer is not a directory").into());
        }
        if self.form.incremental {
            check_directory(&path, list)?;
        }
        let mut flags = match kind {
            FileKind::Directory if self.form.version.flags_directory_content() => {
                directory_flags(parsed.flags)
            }
            FileKind::Directory => {
                self.form.derive_flags(&mut self.top, &parsed, &self.previous.name, is_root)
            }
            _ => EntryFlags::empty(),
        };
        if let Some(what) = unconverted {
            flags |= EntryFlags::UNCONVERTED;
            list.push_unconverted(what);
        }
        if let Some(HardLink::Group { group, first: true }) = parsed.extra.hard_link {
            self.groups.insert(group);
        }
        match parsed.extra.hard_link {
            Some(HardLink::Inode { dev, .. }) => self.previous.dev = dev,
            Some(HardLink::Group { .. }) | None => {}
        }
        if kind == FileKind::Directory {
            parsed.extra.hard_link = None;
        } else if parsed.flags.contains(WireFlags::HARD_LINKED) && !self.form.layout.hard_links {
            return Err(PeerMisbehaved::Rule("a hard link was not asked for").into());
        }
        let TakenAcls { access, default, names: acl_names } = parsed.acls;
        parsed.extra.access_acl = self.acls.keep(AclKind::Access, access)?;
        parsed.extra.default_acl = self.acls.keep(AclKind::Default, default)?;
        let entry = NewEntry {
            path: &path,
            mode: parsed.mode,
            size: parsed.size,
            mtime: parsed.mtime,
            mtime_nsec: parsed.mtime_nsec,
            uid: parsed.uid,
            gid: parsed.gid,
            flags,
        };
        parsed.extra.xattrs = match parsed.xattrs.take() {
            Some(taken) => self.xattrs.keep(taken)?,
            None => None,
        };
        list.push(entry, parsed.extra)?;
        self.previous.mode = parsed.mode.0;
        self.previous.mtime = parsed.mtime;
        self.previous.atime = parsed.atime.unwrap_or(self.previous.atime);
        self.previous.uid = parsed.uid;
        self.previous.gid = parsed.gid;
        self.previous.rdev = parsed.next_rdev;
        self.note_name(IdKind::User, parsed.uid, parsed.user_name, list)?;
        self.note_name(IdKind::Group, parsed.gid, parsed.group_name, list)?;
        acl_names.into_iter().try_for_each(|(kind, id, name)| self.note_name(kind, id, Some(name), list))
    }

    fn note_name(
        &mut self,
        kind: IdKind,
        id: u32,
        name: Option<&[u8]>,
        list: &mut SegmentBuilder,
    ) -> Result<(), Error> {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(()) };
        self.id_names += 1;
        if self.id_names > ID_NAMES_MAX {
            return Err(PeerMisbehaved::Rule("the file lists name too many ids").into());
        }
        list.push_id_name(IdName { kind, id, name: name.into() });
        Ok(())
    }
}

impl Form {
    /// Returns the name in this end's charset, and converts the target of a symlink. What of them
    /// cannot be converted stays as it is, and is returned.
    fn convert<'n>(&self, name: &'n [u8], parsed: &mut Parsed<'_>) -> (Cow<'n, [u8]>, Option<Unconverted>) {
        let Some(charset) = self.names else { return (Cow::Borrowed(name), None) };
        let (path, end) = charset.path_from_utf8(name);
        let mut unconverted = end.err().map(|_| Unconverted::Name(name.into()));
        let targets = self.targets.filter(|_| !parsed.is_copied);
        if let (Some(charset), Some(target)) = (targets, &mut parsed.extra.link_target) {
            let (converted, end) = charset.path_from_utf8(target);
            if end.is_err() && unconverted.is_none() {
                unconverted = Some(Unconverted::Target((*path).into()));
            }
            *target = converted.as_ref().into();
        }
        (path, unconverted)
    }

    /// Below 30: derives what a directory's bits do not say.
    ///
    /// Wire: protocol/doc/10-file-list.md#8-directory-flags-top-content-implied
    fn derive_flags(
        &self,
        top: &mut Option<usize>,
        parsed: &Parsed<'_>,
        name: &[u8],
        is_root: bool,
    ) -> EntryFlags {
        if parsed.flags.contains(WireFlags::TOP_DIR) {
            let proof = if self.layout.relative && !is_root { name.len() } else { 0 };
            *top = self.layout.recursive.then_some(proof);
            return EntryFlags::TOP_DIR | EntryFlags::CONTENT_DIR;
        }
        let below = |proof: usize| proof == 0 || (parsed.prefix >= proof && name.get(proof) == Some(&b'/'));
        *top = top.filter(|&proof| below(proof));
        if top.is_some() {
            EntryFlags::CONTENT_DIR
        } else {
            EntryFlags::empty()
        }
    }
}

/// Reads a directory's bits, from version 30 on.
///
/// Wire: protocol/doc/10-file-list.md#8-directory-flags-top-content-implied
fn directory_flags(flags: WireFlags) -> EntryFlags {
    match (flags.contains(WireFlags::NO_CONTENT_DIR), flags.contains(WireFlags::TOP_DIR)) {
        (false, false) => EntryFlags::CONTENT_DIR,
        (false, true) => EntryFlags::TOP_DIR | EntryFlags::CONTENT_DIR,
        (true, true) => EntryFlags::IMPLIED_DIR,
        (true, false) => EntryFlags::empty(),
    }
}

/// Refuses an entry that does not lie in the directory that its segment lists.
fn check_directory(path: &[u8], list: &SegmentBuilder) -> Result<(), PeerMisbehaved> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let directory = path.iter().rposition(|&byte| byte == b'/').map(|slash| &path[..slash]);
    let expected = list.dir().map(|dir| dir.path().as_bytes());
    if directory == expected {
        Ok(())
    } else {
        Err(PeerMisbehaved::ForeignEntry(String::from_utf8_lossy(path).into_owned()))
    }
}

/// Accepts a length below `limit`.
fn bounded(field: &'static str, length: u32, limit: usize) -> Result<usize, Malformed> {
    usize::try_from(length)
        .ok()
        .filter(|&n| n < limit)
        .ok_or(Malformed::Overflow { field, length: length.into() })
}

fn nanoseconds(value: i32) -> Result<u32, PeerMisbehaved> {
    u32::try_from(value)
        .ok()
        .filter(|&n| n <= 999_999_999)
        .ok_or(PeerMisbehaved::OutOfRange { field: "nanoseconds", value: value.into() })
}

#[cfg(test)]
mod tests;
