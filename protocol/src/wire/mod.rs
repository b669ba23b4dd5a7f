//! Elementary codecs: a cursor that cannot run short silently, integers, and index coding.
//!
//! Wire: protocol/doc/01-integers-and-multiplexing.md#11-elementary-codecs

mod int;
mod ndx;
mod reader;


pub use ndx::NdxCoder;
pub use reader::Reader;
