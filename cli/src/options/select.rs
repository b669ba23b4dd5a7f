//! Rows: what takes part, and when it counts as up to date.
//!
//! Wire: protocol/doc/13-filters.md#1-rule-text

use super::number::{int, size, SizeRule};
use super::row::{flag, valued, Row};
use super::typed::{FilterWord, Recursive};

const MAX_SIZE: SizeRule = SizeRule { name: "max-size", unit: b'b', min: None, max: None };
const MIN_SIZE: SizeRule = SizeRule { name: "min-size", unit: b'b', min: None, max: None };

/// The rows.
pub const ROWS: &[Row] = &[
    flag("recursive", "recurse into directories", |t, g| {
        t.select.recursive = if g.on { Recursive::Explicit } else { Recursive::Off };
        Ok(())
    })
    .letter('r')
    .off(&["no-recursive", "no-r"]),
    flag("inc-recursive", "build the file list while files already move (default)", |t, g| {
        t.select.no_incremental = !g.on;
        Ok(())
    })
    .also(&["i-r"])
    .off(&["no-inc-recursive", "no-i-r"]),
    flag("dirs", "transfer directories without recursing", |t, g| {
        t.select.dirs = Some(g.on);
        Ok(())
    })
    .letter('d')
    .off(&["no-dirs", "no-d"]),
    flag("old-dirs", "works like --dirs when talking to old rsync", |t, _| {
        t.select.old_dirs = true;
        Ok(())
    })
    .also(&["old-d"])
    .not_yet(),
    flag("relative", "use relative path names", |t, g| {
        t.select.relative = Some(g.on);
        Ok(())
    })
    .letter('R')
    .off(&["no-relative", "no-R"]),
    flag("implied-dirs", "send the parent directories that --relative implies (default)", |t, g| {
        t.select.no_implied_dirs = !g.on;
        Ok(())
    })
    .also(&["i-d"])
    .off(&["no-implied-dirs", "no-i-d"]),
    flag("one-file-system", "don't cross filesystem boundaries; twice: skip mount points", |t, g| {
        t.select.one_file_system = if g.on { (t.select.one_file_system + 1).min(2) } else { 0 };
        Ok(())
    })
    .letter('x')
    .off(&["no-one-file-system", "no-x"]),
    flag("update", "skip files that are newer on the receiver", |t, _| {
        t.select.update = true;
        Ok(())
    })
    .letter('u'),
    flag("existing", "skip creating new files on the receiver", |t, _| {
        t.select.existing = true;
        Ok(())
    })
    .also(&["ignore-non-existing"]),
    flag("ignore-existing", "skip updating files that exist on the receiver", |t, _| {
        t.select.ignore_existing = true;
        Ok(())
    }),
    valued("max-size", "SIZE", "don't transfer any file larger than SIZE", |t, g| {
        t.select.max_size = Some(size(g.value, &MAX_SIZE)?);
        Ok(())
    }),
    valued("min-size", "SIZE", "don't transfer any file smaller than SIZE", |t, g| {
        t.select.min_size = Some(size(g.value, &MIN_SIZE)?);
        Ok(())
    }),
    flag("prune-empty-dirs", "prune empty directory chains from the list", |t, g| {
        t.select.prune_empty_dirs = g.on;
        Ok(())
    })
    .letter('m')
    .off(&["no-prune-empty-dirs", "no-m"])
    .not_yet(),
    flag("checksum", "skip based on checksum, not mod-time and size", |t, g| {
        t.select.checksum = g.on;
        Ok(())
    })
    .letter('c')
    .off(&["no-checksum", "no-c"]),
    flag("size-only", "skip files that match in size", |t, _| {
        t.select.size_only = true;
        Ok(())
    }),
    flag("ignore-times", "don't skip files that match in size and time", |t, _| {
        t.select.ignore_times = true;
        Ok(())
    })
    .letter('I'),
    valued("modify-window", "NUM", "set the accuracy for mod-time comparisons", |t, g| {
        t.select.modify_window = Some(int(g)?);
        Ok(())
    })
    .letter('@'),
    flag("copy-links", "transform symlinks into what they point to", |t, _| {
        t.select.copy_links = true;
        Ok(())
    })
    .letter('L'),
    flag("copy-unsafe-links", "only transform symlinks that leave the tree", |t, _| {
        t.select.copy_unsafe_links = true;
        Ok(())
    }),
    flag("safe-links", "ignore symlinks that point outside the tree", |t, _| {
        t.select.safe_links = true;
        Ok(())
    }),
    flag("copy-dirlinks", "transform a symlink to a directory into the directory", |t, _| {
        t.select.copy_dirlinks = true;
        Ok(())
    })
    .letter('k'),
    flag("keep-dirlinks", "treat a symlinked directory on the receiver as a directory", |t, _| {
        t.select.keep_dirlinks = true;
        Ok(())
    })
    .letter('K'),
    flag("munge-links", "munge symlinks to make them safe and unusable", |_, _| Ok(()))
        .off(&["no-munge-links"])
        .not_yet(),
    flag("insecure-links", "follow symlinks in operator paths as older releases did", |_, _| Ok(()))
        .off(&["no-insecure-links"])
        .not_yet(),
    valued("filter", "RULE", "add a file-filtering RULE", |t, g| {
        t.select.filters.push(FilterWord::Rule(g.value.to_vec()));
        Ok(())
    })
    .letter('f'),
    flag("", "same as --filter='dir-merge /.rsync-filter'; repeated: --filter='- .rsync-filter'", |t, _| {
        t.select.per_dir_filters = t.select.per_dir_filters.saturating_add(1);
        match t.select.per_dir_filters {
            1 => t.select.filters.push(FilterWord::Rule(b": /.rsync-filter".to_vec())),
            2 => t.select.filters.push(FilterWord::Rule(b"- .rsync-filter".to_vec())),
            _ => {}
        }
        Ok(())
    })
    .letter('F'),
    valued("exclude", "PATTERN", "exclude files matching PATTERN", |t, g| {
        t.select.filters.push(FilterWord::Exclude(g.value.to_vec()));
        Ok(())
    }),
    valued("include", "PATTERN", "don't exclude files matching PATTERN", |t, g| {
        t.select.filters.push(FilterWord::Include(g.value.to_vec()));
        Ok(())
    }),
    valued("exclude-from", "FILE", "read exclude patterns from FILE", |t, g| {
        t.select.filters.push(FilterWord::ExcludeFrom(g.value.to_vec()));
        Ok(())
    }),
    valued("include-from", "FILE", "read include patterns from FILE", |t, g| {
        t.select.filters.push(FilterWord::IncludeFrom(g.value.to_vec()));
        Ok(())
    }),
    flag("cvs-exclude", "auto-ignore files in the same way CVS does", |t, _| {
        t.select.cvs_exclude = true;
        Ok(())
    })
    .letter('C'),
    valued("files-from", "FILE", "read list of source-file names from FILE", |t, g| {
        t.select.files_from = Some(g.value.to_vec());
        Ok(())
    }),
    flag("from0", "all *-from and filter files are delimited by NULs", |t, g| {
        t.select.from0 = g.on;
        Ok(())
    })
    .letter('0')
    .off(&["no-from0"]),
    flag("list-only", "list the files instead of copying them", |t, _| {
        t.select.list_only = true;
        Ok(())
    }),
    flag("ignore-missing-args", "ignore missing source args without error", |t, _| {
        t.select.ignore_missing_args = true;
        Ok(())
    }),
    flag("delete-missing-args", "delete missing source args from the destination", |t, _| {
        t.select.delete_missing_args = true;
        Ok(())
    }),
    flag("qsort", "use qsort for the list", |t, _| {
        t.select.qsort = true;
        Ok(())
    })
    .not_yet(),
];
