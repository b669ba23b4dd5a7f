//! Blocks of argument words: a daemon's, and the secluded ones of either transport.
//!
//! Wire: protocol/doc/03-daemon.md#34-argument-block, protocol/doc/02-session-start.md#214-secluded-args--s

use crate::error::{Decode, Malformed, Misuse, PeerMisbehaved, Stop};
use crate::limits::{ARGUMENTS_MAX, DAEMON_LINE_MAX};
use crate::session::Version;
use crate::wire::Reader;

/// One block of words, each ended by the block's separator; an empty word ends the block.
#[derive(Debug, Clone)]
pub struct ArgumentBlock {
    separator: u8,
    taken: usize,
}

impl ArgumentBlock {
    /// The block that follows a daemon's `OK`.
    pub fn of_daemon(version: Version) -> Self {
        let separator = if version.has_nul_arguments() { 0 } else { b'\n' };
        ArgumentBlock { separator, taken: 0 }
    }

    /// The block of secluded arguments (`-s`). Its first word is `rsync`, as in an `argv`.
    pub fn secluded() -> Self {
        ArgumentBlock { separator: 0, taken: 0 }
    }

    /// Takes the next word; `None` is the end of the block.
    ///
    /// Fails on a word of more than 5118 bytes and on more than 16000 words.
    pub fn take_word(&mut self, reader: &mut Reader<'_>) -> Decode<Option<Vec<u8>>> {
        let rest = reader.rest();
        let in_reach = &rest[..rest.len().min(DAEMON_LINE_MAX + 1)];
        let is_end = |b: &u8| *b == self.separator || (self.separator == b'\n' && *b == b'\r');
        let Some(length) = in_reach.iter().position(is_end) else {
            let long = in_reach.len() > DAEMON_LINE_MAX;
            return Err(if long { Malformed::Line.into() } else { Stop::Short });
        };
        if length > 0 && self.taken == ARGUMENTS_MAX {
            return Err(PeerMisbehaved::Rule("too many daemon arguments").into());
        }
        let word = reader.take(length + 1)?[..length].to_vec();
        self.taken += 1;
        Ok(Some(word).filter(|word| !word.is_empty()))
    }
}

/// Appends a block, its end included.
///
/// Fails on an empty word, which would end it, and on one that holds the separator.
pub fn put_arguments<W: AsRef<[u8]>>(
    block: &ArgumentBlock,
    words: &[W],
    out: &mut Vec<u8>,
) -> Result<(), Misuse> {
    for word in words {
        let word = word.as_ref();
        if word.is_empty() || word.contains(&block.separator) {
            return Err(Misuse::Argument);
        }
        out.extend_from_slice(word);
        out.push(block.separator);
    }
    out.push(block.separator);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(mut block: ArgumentBlock, bytes: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let mut reader = Reader::new(bytes);
        let mut all = Vec::new();
        while let Some(word) = block.take_word(&mut reader).unwrap() {
            all.push(word);
        }
        (all, reader.consumed())
    }

    #[test]
    fn captured_secluded_words() {
        let bytes = b"rsync\0--delete\0--partial-dir\0my dir\0.\0/dst x/\0\0";
        let input = [bytes.as_slice(), b"\x20\0\0\0"].concat();
        let (all, consumed) = words(ArgumentBlock::secluded(), &input);
        assert_eq!(consumed, bytes.len(), "the version int is left alone");
        let mut out = Vec::new();
        put_arguments(&ArgumentBlock::secluded(), &all, &mut out).unwrap();
        assert_eq!(out, bytes);
    }

    #[test]
    fn old_daemons_separate_by_lines() {
        let old = ArgumentBlock::of_daemon(Version::new(29).unwrap());
        let mut out = Vec::new();
        put_arguments(&old, &["--server", ".", "pub/"], &mut out).unwrap();
        assert_eq!(out, b"--server\n.\npub/\n\n");
        assert_eq!(words(old.clone(), &out).0.len(), 3);
        assert_eq!(put_arguments(&old, &["a\nb"], &mut out), Err(Misuse::Argument));
        assert_eq!(put_arguments(&old, &[""], &mut out), Err(Misuse::Argument));
    }

    #[test]
    fn words_arrive_in_pieces_and_within_limits() {
        let mut block = ArgumentBlock::of_daemon(Version::NEWEST);
        assert_eq!(block.take_word(&mut Reader::new(b"--ser")), Err(Stop::Short));
        assert_eq!(
            block.take_word(&mut Reader::new(&[b'x'; DAEMON_LINE_MAX + 1])),
            Err(Malformed::Line.into())
        );
        let many = b"a\0".repeat(ARGUMENTS_MAX + 1);
        let mut reader = Reader::new(&many);
        let refused = (0..).find_map(|_| block.take_word(&mut reader).err());
        assert_eq!(refused, Some(PeerMisbehaved::Rule("too many daemon arguments").into()));
    }
}
