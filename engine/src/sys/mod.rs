//! What this platform can do. All `unsafe` and all platform differences are here.

pub mod copy;
pub mod pipes;
pub mod random;
pub mod users;
