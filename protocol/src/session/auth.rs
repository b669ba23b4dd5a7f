//! The daemon's login: which digest, what is hashed, how it is written.
//!
//! Wire: protocol/doc/03-daemon.md#33-authentication

use base64::engine::general_purpose::STANDARD_NO_PAD;
use base64::Engine;
use md4::Md4;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::Version;

/// A login digest, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuthDigest {
    /// SHA-512.
    Sha512,
    /// SHA-256.
    Sha256,
    /// SHA-1.
    Sha1,
    /// MD5: what old peers from version 30 on take for granted.
    Md5,
    /// MD4, when it was named.
    Md4,
    /// MD4 over four zero bytes first: what peers below version 30 take for granted.
    OldMd4,
}

impl AuthDigest {
    /// The digests that stand in a greeting, in order of preference.
    pub const LISTED: [AuthDigest; 5] =
        [AuthDigest::Sha512, AuthDigest::Sha256, AuthDigest::Sha1, AuthDigest::Md5, AuthDigest::Md4];

    /// Returns the name in greetings and in `auth digest`.
    pub fn name(self) -> &'static str {
        match self {
            AuthDigest::Sha512 => "sha512",
            AuthDigest::Sha256 => "sha256",
            AuthDigest::Sha1 => "sha1",
            AuthDigest::Md5 => "md5",
            AuthDigest::Md4 | AuthDigest::OldMd4 => "md4",
        }
    }

    /// Finds a listed digest, ignoring case.
    pub fn find(name: &str) -> Option<AuthDigest> {
        Self::LISTED.into_iter().find(|d| d.name().eq_ignore_ascii_case(name))
    }

    /// Returns the strongest digest of the peer's list; without a list, what the version implies.
    pub fn choose(peer: Option<&[u8]>, version: Version) -> Option<AuthDigest> {
        let Some(list) = peer else {
            return Some(if version.defaults_to_md5() { AuthDigest::Md5 } else { AuthDigest::OldMd4 });
        };
        let list = String::from_utf8_lossy(list);
        list.split_ascii_whitespace().filter_map(AuthDigest::find).min()
    }

    /// Whether it is at least as strong as a floor.
    pub fn meets(self, floor: AuthDigest) -> bool {
        self <= floor
    }

    /// Returns a challenge made of unpredictable bytes, of which there should be 16 or more.
    pub fn challenge(self, random: &[u8]) -> String {
        STANDARD_NO_PAD.encode(self.hash(&[random]))
    }

    /// Returns the answer to a challenge.
    pub fn response(self, password: &[u8], challenge: &[u8]) -> String {
        STANDARD_NO_PAD.encode(self.hash(&[password, challenge]))
    }

    /// Whether an answer is right, in time that does not tell how nearly.
    pub fn accepts(self, password: &[u8], challenge: &[u8], response: &[u8]) -> bool {
        let expected = self.response(password, challenge);
        expected.len() == response.len()
            && expected.bytes().zip(response).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }

    fn hash(self, parts: &[&[u8]]) -> Vec<u8> {
        fn digest<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
            let mut hash = D::new();
            parts.iter().for_each(|part| hash.update(part));
            hash.finalize().to_vec()
        }
        match self {
            AuthDigest::Sha512 => digest::<Sha512>(parts),
            AuthDigest::Sha256 => digest::<Sha256>(parts),
            AuthDigest::Sha1 => digest::<Sha1>(parts),
            AuthDigest::Md5 => digest::<Md5>(parts),
            AuthDigest::Md4 => digest::<Md4>(parts),
            AuthDigest::OldMd4 => digest::<Md4>(&[&[b"\0\0\0\0".as_slice()], parts].concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHALLENGE: &[u8] =
        b"XNVUQyUXH4fePeHS0TobhL2hKveDQ8Vs22V1wrbGeIlKOgD66wvVVqClW9ckHFJe+1Et2kS9L9agoI+2mb++Ag";
    const ANSWER: &str =
        "owW6wlq9a2o2dL+7CkwgkkH4YN7GF7KYZmvHjUj52s/3G8781xoxhDjJKK8PNQZCMkmI3rUvUkqTm7RvDlCoxg";

    #[test]
    fn the_worked_example() {
        assert_eq!(AuthDigest::Sha512.response(b"s3cret", CHALLENGE), ANSWER);
        assert!(AuthDigest::Sha512.accepts(b"s3cret", CHALLENGE, ANSWER.as_bytes()));
        assert!(!AuthDigest::Sha512.accepts(b"s3cre", CHALLENGE, ANSWER.as_bytes()));
        assert!(!AuthDigest::Sha512.accepts(b"s3cret", CHALLENGE, &ANSWER.as_bytes()[1..]));
        assert!(!AuthDigest::Md5.accepts(b"s3cret", CHALLENGE, ANSWER.as_bytes()));
    }

    #[test]
    fn challenges_tell_their_digest_by_length() {
        let lengths = AuthDigest::LISTED.map(|d| d.challenge(b"0123456789abcdef").len());
        assert_eq!(lengths, [86, 43, 27, 22, 22]);
    }

    #[test]
    fn the_zero_prefix_of_unlisted_md4() {
        assert_eq!(AuthDigest::OldMd4.response(b"p", b"c"), AuthDigest::Md4.response(b"\0\0\0\0p", b"c"));
        assert_ne!(AuthDigest::OldMd4.response(b"p", b"c"), AuthDigest::Md4.response(b"p", b"c"));
    }

    #[test]
    fn digests_that_a_stock_daemon_was_seen_to_use() {
        let choose =
            |list: Option<&str>, v| AuthDigest::choose(list.map(str::as_bytes), Version::new(v).unwrap());
        assert_eq!(choose(Some("md4"), 32), Some(AuthDigest::Md4));
        assert_eq!(choose(Some("md4"), 29), Some(AuthDigest::Md4));
        assert_eq!(choose(None, 29), Some(AuthDigest::OldMd4));
        assert_eq!(choose(None, 31), Some(AuthDigest::Md5));
        assert_eq!(choose(Some("md4 sha1 md5"), 32), Some(AuthDigest::Sha1));
        assert_eq!(choose(Some("sha512 sha256"), 29), Some(AuthDigest::Sha512));
        assert_eq!(choose(Some(""), 31), None);
        assert!(AuthDigest::Sha256.meets(AuthDigest::Sha1) && !AuthDigest::Md5.meets(AuthDigest::Sha1));
    }
}
