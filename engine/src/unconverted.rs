//! Names under `--iconv` that a charset does not have: said by name, and never deleted for.
//!
//! Wire: protocol/doc/02-session-start.md#23-iconv

use suisei_protocol::charset::Charset;
use suisei_protocol::flist::{IoErrors, Segment, Unconverted};
use suisei_protocol::limits::PATH_MAX;

use crate::observe::{Class, Problem, What, Who};
use crate::Context;

/// Whether an entry of a sender can travel; reports one that cannot. `full_name` is asked only
/// for that.
pub(crate) fn can_travel(
    ctx: &Context,
    wire: &[u8],
    target: Option<&[u8]>,
    full_name: impl FnOnce() -> Vec<u8>,
) -> bool {
    let fails = |charset: Charset, path| {
        let (converted, end) = charset.path_to_utf8(path);
        end.is_err() || converted.len() >= PATH_MAX
    };
    let session = &ctx.session;
    if session.charset.is_some_and(|charset| fails(charset, wire)) {
        report_name(ctx, Who::Sender, wire);
    } else if session.target_charset().zip(target).is_some_and(|(charset, target)| fails(charset, target)) {
        report_target(ctx, Who::Sender, &full_name());
    } else {
        return true;
    }
    ctx.add_io_errors(IoErrors::GENERAL);
    false
}

/// Reports what a receiving side cannot convert of a segment. The segment's error bits say it too.
pub(crate) fn report_segment(ctx: &Context, segment: &Segment) {
    for what in segment.unconverted() {
        match what {
            Unconverted::Name(path) => report_name(ctx, Who::ReceivingSide, path),
            Unconverted::Target(path) => report_target(ctx, Who::ReceivingSide, path),
        }
    }
}

fn report_name(ctx: &Context, who: Who, path: &[u8]) {
    let before = match who {
        Who::Sender => "[sender] cannot convert filename: ",
        _ => "[Receiver] cannot convert filename: ",
    };
    let after = " (Invalid or incomplete multibyte or wide character)";
    let what = What::Sentence { before, path, after };
    ctx.report_problem(Problem { who, class: Class::Transfer, what });
}

fn report_target(ctx: &Context, who: Who, path: &[u8]) {
    let before = match who {
        Who::Sender => "[sender] cannot convert symlink data for: \"",
        _ => "[Receiver] cannot convert symlink data for: \"",
    };
    let after = "\" (Invalid or incomplete multibyte or wide character)";
    let what = What::Sentence { before, path, after };
    ctx.report_problem(Problem { who, class: Class::Transfer, what });
}
