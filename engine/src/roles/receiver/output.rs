//! What a wanted file is written to: a temp file beside its target or in `--temp-dir`, or the
//! target itself.
//!
//! Wire: protocol/doc/20-transfer.md#13-writing-and-finishing-a-file

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use suisei_protocol::flist::{FileKind, RelPath};

use super::WHO;
use crate::observe::{Class, Problem, What};
use crate::roles::destination::Destination;
use crate::tree::{is_untrusted, Absent, Devices, Dir, Meta, TempFile};
use crate::{sys, Context, Failure};

/// Mode of a new file that is written in place, until it is finished.
const IN_PLACE_MODE: u32 = 0o600;

/// An open output.
#[derive(Debug)]
pub(super) enum Draft {
    /// Placed by rename, or gone.
    Temp(TempFile),
    /// The target itself.
    InPlace(File),
    /// The target, which is a device: its size is what it is.
    Device(File),
}

impl Draft {
    pub(super) fn file(&self) -> &File {
        match self {
            Draft::Temp(temp) => temp.as_file(),
            Draft::InPlace(file) | Draft::Device(file) => file,
        }
    }

    pub(super) fn is_in_place(&self) -> bool {
        !matches!(self, Draft::Temp(_))
    }

    pub(super) fn is_device(&self) -> bool {
        matches!(self, Draft::Device(_))
    }
}

/// Where a file goes.
pub(super) struct Spot<'a> {
    pub(super) path: RelPath<'a>,
    pub(super) dir: Arc<Dir>,
    /// What stands there.
    pub(super) existing: Option<Meta>,
}

impl<'a> Spot<'a> {
    pub(super) fn find(ctx: &Context, destination: &Destination, path: RelPath<'a>) -> io::Result<Self> {
        let dir = destination.tree.parent(path)?;
        let devices = Devices::content_if(ctx.options.place.write_devices);
        let existing = dir.stat_as(path.name(), devices)?;
        Ok(Spot { path, dir, existing })
    }
}

/// `--temp-dir`.
#[derive(Debug)]
struct TempDir {
    /// Open, or why no file can be made in it.
    dir: io::Result<Arc<Dir>>,
    /// For messages.
    named: Vec<u8>,
}

/// Makes outputs.
#[derive(Debug)]
pub(super) struct Workshop {
    temp_dir: Option<TempDir>,
    in_place: bool,
}

impl Workshop {
    pub(super) fn open(ctx: &Context, destination: &Destination) -> Result<Self, Failure> {
        Ok(Workshop {
            temp_dir: open_temp_dir(ctx, destination, !ctx.options.dry_run)?,
            in_place: ctx.options.place.inplace,
        })
    }

    /// Opens an output for a file of that mode. A problem is reported, and nothing returned.
    pub(super) fn draft(
        &self,
        ctx: &Context,
        destination: &Destination,
        spot: &Spot<'_>,
        mode: u32,
    ) -> Option<Draft> {
        let name = spot.path.name();
        if spot.existing.is_some_and(|meta| meta.kind() == FileKind::Directory) {
            let path = destination.tree.full_name(spot.path);
            ctx.report_problem(Problem {
                who: WHO,
                class: Class::Transfer,
                what: What::Sentence { before: "recv_files: \"", path: &path, after: "\" is a directory" },
            });
            return None;
        }
        if self.in_place {
            let devices = Devices::content_if(ctx.options.place.write_devices);
            return match spot.dir.open_in_place(name, IN_PLACE_MODE, devices) {
                Ok(file) if is_device(&file) => Some(Draft::Device(file)),
                Ok(file) => Some(Draft::InPlace(file)),
                Err(error) => {
                    ctx.problem(WHO, Class::Transfer, "open", &destination.tree.full_name(spot.path), &error);
                    None
                }
            };
        }
        let made = match &self.temp_dir {
            Some(TempDir { dir: Ok(dir), .. }) => dir.create_temp_elsewhere(name, mode),
            Some(TempDir { dir: Err(error), .. }) => {
                self.no_temp_dir(ctx, destination, spot, error);
                return None;
            }
            None => spot.dir.create_temp(name, mode),
        };
        match made {
            Ok(temp) => Some(Draft::Temp(temp)),
            Err(error) => {
                let path = self.template(destination, spot.path);
                ctx.problem(WHO, Class::Transfer, "mkstemp", &path, &error);
                None
            }
        }
    }

    /// Says that no file may be made in `--temp-dir`. Where only `--confine-root` is against it,
    /// stock notices at the rename.
    fn no_temp_dir(&self, ctx: &Context, destination: &Destination, spot: &Spot<'_>, error: &io::Error) {
        let path = self.template(destination, spot.path);
        if is_untrusted(error) {
            ctx.note_untrusted(WHO, error);
            return ctx.problem(WHO, Class::Transfer, "mkstemp", &path, error);
        }
        ctx.problem(WHO, Class::Transfer, "stat", &path, error);
        let both = [&path[..], b"\" -> \"", spot.path.as_bytes()].concat();
        let what = What::Reason { text: "rename", path: &both, error };
        ctx.report_problem(Problem { who: WHO, class: Class::Transfer, what });
    }

    /// Returns the full name of a temp file, for messages.
    pub(super) fn full_name(&self, destination: &Destination, path: RelPath<'_>, temp: &[u8]) -> Vec<u8> {
        match &self.temp_dir {
            Some(TempDir { named, .. }) => [named, b"/".as_slice(), temp].concat(),
            None => destination.tree.full_name(path.parent().join(temp).as_path()),
        }
    }

    fn template(&self, destination: &Destination, path: RelPath<'_>) -> Vec<u8> {
        let name = path.name();
        let dot: &[u8] = if self.temp_dir.is_some() || name.starts_with(b".") { b"" } else { b"." };
        self.full_name(destination, path, &[dot, name, b".XXXXXX"].concat())
    }
}

fn is_device(file: &File) -> bool {
    sys::meta::of_open(file).is_ok_and(|meta| meta.kind().is_device())
}

/// Fails if `--temp-dir` cannot be used.
pub fn check_temp_dir(ctx: &Context, destination: &Destination) -> Result<(), Failure> {
    open_temp_dir(ctx, destination, !ctx.options.dry_run).map(drop)
}

/// Opens `--temp-dir`; a relative one lies below the destination.
fn open_temp_dir(
    ctx: &Context,
    destination: &Destination,
    is_used: bool,
) -> Result<Option<TempDir>, Failure> {
    let Some(named) = ctx.options.place.temp_dir.as_deref().filter(|_| is_used) else {
        return Ok(None);
    };
    let full = match named.first() {
        Some(b'/') => named.to_vec(),
        _ => destination.tree.full_name(RelPath::new(named)),
    };
    match destination.tree.open_named(named, Absent::Refuse, &ctx.options.trust) {
        Ok(tree) => Ok(Some(TempDir { dir: Ok(tree.root().clone()), named: full })),
        // Stock notices when it makes a file there.
        Err(error) if sys::is(&error, Errno::LOOP) => Ok(Some(TempDir { dir: Err(error), named: full })),
        Err(error) => {
            let what = if error.kind() == io::ErrorKind::NotADirectory {
                "is not a directory"
            } else {
                "does not exist"
            };
            let text = format!("The temp-dir {what}: {}", String::from_utf8_lossy(named));
            Err(Failure::Usage { text })
        }
    }
}
