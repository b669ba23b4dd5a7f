//! The user's filter words as rules.
//!
//! Wire: protocol/doc/13-filters.md#1-rule-text

use suisei_protocol::filter::Rule;
use suisei_protocol::session::Version;

use crate::exit::Refusal;
use crate::options::environment::Environment;
use crate::options::meaning::Wishes;

/// Returns the rules of the command line, in order.
pub fn rules(_wishes: &Wishes, _version: Version, _environment: &Environment) -> Result<Vec<Rule>, Refusal> {
    Ok(Vec::new())
}
