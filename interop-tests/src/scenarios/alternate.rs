//! Other directories as a basis, and similar names.

use super::Scenario;

pub(super) const ROWS: &[Scenario] = &[];
