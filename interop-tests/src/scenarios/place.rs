//! How items get into place: devices, links, pruned directories.

use super::Scenario;

pub(super) const ROWS: &[Scenario] = &[];
