//! Generator, sender, receiver.

pub mod acls;
pub mod alternates;
pub mod attributes;
pub mod backup;
pub mod destination;
pub mod finish;
pub mod generator;
pub mod receiver;
pub mod sender;
