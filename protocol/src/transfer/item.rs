//! The item record: what differs about an entry, and on which basis it is asked for.
//!
//! Wire: protocol/doc/20-transfer.md#22-iflags-bits

bitflags::bitflags! {
    /// What differs, and what is asked for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ItemFlags: u16 {
        /// Access time differs.
        const REPORT_ATIME = 0x0001;
        /// Checksum or value differs.
        const REPORT_CHANGE = 0x0002;
        /// Size differs; on a symlink: its time could not be set.
        const REPORT_SIZE = 0x0004;
        /// Modification time differs, or will be "now".
        const REPORT_TIME = 0x0008;
        /// Permissions differ.
        const REPORT_PERMS = 0x0010;
        /// Owner differs.
        const REPORT_OWNER = 0x0020;
        /// Group differs.
        const REPORT_GROUP = 0x0040;
        /// ACL differs.
        const REPORT_ACL = 0x0080;
        /// Extended attributes differ.
        const REPORT_XATTR = 0x0100;
        /// Creation time differs.
        const REPORT_CRTIME = 0x0400;
        /// A basis kind follows.
        const BASIS_TYPE_FOLLOWS = 0x0800;
        /// A second name follows.
        const XNAME_FOLLOWS = 0x1000;
        /// Does not exist on the receiving side.
        const IS_NEW = 0x2000;
        /// Made by the generator itself.
        const LOCAL_CHANGE = 0x4000;
        /// File data is asked for.
        const TRANSFER = 0x8000;
    }
}

impl ItemFlags {
    /// Returns the flags that make an item worth reporting.
    pub fn significant(self) -> ItemFlags {
        self - (ItemFlags::BASIS_TYPE_FOLLOWS | ItemFlags::XNAME_FOLLOWS | ItemFlags::LOCAL_CHANGE)
    }
}

/// Which file the block sums were made of.
///
/// Wire: protocol/doc/20-transfer.md#24-fnamecmp-type-byte-basis-selection
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasisKind {
    /// The same name in the n-th alternate directory.
    AlternateDir(u8),
    /// The destination file itself; never sent, absence means it.
    Destination,
    /// The file of that name in the partial directory.
    PartialDir,
    /// The backup just made.
    Backup,
    /// The xname beside it; above 0, in the n-1st alternate directory.
    Fuzzy(u8),
}

/// The item record that both directions carry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Item {
    /// What differs and what follows. The two FOLLOWS bits agree with the fields below.
    pub flags: ItemFlags,
    /// The basis, if it is not the destination itself.
    pub basis: Option<BasisKind>,
    /// A second name: the target of a hard link, or the basename of a fuzzy basis.
    pub xname: Option<Box<[u8]>>,
}

impl Item {
    /// Makes an item without basis kind and second name.
    pub fn new(flags: ItemFlags) -> Self {
        Item { flags, basis: None, xname: None }
    }

    /// Whether file data is asked for.
    pub fn is_transfer(&self) -> bool {
        self.flags.contains(ItemFlags::TRANSFER)
    }
}
