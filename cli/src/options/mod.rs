//! The command line: rows by topic, what was typed, and what it means.
//!
//! A row is an option ([`row`]); [`parse`] turns an argument vector into [`typed::Typed`];
//! [`meaning`] turns that into what the engine and the connection need; [`server_args`] writes and
//! reads the words between two machines.

pub mod alias;
mod change;
mod connect;
mod delta;
pub mod environment;
pub mod help;
pub mod iconv;
pub mod meaning;
mod misread;
pub mod number;
mod output;
pub mod parse;
mod preserve;
pub mod row;
mod select;
pub mod server_args;
pub mod typed;
mod wishes;

use row::Row;

/// A group of rows, as the help shows them.
#[derive(Debug, Clone, Copy)]
pub struct Topic {
    /// Heading.
    pub title: &'static str,
    /// Rows in the order of the help.
    pub rows: &'static [Row],
}

/// All topics.
pub const TOPICS: &[Topic] = &[
    Topic { title: "What takes part", rows: select::ROWS },
    Topic { title: "Attributes", rows: preserve::ROWS },
    Topic { title: "The destination", rows: change::ROWS },
    Topic { title: "How content travels", rows: delta::ROWS },
    Topic { title: "What is shown", rows: output::ROWS },
    Topic { title: "The connection", rows: connect::ROWS },
];

/// Returns all rows.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    TOPICS.iter().flat_map(|topic| topic.rows)
}
