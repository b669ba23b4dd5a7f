//! Everything both ends agreed on. Built once by the handshake, never changed.
//!
//! Wire: protocol/doc/02-session-start.md#22-start-handshake-raw-bytes-remote-shell

use super::{Compat, Version};
use crate::charset::Charset;
use crate::sum::SumKind;
use crate::transfer::{Compressor, ItemFlags};

/// Which end started the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The process the user started.
    Client,
    /// The process started with `--server`, or by a daemon.
    Server,
}

/// Which end reads the source files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// This end is the sender.
    Sending,
    /// This end holds generator and receiver.
    Receiving,
}

/// How the file list travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recursion {
    /// One list, complete before the first request.
    Whole,
    /// One segment per directory, while files are already moving.
    Incremental,
}

/// The fields that list entries and items carry, as the options of both ends demand.
///
/// Wire: protocol/doc/10-file-list.md#3-field-order-of-one-entry
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    /// `-o`: entries carry a uid.
    pub uid: bool,
    /// `-g`: entries carry a gid.
    pub gid: bool,
    /// `--devices`: device nodes carry their number.
    pub devices: bool,
    /// `--specials`: special files carry a (meaningless) number below version 31.
    pub specials: bool,
    /// `-l`: symlinks carry their target.
    pub links: bool,
    /// `-H`: entries with several links carry their group.
    pub hard_links: bool,
    /// `-c`: regular files carry the sum of their content.
    pub checksum: bool,
    /// `-U`: entries other than directories carry an access time.
    pub atimes: bool,
    /// `-N`: entries carry a creation time.
    pub crtimes: bool,
    /// `-A`: entries other than symlinks carry their ACLs, from version 30 on.
    pub acls: bool,
    /// `-X`: entries carry extended attributes.
    pub xattrs: bool,
    /// `--numeric-ids`: no names travel with ids.
    pub numeric_ids: bool,
    /// `-R`: an absolute name keeps its leading slash.
    pub relative: bool,
    /// `-r`.
    pub recursive: bool,
    /// `-n`: items carry no sums and no data.
    pub dry_run: bool,
    /// `--only-write-batch` by a client that sends: records carry no sums and no data, which only
    /// the batch file gets; requests are complete.
    pub withheld: bool,
    /// `--append` or `--append-verify`: sum heads are not followed by block sums.
    pub append: bool,
    /// `--delete-missing-args`: an entry of mode 0 is legal.
    pub missing_args: bool,
    /// `--remove-source-files`: the receiving side confirms each file by message.
    pub confirm: bool,
}

/// Everything both ends agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// This end's side.
    pub side: Side,
    /// This end's direction.
    pub direction: Direction,
    /// The agreed version.
    pub version: Version,
    /// The compat flags that the server set (empty below 30).
    pub compat: Compat,
    /// The checksum seed, signed as it is hashed.
    pub seed: i32,
    /// Algorithm of block sums and whole-file sums.
    pub transfer_sum: SumKind,
    /// Algorithm of `-c` sums in the file list.
    pub list_sum: SumKind,
    /// How literals travel.
    pub compressor: Compressor,
    /// Level for `compressor`; meaningful to the sender only.
    pub compress_level: i32,
    /// Which optional fields exist.
    pub layout: Layout,
    /// How the list travels.
    pub recursion: Recursion,
    /// `--iconv`: the charset of this end's names, which travel in UTF-8. Nothing: they travel as
    /// they are.
    pub charset: Option<Charset>,
}

impl Session {
    /// Whether the stream that this end writes is framed from the start point on.
    pub fn output_is_framed(&self) -> bool {
        match (self.side, self.direction) {
            (Side::Server, _) => true,
            (Side::Client, _) if self.version.client_output_is_framed() => true,
            (Side::Client, Direction::Receiving) => self.layout.confirm,
            (Side::Client, Direction::Sending) => false,
        }
    }

    /// Whether the stream that this end reads is framed from the start point on.
    pub fn input_is_framed(&self) -> bool {
        match (self.side, self.direction) {
            (Side::Client, _) => true,
            (Side::Server, _) if self.version.client_output_is_framed() => true,
            (Side::Server, Direction::Sending) => self.layout.confirm,
            (Side::Server, Direction::Receiving) => false,
        }
    }

    /// Whether the sender closes its last phase with a statistics block: a server's sender only.
    pub fn sender_reports_stats(&self) -> bool {
        matches!(
            (self.side, self.direction),
            (Side::Server, Direction::Sending) | (Side::Client, Direction::Receiving)
        )
    }

    /// Whether the end mark of a list can carry the sender's error bits in every form.
    pub fn has_safe_list_end(&self) -> bool {
        self.version.has_safe_list_end() || self.compat.contains(Compat::SAFE_FLIST)
    }

    /// Whether long values of extended attributes are asked for, and sent, with an item of these
    /// flags: even none of them takes a byte then.
    ///
    /// Wire: protocol/doc/12-owners-links-xattrs-acls.md#value-exchange-in-the-transfer-phase
    pub fn exchanges_xattrs(&self, flags: ItemFlags) -> bool {
        let spares_links =
            self.version.may_spare_xattrs_of_links() && !self.compat.contains(Compat::AVOID_XATTR_OPTIM);
        self.layout.xattrs
            && !self.layout.dry_run
            && flags.contains(ItemFlags::REPORT_XATTR)
            && !(spares_links && flags.contains(ItemFlags::XNAME_FOLLOWS | ItemFlags::LOCAL_CHANGE))
    }

    /// Returns the charset of this end's symlink targets, where those are converted.
    pub fn target_charset(&self) -> Option<Charset> {
        self.charset.filter(|_| self.compat.contains(Compat::SYMLINK_ICONV))
    }

    /// Whether records of wanted files carry sums and data.
    pub fn carries_data(&self) -> bool {
        !self.layout.dry_run && !self.layout.withheld
    }

    /// Whether names of ids travel inside the entries, rather than in lists after them.
    pub fn names_ids_inline(&self) -> bool {
        self.recursion == Recursion::Incremental && !self.layout.numeric_ids
    }
}
