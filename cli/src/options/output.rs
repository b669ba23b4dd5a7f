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
            t.output.show = Some(help);
            return Ok(None);
        } else if check(word).is_ok() {
            kept.push(word);
        } else if !t.connect.server {
            let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
            return Err(Refusal::usage(format!("Unknown --{option} item: \"{name}\"")));
        }
    }
    Ok(Some(kept.join(",")).filter(|list| !list.is_empty()))
}

/// The rows.
pub const ROWS: &[Row] = &[
    flag("help", "show this (as -h does if there is nothing else)", |t, _| {
        t.output.show = Some(Show::Help);
        Ok(())
    }),
    flag("version", "show version and capabilities; twice: as JSON", |t, _| {
        t.output.show = Some(match t.output.show {
            Some(Show::Version | Show::VersionJson) => Show::VersionJson,
            _ => Show::Version,
        });
        Ok(())
    })
    .letter('V'),
    flag("verbose", "say more", |t, g| {
        t.output.verbose = if g.on { t.output.verbose.saturating_add(1) } else { 0 };
        Ok(())
    })
    .letter('v')
    .off(&["no-verbose", "no-v"]),
    valued("info", "FLAGS", "choose what is said, word by word", |t, g| {
        let list = words(t, g, "info", Show::InfoHelp, |word| InfoLevels::default().set(word))?;
        t.output.info.extend(list);
        Ok(())
    }),
    valued("debug", "FLAGS", "the same for looking into the works", |t, g| {
        let list = words(t, g, "debug", Show::DebugHelp, |word| DebugLevels::default().set(word))?;
        t.output.debug.extend(list);
        Ok(())
    }),
    valued("stderr", "e|a|c", "where messages go: errors, all, or client", |t, g| {
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
    flag("msgs2stderr", "the same as --stderr=all", |t, g| {
        t.output.stderr = Some(if g.on { Stderr::All } else { Stderr::Client });
        Ok(())
    })
    .off(&["no-msgs2stderr"]),
    flag("quiet", "say nothing but errors", |t, _| {
        t.output.quiet = t.output.quiet.saturating_add(1);
        Ok(())
    })
    .letter('q'),
    flag("stats", "end with statistics", |t, _| {
        t.output.stats = true;
        Ok(())
    }),
    flag("human-readable", "numbers with units; twice: units of 1024", |t, g| {
        (t.output.human, t.output.no_human) = if g.on { (t.output.human + 1, false) } else { (0, true) };
        Ok(())
    })
    .letter('h')
    .off(&["no-human-readable", "no-h"]),
    flag("progress", "show how far each file is", |t, g| {
        t.output.progress = g.on;
        Ok(())
    })
    .off(&["no-progress"]),
    flag("itemize-changes", "one line for each change", |t, g| {
        t.output.itemize = if g.on { t.output.itemize.saturating_add(1) } else { 0 };
        Ok(())
    })
    .letter('i')
    .off(&["no-itemize-changes", "no-i"]),
    valued("out-format", "FORMAT", "lines of this FORMAT for each change", |t, g| {
        t.output.out_format = Some(g.value.to_vec());
        Ok(())
    })
    .also(&["log-format"]),
    valued("log-file", "FILE", "log to FILE", |t, g| {
        t.output.log_file = Some(g.value.to_vec()).filter(|path| !path.is_empty());
        Ok(())
    }),
    valued("log-file-format", "FMT", "lines of this format there", |t, g| {
        t.output.log_file_format = Some(g.value.to_vec());
        Ok(())
    }),
    flag("8-bit-output", "leave bytes that are no text as they are", |t, g| {
        t.output.eight_bit = g.on;
        Ok(())
    })
    .letter('8')
    .off(&["no-8-bit-output", "no-8"]),
    valued("outbuf", "N|L|B", "write lines at once, or in blocks", |t, g| {
        t.output.outbuf = Some(match g.value.first() {
            Some(b'N' | b'n' | b'U' | b'u') => Outbuf::None,
            Some(b'L' | b'l') => Outbuf::Line,
            Some(b'B' | b'b' | b'F' | b'f') => Outbuf::Full,
            _ => return Err(Refusal::usage("rsync: Invalid --outbuf setting -- specify N, L, or B.")),
        });
        Ok(())
    }),
];
