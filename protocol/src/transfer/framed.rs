//! The stream that all compressors share: runs of block references between compressed items.
//!
//! Wire: protocol/doc/21-tokens-and-compression.md#2-compressed-stream-common-framing-zlib-zlibx-zstd-lz4

use super::token::TokenEvent;
use super::Compressor;
use crate::error::{Decode, Error};
use crate::session::Version;
use crate::wire::Reader;

pub(super) struct FramedEncoder {}

impl FramedEncoder {
    pub(super) fn new(_compressor: Compressor, _level: i32, _version: Version) -> Result<Self, Error> {
        todo!()
    }
    pub(super) fn literal(&mut self, _data: &[u8], _out: &mut Vec<u8>) -> Result<(), Error> {
        todo!()
    }
    pub(super) fn copy(&mut self, _block: u32, _out: &mut Vec<u8>) -> Result<(), Error> {
        todo!()
    }
    pub(super) fn wants_history(&self) -> bool {
        todo!()
    }
    pub(super) fn history(&mut self, _block: &[u8]) -> Result<(), Error> {
        todo!()
    }
    pub(super) fn end(&mut self, _out: &mut Vec<u8>) -> Result<(), Error> {
        todo!()
    }
}

pub(super) struct FramedDecoder {}

impl FramedDecoder {
    pub(super) fn new(_compressor: Compressor, _version: Version) -> Result<Self, Error> {
        todo!()
    }
    pub(super) fn decode(&mut self, _input: &mut Reader<'_>, _count: u32) -> Decode<Option<TokenEvent>> {
        todo!()
    }
    pub(super) fn wants_history(&self) -> bool {
        todo!()
    }
    pub(super) fn history(&mut self, _block: &[u8]) -> Result<(), Error> {
        todo!()
    }
}
