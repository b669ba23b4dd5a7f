//! Which file the sender's block numbers mean, as the echoed item says, with every check on it.
//!
//! Wire: protocol/doc/20-transfer.md#24-fnamecmp-type-byte-basis-selection

use std::fs::File;
use std::sync::Arc;

use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::flist::RelPath;
use suisei_protocol::transfer::{BasisKind, Item};

use super::partial::Partials;
use crate::roles::backup::Backups;
use crate::tree::{Devices, Dir, Tree};
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
}

/// An open basis.
#[derive(Debug)]
pub(super) struct Basis {
    pub(super) file: File,
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
            Some(BasisKind::AlternateDir(n)) => {
                return Err(misbehaved(PeerMisbehaved::OutOfRange {
                    field: "basis_dir index",
                    value: n.into(),
                }))
            }
            Some(BasisKind::Fuzzy(_)) => {
                return Err(misbehaved(PeerMisbehaved::Rule("refusing malicious fuzzy operation")))
            }
        };
        Ok(self.at(place))
    }

    /// Finds the basis of an old version, which does not name it.
    fn guess(&self) -> Option<Basis> {
        let place = &self.ctx.options.place;
        if place.inplace && place.backup {
            return self.at(Place::Backup);
        }
        self.at(Place::Partial).or_else(|| self.at(Place::Destination))
    }

    fn at(&self, place: Place) -> Option<Basis> {
        let file = match place {
            Place::Destination => {
                let devices = Devices::content_if(self.ctx.options.place.write_devices);
                self.dir.open_content(self.path.name(), devices).ok()?.0
            }
            Place::Partial => {
                let dir = self.partials.existing(self.path)?;
                dir.open_regular(self.path.name()).ok()?.0
            }
            Place::Backup => self.backups?.open(self.tree, self.path).ok()?,
        };
        self.ctx.spare_atime(&file).ok()?;
        Some(Basis { file, place })
    }
}

fn misbehaved(what: PeerMisbehaved) -> Failure {
    Failure::Protocol(what.into())
}
