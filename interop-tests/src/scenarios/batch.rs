//! Batch files, limits and clocks.

use super::Scenario;

pub(super) const ROWS: &[Scenario] = &[];
