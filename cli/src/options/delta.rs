//! Rows: how content travels; algorithms, blocks, bandwidth.
//!
//! Wire: protocol/doc/21-tokens-and-compression.md#7-choosing-the-algorithm

use super::number::{int, size, SizeRule};
use super::row::{flag, valued, Row};
use crate::exit::Refusal;

// The client cannot know the version yet, so stock applies the limit of version 30 to all.
const BLOCK: SizeRule =
    SizeRule { name: "block-size", unit: b'b', min: None, max: Some((1 << 17, "128.00K")) };
const RATE: SizeRule = SizeRule { name: "bwlimit", unit: b'k', min: Some((512, "512")), max: None };
const ALLOC: SizeRule = SizeRule { name: "max-alloc", unit: b'b', min: Some((1 << 20, "1.00M")), max: None };

/// Default of `--max-alloc` in bytes.
const DEFAULT_ALLOC: u64 = 1 << 30;

/// Returns a value of `--max-alloc`, unless it is the default.
pub(super) fn max_alloc(value: Option<&[u8]>) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(value) = value else { return Ok(None) };
    let is_default = size(value, &ALLOC)? == DEFAULT_ALLOC;
    Ok(Some(value.to_vec()).filter(|_| !is_default))
}

/// The rows.
pub const ROWS: &[Row] = &[
    flag("whole-file", "send files whole", |t, g| {
        t.delta.whole_file = Some(g.on);
        Ok(())
    })
    .letter('W')
    .off(&["no-whole-file", "no-W"]),
    valued("block-size", "SIZE", "compare in blocks of SIZE bytes", |t, g| {
        t.delta.block_size = size(g.value, &BLOCK)? as u32;
        Ok(())
    })
    .letter('B'),
    flag("fuzzy", "start from a file of similar name", |t, g| {
        t.delta.fuzzy = if g.on { (t.delta.fuzzy + 1).min(2) } else { 0 };
        Ok(())
    })
    .letter('y')
    .off(&["no-fuzzy", "no-y"]),
    flag("compress", "compress what is sent", |t, g| {
        if !g.on {
            (t.delta.compress, t.delta.compress_choice) = (false, None);
        } else if t.delta.compress && t.delta.compress_choice.is_none() {
            t.delta.compress_choice = Some(b"zlibx".to_vec());
        }
        t.delta.compress = g.on;
        Ok(())
    })
    .letter('z')
    .off(&["no-compress", "no-z"]),
    flag("old-compress", "with zlib", |t, _| {
        t.delta.compress_choice = Some(b"zlib".to_vec());
        Ok(())
    }),
    flag("new-compress", "with zlibx", |t, _| {
        t.delta.compress_choice = Some(b"zlibx".to_vec());
        Ok(())
    }),
    valued("compress-choice", "STR", "with the algorithm NAME", |t, g| {
        t.delta.compress_choice = Some(g.value.to_vec());
        Ok(())
    })
    .also(&["zc"]),
    valued("compress-level", "NUM", "as hard as NUM says", |t, g| {
        t.delta.compress_level = Some(int(g)?);
        Ok(())
    })
    .also(&["zl"]),
    valued("compress-threads", "NUM", "with NUM threads", |_, g| int(g).map(|_| ())).also(&["zt"]).not_yet(),
    valued("skip-compress", "LIST", "do not bother with these suffixes", |t, g| {
        t.delta.skip_compress = Some(g.value.to_vec());
        Ok(())
    }),
    valued("checksum-choice", "STR", "use the checksum algorithms NAME", |t, g| {
        t.delta.checksum_choice = Some(g.value.to_vec());
        Ok(())
    })
    .also(&["cc"]),
    valued("checksum-seed", "NUM", "use a known seed", |t, g| {
        t.delta.checksum_seed = int(g)?;
        Ok(())
    }),
    valued("bwlimit", "RATE", "send no more than RATE KiB a second", |t, g| {
        t.delta.bwlimit = if g.on { size(g.value, &RATE)?.saturating_add(512) / 1024 } else { 0 };
        Ok(())
    })
    .off(&["no-bwlimit"]),
    valued("timeout", "SECONDS", "give up when nothing moved for SECONDS", |t, g| {
        t.delta.timeout = if g.on { int(g)?.max(0) } else { 0 };
        Ok(())
    })
    .off(&["no-timeout"]),
    valued("max-alloc", "SIZE", "limit single allocations", |t, g| {
        size(g.value, &ALLOC)?;
        t.delta.max_alloc = Some(g.value.to_vec());
        Ok(())
    })
    .not_yet(),
    valued("stop-after", "MINS", "stop after MINS minutes", |_, _| Ok(())).also(&["time-limit"]).not_yet(),
    valued("stop-at", "y-m-dTh:m", "stop at a point in time", |_, _| Ok(())).not_yet(),
];
