//! Rows: how the destination changes; what is written, kept and deleted.
//!
//! Wire: protocol/doc/24-environment-and-exit.md#6-on-disk-after-an-interrupt

use super::number::int;
use super::row::{flag, valued, Row};
use super::typed::{Append, BasisKind, During, Recorded, Remove, Typed};
use crate::exit::Refusal;

/// Most alternate directories, as in stock.
const BASIS_DIRS_MAX: usize = 20;

/// The rows.
pub const ROWS: &[Row] = &[
    flag("dry-run", "only say what would be done", |t, _| {
        t.change.dry_run = true;
        Ok(())
    })
    .letter('n'),
    flag("inplace", "write into the files themselves", |t, g| {
        t.change.inplace = g.on;
        Ok(())
    })
    .off(&["no-inplace"]),
    flag("append", "add what longer sources have at their end", |t, g| {
        // A server is told to verify by a second --append.
        t.change.append = match (g.on, t.change.append) {
            (false, _) => Append::Off,
            (true, Append::Plain) if t.connect.server => Append::Verify,
            (true, _) => Append::Plain,
        };
        Ok(())
    })
    .off(&["no-append"]),
    flag("append-verify", "the same, old content checked too", |t, _| {
        t.change.append = Append::Verify;
        Ok(())
    }),
    flag("partial", "keep files whose transfer broke off", |t, g| {
        t.change.partial = g.on;
        Ok(())
    })
    .off(&["no-partial"]),
    valued("partial-dir", "DIR", "keep them in DIR", |t, g| {
        t.change.partial_dir = Some(g.value.to_vec());
        Ok(())
    }),
    flag("", "same as --partial --progress", |t, _| {
        (t.change.partial, t.output.progress) = (true, true);
        Ok(())
    })
    .letter('P'),
    flag("delay-updates", "put all files in place at the end", |t, g| {
        t.change.delay_updates = g.on;
        Ok(())
    })
    .off(&["no-delay-updates"]),
    valued("temp-dir", "DIR", "make temporary files in DIR", |t, g| {
        t.change.temp_dir = Some(g.value.to_vec());
        Ok(())
    })
    .letter('T'),
    flag("backup", "keep what is replaced or deleted", |t, g| {
        t.change.backup = g.on;
        Ok(())
    })
    .letter('b')
    .off(&["no-backup"]),
    valued("backup-dir", "DIR", "keep it below DIR", |t, g| {
        t.change.backup_dir = Some(g.value.to_vec());
        Ok(())
    }),
    valued(
        "suffix",
        "SUFFIX",
        "end names of backups in SUFFIX (default ~, none with --backup-dir)",
        |t, g| {
            t.change.suffix = Some(g.value.to_vec());
            Ok(())
        },
    ),
    flag("sparse", "make holes of long runs of zeros", |t, g| {
        t.change.sparse = g.on;
        Ok(())
    })
    .letter('S')
    .off(&["no-sparse", "no-S"]),
    flag("preallocate", "reserve space before writing", |t, _| {
        t.change.preallocate = true;
        Ok(())
    }),
    flag("fsync", "write each file through to the disk", |t, _| {
        t.change.fsync = true;
        Ok(())
    }),
    flag("mkpath", "make all missing directories of the destination", |t, g| {
        t.change.mkpath = g.on;
        Ok(())
    })
    .off(&["no-mkpath"]),
    flag("delete", "delete what the sources do not have", |t, _| {
        t.change.delete = true;
        Ok(())
    }),
    flag("delete-before", "delete before anything is transferred", |t, _| {
        t.change.delete_before = true;
        Ok(())
    }),
    flag("delete-during", "delete directory by directory", |t, _| {
        t.change.delete_during = Some(During::Plain);
        Ok(())
    })
    .also(&["del"]),
    flag("delete-delay", "decide directory by directory, delete at the end", |t, _| {
        t.change.delete_during = Some(During::Delay);
        Ok(())
    }),
    flag("delete-after", "look and delete at the end", |t, _| {
        t.change.delete_after = true;
        Ok(())
    }),
    flag("delete-excluded", "delete what is left out, too", |t, _| {
        t.change.delete_excluded = true;
        Ok(())
    }),
    valued("max-delete", "NUM", "delete no more than NUM", |t, g| {
        t.change.max_delete = Some(int(g)?.max(0));
        Ok(())
    }),
    flag("force", "delete directories that are in the way with all they hold", |t, g| {
        t.change.force = g.on;
        Ok(())
    })
    .off(&["no-force"]),
    flag("ignore-errors", "delete even after read errors", |t, g| {
        t.change.ignore_errors = g.on;
        Ok(())
    })
    .off(&["no-ignore-errors"]),
    flag("remove-source-files", "delete source files once they are there", |t, _| {
        t.change.remove = Remove::SourceFiles;
        Ok(())
    }),
    flag("remove-sent-files", "the same for files that were sent only", |t, _| {
        t.change.remove = Remove::SentFiles;
        Ok(())
    }),
    valued("compare-dest", "DIR", "leave out what DIR has", |t, g| basis_dir(t, BasisKind::Compare, g.value)),
    valued("copy-dest", "DIR", "copy from DIR what it has", |t, g| basis_dir(t, BasisKind::Copy, g.value)),
    valued("link-dest", "DIR", "link to DIR what it has", |t, g| basis_dir(t, BasisKind::Link, g.value)),
    valued("write-batch", "FILE", "record the transfer in FILE too", |t, g| {
        t.change.write_batch = Some((g.value.to_vec(), Recorded::Too));
        Ok(())
    }),
    valued("only-write-batch", "FILE", "record it, change nothing", |t, g| {
        t.change.write_batch = Some((g.value.to_vec(), Recorded::Only));
        Ok(())
    }),
    valued("read-batch", "FILE", "replay a recorded transfer", |t, g| {
        t.change.read_batch = Some(g.value.to_vec());
        Ok(())
    }),
];

fn basis_dir(typed: &mut Typed, kind: BasisKind, dir: &[u8]) -> Result<(), Refusal> {
    let dirs = &mut typed.change.basis_dirs;
    if dirs.len() >= BASIS_DIRS_MAX {
        let text = format!("rsync: ERROR: at most {BASIS_DIRS_MAX} {} args may be specified", kind.option());
        return Err(Refusal::usage(text));
    }
    dirs.push((kind, dir.to_vec()));
    Ok(())
}
