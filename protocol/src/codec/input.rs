//! Bytes that have arrived and are not decoded yet.
//!
//! Payloads of frames are pushed as they come; units are cut off the front. A unit that straddles
//! chunks is joined in a small side buffer, and only as far as it needs. Literal data is never
//! joined: it leaves as slices of the chunks.
//! Wire: protocol/doc/01-integers-and-multiplexing.md#171-frame

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

use crate::error::{Decode, Stop};
use crate::wire::Reader;

/// First length to which a straddling unit is joined; doubled as often as it takes.
const FIRST_JOIN: usize = 64;

/// A queue of received chunks, read from the front.
#[derive(Debug, Default)]
pub struct Input {
    /// Never holds an empty chunk.
    chunks: VecDeque<Bytes>,
    len: usize,
    /// A copy of the first bytes of the queue, kept while a straddling unit is incomplete.
    joined: Vec<u8>,
    /// The chunk that the copy goes on with, and where in it: nothing is walked twice.
    join_at: (usize, usize),
}

impl Input {
    /// Starts empty.
    pub fn new() -> Self {
        Input::default()
    }

    /// Appends a chunk.
    pub fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.len += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    /// Returns the number of bytes not yet decoded.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether everything is decoded.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Decodes one unit off the front. `unit` must change nothing unless it succeeds: it is called
    /// again with more bytes behind the same first ones.
    pub fn decode<T>(&mut self, mut unit: impl FnMut(&mut Reader<'_>) -> Decode<T>) -> Decode<T> {
        let mut wanted = FIRST_JOIN;
        loop {
            let front = self.chunks.front().map_or(&[][..], |chunk| chunk);
            let joined = self.joined.len() > front.len();
            let bytes = if joined { &self.joined[..] } else { front };
            let seen = bytes.len();
            let mut reader = Reader::new(bytes);
            match unit(&mut reader) {
                Ok(value) => {
                    let consumed = reader.consumed();
                    self.skip(consumed);
                    return Ok(value);
                }
                Err(Stop::Short) if seen < self.len => {
                    self.join(seen.saturating_add(wanted));
                    wanted *= 2;
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Takes a piece of at most `max` bytes without copying; empty only if nothing has arrived.
    pub fn take_piece(&mut self, max: usize) -> Bytes {
        let Some(front) = self.chunks.front_mut() else { return Bytes::new() };
        let n = max.min(front.len());
        let piece = front.split_to(n);
        if front.is_empty() {
            self.chunks.pop_front();
        }
        self.len -= n;
        self.unjoin();
        piece
    }

    /// Extends the joined copy to at least `wanted` bytes, or to everything.
    fn join(&mut self, wanted: usize) {
        let target = wanted.min(self.len);
        let (index, within) = &mut self.join_at;
        while self.joined.len() < target {
            let Some(chunk) = self.chunks.get(*index) else { return };
            let rest = &chunk[*within..];
            let n = rest.len().min(target - self.joined.len());
            self.joined.extend_from_slice(&rest[..n]);
            *within += n;
            if n == rest.len() {
                (*index, *within) = (*index + 1, 0);
            }
        }
    }

    /// Forgets the copy, whose first bytes are about to go.
    fn unjoin(&mut self) {
        self.joined.clear();
        self.join_at = (0, 0);
    }

    /// Drops the first `n` bytes.
    fn skip(&mut self, mut n: usize) {
        self.unjoin();
        self.len -= n;
        while n > 0 {
            let Some(front) = self.chunks.front_mut() else { return };
            let part = n.min(front.len());
            front.advance(part);
            n -= part;
            if front.is_empty() {
                self.chunks.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(chunks: &[&[u8]]) -> Input {
        let mut input = Input::new();
        for chunk in chunks {
            input.push(Bytes::copy_from_slice(chunk));
        }
        input
    }

    #[test]
    fn a_unit_over_many_chunks_is_joined_and_the_rest_stays() {
        let mut input = input(&[&[1], &[0], &[], &[0, 0, 7], &[8]]);
        assert_eq!(input.decode(|r| r.i32()), Ok(1));
        assert_eq!(input.take_piece(9), [7].as_slice());
        assert_eq!(input.decode(|r| r.u8()), Ok(8));
        assert!(input.is_empty());
    }

    #[test]
    fn a_short_unit_is_tried_again_when_more_arrives() {
        let mut input = input(&[&[1], &[2]]);
        assert_eq!(input.decode(|r| r.i32()), Err(Stop::Short));
        input.push(Bytes::from_static(&[3, 4, 5]));
        assert_eq!(input.decode(|r| r.i32()), Ok(0x0403_0201));
        assert_eq!(input.len(), 1);
    }

    #[test]
    fn a_long_unit_over_chopped_chunks_arrives_whole() {
        let bytes: Vec<u8> = (0..5000u32).map(|n| n as u8).collect();
        let mut input = Input::new();
        for byte in &bytes {
            assert_eq!(input.decode(|r| r.take(5000).map(<[u8]>::to_vec)), Err(Stop::Short));
            input.push(Bytes::copy_from_slice(&[*byte]));
        }
        assert_eq!(input.decode(|r| r.take(5000).map(<[u8]>::to_vec)), Ok(bytes));
    }

    #[test]
    fn pieces_are_slices_of_the_chunk() {
        let chunk = Bytes::from_static(b"literal data");
        let start = chunk.as_ptr();
        let mut input = Input::new();
        input.push(chunk);
        let piece = input.take_piece(7);
        assert_eq!(piece, "literal");
        assert_eq!(piece.as_ptr(), start);
        assert_eq!(input.take_piece(100), " data");
    }
}
