//! Filter rules: what they say, and how each version writes them.
//!
//! Wire: protocol/doc/13-filters.md

mod parse;
mod rule;
mod wire;

pub use parse::{Directive, OldKind, RuleError};
pub use rule::{Rule, RuleFlags, RuleKind};
pub use wire::{decode_text, put_texts, texts_for_replay, texts_for_server};
