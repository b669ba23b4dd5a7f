//! The basis of a wanted file: which file, its block signature, or none.
//!
//! Wire: protocol/doc/20-transfer.md#24-fnamecmp-type-byte-basis-selection, protocol/doc/20-transfer.md#11---inplace

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use suisei_protocol::flist::{FileKind, RelPath};
use suisei_protocol::sum::SumKind;
use suisei_protocol::transfer::{BasisKind, BlockSignature};

use super::place::Spot;
use super::Generator;
use crate::context::Batch;
use crate::delta::Strength;
use crate::observe::{Class, Who};
use crate::roles::backup::Original;
use crate::tree::Dir;

/// What a request says of the basis.
#[derive(Debug)]
pub(super) struct Basis {
    /// Nothing: the destination itself, or no basis at all.
    pub(super) kind: Option<BasisKind>,
    pub(super) signature: BlockSignature,
    /// Whether the destination is there but cannot be read: it counts as new.
    pub(super) unreadable: bool,
}

impl Basis {
    fn whole(kind: Option<BasisKind>) -> Basis {
        Basis { kind, signature: BlockSignature::whole_file(), unreadable: false }
    }
}

impl Generator<'_> {
    /// Chooses the basis and sums it; nothing if a backup that must precede the transfer failed.
    pub(super) fn basis(
        &self,
        path: RelPath<'_>,
        spot: &Spot,
        partial: Option<Arc<Dir>>,
        append: bool,
        strength: Strength,
    ) -> Option<Basis> {
        let place = &self.ctx.options.place;
        let mut kind = partial.is_some().then_some(BasisKind::PartialDir);
        if self.disk.is_dry() && !self.ctx.options.batch_only {
            return Some(Basis::whole(kind));
        }
        // What is written in place, and only the first time, needs its backup now.
        let in_place = place.inplace && strength == Strength::Short && kind.is_none();
        let keeps = in_place && spot.meta.is_some() && !self.disk.is_dry();
        let backups = self.disk.backups.filter(|_| keeps);
        if let Some(backups) = backups {
            backups.keep(self.ctx, Who::Generator, self.disk.tree, path, Original::IsCopied).ok()?;
        }
        let no_sums = self.ctx.session.transfer_sum == SumKind::None;
        // Nobody reads the request of a replay.
        let no_reader = matches!(self.ctx.batch, Batch::Read);
        if no_sums || no_reader || (self.ctx.options.delta.whole_file && !append) {
            return Some(Basis::whole(kind));
        }
        let Some(dir) = partial.as_ref().or(spot.dir.as_ref().filter(|_| spot.meta.is_some())) else {
            return Some(Basis::whole(None));
        };
        if backups.is_some() && !append && self.ctx.session.version.has_basis_types() {
            kind = Some(BasisKind::Backup);
        }
        let whole = Basis::whole(kind.filter(|kind| *kind == BasisKind::PartialDir));
        let opened = dir.open_content(path.name(), self.disk.devices());
        let opened = opened.and_then(|(file, meta)| self.ctx.spare_atime(&file).map(|()| (file, meta)));
        let (file, meta) = match opened {
            Ok(open) => open,
            Err(error) => {
                self.disk.pair(Class::Error, "failed to open \"", path, b"\", continuing", &error);
                return Some(Basis { unreadable: partial.is_none(), ..whole });
            }
        };
        match self.sign(path, &file, meta.size, append, strength) {
            Some(signature) => Some(Basis { kind, signature, unreadable: false }),
            None => Some(whole),
        }
    }

    /// Sums an open basis; nothing, after a word about it, if that cannot be done.
    fn sign(
        &self,
        path: RelPath<'_>,
        file: &File,
        size: u64,
        append: bool,
        strength: Strength,
    ) -> Option<BlockSignature> {
        let Some(head) = self.signer.head(size, strength) else {
            let before = "WARNING: file is too large for checksum sending: ";
            self.disk.sentence(Class::Warning, before, path.as_bytes());
            return None;
        };
        if append {
            return Some(BlockSignature { head, sums: Bytes::new() });
        }
        // A basis that changes under us is as good as none.
        self.signer.sign(file, head).ok()
    }

    /// Returns the directory that holds a partial file of this name, if there is one.
    pub(super) fn partial(&self, path: RelPath<'_>) -> Option<Arc<Dir>> {
        let dir = self.partials.existing(path)?;
        let meta = dir.stat(path.name()).ok()??;
        (meta.kind() == FileKind::Regular).then_some(dir)
    }

    /// Removes a partial file whose destination is up to date, and its directory if that is empty.
    pub(super) fn drop_partial(&self, path: RelPath<'_>) {
        if self.partial(path).is_some() {
            self.partials.clear(path);
        }
    }
}
