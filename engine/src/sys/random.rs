//! Random bytes from the kernel.

use std::fs::File;
use std::io::{self, Read};

/// Fills the buffer with random bytes, fit for challenges and for names that nobody can guess.
pub fn fill(buffer: &mut [u8]) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let mut filled = 0;
        while filled < buffer.len() {
            match rustix::rand::getrandom(&mut buffer[filled..], rustix::rand::GetRandomFlags::empty()) {
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                // A sandbox: try the device.
                Err(_) => break,
            }
        }
        if filled == buffer.len() {
            return Ok(());
        }
    }
    File::open("/dev/urandom")?.read_exact(buffer)
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_fills_differ() {
        let (mut a, mut b) = ([0; 32], [0; 32]);
        super::fill(&mut a).unwrap();
        super::fill(&mut b).unwrap();
        assert_ne!(a, b);
    }
}
