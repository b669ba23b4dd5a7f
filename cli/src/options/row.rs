//! What one option is: its spellings, whether it takes a value, and what it does to [`Typed`].
//!
//! Wire: protocol/doc/24-environment-and-exit.md#2-aliases

use super::typed::Typed;
use crate::exit::Refusal;

/// One option of the command line.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its main long name; empty if there is only a letter.
    pub long: &'static str,
    /// Its letter.
    pub short: Option<char>,
    /// Other long names.
    pub aliases: &'static [&'static str],
    /// Long names that switch it off.
    pub off: &'static [&'static str],
    /// What the value is called in the help; nothing: no value.
    pub value: Option<&'static str>,
    /// One line of help.
    pub help: &'static str,
    /// Whether we can do it.
    pub support: Support,
    /// Notes it in [`Typed`]. Called in command-line order.
    pub apply: Apply,
}

/// What notes an option in [`Typed`].
pub type Apply = fn(&mut Typed, &Given<'_>) -> Result<(), Refusal>;

/// Whether we can do what an option asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Yes.
    Full,
    /// It is read and forwarded correctly, but this end cannot do it yet: refused.
    NotYet,
    /// Not here, on purpose: the text of the refusal.
    Never(&'static str),
}

/// One use of an option.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// False for one of the `off` names.
    pub on: bool,
    /// The value; empty if it takes none.
    pub value: &'a [u8],
    /// The argument that held the value, for messages: `--timeout=x`, or `x` alone.
    pub word: &'a [u8],
}

impl Given<'_> {
    /// Returns the value with invalid text replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.value).into_owned()
    }
}

/// Makes the row of an option without a value.
pub const fn flag(long: &'static str, help: &'static str, apply: Apply) -> Row {
    Row { long, short: None, aliases: &[], off: &[], value: None, help, support: Support::Full, apply }
}

/// Makes the row of an option with a value.
pub const fn valued(long: &'static str, value: &'static str, help: &'static str, apply: Apply) -> Row {
    Row { long, short: None, aliases: &[], off: &[], value: Some(value), help, support: Support::Full, apply }
}

impl Row {
    /// Adds the letter.
    pub const fn letter(mut self, letter: char) -> Row {
        self.short = Some(letter);
        self
    }

    /// Adds other names.
    pub const fn also(mut self, names: &'static [&'static str]) -> Row {
        self.aliases = names;
        self
    }

    /// Adds the names that switch it off.
    pub const fn off(mut self, names: &'static [&'static str]) -> Row {
        self.off = names;
        self
    }

    /// Marks it as not done yet.
    pub const fn not_yet(mut self) -> Row {
        self.support = Support::NotYet;
        self
    }

    /// Marks it as never done, with the text of the refusal.
    pub const fn never(mut self, text: &'static str) -> Row {
        self.support = Support::Never(text);
        self
    }

    /// Marks it as never done where it is not supported, with the text of the refusal.
    pub const fn here(self, supported: bool, text: &'static str) -> Row {
        match supported {
            true => self,
            false => self.never(text),
        }
    }

    /// Returns the name that messages use: `--long`, or `-L`.
    pub fn name(&self) -> String {
        match self.short {
            Some(letter) if self.long.is_empty() => format!("-{letter}"),
            _ => format!("--{}", self.long),
        }
    }

    /// Returns all long names that switch it on.
    pub fn long_names(&self) -> impl Iterator<Item = &'static str> {
        Some(self.long).filter(|name| !name.is_empty()).into_iter().chain(self.aliases.iter().copied())
    }
}
