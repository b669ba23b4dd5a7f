//! Filter rules: what they say, and how each version writes them.
//!
//! Wire: protocol/doc/13-filters.md

mod rule;

pub use rule::{Rule, RuleFlags, RuleKind};
