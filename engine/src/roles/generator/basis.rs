//! The basis of a wanted file: which file, its block signature, or none.
//!
//! Wire: protocol/doc/20-transfer.md#24-fnamecmp-type-byte-basis-selection, protocol/doc/20-transfer.md#11---inplace

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use suisei_protocol::flist::{EntryRef, FileKind, RelPath};
use suisei_protocol::sum::SumKind;
use suisei_protocol::transfer::{BasisKind, BlockSignature};

use super::alternate::Alternate;
use super::fuzzy::Choice;
use super::place::Spot;
use super::Generator;
use crate::context::Batch;
use crate::delta::Strength;
use crate::observe::{Class, Who};
use crate::roles::backup::Original;
use crate::tree::Dir;

/// What a wanted file starts from.
#[derive(Debug)]
pub(super) enum Older {
    Nothing,
    /// The destination itself.
    Destination,
    /// The partial directory that holds it.
    Partial(Arc<Dir>),
    /// Number of an alternate directory, and the directory there that holds it.
    Alternate(usize, Arc<Dir>),
    /// A file of a similar name.
    Similar(Choice),
}

impl Older {
    /// Returns what the item says of it.
    fn kind(&self) -> Option<BasisKind> {
        // At most 20 directories have numbers.
        let number = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
        match self {
            Older::Nothing | Older::Destination => None,
            Older::Partial(_) => Some(BasisKind::PartialDir),
            Older::Alternate(n, _) => Some(BasisKind::AlternateDir(number(*n))),
            Older::Similar(choice) => Some(BasisKind::Fuzzy(number(choice.list))),
        }
    }
}

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
    /// Chooses what a file starts from: what an earlier run left unfinished, the file itself, a file
    /// of its name elsewhere, one of a similar name.
    pub(super) fn older(
        &mut self,
        entry: EntryRef<'_>,
        path: RelPath<'_>,
        spot: &Spot,
        alternate: Option<&Alternate>,
    ) -> Older {
        if let Some(dir) = self.partial(path) {
            Older::Partial(dir)
        } else if spot.meta.is_some() {
            Older::Destination
        } else if let Some(Alternate { number, dir, .. }) = alternate {
            Older::Alternate(*number, dir.clone())
        } else {
            self.similar(entry, path).map_or(Older::Nothing, Older::Similar)
        }
    }

    /// Sums the basis; nothing if a backup that must precede the transfer failed.
    pub(super) fn basis(
        &self,
        path: RelPath<'_>,
        spot: &Spot,
        older: Older,
        append: bool,
        strength: Strength,
    ) -> Option<Basis> {
        let place = &self.ctx.options.place;
        let mut kind = older.kind();
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
        let (dir, name) = match &older {
            Older::Nothing => return Some(Basis::whole(None)),
            Older::Destination => (spot.dir.as_ref()?, path.name()),
            Older::Partial(dir) | Older::Alternate(_, dir) => (dir, path.name()),
            Older::Similar(choice) => (&choice.dir, &choice.name[..]),
        };
        if backups.is_some() && !append && self.ctx.session.version.has_basis_types() {
            kind = Some(BasisKind::Backup);
        }
        let whole = Basis::whole(kind.filter(|kind| *kind != BasisKind::Backup));
        let opened = dir.open_content(name, self.disk.devices());
        let opened = opened.and_then(|(file, meta)| self.ctx.spare_atime(&file).map(|()| (file, meta)));
        let (file, meta) = match opened {
            Ok(open) => open,
            Err(error) => {
                let full = self.full_name(path, &older);
                self.disk.pair_at(Class::Error, "failed to open \"", &full, b"\", continuing", &error);
                let unreadable = !matches!(older, Older::Partial(_));
                return Some(Basis { unreadable, ..whole });
            }
        };
        match self.sign(path, &file, meta.size, append, strength) {
            Some(signature) => Some(Basis { kind, signature, unreadable: false }),
            None => Some(whole),
        }
    }

    fn full_name(&self, path: RelPath<'_>, older: &Older) -> Vec<u8> {
        let alternates = &self.destination.alternates;
        let below = |list: usize, path: RelPath<'_>| match list.checked_sub(1) {
            Some(number) => alternates.full_name(number, path),
            None => self.disk.tree.full_name(path),
        };
        match older {
            Older::Nothing | Older::Destination | Older::Partial(_) => self.disk.tree.full_name(path),
            Older::Alternate(number, _) => alternates.full_name(*number, path),
            Older::Similar(choice) => below(choice.list, path.parent().join(&choice.name).as_path()),
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
