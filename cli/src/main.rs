//! suisei.
mod output;
fn main() {}
