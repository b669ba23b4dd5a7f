//! Attributes that are to be set, in the one order that keeps them: owner, mode, times.

/// Times to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Modification time: seconds and nanoseconds; nothing leaves it.
    pub mtime: Option<(i64, u32)>,
    /// Access time: seconds and nanoseconds; nothing leaves it.
    pub atime: Option<(i64, u32)>,
}

/// Attributes to set. Absent ones are left as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes {
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Permission bits, 0o7777. Never applied to symlinks.
    pub permissions: Option<u32>,
    /// Times.
    pub times: Option<Times>,
}
