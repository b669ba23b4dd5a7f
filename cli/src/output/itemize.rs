//! The 11 characters of `%i`.
//!
//! Wire: protocol/doc/22-output.md#6-itemize-string-i--i-11-characters-yxcstpoguax

use suisei_engine::observe::ItemReport;
use suisei_protocol::flist::FileKind;
use suisei_protocol::transfer::{Item, ItemFlags};

/// Which way the data of an item moves, as the user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To a remote side: `<`.
    Out,
    /// From a remote side, or on one machine: `>`.
    In,
}

/// What the string has to know beside the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Direction of transfers.
    pub way: Way,
    /// Whether the session sends item flags (29 and newer); without them a transfer is all `?`.
    pub has_flags: bool,
    /// Whether modification times are preserved for files (`t` rather than `T`).
    pub keeps_times: bool,
    /// Whether symlink times are preserved.
    pub keeps_link_times: bool,
}

/// Which items are worth a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What is transferred or made, and directories that change.
    Made,
    /// Whatever changes.
    Changed,
    /// Everything.
    All,
}

impl Detail {
    /// Whether an item is worth a line.
    pub fn shows(self, report: &ItemReport<'_>) -> bool {
        let flags = report.item.flags;
        let changes = !flags.significant().is_empty();
        let is_link_made = report.item.xname.as_ref().is_some_and(|name| !name.is_empty());
        match self {
            Detail::All => true,
            Detail::Changed => changes || is_link_made,
            Detail::Made => {
                let made_here =
                    flags.contains(ItemFlags::LOCAL_CHANGE) || report.entry.kind() == FileKind::Directory;
                report.item.is_transfer() || is_link_made || changes && made_here
            }
        }
    }
}

/// Returns the string for an item.
pub fn itemize(item: &Item, kind: FileKind, style: Style) -> String {
    let flags = item.flags;
    let mut text = String::with_capacity(11);
    text.push(operation(item, style.way));
    text.push(match kind {
        FileKind::Directory => 'd',
        FileKind::Symlink => 'L',
        FileKind::CharDevice | FileKind::BlockDevice => 'D',
        FileKind::Fifo | FileKind::Socket => 'S',
        FileKind::Regular | FileKind::Missing => 'f',
    });
    if flags.contains(ItemFlags::IS_NEW) {
        text.push_str("+++++++++");
        return text;
    }
    if !style.has_flags && item.is_transfer() {
        text.push_str("?????????");
        return text;
    }
    let differences = differences(flags, kind, style);
    if differences == "........." && !item.is_transfer() {
        text.push_str("         ");
    } else {
        text.push_str(&differences);
    }
    text
}

fn operation(item: &Item, way: Way) -> char {
    let flags = item.flags;
    if flags.contains(ItemFlags::LOCAL_CHANGE) {
        return if flags.contains(ItemFlags::XNAME_FOLLOWS) { 'h' } else { 'c' };
    }
    match (item.is_transfer(), way) {
        (false, _) => '.',
        (true, Way::Out) => '<',
        (true, Way::In) => '>',
    }
}

fn differences(flags: ItemFlags, kind: FileKind, style: Style) -> String {
    let is_link = kind == FileKind::Symlink;
    let mark = |flag: ItemFlags, letter: char| if flags.contains(flag) { letter } else { '.' };
    let keeps_time = if is_link { style.keeps_link_times } else { style.keeps_times };
    let time_failed = is_link && flags.contains(ItemFlags::REPORT_SIZE);
    let time = match flags.contains(ItemFlags::REPORT_TIME) {
        false => '.',
        true if keeps_time && !time_failed => 't',
        true => 'T',
    };
    let other_times =
        match (flags.contains(ItemFlags::REPORT_ATIME), flags.contains(ItemFlags::REPORT_CRTIME)) {
            (true, true) => 'b',
            (true, false) => 'u',
            (false, true) => 'n',
            (false, false) => '.',
        };
    [
        mark(ItemFlags::REPORT_CHANGE, 'c'),
        if is_link { '.' } else { mark(ItemFlags::REPORT_SIZE, 's') },
        time,
        mark(ItemFlags::REPORT_PERMS, 'p'),
        mark(ItemFlags::REPORT_OWNER, 'o'),
        mark(ItemFlags::REPORT_GROUP, 'g'),
        other_times,
        mark(ItemFlags::REPORT_ACL, 'a'),
        mark(ItemFlags::REPORT_XATTR, 'x'),
    ]
    .iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { way: Way::In, has_flags: true, keeps_times: true, keeps_link_times: true };

    #[track_caller]
    fn check(bits: u16, kind: FileKind, style: Style, expected: &str) {
        let item = Item::new(ItemFlags::from_bits_retain(bits));
        assert_eq!(itemize(&item, kind, style), expected);
    }

    #[test]
    fn samples_of_the_specification() {
        check(0xA000, FileKind::Regular, STYLE, ">f+++++++++");
        check(0x800C, FileKind::Regular, Style { way: Way::Out, ..STYLE }, "<f.st......");
        check(0x6000, FileKind::Directory, STYLE, "cd+++++++++");
        check(0x6002, FileKind::Symlink, STYLE, "cL+++++++++");
        check(0x6002, FileKind::Fifo, STYLE, "cS+++++++++");
        check(0x4002, FileKind::Symlink, STYLE, "cLc........");
        check(0x0008, FileKind::Directory, STYLE, ".d..t......");
        check(0x0010, FileKind::Regular, STYLE, ".f...p.....");
        check(0x0070, FileKind::Regular, STYLE, ".f...pog...");
        check(0x8008, FileKind::Regular, Style { keeps_times: false, ..STYLE }, ">f..T......");
        check(0x0000, FileKind::Regular, STYLE, ".f         ");
        check(0x5000, FileKind::Regular, STYLE, "hf         ");
        check(0x7000, FileKind::Regular, STYLE, "hf+++++++++");
        check(0x8000, FileKind::Regular, Style { way: Way::Out, has_flags: false, ..STYLE }, "<f?????????");
    }
}
