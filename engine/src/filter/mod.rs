//! Filters: the rule language, patterns, and what decides about one name.
//!
//! ```text
//! RuleParser   what a user typed, or a client sent -> rules
//! Chain        rules, and the merge files of the current directory -> a verdict on a name
//! ```
//!
//! Wire: protocol/doc/13-filters.md

mod chain;
mod cvs;
mod file;
mod hidden;
mod merge;
mod parse;
mod pattern;

pub use chain::{Chain, FilterSide, Verdict};
pub use file::LineEnd;
pub use hidden::Hidden;
pub use parse::{FilterError, RuleParser};
pub(crate) use pattern::Wild;
