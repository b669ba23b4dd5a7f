//! Soon.
pub struct ServerWords;
pub fn read() {}
