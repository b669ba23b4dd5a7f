//! One wanted file: opened, searched, sent.
//!
//! Wire: protocol/doc/20-transfer.md#26-failures-at-the-sender

use std::fs::File;
use std::io;

use bytes::Bytes;
use suisei_protocol::flist::{EntryRef, FileKind, IoErrors, Ndx};
use suisei_protocol::message::ToReceiver;
use suisei_protocol::session::{Compat, Session};
use suisei_protocol::transfer::{BasisKind, BlockSignature, Item, SumHead, Token};

use crate::delta::{BasisUse, Search, SearchEvent, Tally};
use crate::link::{Handover, LocalSource, Outbox};
use crate::observe::{Class, Problem, What, Who};
use crate::options::{Append, Partial, Place};
use crate::source::{self, sentence, vanished, Base};
use crate::trace::{Topic, Trace};
use crate::tree::Meta;
use crate::{Context, Failure};

/// What was sent of a file.
pub(super) struct Sent {
    /// Sum of the whole file; empty where nothing was hashed.
    pub(super) sum: Bytes,
    /// What the search counted.
    pub(super) tally: Tally,
}

/// Opens the source of a wanted file. Reports why if it cannot be sent.
pub(super) fn open(ctx: &Context, base: &Base, entry: EntryRef<'_>, append: Append) -> Option<(File, Meta)> {
    let wire = entry.wire_path();
    let full_name = || base.full_name(wire);
    match source::open(ctx, base, wire) {
        Ok((_, meta)) if append != Append::Off && meta.size < entry.size() => {
            sentence(ctx, Class::Warning, "skipped diminished file: \"", &full_name(), "\"");
            None
        }
        Ok(opened) => Some(opened),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            vanished(ctx, FileKind::Regular, &full_name());
            None
        }
        Err(error) => {
            ctx.add_io_errors(IoErrors::GENERAL);
            let what = What::Reason { text: "send_files failed to open", path: &full_name(), error: &error };
            ctx.report_problem(Problem { who: Who::Sender, class: Class::Transfer, what });
            None
        }
    }
}

/// A request that is about to be answered.
pub(super) struct Request<'a> {
    /// The entry.
    pub(super) ndx: Ndx,
    /// As asked.
    pub(super) item: &'a Item,
    /// Sums of the basis.
    pub(super) basis: &'a BlockSignature,
    /// Off in a redo.
    pub(super) append: Append,
    /// Name of the source, for messages.
    pub(super) full_name: &'a dyn Fn() -> Vec<u8>,
    /// The name as the arguments gave it, for who looks into the works.
    pub(super) long_name: &'a dyn Fn() -> Vec<u8>,
}

/// Sends an open source as the answer to a request. `progress` hears the bytes done so far.
pub(super) fn send<L: Handover>(
    ctx: &Context,
    outbox: &mut impl Outbox<ToReceiver<L>>,
    request: &Request<'_>,
    (file, meta): (File, Meta),
    progress: &mut dyn FnMut(u64),
) -> Result<Sent, Failure> {
    let &Request { ndx, item, basis, append, full_name, long_name } = request;
    let traces = ctx.traces(Topic::Deltasum, 2);
    if traces {
        let opened = Trace::SourceOpened(&long_name(), meta.size, basis.head);
        ctx.trace(Topic::Deltasum, 2, Who::Sender, opened);
    }
    outbox.send(ToReceiver::Begin { ndx, item: item.clone(), head: basis.head })?;
    // Only what passes piece by piece can be slowed down.
    let is_device = crate::sys::meta::of_open(&file).is_ok_and(|meta| meta.kind().is_device());
    let may_hand_over =
        !ctx.options.report.sums && ctx.options.limits.bytes_per_second.is_none() && !is_device;
    let file = match basis.head.count {
        0 if may_hand_over => match L::wrap(LocalSource { file, size: meta.size, name: full_name() }) {
            Ok(local) => {
                trace_search(ctx, basis.head, &Tally::default());
                return hand_over(outbox, local, meta.size);
            }
            Err(LocalSource { file, .. }) => file,
        },
        _ => file,
    };
    let overwritten = basis_use(&ctx.session, &ctx.options.place, item);
    let search = Search::new(&ctx.session, basis, overwritten, append);
    let mut offset = 0;
    let mut last = 0;
    let searched = search.run(&file, meta.size, &mut |event| {
        ctx.check_interrupt()?;
        match event {
            SearchEvent::Literal(data) => {
                offset += data.len() as u64;
                outbox.send(ToReceiver::Token(Token::Literal(data)))?;
            }
            SearchEvent::Copy { block, data } => {
                if traces {
                    let matched = Trace::Matched { at: offset, last, block: block.0, len: data.len() };
                    ctx.trace(Topic::Deltasum, 2, Who::Sender, matched);
                    last = offset + data.len() as u64;
                }
                offset += data.len() as u64;
                outbox.send(ToReceiver::Token(Token::Copy(block)))?;
                if outbox.wants_history() {
                    outbox.add_history(data)?;
                }
            }
        }
        progress(offset);
        Ok(())
    })?;
    if let Some(error) = &searched.flaw {
        ctx.add_io_errors(IoErrors::GENERAL);
        let what = What::Reason { text: "read errors mapping", path: &full_name(), error };
        ctx.report_problem(Problem { who: Who::Sender, class: Class::Transfer, what });
    }
    trace_search(ctx, basis.head, &searched.tally);
    outbox.send(ToReceiver::End { sum: searched.sum.clone() })?;
    Ok(Sent { sum: searched.sum, tally: searched.tally })
}

/// Says what a search came to, if somebody looks.
fn trace_search(ctx: &Context, head: SumHead, tally: &Tally) {
    let &Tally { false_alarms, hash_hits, matches, .. } = tally;
    ctx.trace(Topic::Deltasum, 2, Who::Sender, Trace::Searched(head));
    ctx.trace(Topic::Deltasum, 2, Who::Sender, Trace::Tallied { false_alarms, hash_hits, matches });
}

fn hand_over<L: Handover>(
    outbox: &mut impl Outbox<ToReceiver<L>>,
    local: L,
    size: u64,
) -> Result<Sent, Failure> {
    outbox.send(ToReceiver::Local(local))?;
    outbox.send(ToReceiver::End { sum: Bytes::new() })?;
    Ok(Sent { sum: Bytes::new(), tally: Tally { literal: size, ..Tally::default() } })
}

/// Whether the receiver writes over the basis that the request was made from.
///
/// Wire: protocol/doc/20-transfer.md#11---inplace
fn basis_use(session: &Session, place: &Place, item: &Item) -> BasisUse {
    let partial_in_place =
        session.compat.contains(Compat::INPLACE_PARTIAL) && matches!(place.partial, Partial::Dir(_));
    let overwritten = match item.basis.unwrap_or(BasisKind::Destination) {
        // Old peers do not say which basis they took: with backups it is the copy.
        BasisKind::Destination => place.inplace && (session.version.has_basis_types() || !place.backup),
        BasisKind::PartialDir => partial_in_place,
        _ => false,
    };
    if overwritten {
        BasisUse::Overwritten
    } else {
        BasisUse::Intact
    }
}
