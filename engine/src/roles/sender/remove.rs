//! `--remove-source-files`: a source goes once the receiving side has it in place.
//!
//! Wire: protocol/doc/20-transfer.md#15---remove-source-files-msg_success

use std::collections::HashMap;
use std::io;

use suisei_protocol::flist::{EntryRef, FileKind, Ndx, RelPath};

use crate::failure::reason;
use crate::observe::{Class, Event, Note};
use crate::source::{follows_last, last, sentence, Base};
use crate::tree::Meta;
use crate::Context;

/// Which inodes were sent and wait for their confirmation.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    sent: HashMap<Ndx, Meta>,
}

impl Unconfirmed {
    /// Remembers what was sent.
    pub(super) fn note(&mut self, ndx: Ndx, meta: Meta) {
        self.sent.insert(ndx, meta);
    }

    /// Removes a confirmed source, unless it is not what was listed and sent.
    pub(super) fn remove(&mut self, ctx: &Context, ndx: Ndx, base: &Base, entry: EntryRef<'_>) {
        let sent = self.sent.remove(&ndx);
        let wire = entry.wire_path();
        let path = RelPath::new(wire);
        match remove_one(ctx, base, entry, sent) {
            Ok(Removal::Done) => ctx.report(Event::Note(path, Note::SenderRemoved)),
            Ok(Removal::Changed) => {
                sentence(ctx, Class::Transfer, "ERROR: Skipping sender remove for changed file: ", wire, "");
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                sentence(ctx, Class::Warning, "sender file already removed: ", wire, "");
            }
            Err(error) => {
                // Stock does not quote this name.
                let text = [wire, format!(": {}", reason(&error)).as_bytes()].concat();
                sentence(ctx, Class::Transfer, "rsync: [sender] sender failed to remove ", &text, "");
            }
        }
    }
}

enum Removal {
    Done,
    Changed,
}

fn remove_one(ctx: &Context, base: &Base, entry: EntryRef<'_>, sent: Option<Meta>) -> io::Result<Removal> {
    let wire = entry.wire_path();
    let dir = base.parent(wire)?;
    // A symlink that was listed as one is not followed, whatever the options follow elsewhere.
    let followed = follows_last(ctx) && entry.kind() != FileKind::Symlink;
    let now = if followed { dir.stat_following(last(wire)) } else { dir.stat(last(wire)) };
    let Some(now) = now? else { return Err(io::ErrorKind::NotFound.into()) };
    // Below 31 the entry did not carry nanoseconds, but this is our own list: it has them.
    let listed = (entry.kind(), entry.mtime(), entry.mtime_nsec());
    let same_size = entry.kind().is_device() || entry.kind().is_special() || now.size == entry.size();
    let same = same_size
        && listed == (now.kind(), now.mtime, now.mtime_nsec)
        && sent.is_none_or(|sent| sent.is_same_file(&now));
    if !same {
        return Ok(Removal::Changed);
    }
    dir.unlink(last(wire))?;
    Ok(Removal::Done)
}
