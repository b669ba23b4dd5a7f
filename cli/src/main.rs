//! suisei.
fn main() {}
