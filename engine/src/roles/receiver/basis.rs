//! Which file the sender's block numbers mean, as the echoed item says, with every check on it.
//!
//! Wire: protocol/doc/20-transfer.md#24-fnamecmp-type-byte-basis-selection

use std::fs::File;
use std::sync::Arc;

use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::flist::RelPath;
use suisei_protocol::transfer::{BasisKind, Item};

use super::partial::Partials;
use crate::options::Fuzzy;
use crate::roles::alternates::Alternates;
use crate::roles::backup::Backups;
use crate::tree::{Devices, Dir, Meta, Tree};
use crate::{Context, Failure};

/// Where a basis lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The destination itself.
    Destination,
    /// The partial directory.
    Partial,
    /// The backup just made.
    Backup,
    /// This alternate directory.
    Alternate(usize),
    /// Another file in the destination's directory.
    Beside,
}

/// An open basis.
#[derive(Debug)]
pub(super) struct Basis {
    pub(super) file: File,
    pub(super) meta: Meta,
    pub(super) place: Place,
}

/// Where a wanted file goes, and what may serve as its basis.
pub(super) struct Bases<'a> {
    pub(super) ctx: &'a Context,
    pub(super) tree: &'a Tree,
    pub(super) dir: &'a Arc<Dir>,
    pub(super) path: RelPath<'a>,
    pub(super) backups: Option<&'a Backups>,
    pub(super) partials: &'a Partials<'a>,
    pub(super) alternates: &'a Alternates,
}

impl Bases<'_> {
    /// Opens the basis that an item names; nothing if it cannot be opened, which matters only if
    /// a block of it is used.
    pub(super) fn open(&self, item: &Item) -> Result<Option<Basis>, Failure> {
        let place = match item.basis {
            _ if !self.ctx.session.version.has_basis_types() => return Ok(self.guess()),
            None | Some(BasisKind::Destination) => Place::Destination,
            Some(BasisKind::PartialDir) => Place::Partial,
            Some(BasisKind::Backup) => Place::Backup,
            Some(BasisKind::AlternateDir(n)) => Place::Alternate(self.number(n.into())?),
            Some(BasisKind::Fuzzy(list)) => return self.similar(item, list.into()),
        };
        Ok(self.at(place))
    }

    /// Checks the number of an alternate directory.
    fn number(&self, number: usize) -> Result<usize, Failure> {
        if number < self.alternates.len() {
            return Ok(number);
        }
        Err(misbehaved(PeerMisbehaved::OutOfRange { field: "basis_dir index", value: number as i64 }))
    }

    /// Opens a file of a similar name in the destination's directory (0) or in an alternate one. The
    /// name comes from the peer: it is one component, or names nothing.
    fn similar(&self, item: &Item, list: usize) -> Result<Option<Basis>, Failure> {
        let wanted = self.ctx.options.alternates.fuzzy;
        if wanted == Fuzzy::Off || (list > 0 && wanted != Fuzzy::Everywhere) {
            return Err(misbehaved(PeerMisbehaved::Rule("refusing malicious fuzzy operation")));
        }
        let dir = match list.checked_sub(1) {
            None => Some(self.dir.clone()),
            Some(number) => self.alternates.parent(self.number(number)?, self.path),
        };
        let name = item.confined_xname().unwrap_or_default();
        let place = match list.checked_sub(1) {
            None => Place::Beside,
            Some(number) => Place::Alternate(number),
        };
        Ok(dir.and_then(|dir| dir.open_regular(&name).ok()).map(|(file, meta)| Basis { file, meta, place }))
    }

    /// Finds the basis of an old version, which does not name it.
    fn guess(&self) -> Option<Basis> {
        let place = &self.ctx.options.place;
        if place.inplace && place.backup {
            return self.at(Place::Backup);
        }
        self.at(Place::Partial)
            .or_else(|| self.at(Place::Destination))
            .or_else(|| self.at(Place::Alternate(0)))
    }

    fn at(&self, place: Place) -> Option<Basis> {
        let dir = match place {
            Place::Destination | Place::Beside => self.dir.clone(),
            Place::Partial => self.partials.existing(self.path)?,
            Place::Alternate(number) => self.alternates.parent(number, self.path)?,
            Place::Backup => {
                let (file, meta) = self.backups?.open(self.tree, self.path).ok()?;
                return Some(Basis { file, meta, place });
            }
        };
        let devices =
            Devices::content_if(self.ctx.options.place.write_devices && place == Place::Destination);
        let (file, meta) = dir.open_content(self.path.name(), devices).ok()?;
        self.ctx.spare_atime(&file).ok()?;
        Some(Basis { file, meta, place })
    }
}

fn misbehaved(what: PeerMisbehaved) -> Failure {
    Failure::Protocol(what.into())
}
