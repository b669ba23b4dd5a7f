//! The three roles of an rsync transfer, the links between them, and the disk below them.
//!
//! This crate never prints, never reads arguments or the environment, never names a transport
//! program: it reports [`observe::Event`]s. A path from `run` to the disk: [`run`] puts
//! [`roles`] and [`link`]s together, roles speak to [`tree`], and only [`tree`] and [`sys`] make
//! file system calls.

#![deny(unsafe_code)]

pub mod chmod;
pub mod context;
pub mod delta;
pub mod failure;
pub mod filter;
pub mod ids;
pub mod link;
pub mod observe;
pub mod options;
pub mod roles;
pub mod run;
pub mod source;
pub mod stats;
pub mod sys;
pub mod trace;
pub mod tree;
pub mod xattrs;

mod unconverted;

pub use context::Context;
pub use failure::Failure;
pub use options::TransferOptions;
