//! From what was typed, or received, to a list of rules: files are read and lists inserted where
//! they stand.
//!
//! Wire: protocol/doc/13-filters.md#1-rule-text, protocol/doc/13-filters.md#implicit-rules

use std::fmt;
use std::io;

use bstr::ByteSlice;
use suisei_protocol::filter::{Directive, OldKind, Rule, RuleError, RuleFlags, RuleKind};
use suisei_protocol::limits::PATH_MAX;
use suisei_protocol::session::Version;

use super::cvs;
use super::file::{Form, LineEnd};

/// Deepest nesting of merged files.
pub(super) const NESTING_MAX: usize = 32;

/// Why rules cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// The whole sentence, as stock words it.
    pub text: String,
    /// rsync's exit code.
    pub code: u8,
}

impl FilterError {
    /// A text that is no rule. `shown` is the text, or where it stands.
    pub(super) fn syntax(error: RuleError, shown: &[u8]) -> Self {
        FilterError { text: error.sentence(shown), code: 1 }
    }

    fn unreadable(name: &[u8], kind: OldKind, error: &io::Error) -> Self {
        let kind = match kind {
            OldKind::Exclude => "exclude",
            OldKind::Include => "include",
        };
        let reason = error.to_string();
        let (reason, code) = match (reason.split_once(" (os error "), error.raw_os_error()) {
            (Some((reason, _)), Some(number)) => (reason, format!(" ({number})")),
            _ => (&reason[..], String::new()),
        };
        let text = format!("failed to open {kind} file {}: {reason}{code}", name.as_bstr());
        FilterError { text, code: 11 }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for FilterError {}

/// Reads a whole file that a rule names; `-` is the standard input.
pub type ReadFile<'a> = dyn FnMut(&[u8]) -> io::Result<Vec<u8>> + 'a;

/// Builds a list of rules, in the order in which they are given to it.
pub struct RuleParser<'a> {
    rules: Vec<Rule>,
    discarded: Vec<Vec<u8>>,
    read: &'a mut ReadFile<'a>,
    lines: LineEnd,
    personal: Vec<Vec<u8>>,
    depth: usize,
}

impl<'a> RuleParser<'a> {
    /// Starts an empty list. `read` opens merged files.
    pub fn new(read: &'a mut ReadFile<'a>, lines: LineEnd) -> Self {
        RuleParser { rules: Vec::new(), discarded: Vec::new(), read, lines, personal: Vec::new(), depth: 0 }
    }

    /// Names texts whose words every CVS list ends with, in order: the content of
    /// `$HOME/.cvsignore`, then `$CVSIGNORE`.
    pub fn personal_cvs_names(&mut self, texts: Vec<Vec<u8>>) {
        self.personal = texts;
    }

    /// Adds a `--filter`.
    pub fn filter(&mut self, text: &[u8]) -> Result<(), FilterError> {
        if text.is_empty() {
            return Ok(());
        }
        let directive = Directive::parse(text).map_err(|error| FilterError::syntax(error, text))?;
        self.directive(directive, text)
    }

    /// Adds an `--exclude` or `--include`.
    pub fn pattern(&mut self, text: &[u8], kind: OldKind) -> Result<(), FilterError> {
        let directive = Directive::parse_old(text, kind).map_err(|error| FilterError::syntax(error, text))?;
        self.directive(directive, text)
    }

    /// Adds the patterns of an `--exclude-from` or `--include-from`.
    pub fn patterns_from(&mut self, name: &[u8], kind: OldKind) -> Result<(), FilterError> {
        let content = (self.read)(name).map_err(|error| FilterError::unreadable(name, kind, &error))?;
        self.file(Form::of_list(kind, self.lines), &content, name)
    }

    /// Adds a rule that the client sent to this server.
    pub fn received(&mut self, text: &[u8], version: Version) -> Result<(), FilterError> {
        let directive =
            Directive::parse_received(text, version).map_err(|error| FilterError::syntax(error, text))?;
        self.directive(directive, text)
    }

    /// Adds what `-C` stands for: `:C`, and the CVS list.
    pub fn cvs_exclude(&mut self) -> Result<(), FilterError> {
        self.cvs_merge_file();
        self.cvs_list(RuleKind::Exclude, RuleFlags::BUILT_IN)
    }

    /// Adds the `:C` of `-C` alone: what a receiving server below version 29 is not sent.
    pub fn cvs_merge_file(&mut self) {
        let flags = RuleFlags::CVS | RuleFlags::BUILT_IN;
        self.rules.push(Rule { kind: RuleKind::DirMerge, flags, pattern: b".cvsignore".to_vec() });
    }

    /// Adds the rule of a relative `--partial-dir`: the directory takes no part.
    pub fn partial_dir(&mut self, name: &[u8]) {
        let name = name.trim_end_with(|byte| byte == '/');
        let flags = RuleFlags::PERISHABLE | RuleFlags::BUILT_IN | RuleFlags::DIR_ONLY;
        self.rules.extend(Rule::new(RuleKind::Exclude, flags, name).ok());
    }

    /// Adds the rule of `--backup` with deletion: backups beside their files are kept.
    pub fn backup_suffix(&mut self, suffix: &[u8]) {
        let pattern = [b"*", suffix].concat();
        self.rules.extend(Rule::new(RuleKind::Exclude, RuleFlags::RECEIVER, &pattern).ok());
    }

    /// Adds the rule of `--old-dirs`: directories are listed one level deep.
    pub fn old_dirs(&mut self) {
        self.rules.extend(Rule::new(RuleKind::Exclude, RuleFlags::empty(), b"/*/*").ok());
    }

    /// Adds rules as they are.
    pub fn extend(&mut self, rules: impl IntoIterator<Item = Rule>) {
        self.rules.extend(rules);
    }

    /// Returns the patterns that were left out because they are too long: each is worth the line
    /// `discarding over-long filter: PATTERN`.
    pub fn discarded(&self) -> &[Vec<u8>] {
        &self.discarded
    }

    /// Returns the list.
    pub fn finish(self) -> Vec<Rule> {
        self.rules
    }

    fn directive(&mut self, directive: Directive, shown: &[u8]) -> Result<(), FilterError> {
        match directive {
            Directive::Clear => self.rules.clear(),
            Directive::Rule(rule) if rule.pattern.len() >= PATH_MAX => self.discarded.push(rule.pattern),
            Directive::Rule(mut rule) => {
                self.exclude_merge_file(rule.flags, &rule.pattern, shown)?;
                rule.flags -= RuleFlags::EXCLUDE_SELF;
                rule.flags.set(RuleFlags::FROM_FILE, self.depth > 0);
                self.rules.push(rule);
            }
            Directive::CvsList { kind, flags } => self.cvs_list(kind, flags)?,
            Directive::Merge { name, flags } => {
                self.exclude_merge_file(flags, &name, shown)?;
                self.merge(&name, flags)?;
            }
        }
        Ok(())
    }

    fn exclude_merge_file(&mut self, flags: RuleFlags, name: &[u8], shown: &[u8]) -> Result<(), FilterError> {
        if flags.contains(RuleFlags::EXCLUDE_SELF) {
            self.rules.push(Rule::excluding_file(name).map_err(|error| FilterError::syntax(error, shown))?);
        }
        Ok(())
    }

    fn merge(&mut self, name: &[u8], flags: RuleFlags) -> Result<(), FilterError> {
        if self.depth >= NESTING_MAX {
            return Err(FilterError { text: "filter merge files are nested too deeply".into(), code: 1 });
        }
        let kind = match flags.contains(RuleFlags::ONLY_INCLUDES) {
            true => OldKind::Include,
            false => OldKind::Exclude,
        };
        let content = (self.read)(name).map_err(|error| FilterError::unreadable(name, kind, &error))?;
        self.file(Form::of_merge(flags, self.lines), &content, name)
    }

    fn file(&mut self, form: Form, content: &[u8], name: &[u8]) -> Result<(), FilterError> {
        self.depth += 1;
        for directive in form.directives(content, name) {
            self.directive(directive?, name)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn cvs_list(&mut self, kind: RuleKind, flags: RuleFlags) -> Result<(), FilterError> {
        self.rules.extend(cvs::rules(kind, flags));
        let form = Form::of_merge(RuleFlags::CVS, self.lines);
        for text in std::mem::take(&mut self.personal).iter() {
            for directive in form.directives(text, b".cvsignore") {
                match directive? {
                    Directive::Rule(rule) => {
                        let flags = rule.flags | flags | RuleFlags::CVS;
                        self.rules.push(Rule { kind, flags, ..rule });
                    }
                    Directive::Clear => self.rules.clear(),
                    Directive::Merge { .. } | Directive::CvsList { .. } => {}
                }
            }
            self.personal.push(text.clone());
        }
        Ok(())
    }
}

impl fmt::Debug for RuleParser<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleParser").field("rules", &self.rules).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
