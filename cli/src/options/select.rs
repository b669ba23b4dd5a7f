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
    flag("recursive", "go into directories", |t, g| {
        t.select.recursive = if g.on { Recursive::Explicit } else { Recursive::Off };
        Ok(())
    })
    .letter('r')
    .off(&["no-recursive", "no-r"]),
    flag("inc-recursive", "move files while the list still grows (default)", |t, g| {
        t.select.no_incremental = !g.on;
        Ok(())
    })
    .also(&["i-r"])
    .off(&["no-inc-recursive", "no-i-r"]),
    flag("dirs", "take directories along without going into them", |t, g| {
        t.select.dirs = Some(g.on);
        Ok(())
    })
    .letter('d')
    .off(&["no-dirs", "no-d"]),
    flag("old-dirs", "--dirs for servers that do not know it", |t, _| {
        t.select.old_dirs = true;
        Ok(())
    })
    .also(&["old-d"]),
    flag("relative", "keep source paths as they are typed", |t, g| {
        t.select.relative = Some(g.on);
        Ok(())
    })
    .letter('R')
    .off(&["no-relative", "no-R"]),
    flag("implied-dirs", "send the directories that lie on a --relative path (default)", |t, g| {
        t.select.no_implied_dirs = !g.on;
        Ok(())
    })
    .also(&["i-d"])
    .off(&["no-implied-dirs", "no-i-d"]),
    flag("one-file-system", "stay on one file system; twice: leave mount points out too", |t, g| {
        t.select.one_file_system = if g.on { (t.select.one_file_system + 1).min(2) } else { 0 };
        Ok(())
    })
    .letter('x')
    .off(&["no-one-file-system", "no-x"]),
    flag("update", "leave alone what is newer at the destination", |t, _| {
        t.select.update = true;
        Ok(())
    })
    .letter('u'),
    flag("existing", "change only what the destination has", |t, _| {
        t.select.existing = true;
        Ok(())
    })
    .also(&["ignore-non-existing"]),
    flag("ignore-existing", "change nothing that the destination has", |t, _| {
        t.select.ignore_existing = true;
        Ok(())
    }),
    valued("max-size", "SIZE", "leave files of more than SIZE bytes out", |t, g| {
        t.select.max_size = Some(size(g.value, &MAX_SIZE)?);
        Ok(())
    }),
    valued("min-size", "SIZE", "leave files of less than SIZE bytes out", |t, g| {
        t.select.min_size = Some(size(g.value, &MIN_SIZE)?);
        Ok(())
    }),
    flag("prune-empty-dirs", "leave out directories that hold nothing", |t, g| {
        t.select.prune_empty_dirs = g.on;
        Ok(())
    })
    .letter('m')
    .off(&["no-prune-empty-dirs", "no-m"]),
    flag("checksum", "compare content by checksum, not by size and time", |t, g| {
        t.select.checksum = g.on;
        Ok(())
    })
    .letter('c')
    .off(&["no-checksum", "no-c"]),
    flag("size-only", "take files of equal size for equal", |t, _| {
        t.select.size_only = true;
        Ok(())
    }),
    flag("ignore-times", "take no file for equal because of size and time", |t, _| {
        t.select.ignore_times = true;
        Ok(())
    })
    .letter('I'),
    valued(
        "modify-window",
        "NUM",
        "seconds by which times may differ; negative: compare nanoseconds",
        |t, g| {
            t.select.modify_window = Some(int(g)?);
            Ok(())
        },
    )
    .letter('@'),
    flag("copy-links", "send what a symlink points to", |t, _| {
        t.select.copy_links = true;
        Ok(())
    })
    .letter('L'),
    flag("copy-unsafe-links", "the same for symlinks that lead out of the tree only", |t, _| {
        t.select.copy_unsafe_links = true;
        Ok(())
    }),
    flag("safe-links", "leave out symlinks that lead out of the tree", |t, _| {
        t.select.safe_links = true;
        Ok(())
    }),
    flag("copy-dirlinks", "send the directory that a symlink points to", |t, _| {
        t.select.copy_dirlinks = true;
        Ok(())
    })
    .letter('k'),
    flag("keep-dirlinks", "use a destination symlink to a directory as the directory", |t, _| {
        t.select.keep_dirlinks = true;
        Ok(())
    })
    .letter('K'),
    flag("munge-links", "make symlinks harmless by a prefix", |t, g| {
        t.select.munge_links = g.on;
        Ok(())
    })
    .off(&["no-munge-links"]),
    flag("insecure-links", "follow symlinks in paths of options as older releases did", |t, g| {
        t.select.insecure_links = g.on;
        Ok(())
    })
    .off(&["no-insecure-links"]),
    valued("filter", "RULE", "add a filter RULE", |t, g| {
        t.select.filters.push(FilterWord::Rule(g.value.to_vec()));
        Ok(())
    })
    .letter('f'),
    flag("", "filter by .rsync-filter files; twice: and leave those out", |t, _| {
        t.select.per_dir_filters = t.select.per_dir_filters.saturating_add(1);
        match t.select.per_dir_filters {
            1 => t.select.filters.push(FilterWord::Rule(b": /.rsync-filter".to_vec())),
            2 => t.select.filters.push(FilterWord::Rule(b"- .rsync-filter".to_vec())),
            _ => {}
        }
        Ok(())
    })
    .letter('F'),
    valued("exclude", "PATTERN", "leave out what matches PATTERN", |t, g| {
        t.select.filters.push(FilterWord::Exclude(g.value.to_vec()));
        Ok(())
    }),
    valued("include", "PATTERN", "keep what matches PATTERN, whatever is excluded later", |t, g| {
        t.select.filters.push(FilterWord::Include(g.value.to_vec()));
        Ok(())
    }),
    valued("exclude-from", "FILE", "read patterns to leave out from FILE", |t, g| {
        t.select.filters.push(FilterWord::ExcludeFrom(g.value.to_vec()));
        Ok(())
    }),
    valued("include-from", "FILE", "read patterns to keep from FILE", |t, g| {
        t.select.filters.push(FilterWord::IncludeFrom(g.value.to_vec()));
        Ok(())
    }),
    flag("cvs-exclude", "leave out what CVS leaves out", |t, _| {
        t.select.cvs_exclude = true;
        Ok(())
    })
    .letter('C'),
    valued("files-from", "FILE", "take only the names listed in FILE", |t, g| {
        t.select.files_from = Some(g.value.to_vec());
        Ok(())
    }),
    flag("from0", "names and patterns in files end in NUL", |t, g| {
        t.select.from0 = g.on;
        Ok(())
    })
    .letter('0')
    .off(&["no-from0"]),
    flag("list-only", "list, copy nothing", |t, _| {
        t.select.list_only = true;
        Ok(())
    }),
    flag("ignore-missing-args", "say nothing of sources that do not exist", |t, _| {
        t.select.ignore_missing_args = true;
        Ok(())
    }),
    flag("delete-missing-args", "delete at the destination what sources lack", |t, _| {
        t.select.delete_missing_args = true;
        Ok(())
    }),
    flag("qsort", "sort by another algorithm", |t, _| {
        t.select.qsort = true;
        Ok(())
    })
    .not_yet(),
];
