//! Names of checksums and compressors: lists, preferences, explicit choices.
//!
//! Lists go out in stock's order or shorter, never reordered: two stock ends that prefer
//! different names choose differently without noticing.
//! Wire: protocol/doc/02-session-start.md#222-string-negotiation,
//! protocol/doc/21-tokens-and-compression.md#7-choosing-the-algorithm

use super::{Compat, Side, Version};
use crate::error::{Misuse, PeerIncompatible};
use crate::sum::SumKind;
use crate::transfer::Compressor;

/// A kind of algorithm that is chosen by name.
pub(super) trait Named: Copy + PartialEq + 'static {
    /// The word in error messages.
    const KIND: &'static str;
    /// Strongest first; the last one stands in a server's list only.
    const CANONICAL: &'static [Self];
    /// Names that are understood but never sent.
    const ALIASES: &'static [(&'static str, Self)] = &[];

    /// Returns the name that goes into lists.
    fn name(self) -> &'static str;

    /// Finds a name, ignoring case.
    fn find(name: &str) -> Option<Self> {
        let canonical = Self::CANONICAL.iter().map(|c| (c.name(), *c));
        let mut known = canonical.chain(Self::ALIASES.iter().copied());
        known.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, c)| c)
    }
}

/// A checksum as the user names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SumName {
    /// XXH3, 128 bits.
    Xxh128,
    /// XXH3, 64 bits.
    Xxh3,
    /// XXH64, also called `xxhash`.
    Xxh64,
    /// MD5.
    Md5,
    /// MD4.
    Md4,
    /// SHA-1.
    Sha1,
    /// No checksum.
    None,
}

impl Named for SumName {
    const KIND: &'static str = "checksum";
    const CANONICAL: &'static [SumName] = &[
        SumName::Xxh128,
        SumName::Xxh3,
        SumName::Xxh64,
        SumName::Md5,
        SumName::Md4,
        SumName::Sha1,
        SumName::None,
    ];
    const ALIASES: &'static [(&'static str, SumName)] = &[("xxhash", SumName::Xxh64)];

    fn name(self) -> &'static str {
        match self {
            SumName::Xxh128 => "xxh128",
            SumName::Xxh3 => "xxh3",
            SumName::Xxh64 => "xxh64",
            SumName::Md5 => "md5",
            SumName::Md4 => "md4",
            SumName::Sha1 => "sha1",
            SumName::None => "none",
        }
    }
}

impl SumName {
    /// Returns the default where no names are exchanged.
    pub(super) fn implied(version: Version) -> SumName {
        if version.defaults_to_md5() {
            SumName::Md5
        } else {
            SumName::Md4
        }
    }

    /// Returns the algorithm for a sum that was named, by a user or in a list.
    fn named(self, seed_first: bool) -> SumKind {
        match self {
            SumName::Xxh128 => SumKind::Xxh128,
            SumName::Xxh3 => SumKind::Xxh3,
            SumName::Xxh64 => SumKind::Xxh64,
            SumName::Md5 => SumKind::Md5 { seed_first },
            SumName::Md4 => SumKind::Md4,
            SumName::Sha1 => SumKind::Sha1,
            SumName::None => SumKind::None,
        }
    }
}

impl SumKind {
    /// Returns the name that `--debug=nstr` shows.
    pub fn name(self) -> &'static str {
        match self {
            SumKind::None => "none",
            SumKind::Md4Seeded | SumKind::Md4 => "md4",
            SumKind::Md5 { .. } => "md5",
            SumKind::Sha1 => "sha1",
            SumKind::Xxh64 => "xxh64",
            SumKind::Xxh3 => "xxh3",
            SumKind::Xxh128 => "xxh128",
        }
    }
}

impl Named for Compressor {
    const KIND: &'static str = "compress";
    const CANONICAL: &'static [Compressor] =
        &[Compressor::Zstd, Compressor::Lz4, Compressor::Zlibx, Compressor::Zlib, Compressor::None];

    fn name(self) -> &'static str {
        Compressor::name(self)
    }
}

impl Compressor {
    /// Returns the name that goes into lists and onto command lines.
    pub fn name(self) -> &'static str {
        match self {
            Compressor::Zstd => "zstd",
            Compressor::Lz4 => "lz4",
            Compressor::Zlibx => "zlibx",
            Compressor::Zlib => "zlib",
            Compressor::None => "none",
        }
    }

    /// Returns the level to compress with, given the one asked for; `None` if that level means
    /// that nothing is compressed, at either end.
    pub fn level(self, asked: Option<i32>) -> Option<i32> {
        match (self, asked) {
            (Compressor::None, _) => None,
            (Compressor::Lz4, _) => Some(0),
            (Compressor::Zlib | Compressor::Zlibx, Some(0)) => None,
            (Compressor::Zlib | Compressor::Zlibx, None | Some(-1)) => Some(6),
            (Compressor::Zlib | Compressor::Zlibx, Some(level)) => Some(level.clamp(1, 9)),
            (Compressor::Zstd, None | Some(0)) => Some(3),
            (Compressor::Zstd, Some(level)) => Some(level.clamp(-131_072, 22)),
        }
    }
}

/// `--checksum-choice=TRANSFER[,LIST]`; nothing stands for `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumChoice {
    /// For block sums and whole-file sums.
    pub transfer: Option<SumName>,
    /// For `-c`.
    pub list: Option<SumName>,
}

impl SumChoice {
    /// Parses an option's value; `auto` alone is no choice at all.
    pub fn parse(text: &str) -> Result<Option<SumChoice>, Misuse> {
        let (transfer, list) = match text.split_once(',') {
            Some((transfer, list)) => {
                // Stock names the whole value if its first half is unknown.
                let whole = Misuse::UnknownName { kind: SumName::KIND, name: text.to_owned() };
                (one_name(transfer).map_err(|_| whole)?, one_name(list)?)
            }
            None => {
                let both = one_name(text)?;
                if both.is_none() {
                    return Ok(None);
                }
                (both, both)
            }
        };
        Ok(Some(SumChoice { transfer, list }))
    }
}

/// Whether and how literals shall be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompressWish {
    /// Not at all.
    #[default]
    Off,
    /// By what both ends have (`-z`).
    Negotiate,
    /// By this one; no list is exchanged.
    Fixed(Compressor),
}

impl CompressWish {
    /// Parses the value of `--compress-choice`.
    pub fn parse(text: &str) -> Result<CompressWish, Misuse> {
        Ok(match one_name(text)? {
            None => CompressWish::Negotiate,
            Some(Compressor::None) => CompressWish::Off,
            Some(compressor) => CompressWish::Fixed(compressor),
        })
    }
}

fn one_name<T: Named>(text: &str) -> Result<Option<T>, Misuse> {
    if text.eq_ignore_ascii_case("auto") {
        return Ok(None);
    }
    match T::find(text) {
        Some(name) => Ok(Some(name)),
        None => Err(Misuse::UnknownName { kind: T::KIND, name: text.to_owned() }),
    }
}

/// The names that this end allows, in its order of preference.
#[derive(Debug, Clone)]
pub(super) struct NameList<T> {
    names: Vec<T>,
    restricted: bool,
}

impl<T: Named> NameList<T> {
    /// Returns the default list, or what the environment's list leaves: the client's part stands
    /// before a `&`, the server's behind it.
    pub(super) fn new(side: Side, environment: Option<&str>) -> Self {
        let own_part = environment.map(|text| match (text.split_once('&'), side) {
            (None, _) => text,
            (Some((client, _)), Side::Client) => client,
            (Some((_, server)), Side::Server) => server,
        });
        match own_part.filter(|text| !text.trim().is_empty()) {
            Some(text) => NameList { names: known_names(text), restricted: true },
            None => {
                let end = T::CANONICAL.len() - usize::from(side == Side::Client);
                NameList { names: T::CANONICAL[..end].to_vec(), restricted: false }
            }
        }
    }

    /// Returns the list of one name, which forbids no other.
    pub(super) fn only(name: T) -> Self {
        NameList { names: vec![name], restricted: false }
    }

    /// Returns the list as it is sent.
    pub(super) fn text(&self) -> String {
        if self.names.is_empty() {
            return "INVALID".to_owned();
        }
        self.names.iter().map(|n| n.name()).collect::<Vec<_>>().join(" ")
    }

    /// Checks a choice that was not negotiated: by default, or (at a server) by the user.
    pub(super) fn check(&self, name: T) -> bool {
        !self.restricted || self.names.contains(&name)
    }

    /// Chooses, as `side`, given the peer's list. A client takes the first of its own that the
    /// server has; a server takes the first of the client's that it has, which is also what
    /// every client that keeps its order of preference expects.
    pub(super) fn choose(&self, side: Side, peer: &[u8]) -> Result<T, PeerIncompatible> {
        let peer = String::from_utf8_lossy(peer);
        let theirs = known_names::<T>(&peer);
        let (first, second) = match side {
            Side::Client => (&self.names, &theirs),
            Side::Server => (&theirs, &self.names),
        };
        first.iter().copied().find(|name| second.contains(name)).ok_or_else(|| match side {
            Side::Client => no_choice::<T>(peer.into_owned(), self.text()),
            Side::Server => no_choice::<T>(self.text(), peer.into_owned()),
        })
    }
}

fn no_choice<T: Named>(server: String, client: String) -> PeerIncompatible {
    PeerIncompatible::NoChoice { kind: T::KIND, server, client }
}

/// Returns the known names of a list, without repetitions.
fn known_names<T: Named>(text: &str) -> Vec<T> {
    let mut names = Vec::new();
    for name in text.split_ascii_whitespace().filter_map(T::find) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the algorithms of a user's choice, of a negotiated name, or of neither: for transfer
/// and for `-c`.
pub(crate) fn sum_kinds(
    version: Version,
    compat: Compat,
    choice: Option<SumChoice>,
    negotiated: Option<SumName>,
) -> (SumKind, SumKind) {
    let seed_fix = compat.contains(Compat::SEED_FIX);
    let implied =
        if version.defaults_to_md5() { SumKind::Md5 { seed_first: seed_fix } } else { SumKind::Md4Seeded };
    match (choice, negotiated) {
        // Stock hashes the seed first for an MD5 that the user names, whatever was agreed.
        (Some(choice), _) => {
            let kind = |name: Option<SumName>| name.map_or(implied, |n| n.named(true));
            (kind(choice.transfer), kind(choice.list))
        }
        (None, Some(name)) => (name.named(seed_fix), name.named(seed_fix)),
        (None, None) => (implied, implied),
    }
}

/// Returns the algorithms of a run on one machine, for files and for `-c`: the user's choice, or
/// what two ends of ours agree on.
pub fn local_sums(choice: Option<SumChoice>, version: Version) -> (SumKind, SumKind) {
    let best = version.has_compat_flags().then(|| SumName::CANONICAL[0]);
    sum_kinds(version, Compat::all(), choice, best)
}

/// Refuses an implied checksum or compressor that the environment's list does not allow.
pub(super) fn check_implied<T: Named>(
    list: &NameList<T>,
    side: Side,
    implied: T,
) -> Result<(), PeerIncompatible> {
    if list.check(implied) {
        return Ok(());
    }
    let implied = implied.name().to_owned();
    Err(match side {
        Side::Client => no_choice::<T>(implied, list.text()),
        Side::Server => no_choice::<T>(list.text(), implied),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(side: Side, environment: Option<&str>) -> NameList<SumName> {
        NameList::new(side, environment)
    }

    #[test]
    fn default_lists_are_stock_s() {
        assert_eq!(sums(Side::Client, None).text(), "xxh128 xxh3 xxh64 md5 md4 sha1");
        assert_eq!(sums(Side::Server, None).text(), "xxh128 xxh3 xxh64 md5 md4 sha1 none");
        assert_eq!(NameList::<Compressor>::new(Side::Client, None).text(), "zstd lz4 zlibx zlib");
        assert_eq!(NameList::<Compressor>::new(Side::Server, None).text(), "zstd lz4 zlibx zlib none");
    }

    #[test]
    fn captured_environment_lists_of_a_server() {
        let text = |environment| sums(Side::Server, Some(environment)).text();
        assert_eq!(text("md5 none xxhash"), "md5 none xxh64");
        assert_eq!(text("xxhash xxh64 & md5 MD4 md5 bog"), "md5 md4");
        assert_eq!(text("bog"), "INVALID");
        let default = sums(Side::Server, None).text();
        assert_eq!(text(" & "), default);
        assert_eq!(text("md5 &"), default);
        assert_eq!(sums(Side::Client, Some("xxh3 & md5")).text(), "xxh3");
    }

    #[test]
    fn either_side_follows_the_client_s_order() {
        let mine = sums(Side::Client, Some("sha1 md5"));
        assert_eq!(mine.choose(Side::Client, b"xxh128 md5 sha1 none"), Ok(SumName::Sha1));
        let servers = sums(Side::Server, None);
        assert_eq!(servers.choose(Side::Server, b"blake3 MD5 xxh128"), Ok(SumName::Md5));
        assert_eq!(servers.choose(Side::Server, b"xxhash"), Ok(SumName::Xxh64));
    }

    #[test]
    fn nothing_in_common_names_both_lists() {
        let error = NameList::<Compressor>::new(Side::Client, Some("zlib"))
            .choose(Side::Client, b"zstd")
            .unwrap_err();
        let text = "Failed to negotiate a compress choice.\nServer list: zstd\nClient list: zlib";
        assert_eq!(error.to_string(), text);
        assert_eq!(error.exit_code(), 4);
    }

    #[test]
    fn explicit_choices() {
        let both = |name| Some(SumChoice { transfer: Some(name), list: Some(name) });
        assert_eq!(SumChoice::parse("XXHash"), Ok(both(SumName::Xxh64)));
        assert_eq!(SumChoice::parse("auto"), Ok(None));
        let pair = SumChoice { transfer: Some(SumName::None), list: Some(SumName::Md5) };
        assert_eq!(SumChoice::parse("none,md5"), Ok(Some(pair)));
        assert_eq!(SumChoice::parse("auto,md5"), Ok(Some(SumChoice { transfer: None, ..pair })));
        for (text, name) in [("md5,,", ","), ("", ""), ("md5,md4,sha1", "md4,sha1"), ("bogus", "bogus")] {
            let error = Misuse::UnknownName { kind: "checksum", name: name.to_owned() };
            assert_eq!(SumChoice::parse(text), Err(error));
        }
        assert_eq!(CompressWish::parse("none"), Ok(CompressWish::Off));
        assert_eq!(CompressWish::parse("zlibx"), Ok(CompressWish::Fixed(Compressor::Zlibx)));
    }

    #[test]
    fn the_seed_of_md5_and_the_kind_of_md4() {
        let v = |n| Version::new(n).unwrap();
        let kinds = |version, compat, choice: Option<&str>, negotiated| {
            sum_kinds(v(version), compat, choice.and_then(|c| SumChoice::parse(c).unwrap()), negotiated).0
        };
        let none = Compat::empty();
        assert_eq!(kinds(29, none, None, None), SumKind::Md4Seeded);
        assert_eq!(kinds(29, none, Some("md4"), None), SumKind::Md4);
        assert_eq!(kinds(30, none, None, None), SumKind::Md5 { seed_first: false });
        assert_eq!(kinds(30, Compat::SEED_FIX, None, None), SumKind::Md5 { seed_first: true });
        assert_eq!(kinds(30, none, Some("md5"), None), SumKind::Md5 { seed_first: true });
        assert_eq!(kinds(32, Compat::all(), None, Some(SumName::Xxh128)), SumKind::Xxh128);
    }

    #[test]
    fn captured_levels() {
        let table = [
            (Compressor::Zlib, Some(0), None),
            (Compressor::Zlib, Some(-1), Some(6)),
            (Compressor::Zlibx, Some(99), Some(9)),
            (Compressor::Zstd, Some(0), Some(3)),
            (Compressor::Zstd, Some(-1), Some(-1)),
            (Compressor::Zstd, Some(99), Some(22)),
            (Compressor::Lz4, Some(99), Some(0)),
            (Compressor::None, Some(5), None),
            (Compressor::Zlib, None, Some(6)),
        ];
        for (compressor, asked, level) in table {
            assert_eq!(compressor.level(asked), level, "{compressor:?} {asked:?}");
        }
    }
}
