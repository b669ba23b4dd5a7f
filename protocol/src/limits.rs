//! Every cap on what a peer can make us allocate or do, with its reason.
//!
//! Wire: protocol/doc/01-integers-and-multiplexing.md#16-bounds-a-reader-must-enforce-values-that-come-from-a-peer

/// Longest path, symlink target or xname, NUL included: the platform limit that every peer has.
pub const PATH_MAX: usize = 4096;
/// First length at which a text message or a filter rule is refused: a path and a sentence.
pub const TEXT_MAX: usize = PATH_MAX + 1024;
/// Largest payload of one frame: the length field has 24 bits.
pub const FRAME_MAX: usize = 0x00FF_FFFF;
/// Largest DATA payload that we write, as stock does.
pub const FRAME_WRITTEN_MAX: usize = 65_532;
/// First length at which a negotiation list is refused.
pub const CHOICE_LIST_MAX: usize = 256;
/// Largest block length from version 30 on.
pub const BLOCK_LEN_MAX: u32 = 1 << 17;
/// Largest block length below version 30.
pub const OLD_BLOCK_LEN_MAX: u32 = 1 << 29;
/// Most blocks of one signature: keeps `count * entry length` within 8 GiB and 31 bits.
pub const BLOCK_COUNT_MAX: u32 = 1 << 28;
/// Each count of the deletion statistics.
pub const DELETED_MAX: i32 = 1 << 28;
/// Longest literal piece that we write; receivers accept any length and stream it.
pub const LITERAL_WRITTEN_MAX: usize = 32 * 1024;
/// Longest item of a compressed stream: 14 bits.
pub const DEFLATED_MAX: usize = 16_383;
/// Longest run of blocks in one compressed run token.
pub const RUN_MAX: u32 = 65_536;
/// Most output of one lz4 item (bound for 32 KiB of input).
pub const LZ4_OUTPUT_MAX: usize = 32_912;
/// Most entries of one file list: indexes have 31 bits, and gaps need room.
pub const ENTRIES_MAX: usize = (i32::MAX - 1024) as usize;
/// Longest user or group name: its length travels in one byte.
pub const ID_NAME_MAX: usize = 255;
/// Most distinct ids with names that we keep from a peer: bounds the id tables.
pub const ID_NAMES_MAX: usize = 1 << 20;
/// Most named entries of one ACL, as in stock.
pub const ACL_NAMED_MAX: usize = 65_536;
/// Most ACLs and named entries that are kept of a run, 12 bytes each: every distinct ACL is kept.
pub const ACLS_HELD_MAX: usize = 1 << 24;
/// Longest line of a daemon's client before a module is chosen.
pub const DAEMON_REQUEST_MAX: usize = 1022;
/// Longest daemon line once a module is chosen.
pub const DAEMON_LINE_MAX: usize = 5118;
/// Most words of one argument block.
pub const ARGUMENTS_MAX: usize = 16_000;
/// Most early input, in bytes.
pub const EARLY_INPUT_MAX: usize = 5120;
/// Block candidates of one weak sum compared per offset: bounds the search on equal-sum chains.
pub const CHAIN_MAX: usize = 1024;
/// Most attributes of one list of extended attributes.
pub const XATTRS_MAX: usize = 65_536;
/// Longest name of an extended attribute, NUL included.
pub const XATTR_NAME_MAX: usize = 4096;
/// Longest value of an extended attribute, as in stock.
pub const XATTR_VALUE_MAX: usize = 128 << 20;
/// Most bytes of names and announced values of one list, as in stock.
pub const XATTR_LIST_MAX: usize = 512 << 20;
/// Most bytes of one list in the file list, where values are abbreviated: no system lists more
/// than a few hundred kilobytes of names.
pub const XATTR_INLINE_MAX: usize = 4 << 20;
/// Most memory for all lists of extended attributes of a run: any entry may name any of them.
pub const XATTR_LISTS_MAX: usize = 1 << 30;
