//! From source arguments to file lists.
//!
//! [`Source`] is what was asked for; a [`Lister`] turns it into segments, one directory at a time
//! or all at once, and remembers for every entry where it lies on disk.
//! Wire: protocol/doc/10-file-list.md#10-from-arguments-to-entries-sender

mod args;
mod base;
mod draft;
mod entered;
pub(crate) mod links;
mod look;
mod names;
mod walk;

#[cfg(test)]
pub(crate) mod tests;

pub use args::sanitise;
pub(crate) use base::Base;
pub(crate) use draft::{Listed, Roots};
pub(crate) use links::is_unsafe;
pub(crate) use look::{follows_last, last, open, sentence, vanished, with_xattrs};
pub use names::{Names, Separator};
pub(crate) use walk::Lister;

/// The source arguments, and what restricts them.
#[derive(Debug)]
pub struct Source {
    arguments: Vec<Vec<u8>>,
    names: Option<Names>,
}

impl Source {
    /// Takes the arguments as the user gave them (a server: those behind the `.`), relative to the
    /// working directory.
    pub fn new(arguments: Vec<Vec<u8>>) -> Self {
        Source { arguments, names: None }
    }

    /// Takes one directory, and the names below it that restrict the transfer (`--files-from`).
    pub fn with_names(directory: Vec<u8>, names: Names) -> Self {
        Source { arguments: vec![directory], names: Some(names) }
    }
}
