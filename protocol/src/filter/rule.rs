//! One filter rule.
//!
//! Wire: protocol/doc/13-filters.md#1-rule-text

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    /// Excludes.
    Exclude,
    /// Includes.
    Include,
    /// Names a merge file that is read in every directory.
    DirMerge,
}

bitflags::bitflags! {
    /// Modifiers of a rule.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct RuleFlags: u16 {
        /// `/`: matched against the absolute path.
        const ABSOLUTE = 0x001;
        /// `!`: applies to names that do not match.
        const NEGATE = 0x002;
        /// `C`: CVS mode.
        const CVS = 0x004;
        /// `n`: a merge file's rules are not inherited.
        const NO_INHERIT = 0x008;
        /// `w`: a merge file is split at white space.
        const WORDS = 0x010;
        /// `+`: a merge file holds only include patterns.
        const ONLY_INCLUDES = 0x020;
        /// `-`: a merge file holds only exclude patterns.
        const ONLY_EXCLUDES = 0x040;
        /// `e`: the merge file itself is excluded.
        const EXCLUDE_SELF = 0x080;
        /// `x`: applies to names of extended attributes.
        const XATTR = 0x100;
        /// `s`: sender side only (with `RECEIVER` too: both).
        const SENDER = 0x200;
        /// `r`: receiver side only.
        const RECEIVER = 0x400;
        /// `p`: ignored inside directories that are being deleted.
        const PERISHABLE = 0x800;
        /// The pattern ended in a slash: directories only.
        const DIR_ONLY = 0x1000;
        /// Added by an option rather than typed: an old version gets what of it it can carry.
        const BUILT_IN = 0x2000;
        /// Came from the peer, which sent only what counts here: counts whatever its side.
        const RECEIVED = 0x4000;
        /// Was read from a file, which the reader of a message may not be allowed to read.
        const FROM_FILE = 0x8000;
    }
}

/// One rule, parsed. Hide, show, protect and risk are excludes and includes with a side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it does.
    pub kind: RuleKind,
    /// How.
    pub flags: RuleFlags,
    /// The pattern without a trailing slash, or the name of the merge file.
    pub pattern: Vec<u8>,
}
