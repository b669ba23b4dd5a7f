//! ACLs, modes, owners and times beyond `-a`.

use super::Scenario;

pub(super) const ROWS: &[Scenario] = &[];
