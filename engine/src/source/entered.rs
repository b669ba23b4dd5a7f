//! The lister's filters, and what it tells of them while somebody looks: verdicts, and whose rules
//! apply.
//!
//! Wire: protocol/doc/22-output.md#3-verbosity---info---debug

use suisei_protocol::flist::{EntryFlags, RelPath};

use super::base::trim_slashes;
use crate::filter::{Chain, FilterSide};
use crate::observe::Who;
use crate::trace::{trace_rule, Origin, Topic, Trace};
use crate::Context;

/// The directories whose filters apply, by full name with a slash behind it.
#[derive(Debug, Default)]
pub(super) struct Entered(Vec<Vec<u8>>);

impl Entered {
    /// Enters a directory, and leaves those that do not hold it. `forgets`: nothing is read there, so
    /// leaving it is not worth a word.
    pub(super) fn enter(&mut self, ctx: &Context, full_name: impl FnOnce() -> Vec<u8>, forgets: bool) {
        if !ctx.traces(Topic::Filter, 2) {
            return;
        }
        let full_name = full_name();
        let name = [full_name.strip_suffix(b"/.").unwrap_or(&full_name), b"/"].concat();
        if !forgets {
            while self.0.last().is_some_and(|above| !name.starts_with(above)) {
                self.0.pop();
                ctx.trace(Topic::Filter, 2, Who::Sender, Trace::FiltersLeft);
            }
            self.0.push(name.clone());
        }
        ctx.trace(Topic::Filter, 2, Who::Sender, Trace::FiltersEntered(&name));
    }

    /// Leaves all.
    pub(super) fn leave_all(&mut self, ctx: &Context) {
        for _ in std::mem::take(&mut self.0) {
            ctx.trace(Topic::Filter, 2, Who::Sender, Trace::FiltersLeft);
        }
    }
}

/// Says which rule decided about a name.
pub(super) fn trace_verdict(ctx: &Context, chain: &Chain, path: RelPath<'_>, is_dir: bool) {
    if !path.is_root() && ctx.traces(Topic::Filter, 1) {
        trace_rule(ctx, Who::Sender, chain, path, is_dir);
    }
}

/// Says that an item is looked at for a list.
pub(super) fn trace_listing(ctx: &Context, wire: &[u8], flags: EntryFlags) {
    let origin = match flags.intersects(EntryFlags::TOP_DIR | EntryFlags::IMPLIED_DIR) {
        true => Origin::Argument,
        false => Origin::Directory,
    };
    ctx.trace(Topic::Flist, 2, Who::Sender, Trace::Listing(trim_slashes(wire), origin));
}

/// Starts the filters of a sender.
pub(super) fn new_chain(ctx: &Context) -> Chain {
    let select = &ctx.options.select;
    Chain::new(&select.filters, FilterSide::Sender, ctx.options.delete.excluded)
        .with_line_end(select.filter_lines)
        .with_trust(&ctx.options.trust)
}
