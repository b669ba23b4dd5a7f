//! Capabilities that a client offers, and the compat flags that a server answers with.
//!
//! Wire: protocol/doc/02-session-start.md#212-the--e-capability-string,
//! protocol/doc/02-session-start.md#221-compat-flags-the-server-decides-the-client-obeys

use super::Version;
use crate::error::Decode;
use crate::wire::{put_varint, Reader};

bitflags::bitflags! {
    /// The compat flags of a session.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Compat: u32 {
        /// Incremental file lists.
        const INC_RECURSE = 0x001;
        /// The receiving end can set times of symlinks.
        const SYMLINK_TIMES = 0x002;
        /// Symlink targets are converted under `--iconv`.
        const SYMLINK_ICONV = 0x004;
        /// The I/O-error end mark is usable.
        const SAFE_FLIST = 0x008;
        /// The xattr optimisation for hard links is off.
        const AVOID_XATTR_OPTIM = 0x010;
        /// The seed goes before the data of MD5 block sums.
        const SEED_FIX = 0x020;
        /// A partial-dir file may be updated in place.
        const INPLACE_PARTIAL = 0x040;
        /// Varint list flags, and names of algorithms are negotiated.
        const VARINT_FLIST = 0x080;
        /// Id lists end with the name of id 0.
        const ID0_NAMES = 0x100;
    }
}

bitflags::bitflags! {
    /// The letters behind `-e`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    struct Letters: u16 {
        const INC_RECURSE = 1;
        const SYMLINK_TIMES = 1 << 1;
        const SYMLINK_ICONV = 1 << 2;
        const SAFE_FLIST = 1 << 3;
        const AVOID_XATTR_OPTIM = 1 << 4;
        const SEED_FIX = 1 << 5;
        const INPLACE_PARTIAL = 1 << 6;
        const VARINT_FLIST = 1 << 7;
        const ID0_NAMES = 1 << 8;
        const ONE_BYTE_COMPAT = 1 << 9;
    }
}

/// Letters in the order in which a client sends them, and the compat flag that answers each.
/// `L` and `s` inform the server; their flags speak of the server's own abilities.
const LETTERS: [(u8, Letters, Compat); 10] = [
    (b'i', Letters::INC_RECURSE, Compat::INC_RECURSE),
    (b'L', Letters::SYMLINK_TIMES, Compat::empty()),
    (b's', Letters::SYMLINK_ICONV, Compat::empty()),
    (b'f', Letters::SAFE_FLIST, Compat::SAFE_FLIST),
    (b'x', Letters::AVOID_XATTR_OPTIM, Compat::AVOID_XATTR_OPTIM),
    (b'C', Letters::SEED_FIX, Compat::SEED_FIX),
    (b'I', Letters::INPLACE_PARTIAL, Compat::INPLACE_PARTIAL),
    (b'v', Letters::VARINT_FLIST, Compat::VARINT_FLIST),
    (b'u', Letters::ID0_NAMES, Compat::ID0_NAMES),
    (b'V', Letters::ONE_BYTE_COMPAT, Compat::VARINT_FLIST),
];

/// What a client's `-e` value says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    letters: Letters,
    pre_release: Option<u32>,
}

/// Whether an end's own options allow the list to be sent in segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncrementalRecursion {
    /// They do.
    Allowed,
    /// They do not.
    Refused,
}

impl Capabilities {
    /// Returns what a client of ours offers.
    pub fn ours(recursion: IncrementalRecursion) -> Self {
        let mut letters = Letters::all() - Letters::ONE_BYTE_COMPAT;
        letters.set(Letters::INC_RECURSE, recursion == IncrementalRecursion::Allowed);
        Capabilities { letters, pre_release: None }
    }

    /// Parses the text behind `e`: `.` or `VER.SUB`, then letters. Unknown letters are ignored.
    pub fn parse(text: &[u8]) -> Self {
        let (version, rest) = leading_number(text);
        let (subprotocol, rest) = match rest.strip_prefix(b".") {
            Some(rest) => leading_number(rest),
            None => (0, rest),
        };
        let letters =
            LETTERS.iter().filter(|(letter, ..)| rest.contains(letter)).map(|(_, bit, _)| *bit).collect();
        Capabilities { letters, pre_release: Some(version).filter(|v| *v != 0 && subprotocol != 0) }
    }

    /// Returns the text to send behind `e`.
    pub fn to_text(self) -> String {
        let offered = LETTERS.iter().filter(|(_, bit, _)| self.letters.contains(*bit));
        std::iter::once('.').chain(offered.map(|(letter, ..)| char::from(*letter))).collect()
    }

    /// Whether segments were offered.
    pub fn offers_incremental_recursion(self) -> bool {
        self.letters.contains(Letters::INC_RECURSE)
    }

    /// Whether names of algorithms are exchanged.
    pub fn negotiates_names(self) -> bool {
        self.letters.contains(Letters::VARINT_FLIST)
    }

    /// Returns the version number that a server announces to this client.
    pub(super) fn announced_by(self, server: Version) -> u32 {
        match self.pre_release {
            Some(client) => server.announced_to_pre_release(client),
            None => u32::from(server.number()),
        }
    }

    /// Returns the flags that a server answers with.
    pub fn answer(self, recursion: IncrementalRecursion) -> Compat {
        let mut compat = Compat::SYMLINK_TIMES | Compat::SYMLINK_ICONV;
        for (_, letter, flag) in LETTERS {
            compat.set(flag, compat.contains(flag) || self.letters.contains(letter));
        }
        if recursion == IncrementalRecursion::Refused {
            compat.remove(Compat::INC_RECURSE);
        }
        compat
    }

    /// Appends the answer's bytes: a varint, or the low byte alone for `V`.
    pub(super) fn put_answer(self, compat: Compat, out: &mut Vec<u8>) {
        if self.letters.contains(Letters::ONE_BYTE_COMPAT) {
            out.push(compat.bits() as u8);
        } else {
            put_varint(compat.bits() as i32, out);
        }
    }
}

impl Compat {
    /// Takes a server's flags; unknown ones are ignored.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Decode<Compat> {
        Ok(Compat::from_bits_truncate(reader.varint()? as u32))
    }
}

/// Splits off a decimal number; none counts as 0, as does one that no version can have.
fn leading_number(text: &[u8]) -> (u32, &[u8]) {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, rest) = text.split_at(digits);
    (std::str::from_utf8(number).ok().and_then(|n| n.parse().ok()).unwrap_or(0), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_sends_what_stock_sends() {
        assert_eq!(Capabilities::ours(IncrementalRecursion::Allowed).to_text(), ".iLsfxCIvu");
        assert_eq!(Capabilities::ours(IncrementalRecursion::Refused).to_text(), ".LsfxCIvu");
    }

    #[test]
    fn captured_answers() {
        let table: [(&str, IncrementalRecursion, u32, &[u8]); 10] = [
            ("", IncrementalRecursion::Allowed, 32, &[0x06]),
            (".f", IncrementalRecursion::Allowed, 32, &[0x0E]),
            (".iLsfxCIu", IncrementalRecursion::Allowed, 32, &[0x81, 0x7F]),
            (".iLsfxCIvu", IncrementalRecursion::Allowed, 32, &[0x81, 0xFF]),
            (".iLsfxCIvu", IncrementalRecursion::Refused, 32, &[0x81, 0xFE]),
            (".iLsfxCIV", IncrementalRecursion::Allowed, 32, &[0xFF]),
            ("32.5iLsfxCI", IncrementalRecursion::Allowed, 31, &[0x7F]),
            ("31.5iLsfxCI", IncrementalRecursion::Allowed, 30, &[0x7F]),
            ("33.5iLsfxCI", IncrementalRecursion::Allowed, 32, &[0x7F]),
            (".?qLs", IncrementalRecursion::Allowed, 32, &[0x06]),
        ];
        for (text, recursion, announced, bytes) in table {
            let caps = Capabilities::parse(text.as_bytes());
            assert_eq!(caps.announced_by(Version::NEWEST), announced, "{text}");
            let mut out = Vec::new();
            caps.put_answer(caps.answer(recursion), &mut out);
            assert_eq!(out, bytes, "{text}");
        }
    }

    #[test]
    fn a_final_release_or_a_huge_number_changes_nothing() {
        for text in ["32.0i", "32i", "99999999999.5i", ".5i"] {
            assert_eq!(Capabilities::parse(text.as_bytes()).announced_by(Version::NEWEST), 32, "{text}");
        }
    }

    #[test]
    fn greetings_settle_the_version() {
        let agree = |peer, sub| Version::agree_by_greeting(Version::NEWEST, peer, sub).map(Version::number);
        assert_eq!(agree(31, 0), Some(31));
        assert_eq!(agree(32, 0), Some(32));
        assert_eq!(agree(32, 2), Some(31));
        assert_eq!(agree(31, 2), Some(30));
        assert_eq!(agree(33, 1), Some(32));
        assert_eq!(agree(26, 0), None);
        assert_eq!(agree(99, 0), None);
    }
}
