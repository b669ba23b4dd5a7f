//! A bounded view of a source that is read once, front to back.
//!
//! What cannot be read is shown as zeros, up to the announced length: the stream that describes
//! the file must have an end. Every byte is added to the whole-file sum as it is read.
//! Wire: protocol/doc/20-transfer.md#26-failures-at-the-sender

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use bytes::{Bytes, BytesMut};
use suisei_protocol::sum::FileSum;

/// Fewest bytes read at once.
const READ: usize = 256 * 1024;
/// Slices shorter than this are copied, so that a small piece in a queue does not keep a whole
/// buffer alive.
const SHARED_MIN: usize = 16 * 1024;

/// A view of the bytes from [`Window::start`] on.
pub(super) struct Window<'f> {
    source: &'f File,
    len: u64,
    start: u64,
    view: Bytes,
    sum: Option<FileSum>,
    flaw: Option<io::Error>,
}

impl<'f> Window<'f> {
    /// Starts an empty view at `start` of a source whose announced length is `len`. Without `sum`
    /// nothing is hashed.
    pub(super) fn new(source: &'f File, start: u64, len: u64, sum: Option<FileSum>) -> Self {
        Window { source, len, start, view: Bytes::new(), sum, flaw: None }
    }

    /// Returns the offset of the first byte in view.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Returns the offset behind the last byte in view.
    pub(super) fn end(&self) -> u64 {
        self.start + self.view.len() as u64
    }

    /// Whether the view reaches the end of the source.
    pub(super) fn is_last(&self) -> bool {
        self.end() >= self.len
    }

    /// Returns the bytes in view. Drop them before the next [`Window::advance`]: a buffer that
    /// nobody holds is used again.
    pub(super) fn view(&self) -> Bytes {
        self.view.clone()
    }

    /// Returns bytes in view, shared or copied. The range is in offsets of the source.
    pub(super) fn slice(&self, range: Range<u64>) -> Bytes {
        let range = (range.start - self.start) as usize..(range.end - self.start) as usize;
        if range.len() < SHARED_MIN {
            Bytes::copy_from_slice(&self.view[range])
        } else {
            self.view.slice(range)
        }
    }

    /// Forgets what is in front of offset `keep`, and reads on: at least `ahead` bytes more than
    /// are kept, unless the source ends.
    pub(super) fn advance(&mut self, keep: u64, ahead: usize) {
        let keep = keep.clamp(self.start, self.end());
        let kept = (self.end() - keep) as usize;
        let more = (self.len - self.end()).min(ahead.max(READ) as u64) as usize;
        let kept_at = (keep - self.start) as usize;
        let old = std::mem::take(&mut self.view);
        let mut buffer = match old.try_into_mut() {
            Ok(mut same) => {
                same.copy_within(kept_at.., 0);
                same.resize(kept + more, 0);
                same
            }
            // Pieces of it are still on their way.
            Err(shared) => {
                let mut fresh = BytesMut::zeroed(kept + more);
                fresh[..kept].copy_from_slice(&shared[kept_at..]);
                fresh
            }
        };
        self.start = keep;
        self.fill(&mut buffer[kept..], keep + kept as u64);
        self.view = buffer.freeze();
    }

    fn fill(&mut self, target: &mut [u8], at: u64) {
        let filled = match self.flaw {
            None => self.read(target, at),
            Some(_) => 0,
        };
        target[filled..].fill(0);
        if let Some(sum) = &mut self.sum {
            sum.update(target);
        }
    }

    fn read(&mut self, target: &mut [u8], at: u64) -> usize {
        let mut filled = 0;
        while filled < target.len() {
            match self.source.read_at(&mut target[filled..], at + filled as u64) {
                Ok(0) => {
                    // The file was cut short: stock words it as "No data available".
                    self.flaw = Some(rustix::io::Errno::NODATA.into());
                    break;
                }
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.flaw = Some(error);
                    break;
                }
            }
        }
        filled
    }

    /// Returns the whole-file sum and why it is not to be trusted.
    pub(super) fn finish(self) -> (Option<FileSum>, Option<io::Error>) {
        (self.sum, self.flaw)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use suisei_protocol::sum::SumKind;

    use super::*;

    fn file(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file
    }

    #[test]
    fn the_view_slides_over_the_whole_source() {
        let content: Vec<u8> = (0..1_000_000u32).map(|n| (n / 3) as u8).collect();
        let source = file(&content);
        let mut window =
            Window::new(&source, 0, content.len() as u64, Some(FileSum::unseeded(SumKind::Xxh64)));
        let mut held = Vec::new();
        let mut keep = 0;
        while !window.is_last() {
            window.advance(keep, 1000);
            assert_eq!(window.view(), &content[window.start() as usize..window.end() as usize]);
            held.push((window.start(), window.slice(window.start()..window.end())));
            keep = window.end() - 777;
        }
        // Slices stay valid after the view has moved on.
        for (start, slice) in held {
            assert_eq!(slice, content[start as usize..start as usize + slice.len()]);
        }
        let (sum, flaw) = window.finish();
        let mut expected = FileSum::unseeded(SumKind::Xxh64);
        expected.update(&content);
        assert_eq!(sum.unwrap().finish(), expected.finish());
        assert!(flaw.is_none());
    }

    #[test]
    fn a_source_cut_short_ends_in_zeros_and_says_so() {
        let source = file(&[7; 1000]);
        let mut window = Window::new(&source, 0, 1_000_000, None);
        let mut zeros = 0;
        while !window.is_last() {
            window.advance(window.end(), 0);
            zeros += window.view().iter().filter(|&&byte| byte == 0).count();
        }
        assert_eq!(zeros, 999_000);
        let (_, flaw) = window.finish();
        assert_eq!(flaw.unwrap().raw_os_error(), Some(rustix::io::Errno::NODATA.raw_os_error()));
    }
}
