//! From source arguments to file lists.
//!
//! Wire: protocol/doc/10-file-list.md#10-from-arguments-to-entries-sender

/// The source arguments, and the walk over what they name.
#[derive(Debug)]
pub struct Source {}

impl Source {
    /// Takes the arguments as the user gave them, relative to the working directory.
    pub fn new(_arguments: Vec<Vec<u8>>) -> Self {
        todo!()
    }
}
