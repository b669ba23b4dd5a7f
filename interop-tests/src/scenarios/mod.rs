//! The table: option sets, each run local, push and pull with stock at either end.
//!
//! A row belongs to the file of its option's topic.

mod alternate;
mod batch;
mod connect;
mod daemon;
mod delta;
mod names;
mod operator;
mod output;
mod owners;
mod place;
mod preserve;
mod select;
mod xattrs;

use std::path::Path;

use crate::peers::Mode;

/// What stands at the destination before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Nothing, not even the directory.
    Absent,
    /// An earlier, different state.
    Older,
    /// The same tree, copied with everything.
    Same,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The options, separated by single spaces: also the row's name. `{work}` is the folder.
    pub options: &'static str,
    /// What stands at the destination.
    pub before: Before,
    /// Source arguments, separated by single spaces.
    pub sources: &'static str,
    /// The destination; empty for a listing.
    pub destination: &'static str,
    /// What this row needs beside the usual trees: called with the work folder, in which `src`
    /// and, unless absent, `dst` stand.
    pub setup: Option<fn(&Path)>,
    /// Items of the work folder, beside `src` and `dst`, that must come out equal too.
    pub also: &'static [&'static str],
    modes: &'static [Mode],
}

const ALL: &[Mode] = &[Mode::Local, Mode::Push, Mode::Pull];

impl Scenario {
    /// Returns the modes in which this row makes sense.
    pub fn modes(&self) -> &'static [Mode] {
        self.modes
    }

    /// Runs the row against daemons too.
    const fn served(self) -> Scenario {
        self.only(&[Mode::Local, Mode::Push, Mode::Pull, Mode::DaemonPush, Mode::DaemonPull])
    }

    /// Runs the row in these modes only.
    const fn only(mut self, modes: &'static [Mode]) -> Scenario {
        self.modes = modes;
        self
    }

    /// Prepares the work folder further.
    const fn with(mut self, setup: fn(&Path)) -> Scenario {
        self.setup = Some(setup);
        self
    }

    /// Leads elsewhere.
    const fn to(mut self, destination: &'static str) -> Scenario {
        self.destination = destination;
        self
    }

    /// Compares these items of the work folder too.
    const fn also(mut self, items: &'static [&'static str]) -> Scenario {
        self.also = items;
        self
    }

    /// Makes what the options refer to beside `src` and `dst`.
    pub fn prepare(&self, work: &Path) {
        std::fs::write(work.join("names"), "dir/inner\n# not a name\n\ntext.txt\ncaf\u{e9}\nmissing\n")
            .expect("writable");
        std::fs::write(work.join("names0"), "dir/file\0text.txt\0").expect("writable");
        std::fs::write(work.join("rules"), "# objects\n*.o\n\n; and more\nlarge.bin\n").expect("writable");
        std::fs::write(work.join("keep"), "+ */\n+ *.o\n- *\n").expect("writable");
        if let Some(setup) = self.setup {
            setup(work);
        }
    }
}

/// Returns all rows.
pub fn scenarios() -> Vec<Scenario> {
    [
        preserve::ROWS,
        owners::ROWS,
        xattrs::ROWS,
        select::ROWS,
        delta::ROWS,
        alternate::ROWS,
        place::ROWS,
        batch::ROWS,
        names::ROWS,
        operator::ROWS,
        output::ROWS,
        connect::ROWS,
        daemon::ROWS,
    ]
    .concat()
}

const fn row(before: Before, options: &'static str) -> Scenario {
    Scenario { options, before, sources: "src/", destination: "dst/", setup: None, also: &[], modes: ALL }
}

const fn from(sources: &'static str, options: &'static str) -> Scenario {
    Scenario { sources, ..row(Before::Absent, options) }
}

/// A listing has no destination, so nothing to push to.
const fn listing(options: &'static str, sources: &'static str) -> Scenario {
    Scenario { sources, destination: "", ..row(Before::Absent, options) }.only(&[Mode::Local, Mode::Pull])
}
