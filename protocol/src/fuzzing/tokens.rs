//! Fuzz targets of sum heads, token streams and filter texts.
//!
//! Token streams: the first byte chooses the version (bits 0 to 2), the second the length of a
//! piece; a stream read in pieces must say what it says when read at once.
//! Wire: protocol/doc/21-tokens-and-compression.md#9-error-exits

use super::version;
use crate::error::{Decode, Error, Stop};
use crate::filter::{decode_text, Directive};
use crate::limits::LZ4_OUTPUT_MAX;
use crate::sum::SumKind;
use crate::transfer::{BlockIndex, Compressor, SumHead, TokenDecoder, TokenEvent};
use crate::wire::Reader;

/// Number of blocks of the basis that all streams refer to.
const COUNT: u32 = 200;
/// What stands for the bytes of a block.
const BLOCK: [u8; 700] = [b'b'; 700];
/// Most events taken from one input: a small one can expand to a lot.
const EVENTS_MAX: usize = 4096;

/// A sum head, after a byte for the version: what is accepted describes a file, and is encoded as
/// it came.
pub fn sum_head(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let mut reader = Reader::new(bytes);
    let Ok(head) = SumHead::decode(&mut reader, version(choice), SumKind::Sha1) else { return };
    assert!(head.count == 0 || head.block_len > 0);
    assert!(head.remainder <= head.block_len && head.sum_len <= 20);
    assert!(head.basis_len() <= u64::from(head.count) * u64::from(head.block_len));
    let mut again = Vec::new();
    head.encode(&mut again);
    assert_eq!(again, bytes[..reader.consumed()]);
}

/// Uncompressed tokens.
pub fn tokens_none(input: &[u8]) {
    tokens(Compressor::None, input);
}

/// zlib, with matched blocks in the history.
pub fn tokens_zlib(input: &[u8]) {
    tokens(Compressor::Zlib, input);
}

/// zlibx.
pub fn tokens_zlibx(input: &[u8]) {
    tokens(Compressor::Zlibx, input);
}

/// zstd.
pub fn tokens_zstd(input: &[u8]) {
    tokens(Compressor::Zstd, input);
}

/// lz4.
pub fn tokens_lz4(input: &[u8]) {
    tokens(Compressor::Lz4, input);
}

fn tokens(compressor: Compressor, input: &[u8]) {
    let [choice, piece, stream @ ..] = input else { return };
    let read = |piece| {
        let mut decoder = TokenDecoder::new(compressor, version(*choice)).expect("the library has decoders");
        decode(&mut decoder, stream, piece)
    };
    assert_eq!(read(stream.len().max(1)), read(usize::from(*piece).max(1)));
}

/// Decodes a stream that arrives in pieces. Returns its events, those of literals joined, and what
/// was wrong at its end.
fn decode(decoder: &mut TokenDecoder, stream: &[u8], piece: usize) -> (Vec<TokenEvent>, Option<Error>) {
    let (mut taken, mut arrived, mut events) = (0, 0, Vec::new());
    while events.len() < EVENTS_MAX {
        let mut reader = Reader::new(&stream[taken..arrived]);
        let event: Decode<Option<TokenEvent>> = decoder.decode(&mut reader, COUNT);
        match event {
            Ok(event) => {
                taken += reader.consumed();
                if let Some(TokenEvent::LiteralFollows(len)) = event {
                    taken = stream.len().min(taken.saturating_add(len as usize));
                    arrived = arrived.max(taken);
                }
                if let Some(TokenEvent::Copy(BlockIndex(index))) = event {
                    assert!(index < COUNT);
                    if decoder.wants_history() && decoder.history(&BLOCK).is_err() {
                        return (events, None);
                    }
                }
                if let Some(TokenEvent::Literal(data)) = &event {
                    assert!(!data.is_empty() && data.len() <= LZ4_OUTPUT_MAX);
                }
                events.extend(event);
            }
            Err(Stop::Short) if arrived < stream.len() => arrived = stream.len().min(arrived + piece),
            Err(Stop::Short) => return (events, None),
            Err(Stop::Bad(error)) => return (events, Some(error)),
        }
    }
    (events, None)
}

/// A filter list, after a byte for the version: no text makes the parser panic.
pub fn filter_list(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let mut reader = Reader::new(bytes);
    while let Ok(Some(text)) = decode_text(&mut reader) {
        if let Err(error) = Directive::parse_received(text, version(choice)) {
            assert!(!error.sentence(text).is_empty());
        }
    }
}
