//! Rows: what is shown, and where.
//!
//! Wire: protocol/doc/22-output.md#3-verbosity---info---debug

use super::row::{flag, valued, Given, Row};
use super::typed::{Outbuf, Show, Stderr, Typed};
use crate::exit::Refusal;
use crate::output::info::{DebugLevels, InfoLevels};

/// Checks a list of words; `HELP` among them asks for their table. A server ignores unknown
/// words: its client may be newer.
fn words(
    t: &mut Typed,
    g: &Given<'_>,
    option: &str,
    help: Show,
    check: impl Fn(&str) -> Result<(), String>,
) -> Result<Option<String>, Refusal> {
    let text = g.text();
    let mut kept = Vec::new();
    for word in text.split(',').filter(|word| !word.is_empty()) {
        if word.eq_ignore_ascii_case("help") {
            t.output.show.get_or_insert(help);
        } else if check(word).is_ok() {
            kept.push(word);
        } else if !t.connect.server {
            return Err(Refusal::usage(format!("Unknown --{option} item: \"{word}\"")));
        }
    }
    Ok(Some(kept.join(",")).filter(|list| !list.is_empty()))
}

/// The rows.
pub const ROWS: &[Row] = &[
    flag("help", "show this help (-h is --help only if used alone)", |t, _| {
        t.output.show.get_or_insert(Show::Help);
        Ok(())
    }),
    flag("version", "print the version and what this program can do", |t, _| {
        t.output.show.get_or_insert(Show::Version);
        Ok(())
    })
    .letter('V'),
    flag("verbose", "increase verbosity", |t, g| {
        t.output.verbose = if g.on { t.output.verbose.saturating_add(1) } else { 0 };
        Ok(())
    })
    .letter('v')
    .off(&["no-verbose", "no-v"]),
    valued("info", "FLAGS", "fine-grained informational verbosity", |t, g| {
        let list = words(t, g, "info", Show::InfoHelp, |word| InfoLevels::default().set(word))?;
        t.output.info.extend(list);
        Ok(())
    }),
    valued("debug", "FLAGS", "fine-grained debug verbosity", |t, g| {
        let list = words(t, g, "debug", Show::DebugHelp, |word| DebugLevels::default().set(word))?;
        t.output.debug.extend(list);
        Ok(())
    }),
    valued("stderr", "e|a|c", "change stderr output mode (default: errors)", |t, g| {
        let is = |name: &[u8]| !g.value.is_empty() && name.starts_with(g.value);
        t.output.stderr = Some(match () {
            () if is(b"errors") => Stderr::Errors,
            () if is(b"all") => Stderr::All,
            () if is(b"client") => Stderr::Client,
            () => {
                let text = [b"rsync: --stderr mode \"", g.value, b"\" is not one of errors, all, or client"];
                return Err(Refusal::usage(text.concat()));
            }
        });
        Ok(())
    }),
    flag("msgs2stderr", "older spelling of --stderr=all", |t, g| {
        t.output.stderr = Some(if g.on { Stderr::All } else { Stderr::Client });
        Ok(())
    })
    .off(&["no-msgs2stderr"]),
    flag("quiet", "suppress non-error messages", |t, _| {
        t.output.quiet = t.output.quiet.saturating_add(1);
        Ok(())
    })
    .letter('q'),
    flag("stats", "give some file-transfer stats", |t, _| {
        t.output.stats = true;
        Ok(())
    }),
    flag("human-readable", "output numbers in a human-readable format", |t, g| {
        (t.output.human, t.output.no_human) = if g.on { (t.output.human + 1, false) } else { (0, true) };
        Ok(())
    })
    .letter('h')
    .off(&["no-human-readable", "no-h"]),
    flag("progress", "show progress during transfer", |t, g| {
        t.output.progress = g.on;
        Ok(())
    })
    .off(&["no-progress"]),
    flag("itemize-changes", "output a change-summary for all updates", |t, g| {
        t.output.itemize = if g.on { t.output.itemize.saturating_add(1) } else { 0 };
        Ok(())
    })
    .letter('i')
    .off(&["no-itemize-changes", "no-i"]),
    valued("out-format", "FORMAT", "output updates using the specified FORMAT", |t, g| {
        t.output.out_format = Some(g.value.to_vec());
        Ok(())
    })
    .also(&["log-format"]),
    valued("log-file", "FILE", "log what we're doing to the specified FILE", |_, _| Ok(())).not_yet(),
    valued("log-file-format", "FMT", "log updates using the specified FMT", |_, _| Ok(())).not_yet(),
    flag("8-bit-output", "leave high-bit chars unescaped in output", |t, g| {
        t.output.eight_bit = g.on;
        Ok(())
    })
    .letter('8')
    .off(&["no-8-bit-output", "no-8"]),
    valued("outbuf", "N|L|B", "set out buffering to None, Line, or Block", |t, g| {
        t.output.outbuf = Some(match g.value.first() {
            Some(b'N' | b'n' | b'U' | b'u') => Outbuf::None,
            Some(b'L' | b'l') => Outbuf::Line,
            Some(b'B' | b'b' | b'F' | b'f') => Outbuf::Full,
            _ => return Err(Refusal::usage("rsync: Invalid --outbuf setting -- specify N, L, or B.")),
        });
        Ok(())
    }),
];
