//! The user's filter words as rules, in the order in which they count.
//!
//! Wire: protocol/doc/13-filters.md#implicit-rules

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use suisei_engine::filter::{FilterError, RuleParser};
use suisei_engine::tree::{Trust, Wanted};
use suisei_protocol::filter::{OldKind, Rule, RuleFlags, RuleKind};
use suisei_protocol::session::{Direction, Version};

use crate::exit::{Code, Refusal};
use crate::named;
use crate::options::environment::Environment;
use crate::options::meaning::Wishes;
use crate::options::typed::FilterWord;
use crate::output::{Channel, Screen};

/// Returns the rules of a client. `pulls`: the other end sends, and adds its own CVS rules.
pub fn of_client(
    wishes: &Wishes,
    pulls: bool,
    environment: &Environment,
    screen: &Screen,
) -> Result<Vec<Rule>, Refusal> {
    let trust = wishes.trust_in_files();
    let preface = RefCell::default();
    let mut read =
        |name: &[u8]| read(name, &trust).inspect_err(|error| *preface.borrow_mut() = named::preface(error));
    let mut parser = RuleParser::new(&mut read, wishes.filter_lines());
    parser.personal_cvs_names(personal_cvs_names(environment));
    add(&mut parser, wishes).map_err(|error| {
        let refusal = refusal(error);
        Refusal { text: [preface.take(), refusal.text].concat(), ..refusal }
    })?;
    for pattern in parser.discarded() {
        screen.line(Channel::Err, &[b"discarding over-long filter: ".as_slice(), pattern].concat());
    }
    let mut rules = parser.finish();
    if pulls {
        // --delete-excluded turns rules into the sender's, but not the CVS list of a client that
        // does not send it.
        let listed = RuleFlags::CVS | RuleFlags::BUILT_IN;
        let is_list = |rule: &&mut Rule| rule.kind == RuleKind::Exclude && rule.flags.contains(listed);
        for rule in rules.iter_mut().filter(is_list) {
            rule.flags |= RuleFlags::SENDER | RuleFlags::RECEIVER;
        }
    }
    Ok(rules)
}

fn add(parser: &mut RuleParser<'_>, wishes: &Wishes) -> Result<(), FilterError> {
    for word in &wishes.typed.select.filters {
        match word {
            FilterWord::Rule(text) => parser.filter(text)?,
            FilterWord::Exclude(text) => parser.pattern(text, OldKind::Exclude)?,
            FilterWord::Include(text) => parser.pattern(text, OldKind::Include)?,
            FilterWord::ExcludeFrom(name) => parser.patterns_from(name, OldKind::Exclude)?,
            FilterWord::IncludeFrom(name) => parser.patterns_from(name, OldKind::Include)?,
        }
    }
    if wishes.typed.select.old_dirs {
        parser.old_dirs();
    }
    if wishes.deleting && wishes.backs_up_in_place() && !wishes.typed.change.delete_excluded {
        parser.backup_suffix(&wishes.suffix);
    }
    if let Some(dir) = wishes.partial_dir.as_deref().filter(|dir| !dir.starts_with(b"/")) {
        parser.partial_dir(dir);
    }
    if wishes.typed.select.cvs_exclude {
        parser.cvs_exclude()?;
    }
    Ok(())
}

/// Returns the rules that a server adds to those it receives.
pub fn of_server(
    wishes: &Wishes,
    direction: Direction,
    version: Version,
    environment: &Environment,
) -> Result<Vec<Rule>, Refusal> {
    let trust = wishes.trust_in_files();
    let mut read = |name: &[u8]| read(name, &trust);
    let mut parser = RuleParser::new(&mut read, wishes.filter_lines());
    parser.personal_cvs_names(personal_cvs_names(environment));
    if wishes.typed.select.cvs_exclude {
        match direction {
            Direction::Sending => parser.cvs_exclude().map_err(refusal)?,
            Direction::Receiving if !version.has_modern_filters() => parser.cvs_merge_file(),
            Direction::Receiving => {}
        }
    }
    Ok(parser.finish())
}

fn refusal(error: FilterError) -> Refusal {
    let call = if error.code == Code::File as u8 { "rsync: [client] " } else { "" };
    Refusal::with_code(error.code, format!("{call}{error}"))
}

/// Reads a file that a rule or an option names.
fn read(name: &[u8], trust: &Trust) -> io::Result<Vec<u8>> {
    if name == b"-" {
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text)?;
        return Ok(text);
    }
    let mut text = Vec::new();
    named::open(name, trust, Wanted::Any)?.read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the texts whose words this end's CVS list ends with.
pub fn personal_cvs_names(environment: &Environment) -> Vec<Vec<u8>> {
    let home = environment
        .non_empty("HOME")
        .and_then(|home| std::fs::read(Path::new(OsStr::from_bytes(&[home, b"/.cvsignore"].concat()))).ok());
    home.into_iter().chain(environment.value("CVSIGNORE").map(<[u8]>::to_vec)).collect()
}
