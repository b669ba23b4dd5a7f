//! Lines of the daemon's text phase, and the greeting that either end opens with.
//!
//! Wire: protocol/doc/03-daemon.md#32-text-phase, protocol/doc/03-daemon.md#321-greeting

use bstr::ByteSlice;

use super::{AuthDigest, Version};
use crate::error::{Decode, Error, Malformed, PeerIncompatible, Stop};
use crate::wire::Reader;

const PREFIX: &[u8] = b"@RSYNCD: ";

/// Takes a line without its newline; carriage returns are dropped. Fails on more than `limit`
/// bytes, and on a NUL.
pub fn take_line(reader: &mut Reader<'_>, limit: usize) -> Decode<Vec<u8>> {
    let rest = reader.rest();
    let in_reach = &rest[..rest.len().min(limit + 1)];
    let end = in_reach.find_byte(b'\n');
    let line = &in_reach[..end.unwrap_or(in_reach.len())];
    if line.contains(&0) || line.len() > limit {
        return Err(Malformed::Line.into());
    }
    let end = end.ok_or(Stop::Short)?;
    let line = reader.take(end + 1)?;
    Ok(line[..end].iter().copied().filter(|b| *b != b'\r').collect())
}

/// A greeting: `@RSYNCD: VERSION.SUBPROTOCOL DIGESTS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// The sender's version, as announced: its range is checked by [`Greeting::agree`].
    pub version: u32,
    /// Non-zero in pre-releases. Old peers leave it out.
    pub subprotocol: Option<u32>,
    /// Names of login digests. Peers before version 32 may leave them out.
    pub digests: Option<Vec<u8>>,
}

/// What a greeting lacks though its version demands it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// `.SUBPROTOCOL`.
    Subprotocol,
    /// The list of digests.
    Digests,
}

impl Greeting {
    /// Returns our own.
    pub fn ours(version: Version) -> Self {
        let digests = AuthDigest::LISTED.map(AuthDigest::name).join(" ");
        Greeting {
            version: version.number().into(),
            subprotocol: Some(0),
            digests: Some(digests.into_bytes()),
        }
    }

    /// Returns the line, its newline included.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = [PREFIX, self.version.to_string().as_bytes()].concat();
        if let Some(subprotocol) = self.subprotocol {
            line.extend_from_slice(format!(".{subprotocol}").as_bytes());
        }
        if let Some(digests) = &self.digests {
            line.push(b' ');
            line.extend_from_slice(digests);
        }
        line.push(b'\n');
        line
    }

    /// Parses a line without its newline; nothing if it is no greeting.
    pub fn parse(line: &[u8]) -> Option<Greeting> {
        let (numbers, digests) = match line.strip_prefix(PREFIX)?.split_once_str(b" ") {
            Some((numbers, digests)) => (numbers, Some(digests.to_vec())),
            None => (&line[PREFIX.len()..], None),
        };
        let (version, subprotocol) = match numbers.split_once_str(b".") {
            Some((version, subprotocol)) => (version, Some(number(subprotocol)?)),
            None => (numbers, None),
        };
        Some(Greeting { version: number(version)?, subprotocol, digests })
    }

    /// Returns what the announced version demands and the line lacks.
    pub fn missing(&self) -> Option<Missing> {
        let newest = u32::from(Version::NEWEST.number());
        let version = Version::new(self.version.min(newest))?;
        if version.needs_subprotocol() && self.subprotocol.is_none() {
            return Some(Missing::Subprotocol);
        }
        (version.needs_digest_list() && self.digests.is_none()).then_some(Missing::Digests)
    }

    /// Returns the version of the session, this being the peer's greeting.
    pub fn agree(&self, ours: Version) -> Result<Version, Error> {
        Version::agree_by_greeting(ours, self.version, self.subprotocol.unwrap_or(0))
            .ok_or_else(|| PeerIncompatible::Version(i32::try_from(self.version).unwrap_or(i32::MAX)).into())
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_greeting_is_the_captured_one() {
        let line = b"@RSYNCD: 32.0 sha512 sha256 sha1 md5 md4\n";
        assert_eq!(Greeting::ours(Version::NEWEST).to_line(), line);
        assert_eq!(Greeting::parse(&line[..line.len() - 1]), Some(Greeting::ours(Version::NEWEST)));
    }

    #[test]
    fn what_old_and_odd_peers_say() {
        let missing = |line: &str| Greeting::parse(line.as_bytes()).map(|g| g.missing());
        assert_eq!(missing("@RSYNCD: 29"), Some(None));
        assert_eq!(missing("@RSYNCD: 31.0"), Some(None));
        assert_eq!(missing("@RSYNCD: 30"), Some(Some(Missing::Subprotocol)));
        assert_eq!(missing("@RSYNCD: 32.0"), Some(Some(Missing::Digests)));
        assert_eq!(missing("@RSYNCD: 32.0 "), Some(None));
        assert_eq!(missing("@RSYNCD: 29.0 sha512 md5"), Some(None));
        for line in ["@RSYNCD: x", "@RSYNCD: 31.x", "@RSYNCD:31", "220 smtp", "@RSYNCD: ", "@RSYNCD: -1"] {
            assert_eq!(missing(line), None, "{line}");
        }
        let far = Greeting { version: 99, subprotocol: Some(0), digests: None };
        assert_eq!(far.agree(Version::NEWEST), Err(PeerIncompatible::Version(99).into()));
    }

    #[test]
    fn lines_drop_carriage_returns_and_have_a_limit() {
        let line = |bytes: &[u8]| take_line(&mut Reader::new(bytes), 4);
        assert_eq!(line(b"a\rb\r\nrest"), Ok(b"ab".to_vec()));
        assert_eq!(line(b"abcd\n"), Ok(b"abcd".to_vec()));
        assert_eq!(line(b"abcd"), Err(Stop::Short));
        assert_eq!(line(b"abcde"), Err(Malformed::Line.into()));
        assert_eq!(line(b"a\0"), Err(Malformed::Line.into()));
        assert_eq!(line(b"a\n\0"), Ok(b"a".to_vec()), "what follows the line is not looked at");
    }
}
