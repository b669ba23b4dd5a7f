//! Pipes to a remote shell.

use std::os::fd::AsFd;

/// Enlarges the buffer of a pipe to about `bytes` where the platform can; other descriptors are
/// left alone. Never fails: a small pipe works too.
#[cfg(target_os = "linux")]
pub fn enlarge(pipe: impl AsFd, bytes: usize) {
    let mut wanted = bytes;
    // The system's limit (1 MiB unless changed) refuses more with EPERM.
    while wanted > 64 << 10 {
        match rustix::pipe::fcntl_setpipe_size(&pipe, wanted) {
            Err(rustix::io::Errno::PERM | rustix::io::Errno::BUSY) => wanted /= 2,
            _ => return,
        }
    }
}

/// Enlarges nothing: the platform sizes its pipes itself.
#[cfg(not(target_os = "linux"))]
pub fn enlarge(_pipe: impl AsFd, _bytes: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn a_pipe_grows_and_a_file_is_left_alone() {
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        super::enlarge(&reader, 256 << 10);
        assert!(rustix::pipe::fcntl_getpipe_size(&reader).unwrap() >= 128 << 10);
        super::enlarge(tempfile::tempfile().unwrap(), 256 << 10);
    }
}
