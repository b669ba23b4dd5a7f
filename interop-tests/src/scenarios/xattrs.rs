//! Extended attributes, and privileged ones kept in them.

use super::Scenario;

pub(super) const ROWS: &[Scenario] = &[];
