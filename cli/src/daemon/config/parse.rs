//! The grammar of the configuration file.
//!
//! Wire: protocol/doc/03-daemon.md#38-config-file-grammar

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use suisei_engine::tree::open_operator_file;

use super::parameters::{self, Kind, Parameter, Scope};
use super::{expand, Config, Section, Values};
use crate::output::reason;

/// Files within files: beyond this something includes itself.
const DEPTH_MAX: usize = 40;

/// A configuration that cannot be used: a sentence that names file, line and parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

pub(super) struct Parser<'a> {
    pub(super) config: Config,
    /// Settings of the command line, put behind the first global part.
    pub(super) overrides: &'a [(Vec<u8>, Vec<u8>)],
    pub(super) overridden: bool,
    /// The section that settings go to; nothing: the global part.
    pub(super) here: Option<usize>,
}

/// One logical line, and the number of its first physical one.
struct Line {
    number: usize,
    text: Vec<u8>,
}

impl Parser<'_> {
    /// Reads a file and whatever it includes.
    pub(super) fn file(&mut self, path: &Path, depth: usize) -> Result<(), Broken> {
        if depth > DEPTH_MAX {
            return Err(Broken(format!("{}: files include each other without end", path.display())));
        }
        let mut text = Vec::new();
        open_operator_file(path)
            .and_then(|mut file| file.read_to_end(&mut text))
            .map_err(|error| Broken(format!("{}: {}", path.display(), reason(&error))))?;
        for line in logical_lines(&text) {
            self.line(path, &line, depth)?;
        }
        Ok(())
    }

    fn line(&mut self, path: &Path, line: &Line, depth: usize) -> Result<(), Broken> {
        let text = line.text.trim();
        let at = format!("{} line {}", path.display(), line.number);
        match text.first() {
            None | Some(b'#' | b';') => Ok(()),
            Some(b'[') => self.section(&at, text),
            Some(b'&') => self.directive(path, &at, text, depth),
            Some(_) => {
                match text.split_once_str(b"=") {
                    Some((name, value)) => self.set(&at, name.trim(), value.trim()),
                    None => self.mistake(&at, text, "has no \"=\" and is ignored"),
                }
                Ok(())
            }
        }
    }

    fn section(&mut self, at: &str, text: &[u8]) -> Result<(), Broken> {
        let Some(end) = text.find_byte(b']') else {
            return Err(Broken(format!("{at}: the name of a module has no \"]\"")));
        };
        let words: Vec<&[u8]> =
            text[1..end].fields_with(|c| c.is_ascii_whitespace()).filter(|word| !word.is_empty()).collect();
        let name = words.join(&b' ');
        if name.is_empty() {
            return Err(Broken(format!("{at}: the name of a module is empty")));
        }
        if name.contains(&b'/') {
            let name = name.to_str_lossy();
            return Err(Broken(format!("{at}: the name of module [{name}] holds a slash")));
        }
        self.end_global_part();
        if squeezed(&name) == b"global" {
            self.here = None;
            return Ok(());
        }
        let known = self.config.sections.iter().position(|s| squeezed(&s.raw_name) == squeezed(&name));
        self.here = Some(known.unwrap_or_else(|| {
            let values = self.config.defaults.clone();
            self.config.sections.push(Section { raw_name: name, values });
            self.config.sections.len() - 1
        }));
        Ok(())
    }

    fn directive(&mut self, path: &Path, at: &str, text: &[u8], depth: usize) -> Result<(), Broken> {
        let name_end = text.find_byteset(b" \t=").unwrap_or(text.len());
        let rest = text[name_end..].trim();
        let target = rest.strip_prefix(b"=").unwrap_or(rest).trim();
        let target = expand(target, &|name| std::env::var_os(name).map(|v| v.as_bytes().to_vec()));
        let target = Path::new(OsStr::from_bytes(&target)).to_path_buf();
        let (suffix, is_include) = match &text[..name_end] {
            b"&include" => ("conf", true),
            b"&merge" => ("inc", false),
            other => {
                return Err(Broken(format!("{at}: unknown directive \"{}\"", other.to_str_lossy())));
            }
        };
        // A relative name starts beside the file that holds it is not what stock does: it starts
        // in the working directory, as the name of the configuration itself.
        let _ = path;
        for file in files_of(&target, suffix).map_err(|why| Broken(format!("{at}: {why}")))? {
            if is_include {
                let (defaults, here) = (self.config.defaults.clone(), self.here.take());
                self.file(&file, depth + 1)?;
                (self.config.defaults, self.here) = (defaults, here);
            } else {
                self.file(&file, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Puts the settings of the command line where the first global part ends.
    pub(super) fn end_global_part(&mut self) {
        if std::mem::replace(&mut self.overridden, true) {
            return;
        }
        for (name, value) in self.overrides {
            self.set("--dparam", name, value);
        }
    }

    fn set(&mut self, at: &str, name: &[u8], value: &[u8]) {
        let Some(parameter) = parameters::find(name) else {
            return self.mistake(at, name, "is no parameter and is ignored");
        };
        let value: Vec<u8> = value.iter().copied().filter(|b| *b != b'\r').collect();
        let value = match readable(parameter, value) {
            Ok(value) => value,
            Err(why) => return self.mistake(at, name, &why),
        };
        match (parameter.scope, self.here) {
            (Scope::Global, Some(_)) => self.mistake(at, name, "belongs to the global part and is ignored"),
            (Scope::Global, None) => drop(self.config.global.insert(parameter.name, value)),
            (Scope::Module, None) => drop(self.config.defaults.insert(parameter.name, value)),
            (Scope::Module, Some(at)) => {
                if let Some(section) = self.config.sections.get_mut(at) {
                    section.values.insert(parameter.name, value);
                }
            }
        }
    }

    fn mistake(&mut self, at: &str, name: &[u8], why: &str) {
        self.config.mistakes.push(format!("{at}: \"{}\" {why}", name.to_str_lossy()));
    }
}

/// Checks a value, and brings it into the form that is kept.
fn readable(parameter: &Parameter, mut value: Vec<u8>) -> Result<Vec<u8>, String> {
    if !matches!(parameter.kind, Kind::Text | Kind::Path) {
        value = expand(&value, &|name| std::env::var_os(name).map(|v| v.as_bytes().to_vec()));
    }
    let shown = value.to_str_lossy().into_owned();
    match parameter.kind {
        Kind::Text | Kind::Number => Ok(value),
        Kind::Path => {
            while value.len() > 1 && value.ends_with(b"/") {
                value.pop();
            }
            Ok(value)
        }
        Kind::Flag => match parameters::flag(&value) {
            Some(Some(_)) => Ok(value),
            _ => Err(format!("is neither yes nor no: \"{shown}\"")),
        },
        Kind::Flag3 => match parameters::flag(&value) {
            Some(_) => Ok(value),
            None => Err(format!("is neither yes, no nor unset: \"{shown}\"")),
        },
        Kind::Facility => match parameters::facility(&value) {
            Some(_) => Ok(value),
            None => Err(format!("names no syslog facility: \"{shown}\"")),
        },
    }
}

/// Compares names of modules: case and blanks do not count.
fn squeezed(name: &[u8]) -> Vec<u8> {
    name.iter().filter(|b| !b.is_ascii_whitespace()).map(u8::to_ascii_lowercase).collect()
}

/// The files that a directive names: one, or the ones of a directory in the order of their bytes.
fn files_of(target: &Path, suffix: &str) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("cannot read {}: {}", target.display(), reason(&error));
    if !std::fs::metadata(target).map_err(failed)?.is_dir() {
        return Ok(vec![target.to_path_buf()]);
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(target)
        .map_err(failed)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == suffix))
        .collect();
    found.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    Ok(found)
}

/// Joins lines that end in a backslash; comments are never joined.
fn logical_lines(text: &[u8]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut open: Option<Line> = None;
    for (index, physical) in text.lines().enumerate() {
        let is_comment = open.is_none() && matches!(physical.trim_start().first(), Some(b'#' | b';'));
        let joined = physical.trim_end().strip_suffix(b"\\").filter(|_| !is_comment);
        let mut line = open.take().unwrap_or(Line { number: index + 1, text: Vec::new() });
        line.text.extend_from_slice(joined.unwrap_or(physical));
        match joined {
            Some(_) => open = Some(line),
            None => lines.push(line),
        }
    }
    lines.extend(open);
    lines
}

pub(super) fn start(overrides: &[(Vec<u8>, Vec<u8>)]) -> Parser<'_> {
    let config =
        Config { global: Values::new(), defaults: Values::new(), sections: Vec::new(), mistakes: Vec::new() };
    Parser { config, overrides, overridden: false, here: None }
}
