//! The filter list: who sends it when, and what a server makes of it.
//!
//! Wire: protocol/doc/02-session-start.md#24-filter-list

use suisei_protocol::session::{Direction, Session, Side};

use crate::link::Connection;
use crate::options::TransferOptions;
use crate::Failure;

/// Whether the list travels, from the client to the server; both ends compute the same.
fn travels(session: &Session, options: &TransferOptions) -> bool {
    let client_receives = matches!(
        (session.side, session.direction),
        (Side::Client, Direction::Receiving) | (Side::Server, Direction::Sending)
    );
    let deletes = options.delete.when.is_some();
    client_receives
        || options.select.prune_empty_dirs
        || (deletes && (!options.delete.excluded || session.version.has_modern_filters()))
}

/// Sends the client's rules, or puts the received ones in front of the server's own.
pub(super) fn exchange(
    session: &Session,
    options: &mut TransferOptions,
    connection: &mut Connection,
) -> Result<(), Failure> {
    if !travels(session, options) {
        return Ok(());
    }
    match session.side {
        Side::Client => {
            let _ = connection;
            todo!("encode")
        }
        Side::Server => {
            todo!("decode")
        }
    }
}
