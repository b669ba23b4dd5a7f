//! The agreed protocol version, and the only place that compares it with a number.
//!
//! Everyone else asks a named question. Wire: protocol/doc/02-session-start.md#27-per-version-summary

use std::cmp::Ordering;
use std::fmt;

use crate::error::PeerIncompatible;

/// An agreed protocol version, 27 to 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u8);

impl Version {
    /// The oldest version spoken here.
    pub const OLDEST: Version = Version(27);
    /// The newest version spoken here.
    pub const NEWEST: Version = Version(32);

    /// Accepts 27 to 32.
    pub fn new(number: u32) -> Option<Version> {
        u8::try_from(number).ok().map(Version).filter(|v| (Self::OLDEST..=Self::NEWEST).contains(v))
    }

    /// Returns the lower of ours and the peer's announced version, if both ends can speak it.
    ///
    /// A peer announces 20 to 40; anything else is a shell that prints text.
    pub fn agree(ours: Version, peer: i32) -> Option<Version> {
        let peer = u32::try_from(peer).ok().filter(|p| (20..=40).contains(p))?;
        Version::new(peer.min(u32::from(ours.0)))
    }

    /// Returns what a server of this version announces to a client that runs a pre-release: one
    /// below either's own number, unless the client is ahead.
    ///
    /// Wire: protocol/doc/02-session-start.md#212-the--e-capability-string
    pub fn announced_to_pre_release(self, client: u32) -> u32 {
        let own = u32::from(self.0);
        match client.cmp(&own) {
            Ordering::Less => client.saturating_sub(1),
            Ordering::Equal => own - 1,
            Ordering::Greater => own,
        }
    }

    /// Returns the version that follows from two daemon greetings, ours having sub-protocol 0:
    /// the lower one, lowered once more if it is a pre-release of the peer.
    ///
    /// Wire: protocol/doc/03-daemon.md#321-greeting
    pub fn agree_by_greeting(ours: Version, peer: u32, subprotocol: u32) -> Option<Version> {
        let peer = Some(peer).filter(|p| (20..=40).contains(p))?;
        let own = u32::from(ours.0);
        Version::new(if peer > own { own } else { peer - u32::from(subprotocol != 0) })
    }

    /// Returns the number as the wire and the user see it.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Whether varints, delta-coded indexes and framed client output exist (30).
    pub fn has_varints(self) -> bool {
        self.0 >= 30
    }

    /// Whether compat flags and capability letters are exchanged (30).
    pub fn has_compat_flags(self) -> bool {
        self.0 >= 30
    }

    /// Whether the list may be sent in segments (30).
    pub fn has_incremental_recursion(self) -> bool {
        self.0 >= 30
    }

    /// Whether a client's output is framed from the start point on (30).
    pub fn client_output_is_framed(self) -> bool {
        self.0 >= 30
    }

    /// Whether item flags follow an index (29).
    pub fn has_item_flags(self) -> bool {
        self.0 >= 29
    }

    /// Whether a second flags byte may extend a list entry, and device numbers are split (28).
    pub fn has_extended_flags(self) -> bool {
        self.0 >= 28
    }

    /// Whether hard links are named by group number rather than by device and inode (30).
    pub fn has_hard_link_groups(self) -> bool {
        self.0 >= 30
    }

    /// Whether non-regular entries leave out the checksum field (28).
    pub fn checksums_regular_only(self) -> bool {
        self.0 >= 28
    }

    /// Whether ACLs and extended attributes can travel (30).
    pub fn has_acls_and_xattrs(self) -> bool {
        self.0 >= 30
    }

    /// Whether modification times carry nanoseconds (31).
    pub fn has_nanoseconds(self) -> bool {
        self.0 >= 31
    }

    /// Whether special files still carry a device field (below 31).
    pub fn sends_rdev_of_specials(self) -> bool {
        self.0 < 31
    }

    /// Whether the end-of-list error mark is always usable (31).
    pub fn has_safe_list_end(self) -> bool {
        self.0 >= 31
    }

    /// Whether a plain list ends with the io_error int after its id lists (below 30).
    pub fn sends_io_error_after_ids(self) -> bool {
        self.0 < 30
    }

    /// Whether directories sort after the files beside them, and "." first (29).
    pub fn sorts_directories_last(self) -> bool {
        self.0 >= 29
    }

    /// Whether an entry says if its directory's content is in the list (30).
    pub fn flags_directory_content(self) -> bool {
        self.0 >= 30
    }

    /// Whether the phase of delayed updates exists (29).
    pub fn has_delay_phase(self) -> bool {
        self.0 >= 29
    }

    /// Whether the phase of late deletions, with its statistics, exists (31).
    pub fn has_delete_phase(self) -> bool {
        self.0 >= 31
    }

    /// Whether the transfer statistics include the two list times (29).
    pub fn has_list_times(self) -> bool {
        self.0 >= 29
    }

    /// Whether ERROR and WARNING texts have codes of their own (30).
    pub fn has_error_codes(self) -> bool {
        self.0 >= 30
    }

    /// Whether deletions are reported by message (29).
    pub fn has_deleted_message(self) -> bool {
        self.0 >= 29
    }

    /// Whether IO_ERROR and NO_SEND messages exist (30).
    pub fn has_status_messages(self) -> bool {
        self.0 >= 30
    }

    /// Whether ERROR_EXIT and IO_TIMEOUT messages cross the wire (31).
    pub fn has_error_exit(self) -> bool {
        self.0 >= 31
    }

    /// Whether a server without an explicit choice sends all texts in the stream (28 and below).
    pub fn server_sends_all_texts(self) -> bool {
        self.0 <= 28
    }

    /// Whether batch files say how files were placed, and which attributes they carry (30).
    pub fn has_inplace_batches(self) -> bool {
        self.0 >= 30
    }

    /// Whether plain `--delete` means during (30) rather than before.
    pub fn deletes_during(self) -> bool {
        self.0 >= 30
    }

    /// Whether `--append` leaves the old data out of the sum (30).
    pub fn has_plain_append(self) -> bool {
        self.0 >= 30
    }

    /// Whether `--files-from` names travel inside frames (31).
    pub fn frames_forwarded_names(self) -> bool {
        self.0 >= 31
    }

    /// Whether filter rules may carry kinds and modifiers (29).
    pub fn has_modern_filters(self) -> bool {
        self.0 >= 29
    }

    /// Whether filter rules may be perishable (30).
    pub fn has_perishable_filters(self) -> bool {
        self.0 >= 30
    }

    /// Whether hard links may be reported without an exchange of extended attributes (31).
    pub fn may_spare_xattrs_of_links(self) -> bool {
        self.0 >= 31
    }

    /// Whether MD5 is the default sum (30) rather than the seeded MD4.
    pub fn defaults_to_md5(self) -> bool {
        self.0 >= 30
    }

    /// Whether the sender's zlib history repeats the start of a long block (a kept bug, below 31).
    pub fn repeats_long_block_history(self) -> bool {
        self.0 < 31
    }

    /// Whether the daemon's argument words end in NUL (30) rather than in a newline.
    pub fn has_nul_arguments(self) -> bool {
        self.0 >= 30
    }

    /// Whether a daemon greeting must carry a digest list (32).
    pub fn needs_digest_list(self) -> bool {
        self.0 >= 32
    }

    /// Whether a daemon greeting must carry a sub-protocol (30).
    pub fn needs_subprotocol(self) -> bool {
        self.0 >= 30
    }

    /// Whether keep-alives of old peers may come as a bare item record (29).
    pub fn has_item_keep_alives(self) -> bool {
        self.0 == 29
    }

    /// Whether block lengths are capped at 128 KiB (30) rather than at 512 MiB.
    pub fn caps_blocks_at_128k(self) -> bool {
        self.0 >= 30
    }

    /// Whether fuzzy names, several basis directories, `-m` and in-place with a basis exist (29).
    pub fn has_basis_types(self) -> bool {
        self.0 >= 29
    }
}

impl Version {
    /// Refuses an option that this version lacks.
    pub fn require(self, feature: &'static str, needed: u8) -> Result<(), PeerIncompatible> {
        match self.0 >= needed {
            true => Ok(()),
            false => Err(PeerIncompatible::Feature { feature, needed, agreed: self.0 }),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
