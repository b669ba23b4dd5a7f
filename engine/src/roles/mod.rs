//! Generator, sender, receiver.

pub mod attributes;
pub mod destination;
pub mod generator;
pub mod receiver;
pub mod sender;
