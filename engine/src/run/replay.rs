//! A run whose sender is a batch file.
//!
//! Wire: protocol/doc/04-batch-and-files-from.md#44-reading

use std::sync::Arc;

use super::{receiving_side, FirstFailure};
use crate::link::{replay, BatchInput};
use crate::{Context, Failure};

/// Replays a batch file onto a destination.
pub fn replaying(ctx: Arc<Context>, batch: BatchInput, destination: &[u8]) -> Result<(), Failure> {
    crate::sys::users::umask();
    let ctx = &*ctx;
    let first = FirstFailure::default();
    let (inbox, wants) = replay(ctx, batch)?;
    receiving_side(ctx, inbox, wants, destination, &|who, end| first.note(who, end), || Ok(()));
    first.into_end(ctx)
}
