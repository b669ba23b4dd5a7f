//! Random bytes from the kernel.

/// Fills the buffer with random bytes.
pub fn fill(_buffer: &mut [u8]) {
    todo!()
}
