//! Elementary codecs: a cursor that cannot run short silently, integers, and index coding.
//!
//! Wire: protocol/doc/01-integers-and-multiplexing.md#11-elementary-codecs

mod int;
mod ndx;
mod reader;

pub use int::{
    put_i32, put_longint, put_u16, put_varint, put_varint30, put_varlong, put_varlong30, put_vstring,
};
pub use ndx::NdxCoder;
pub use reader::Reader;
