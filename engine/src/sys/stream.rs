//! Reading from a descriptor into a buffer that was never zeroed.

use std::io;
use std::os::fd::AsFd;

use bytes::{BufMut, BytesMut};
use rustix::io::Errno;

/// Reads what is there, at most the buffer's spare capacity, behind the bytes that it holds.
/// Returns 0 at the end of the stream.
#[allow(unsafe_code)]
pub fn read_into(fd: impl AsFd, buffer: &mut BytesMut) -> io::Result<usize> {
    loop {
        match rustix::io::read(&fd, buffer.spare_capacity_mut()) {
            Ok((read, _)) => {
                let n = read.len();
                // SAFETY: `read` reports the first `n` bytes of the spare capacity as initialised.
                unsafe { buffer.advance_mut(n) };
                return Ok(n);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_behind_what_is_there() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"world").unwrap();
        let mut buffer = BytesMut::from(&b"hello "[..]);
        buffer.reserve(64);
        assert_eq!(read_into(&reader, &mut buffer).unwrap(), 5);
        assert_eq!(&buffer[..], b"hello world");
        drop(writer);
        buffer.reserve(1);
        assert_eq!(read_into(&reader, &mut buffer).unwrap(), 0);
    }
}
