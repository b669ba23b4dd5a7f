//! Index coding: plain ints below 30, differences to two memories from 30 on.
//!
//! Wire: protocol/doc/01-integers-and-multiplexing.md#15-file-indexes-ndx

/// The memories of one direction of the stream. They live for the whole session.
#[derive(Debug, Clone)]
pub struct NdxCoder {
    last_positive: i32,
    last_negative: i32,
}
