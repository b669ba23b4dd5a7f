//! Rows: how the destination changes; what is written, kept and deleted.
//!
//! Wire: protocol/doc/24-environment-and-exit.md#6-on-disk-after-an-interrupt

use super::number::int;
use super::row::{flag, valued, Row};
use super::typed::{Append, BasisKind, During, Remove};

/// The rows.
pub const ROWS: &[Row] = &[
    flag("dry-run", "perform a trial run with no changes made", |t, _| {
        t.change.dry_run = true;
        Ok(())
    })
    .letter('n'),
    flag("inplace", "update destination files in-place", |t, g| {
        t.change.inplace = g.on;
        Ok(())
    })
    .off(&["no-inplace"]),
    flag("append", "append data onto shorter files", |t, g| {
        // A server is told to verify by a second --append.
        t.change.append = match (g.on, t.change.append) {
            (false, _) => Append::Off,
            (true, Append::Plain) if t.connect.server => Append::Verify,
            (true, _) => Append::Plain,
        };
        Ok(())
    })
    .off(&["no-append"]),
    flag("append-verify", "--append with old data in file checksum", |t, _| {
        t.change.append = Append::Verify;
        Ok(())
    }),
    flag("partial", "keep partially transferred files", |t, g| {
        t.change.partial = g.on;
        Ok(())
    })
    .off(&["no-partial"]),
    valued("partial-dir", "DIR", "put a partially transferred file into DIR", |t, g| {
        t.change.partial_dir = Some(g.value.to_vec());
        Ok(())
    }),
    flag("", "same as --partial --progress", |t, _| {
        (t.change.partial, t.output.progress) = (true, true);
        Ok(())
    })
    .letter('P'),
    flag("delay-updates", "put all updated files into place at end", |t, g| {
        t.change.delay_updates = g.on;
        Ok(())
    })
    .off(&["no-delay-updates"]),
    valued("temp-dir", "DIR", "create temporary files in directory DIR", |t, g| {
        t.change.temp_dir = Some(g.value.to_vec());
        Ok(())
    })
    .letter('T'),
    flag("backup", "make backups (see --suffix & --backup-dir)", |t, g| {
        t.change.backup = g.on;
        Ok(())
    })
    .letter('b')
    .off(&["no-backup"]),
    valued("backup-dir", "DIR", "make backups into hierarchy based in DIR", |t, g| {
        t.change.backup_dir = Some(g.value.to_vec());
        Ok(())
    }),
    valued("suffix", "SUFFIX", "backup suffix (default ~ w/o --backup-dir)", |t, g| {
        t.change.suffix = Some(g.value.to_vec());
        Ok(())
    }),
    flag("sparse", "turn sequences of nulls into sparse blocks", |t, g| {
        t.change.sparse = g.on;
        Ok(())
    })
    .letter('S')
    .off(&["no-sparse", "no-S"]),
    flag("preallocate", "allocate dest files before writing them", |t, _| {
        t.change.preallocate = true;
        Ok(())
    }),
    flag("fsync", "fsync every written file", |t, _| {
        t.change.fsync = true;
        Ok(())
    }),
    flag("mkpath", "create destination's missing path components", |t, g| {
        t.change.mkpath = g.on;
        Ok(())
    })
    .off(&["no-mkpath"]),
    flag("delete", "delete extraneous files from dest dirs", |t, _| {
        t.change.delete = true;
        Ok(())
    }),
    flag("delete-before", "receiver deletes before transfer, not during", |t, _| {
        t.change.delete_before = true;
        Ok(())
    }),
    flag("delete-during", "receiver deletes during the transfer", |t, _| {
        t.change.delete_during = Some(During::Plain);
        Ok(())
    })
    .also(&["del"]),
    flag("delete-delay", "find deletions during, delete after", |t, _| {
        t.change.delete_during = Some(During::Delay);
        Ok(())
    }),
    flag("delete-after", "receiver deletes after transfer, not during", |t, _| {
        t.change.delete_after = true;
        Ok(())
    }),
    flag("delete-excluded", "also delete excluded files from dest dirs", |t, _| {
        t.change.delete_excluded = true;
        Ok(())
    }),
    valued("max-delete", "NUM", "don't delete more than NUM files", |t, g| {
        t.change.max_delete = Some(int(g)?.max(0));
        Ok(())
    }),
    flag("force", "force deletion of dirs even if not empty", |t, g| {
        t.change.force = g.on;
        Ok(())
    })
    .off(&["no-force"]),
    flag("ignore-errors", "delete even if there are I/O errors", |t, g| {
        t.change.ignore_errors = g.on;
        Ok(())
    })
    .off(&["no-ignore-errors"]),
    flag("remove-source-files", "sender removes synchronized files (non-dir)", |t, _| {
        t.change.remove = Remove::SourceFiles;
        Ok(())
    }),
    flag("remove-sent-files", "older variant of --remove-source-files", |t, _| {
        t.change.remove = Remove::SentFiles;
        Ok(())
    })
    .not_yet(),
    valued("compare-dest", "DIR", "also compare destination files relative to DIR", |t, g| {
        t.change.basis_dirs.push((BasisKind::Compare, g.value.to_vec()));
        Ok(())
    })
    .not_yet(),
    valued("copy-dest", "DIR", "... and include copies of unchanged files", |t, g| {
        t.change.basis_dirs.push((BasisKind::Copy, g.value.to_vec()));
        Ok(())
    })
    .not_yet(),
    valued("link-dest", "DIR", "hardlink to files in DIR when unchanged", |t, g| {
        t.change.basis_dirs.push((BasisKind::Link, g.value.to_vec()));
        Ok(())
    })
    .not_yet(),
    valued("write-batch", "FILE", "write a batched update to FILE", |_, _| Ok(())).not_yet(),
    valued("only-write-batch", "FILE", "like --write-batch but w/o updating dest", |_, _| Ok(())).not_yet(),
    valued("read-batch", "FILE", "read a batched update from FILE", |_, _| Ok(())).not_yet(),
];
