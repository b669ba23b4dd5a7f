//! Paths relative to a transfer root: bytes, never `String`.

use std::borrow::Borrow;
use std::fmt;

use bstr::ByteSlice;

/// A path relative to a transfer root: components joined by single slashes, no leading or
/// trailing slash, no `..`; the root itself is `.`. With `-R` a sender's absolute name keeps its
/// leading slash on the wire only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath<'a>(&'a [u8]);

impl<'a> RelPath<'a> {
    /// The transfer root.
    pub const ROOT: RelPath<'static> = RelPath(b".");

    /// Wraps bytes that are already clean.
    pub fn new(bytes: &'a [u8]) -> Self {
        RelPath(if bytes.is_empty() { b"." } else { bytes })
    }

    /// Returns the bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether this is the transfer root.
    pub fn is_root(self) -> bool {
        self.0 == b"."
    }

    /// Returns the last component (`.` for the root).
    pub fn name(self) -> &'a [u8] {
        match self.0.rfind_byte(b'/') {
            Some(slash) => &self.0[slash + 1..],
            None => self.0,
        }
    }

    /// Returns the directory that holds the last component; the root's parent is the root.
    pub fn parent(self) -> RelPath<'a> {
        match self.0.rfind_byte(b'/') {
            Some(slash) => RelPath::new(&self.0[..slash]),
            None => RelPath::ROOT,
        }
    }

    /// Returns the components, none for the root.
    pub fn components(self) -> impl Iterator<Item = &'a [u8]> {
        let bytes: &'a [u8] = if self.is_root() { b"" } else { self.0 };
        bytes.split(|&b| b == b'/').filter(|c| !c.is_empty())
    }

    /// Returns the path of `name` inside this directory.
    pub fn join(self, name: &[u8]) -> RelPathBuf {
        if self.is_root() {
            return RelPathBuf(name.to_vec());
        }
        let mut path = Vec::with_capacity(self.0.len() + 1 + name.len());
        path.extend_from_slice(self.0);
        path.push(b'/');
        path.extend_from_slice(name);
        RelPathBuf(path)
    }

    /// Returns an owned copy.
    pub fn to_owned(self) -> RelPathBuf {
        RelPathBuf(self.0.to_vec())
    }
}

impl fmt::Debug for RelPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_bstr().fmt(f)
    }
}

/// An owned [`RelPath`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPathBuf(Vec<u8>);

impl RelPathBuf {
    /// Wraps bytes that are already clean; empty means the root.
    pub fn new(bytes: Vec<u8>) -> Self {
        RelPathBuf(if bytes.is_empty() { b".".to_vec() } else { bytes })
    }

    /// Borrows the path.
    pub fn as_path(&self) -> RelPath<'_> {
        RelPath(&self.0)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Unwraps the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl Borrow<[u8]> for RelPathBuf {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for RelPathBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().fmt(f)
    }
}
