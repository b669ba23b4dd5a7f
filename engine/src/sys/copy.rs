//! Moving content between open files inside the kernel where it can, and room for it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{seek, SeekFrom};
use rustix::io::Errno;

/// Bytes moved between two looks at the caller's wishes.
const STEP: u64 = 32 << 20;

/// Bytes of the buffer where the kernel cannot copy by itself.
const BUFFER: usize = 1 << 20;

/// What a copy does with holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    /// Holes of the source may become zeros.
    Fill,
    /// Holes of the source stay holes.
    Keep,
}

/// Copies `length` bytes, or what there is of them, from the start of `from` to the start of the
/// empty file `to`: clone, `copy_file_range`, then a loop. Returns the bytes copied; `to` ends
/// there. Positions of both files are undefined afterwards.
pub fn copy_contents(from: &File, to: &File, length: u64, holes: Holes) -> io::Result<u64> {
    copy_contents_watched(from, to, length, holes, &mut |_| Ok(()))
}

/// The same, calling `watch` with the offset reached at least every 32 MiB; its error ends the copy.
pub fn copy_contents_watched(
    from: &File,
    to: &File,
    length: u64,
    holes: Holes,
    watch: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<u64> {
    if length == 0 {
        return Ok(0);
    }
    if let Some(cloned) = clone_contents(from, to, length)? {
        watch(cloned)?;
        return Ok(cloned);
    }
    let mut kernel = KernelCopy::Possible;
    if holes == Holes::Fill {
        let copied = copy_range(from, to, 0, length, &mut kernel, watch)?;
        return Ok(copied);
    }
    let end = length.min(crate::sys::meta::of_open(from)?.size);
    let mut at = 0;
    while at < end {
        let (start, stop) = match next_data(from, at, end)? {
            Some(range) => range,
            None => break,
        };
        let copied = copy_range(from, to, start, stop - start, &mut kernel, watch)?;
        if copied < stop - start {
            // The source shrank meanwhile.
            return Ok(start + copied);
        }
        at = stop;
    }
    to.set_len(end)?;
    watch(end)?;
    Ok(end)
}

/// Lets both files share the source's blocks, where the file system can. Returns the length, or
/// nothing if it cannot.
#[cfg(target_os = "linux")]
fn clone_contents(from: &File, to: &File, length: u64) -> io::Result<Option<u64>> {
    if rustix::fs::ioctl_ficlone(to, from).is_err() {
        return Ok(None);
    }
    let cloned = crate::sys::meta::of_open(to)?.size;
    if cloned > length {
        to.set_len(length)?;
    }
    Ok(Some(cloned.min(length)))
}

#[cfg(not(target_os = "linux"))]
fn clone_contents(_from: &File, _to: &File, _length: u64) -> io::Result<Option<u64>> {
    Ok(None)
}

/// Returns the next range with data at or behind `at`; nothing if only a hole is left. The whole
/// rest where the file system does not tell.
fn next_data(from: &File, at: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
    let start = match seek(from, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(_) => return Ok(Some((at, end))),
    };
    if start >= end {
        return Ok(None);
    }
    let stop = seek(from, SeekFrom::Hole(start)).unwrap_or(end).min(end);
    // A file that changes under us must not stop the walk.
    Ok(Some((start, if stop > start { stop } else { end })))
}

/// Whether the kernel copies between these two files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KernelCopy {
    Possible,
    Refused,
}

/// Copies a range to the same place. Returns fewer bytes only at the end of the source.
fn copy_range(
    from: &File,
    to: &File,
    start: u64,
    length: u64,
    kernel: &mut KernelCopy,
    watch: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<u64> {
    let mut done = 0;
    let mut buffer = Vec::new();
    while done < length {
        let step = (length - done).min(STEP);
        let mut moved = 0;
        if *kernel != KernelCopy::Refused {
            moved = copy_in_kernel(from, to, start + done, step, kernel)?;
        }
        if *kernel == KernelCopy::Refused {
            moved = copy_by_buffer(from, to, start + done, step, &mut buffer)?;
        }
        if moved == 0 {
            break;
        }
        done += moved;
        watch(start + done)?;
    }
    Ok(done)
}

#[cfg(target_os = "linux")]
fn copy_in_kernel(from: &File, to: &File, at: u64, length: u64, kernel: &mut KernelCopy) -> io::Result<u64> {
    let (mut read_at, mut write_at) = (at, at);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    loop {
        match rustix::fs::copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), length) {
            // Some file systems answer 0 for content that a read would give.
            Ok(0) => {
                *kernel = KernelCopy::Refused;
                return Ok(0);
            }
            Ok(moved) => return Ok(moved as u64),
            Err(Errno::INTR) => {}
            Err(error @ (Errno::NOSPC | Errno::FBIG | Errno::DQUOT)) => return Err(error.into()),
            // Not between these two, not for this kind, not in this sandbox: read and write tell
            // whether there is a real error.
            Err(_) => {
                *kernel = KernelCopy::Refused;
                return Ok(0);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn copy_in_kernel(_: &File, _: &File, _: u64, _: u64, kernel: &mut KernelCopy) -> io::Result<u64> {
    *kernel = KernelCopy::Refused;
    Ok(0)
}

fn copy_by_buffer(from: &File, to: &File, at: u64, length: u64, buffer: &mut Vec<u8>) -> io::Result<u64> {
    if buffer.is_empty() {
        buffer.resize(BUFFER.min(usize::try_from(length).unwrap_or(BUFFER)), 0);
    }
    let mut done = 0;
    while done < length {
        let room = buffer.len().min(usize::try_from(length - done).unwrap_or(usize::MAX));
        let read = match from.read_at(&mut buffer[..room], at + done) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all_at(&buffer[..read], at + done)?;
        done += read as u64;
    }
    Ok(done)
}

/// Allocates the first `length` bytes of a file. Its size is not changed, except on macOS, where
/// it becomes `length`. Unsupported file systems fail with `Unsupported`.
pub fn preallocate(file: &File, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
    #[cfg(not(target_os = "linux"))]
    let flags = rustix::fs::FallocateFlags::empty();
    loop {
        match rustix::fs::fallocate(file, flags, 0, length) {
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Err(io::ErrorKind::Unsupported.into()),
            answer => return Ok(answer?),
        }
    }
}

/// Turns a range of a file into a hole that reads as zeros; writes zeros where holes do not exist.
/// The size is not changed, unless zeros have to be written behind the end.
pub fn punch_hole(file: &File, offset: u64, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    {
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        if rustix::fs::fallocate(file, flags, offset, length).is_ok() {
            return Ok(());
        }
    }
    let zeros = vec![0; BUFFER.min(usize::try_from(length).unwrap_or(BUFFER))];
    let mut done = 0;
    while done < length {
        let room = zeros.len().min(usize::try_from(length - done).unwrap_or(usize::MAX));
        file.write_all_at(&zeros[..room], offset + done)?;
        done += room as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (File, File) {
        (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap())
    }

    fn content(file: &File) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn copies_what_there_is_and_no_more_than_asked() {
        for (length, expected) in [(3, "hel"), (5, "hello"), (99, "hello")] {
            for holes in [Holes::Fill, Holes::Keep] {
                let (from, to) = pair();
                from.write_all_at(b"hello", 0).unwrap();
                assert_eq!(copy_contents(&from, &to, length, holes).unwrap(), expected.len() as u64);
                assert_eq!(content(&to), expected.as_bytes(), "{length} {holes:?}");
            }
        }
    }

    #[test]
    fn the_buffer_loop_copies_the_same() {
        let (from, to) = pair();
        let data: Vec<u8> = (0..3_000_000u32).map(|n| n as u8 ^ (n >> 11) as u8).collect();
        from.write_all_at(&data, 0).unwrap();
        let mut reached = Vec::new();
        let mut kernel = KernelCopy::Refused;
        let watch: &mut dyn FnMut(u64) -> io::Result<()> = &mut |at| {
            reached.push(at);
            Ok(())
        };
        assert_eq!(copy_range(&from, &to, 0, 9_000_000, &mut kernel, watch).unwrap(), 3_000_000);
        assert_eq!(content(&to), data);
        assert_eq!(reached, [3_000_000]);
    }

    #[test]
    fn keeps_holes_in_the_middle_and_at_the_end() {
        use std::os::unix::fs::MetadataExt;
        let (from, to) = pair();
        from.write_all_at(b"head", 0).unwrap();
        from.write_all_at(b"middle", 8 << 20).unwrap();
        from.set_len(16 << 20).unwrap();
        assert_eq!(copy_contents(&from, &to, 16 << 20, Holes::Keep).unwrap(), 16 << 20);
        assert_eq!(content(&from), content(&to));
        assert!(to.metadata().unwrap().blocks() < 4096, "the holes were filled");
    }

    #[test]
    fn the_watcher_ends_a_copy() {
        let (from, to) = pair();
        from.write_all_at(b"hello", 0).unwrap();
        let stop = &mut |_| Err(io::ErrorKind::Interrupted.into());
        let error = copy_contents_watched(&from, &to, 5, Holes::Fill, stop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn a_punched_hole_reads_as_zeros() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 10_000], 0).unwrap();
        punch_hole(&file, 1000, 5000).unwrap();
        let bytes = content(&file);
        assert_eq!(bytes.len(), 10_000);
        assert!(bytes.iter().enumerate().all(|(at, &b)| (b == 0) == (1000..6000).contains(&at)));
    }
}
