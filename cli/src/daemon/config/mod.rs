//! The configuration of the daemon: a global part and modules.
//!
//! [`parameters`] is the table of what can be said, [`parse`] the grammar of the file. Values stay
//! the text they were; whoever asks for one says what it is.
//! Wire: protocol/doc/03-daemon.md#38-config-file-grammar

pub mod parameters;
mod parse;

use std::collections::BTreeMap;
use std::path::Path;

pub use parse::Broken;

/// Values by the parameter's name.
pub type Values = BTreeMap<&'static str, Vec<u8>>;

/// A configuration, as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    global: Values,
    defaults: Values,
    sections: Vec<Section>,
    /// Settings that were ignored: sentences that name file, line and parameter.
    pub mistakes: Vec<String>,
}

/// One module, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    raw_name: Vec<u8>,
    values: Values,
}

/// Tells the value of a variable.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

/// Tells the variables of this process.
pub fn environment(name: &str) -> Option<Vec<u8>> {
    std::env::var_os(name).map(std::os::unix::ffi::OsStringExt::into_vec)
}

impl Config {
    /// Reads a configuration. `overrides` are the settings of `--dparam`.
    pub fn load(path: &Path, overrides: &[(Vec<u8>, Vec<u8>)]) -> Result<Config, Broken> {
        let mut parser = parse::start(overrides);
        parser.file(path, 0)?;
        parser.end_global_part();
        Ok(parser.config)
    }

    /// Returns a setting of the global part, for its own parameters and for the defaults of modules.
    pub fn global(&self) -> Settings<'_> {
        Settings { first: &self.global, second: &self.defaults, variable: &environment }
    }

    /// Returns the modules in the order of their first mention.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Finds the module of exactly this name.
    pub fn section(&self, name: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| section.name() == name)
    }
}

impl Section {
    /// Returns the name, variables replaced.
    pub fn name(&self) -> Vec<u8> {
        expand(&self.raw_name, &environment)
    }

    /// Returns the settings. `variable` tells what stands between percent signs.
    pub fn settings<'a>(&'a self, variable: Variable<'a>) -> Settings<'a> {
        Settings { first: &self.values, second: &self.values, variable }
    }
}

/// The settings of the global part or of a module.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    first: &'a Values,
    second: &'a Values,
    variable: Variable<'a>,
}

impl Settings<'_> {
    /// Returns a text as it was written.
    pub fn raw(&self, name: &str) -> Vec<u8> {
        let said = self.first.get(name).or_else(|| self.second.get(name));
        let default = || parameters::find(name.as_bytes()).map_or("", |parameter| parameter.default);
        said.map_or_else(|| default().as_bytes().to_vec(), Clone::clone)
    }

    /// Returns a text, variables replaced.
    pub fn text(&self, name: &str) -> Vec<u8> {
        expand(&self.raw(name), self.variable)
    }

    /// The same; nothing if it is empty.
    pub fn non_empty(&self, name: &str) -> Option<Vec<u8>> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Returns whether a flag is set; `unset` counts as no.
    pub fn flag(&self, name: &str) -> bool {
        self.flag3(name) == Some(true)
    }

    /// Returns a flag that may be left open.
    pub fn flag3(&self, name: &str) -> Option<bool> {
        parameters::flag(&self.raw(name)).flatten()
    }

    /// Returns a number.
    pub fn number(&self, name: &str) -> i64 {
        parameters::number(&self.raw(name))
    }
}

/// Replaces `%NAME%` where there is such a variable; names begin with an upper-case letter.
pub fn expand(text: &[u8], variable: Variable<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| *b == b'%') {
        let (front, behind) = (&rest[..at], &rest[at + 1..]);
        out.extend_from_slice(front);
        let name = behind
            .iter()
            .position(|b| *b == b'%')
            .map(|end| &behind[..end])
            .filter(|name| name.first().is_some_and(u8::is_ascii_uppercase));
        match name.and_then(|name| Some((name.len(), variable(std::str::from_utf8(name).ok()?)?))) {
            Some((length, value)) => {
                out.extend_from_slice(&value);
                rest = &behind[length + 1..];
            }
            None => {
                out.push(b'%');
                rest = behind;
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests;
