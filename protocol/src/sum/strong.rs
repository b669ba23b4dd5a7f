//! Strong checksums: which one, over what, with which seed where.

/// A strong checksum algorithm, with the quirks of the version that chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SumKind {
    /// No sum: one zero byte on the wire; forces whole files.
    None,
    /// MD4 by default choice at versions 27 to 29: a seed even in file sums.
    Md4Seeded,
    /// MD4 chosen by name.
    Md4,
    /// MD5; `seed_first` as the seed-fix capability says.
    Md5 {
        /// Whether block sums hash the seed before the data.
        seed_first: bool,
    },
    /// SHA-1.
    Sha1,
    /// XXH64.
    Xxh64,
    /// XXH3, 64 bits.
    Xxh3,
    /// XXH3, 128 bits.
    Xxh128,
}

impl SumKind {
    /// Returns the length of a digest in bytes.
    pub fn len(self) -> usize {
        match self {
            SumKind::None => 1,
            SumKind::Xxh64 | SumKind::Xxh3 => 8,
            SumKind::Sha1 => 20,
            _ => 16,
        }
    }
}
/// A digest over blocks, seeded with the session's seed.
#[derive(Debug, Clone, Copy)]
pub struct BlockSum;
/// A running digest over a whole file.
#[derive(Debug, Clone)]
pub struct FileSum;
