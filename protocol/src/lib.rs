//! The rsync wire protocol, versions 27 to 32: bytes to typed messages and back.
//!
//! Nothing here reads a socket, a file or a clock. Decoders take a [`wire::Reader`] over bytes
//! that have arrived and either return one whole unit or say that it is not there yet; encoders
//! append to a `Vec<u8>`. Every count that a peer names passes [`limits`] before it sizes an
//! allocation. The format itself is described in `protocol/doc/`.

pub mod batch;
pub mod charset;
pub mod codec;
pub mod error;
pub mod filter;
pub mod flist;
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
pub mod message;
pub mod mux;
pub mod session;
pub mod sum;
pub mod transfer;
pub mod wire;

#[cfg(test)]
mod support;

pub use error::{Decode, Error, Stop};
