//! From an argument vector to [`Typed`].
//!
//! clap reads the syntax: bundles, `--opt=VALUE`, `--opt VALUE`, `-oVALUE`, `-o=VALUE`, `--`, options
//! behind operands. Every option is an `Append` argument, so that all uses can be sorted by
//! position and applied in order. What clap words differently, [`misread`] words as stock does.
//! Wire: protocol/doc/24-environment-and-exit.md#2-aliases

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{Arg, ArgAction, Command};

use super::row::{Given, Row, Support};
use super::typed::{Show, Typed};
use super::{misread, rows, TOPICS};
use crate::exit::{Code, Refusal};

/// Stands for "no value": no argument can hold a NUL.
const BARE: &str = "\0";

/// The id of the operands.
const OPERANDS: &str = "operands";

/// Reads an argument vector, the program's name left out.
pub fn parse(words: &[OsString]) -> Result<Typed, Refusal> {
    let matches = match command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(_) => {
            let (good, refusal) = misread::explain(words);
            // What stands before the bad word is read first: it may be wrong, or ask for help.
            let before = if good < words.len() { parse(&words[..good])? } else { return Err(refusal) };
            return if before.output.show.is_some_and(Show::ends_the_line) {
                Ok(before)
            } else {
                Err(refusal)
            };
        }
    };
    let mut typed = Typed::default();
    let mut uses: Vec<(usize, String, &OsStr)> = Vec::new();
    for id in matches.ids() {
        let id = id.as_str();
        let values = matches.get_many::<OsString>(id).into_iter().flatten();
        let indices = matches.indices_of(id).into_iter().flatten();
        uses.extend(indices.zip(values).map(|(index, value)| (index, id.to_owned(), value.as_os_str())));
    }
    uses.sort_by_key(|(index, ..)| *index);
    // A server reads its words differently, wherever the option stands.
    typed.connect.server =
        uses.iter().any(|(_, id, _)| rows().position(|r| r.long == "server").map(on_id) == Some(id.clone()));
    for (_, id, value) in uses {
        apply(&mut typed, &id, value.as_bytes(), words)?;
        if typed.output.show.is_some_and(Show::ends_the_line) {
            break;
        }
    }
    if typed.output.human > 0 && words.len() == 1 {
        typed.output.show.get_or_insert(Show::Help);
    }
    Ok(typed)
}

fn apply(typed: &mut Typed, id: &str, value: &[u8], words: &[OsString]) -> Result<(), Refusal> {
    if id == OPERANDS {
        typed.operands.push(value.to_vec());
        return Ok(());
    }
    let (row, on) = row_of(id);
    let takes_value = on && row.value.is_some();
    if !takes_value && value != BARE.as_bytes() {
        return Err(misread::no_argument(row, value, words));
    }
    let value: &[u8] = if takes_value { value } else { b"" };
    let word = misread::word_of(row, value, words);
    (row.apply)(typed, &Given { on, value, word: &word })?;
    match row.support {
        Support::Full => {}
        Support::NotYet if on => typed.not_yet.push(row.name()),
        Support::NotYet => {}
        Support::Never(_) if !on => {}
        Support::Never(text) => return Err(Refusal::usage(text)),
    }
    Ok(())
}

/// Refuses options that this end cannot do yet.
pub fn refuse_not_yet(typed: &Typed) -> Result<(), Refusal> {
    match typed.not_yet.first() {
        Some(name) => Err(Refusal::new(Code::Unsupported, format!("rsync: {name}: not supported yet"))),
        None => Ok(()),
    }
}

/// Whether the word behind an option is its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// It is not.
    Complete,
    /// It is.
    NextWord,
}

/// Returns the arity of a word that was parsed; nothing if it is an operand.
pub fn arity(word: &[u8]) -> Option<Arity> {
    let takes_next = match word {
        [b'-', b'-', name @ ..] if !name.is_empty() => {
            rows().any(|row| row.value.is_some() && row.long_names().any(|known| known.as_bytes() == name))
        }
        [b'-', letters @ ..] if !letters.is_empty() => {
            let takes_value = |letter: &&u8| {
                rows().any(|row| {
                    row.value.is_some() && row.short.is_some_and(|s| s as u32 == u32::from(**letter))
                })
            };
            let first = letters.iter().position(|letter| takes_value(&letter));
            first.is_some_and(|at| at + 1 == letters.len())
        }
        _ => return None,
    };
    Some(if takes_next { Arity::NextWord } else { Arity::Complete })
}

fn on_id(index: usize) -> String {
    format!("+{index}")
}

fn off_id(index: usize) -> String {
    format!("-{index}")
}

fn row_of(id: &str) -> (&'static Row, bool) {
    let (sign, index) = id.split_at(1);
    let index: usize = index.parse().expect("ids are a sign and an index");
    (rows().nth(index).expect("ids are indexes of rows"), sign == "+")
}

/// Returns the command that clap parses and renders help from.
pub fn command() -> Command {
    let mut command =
        Command::new("rsync").disable_help_flag(true).disable_version_flag(true).no_binary_name(true);
    let mut index = 0;
    for topic in TOPICS {
        for row in topic.rows {
            command = command.arg(on_argument(row, index).help_heading(topic.title));
            if let Some((first, others)) = row.off.split_first() {
                let off = bare(Arg::new(off_id(index)).long(*first).aliases(others.iter().copied()));
                command = command.arg(off.hide(true));
            }
            index += 1;
        }
    }
    let operands = Arg::new(OPERANDS).action(ArgAction::Append).num_args(0..);
    command.arg(operands.value_parser(clap::value_parser!(OsString)))
}

fn on_argument(row: &Row, index: usize) -> Arg {
    let mut arg = Arg::new(on_id(index)).help(row.help);
    let mut names = row.long_names();
    if let Some(first) = names.next() {
        arg = arg.long(first).aliases(names);
    }
    if let Some(letter) = row.short {
        arg = arg.short(letter);
    }
    match row.value {
        None => bare(arg),
        Some(name) => arg
            .action(ArgAction::Append)
            .num_args(1)
            .value_name(name)
            .allow_hyphen_values(true)
            .value_parser(clap::value_parser!(OsString)),
    }
}

/// An option without a value. clap tracks positions of values only, so it gets one of its own; a
/// value behind `=` is let through to be refused in the words of stock.
fn bare(arg: Arg) -> Arg {
    arg.action(ArgAction::Append)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value(BARE)
        .value_parser(clap::value_parser!(OsString))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Typed, Refusal> {
        parse(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    fn refused(words: &[&str]) -> String {
        String::from_utf8(parsed(words).unwrap_err().text).unwrap()
    }

    #[test]
    fn the_table_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn options_may_stand_anywhere_before_two_dashes() {
        let typed = parsed(&["a", "-vre", "ssh", "b", "-e=x y", "--", "-v"]).unwrap();
        assert_eq!(typed.operands, [b"a".to_vec(), b"b".to_vec(), b"-v".to_vec()]);
        assert_eq!(typed.output.verbose, 1);
        assert_eq!(typed.connect.rsh.as_deref(), Some(b"x y".as_slice()));
    }

    #[test]
    fn values_may_look_like_options() {
        let typed = parsed(&["-f", "- x", "--exclude", "--", "--max-delete", "-1", "-@-2", "a"]).unwrap();
        assert_eq!(typed.select.filters.len(), 2);
        assert_eq!(typed.change.max_delete, Some(0));
        assert_eq!(typed.select.modify_window, Some(-2));
        assert_eq!(typed.operands, [b"a".to_vec()]);
    }

    #[test]
    fn misreadings_are_worded_as_stock_words_them() {
        assert_eq!(refused(&["--foo", "a"]), "rsync: --foo: unknown option");
        assert_eq!(refused(&["--foo=3", "a"]), "rsync: --foo=3: unknown option");
        assert_eq!(refused(&["--modify", "a"]), "rsync: --modify: unknown option");
        assert_eq!(refused(&["a", "-aQ"]), "rsync: -aQ: unknown option");
        assert_eq!(refused(&["-v-r"]), "rsync: -v-r: unknown option");
        assert_eq!(refused(&["--no-c=3"]), "rsync: --no-c=3: option does not take an argument");
        assert_eq!(refused(&["-v=3"]), "rsync: -v=3: option does not take an argument");
        assert_eq!(refused(&["a", "-e"]), "rsync: -e: missing argument");
        assert_eq!(refused(&["--rsh"]), "rsync: --rsh: missing argument");
        assert_eq!(refused(&["--timeout=x"]), "rsync: --timeout=x: invalid numeric value");
        assert_eq!(refused(&["--timeout", "x"]), "rsync: x: invalid numeric value");
        assert_eq!(refused(&["-@=x"]), "rsync: -@=x: invalid numeric value");
        assert_eq!(refused(&["--info=name1x"]), "Unknown --info item: \"name1x\"");
        assert_eq!(refused(&["-M", "x"]), "rsync: Remote option must start with a dash: x");
        assert_eq!(refused(&["-N"]), "rsync: This rsync does not support --crtimes (-N)");
    }

    #[test]
    fn a_lone_h_is_help() {
        assert_eq!(parsed(&["-h"]).unwrap().output.show, Some(Show::Help));
        assert_eq!(parsed(&["-hv"]).unwrap().output.show, Some(Show::Help));
        assert_eq!(parsed(&["-h", "a"]).unwrap().output.show, None);
    }
}
