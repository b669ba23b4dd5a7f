//! The filter list: who sends it when, and what a server makes of it.
//!
//! Wire: protocol/doc/02-session-start.md#24-filter-list

use std::io;

use suisei_protocol::filter::{decode_text, put_texts, texts_for_server};
use suisei_protocol::session::{Direction, Session, Side};
use suisei_protocol::Error;

use crate::filter::RuleParser;
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
    let travels = travels(session, options);
    let select = &mut options.select;
    match session.side {
        Side::Client => {
            // Asked even if nothing is sent: an old server cannot carry every rule.
            let texts = texts_for_server(
                &select.filters,
                session.direction,
                session.version,
                options.delete.excluded,
            )
            .map_err(Error::from)?;
            if travels {
                let mut list = Vec::new();
                put_texts(&texts, &mut list).map_err(Error::from)?;
                connection.write(list)?;
            }
        }
        Side::Server if travels => {
            // A received rule never names a file to be read at once.
            let mut unreadable = |_: &[u8]| Err(io::ErrorKind::PermissionDenied.into());
            let mut parser = RuleParser::new(&mut unreadable, select.filter_lines);
            parser.personal_cvs_names(select.cvs_names.clone());
            while let Some(text) =
                connection.read_unit(|input| Ok(decode_text(input)?.map(<[u8]>::to_vec)))?
            {
                parser
                    .received(&text, session.version)
                    .map_err(|error| Failure::Usage { text: error.text })?;
            }
            parser.extend(std::mem::take(&mut select.filters));
            select.filters = parser.finish();
        }
        Side::Server => {}
    }
    Ok(())
}
