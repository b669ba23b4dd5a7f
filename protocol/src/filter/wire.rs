//! The filter list on its way from client to server.
//!
//! Wire: protocol/doc/13-filters.md#6-on-the-wire

use super::{Rule, RuleFlags, RuleKind};
use crate::error::{Decode, Malformed, Misuse};
use crate::limits::TEXT_MAX;
use crate::session::{Direction, Version};
use crate::wire::{put_i32, Reader};

const SIDES: RuleFlags = RuleFlags::SENDER.union(RuleFlags::RECEIVER);
/// A merge file whose rules have no kinds of their own.
const PATTERNS: RuleFlags = RuleFlags::CVS.union(RuleFlags::ONLY_EXCLUDES).union(RuleFlags::ONLY_INCLUDES);

/// What decides about the form of the rules that a client sends.
#[derive(Clone, Copy)]
struct Route {
    /// The client's direction.
    direction: Direction,
    version: Version,
    /// `--delete-excluded`: rules without a side are about the sender only.
    delete_excluded: bool,
}

/// Returns the texts of the rules that concern the server. `direction` is the client's own. To be
/// asked even if no list is sent: fails on a rule that the server's version cannot carry.
pub fn texts_for_server(
    rules: &[Rule],
    direction: Direction,
    version: Version,
    delete_excluded: bool,
) -> Result<Vec<Vec<u8>>, Misuse> {
    let route = Route { direction, version, delete_excluded };
    let mut texts = Vec::new();
    let mut in_cvs_list = false;
    for rule in rules {
        let is_cvs = rule.flags.contains(RuleFlags::CVS) && rule.kind != RuleKind::DirMerge;
        let repeated = std::mem::replace(&mut in_cvs_list, is_cvs);
        if !route.concerns_server(rule) {
            continue;
        }
        if is_cvs && route.names_cvs_list() {
            // The server has a list of its own in place of this one.
            if !repeated {
                texts.push(route.modern(rule, b"")?);
            }
            continue;
        }
        texts.push(match version.has_modern_filters() {
            true => route.modern(rule, &rule.pattern)?,
            false => route.old(rule)?,
        });
    }
    Ok(texts)
}

/// Returns the texts of a client's rules for the script that replays a recorded run. Those of the
/// option `-C` are left out: the option itself stands in the script. `direction` is the client's.
///
/// Wire: protocol/doc/04-batch-and-files-from.md#45-the-sh-script
pub fn texts_for_replay(rules: &[Rule], direction: Direction, version: Version) -> Vec<Vec<u8>> {
    let route = Route { direction: Direction::Sending, version: Version::NEWEST, delete_excluded: false };
    let mut texts = Vec::new();
    let mut in_cvs_list = false;
    for rule in rules.iter().filter(|rule| !rule.flags.contains(RuleFlags::CVS | RuleFlags::BUILT_IN)) {
        let is_cvs = rule.flags.contains(RuleFlags::CVS) && rule.kind != RuleKind::DirMerge;
        let repeated = std::mem::replace(&mut in_cvs_list, is_cvs);
        if is_cvs && repeated {
            continue;
        }
        let mut rule = rule.clone();
        let gives_way = rule.flags.contains(RuleFlags::BUILT_IN)
            && direction == Direction::Sending
            && !version.has_perishable_filters();
        rule.flags.set(RuleFlags::PERISHABLE, rule.flags.contains(RuleFlags::PERISHABLE) && !gives_way);
        let pattern = if is_cvs { Vec::new() } else { rule.pattern.to_vec() };
        // The newest version carries every rule.
        texts.extend(route.modern(&rule, &pattern));
    }
    texts
}

impl Route {
    fn pushes(self) -> bool {
        self.direction == Direction::Sending
    }

    /// Whether `-C` itself is sent where the client's list stands.
    fn names_cvs_list(self) -> bool {
        !self.pushes() && self.version.has_modern_filters()
    }

    fn concerns_server(self, rule: &Rule) -> bool {
        let own_side = if self.pushes() { RuleFlags::SENDER } else { RuleFlags::RECEIVER };
        let sides = rule.flags & SIDES;
        let is_merge = rule.kind == RuleKind::DirMerge;
        if sides == own_side {
            return false;
        }
        // By the option `-C`: a server that sends, or is old, adds these itself.
        if rule.flags.contains(RuleFlags::CVS | RuleFlags::BUILT_IN) {
            return self.pushes()
                && (self.version.has_modern_filters() || !is_merge)
                && self.keeps_sideless(rule);
        }
        self.keeps_sideless(rule)
    }

    /// Under `--delete-excluded` a receiver has no use for rules without a side.
    fn keeps_sideless(self, rule: &Rule) -> bool {
        let becomes_sender_only = rule.kind != RuleKind::DirMerge || rule.flags.intersects(PATTERNS);
        !(self.pushes() && self.delete_excluded && !rule.flags.intersects(SIDES) && becomes_sender_only)
    }

    /// The form of version 29 and later.
    fn modern(self, rule: &Rule, pattern: &[u8]) -> Result<Vec<u8>, Misuse> {
        let flags = rule.flags;
        let has = |flag| flags.contains(flag);
        let is_merge = rule.kind == RuleKind::DirMerge;
        let in_list = has(RuleFlags::CVS) && !is_merge;
        let mut text = vec![match rule.kind {
            RuleKind::Exclude => b'-',
            RuleKind::Include => b'+',
            RuleKind::DirMerge => b':',
        }];
        let mut put = |wanted: bool, letter| text.extend(wanted.then_some(letter));
        put(has(RuleFlags::ABSOLUTE), b'/');
        put(has(RuleFlags::NEGATE), b'!');
        put(has(RuleFlags::CVS) && (is_merge || pattern.is_empty()), b'C');
        if is_merge && !has(RuleFlags::CVS) {
            put(has(RuleFlags::NO_INHERIT), b'n');
            put(has(RuleFlags::WORDS), b'w');
            put(has(RuleFlags::ONLY_INCLUDES), b'+');
            put(has(RuleFlags::ONLY_EXCLUDES), b'-');
        }
        put(has(RuleFlags::XATTR), b'x');
        let marks_side = !self.pushes() && self.delete_excluded && !is_merge && !flags.intersects(SIDES);
        put(has(RuleFlags::SENDER) || marks_side, b's');
        put(has(RuleFlags::RECEIVER), b'r');
        if has(RuleFlags::PERISHABLE) && !(in_list && pattern.is_empty()) {
            put(self.carries_perishable(rule)?, b'p');
        }
        text.push(b' ');
        text.extend_from_slice(pattern);
        if has(RuleFlags::DIR_ONLY) {
            text.push(b'/');
        }
        Ok(text)
    }

    fn carries_perishable(self, rule: &Rule) -> Result<bool, Misuse> {
        // The marks of the CVS list and of `--partial-dir` give way to an old version.
        let gives_way = rule.flags.intersects(RuleFlags::BUILT_IN | RuleFlags::CVS);
        match self.version.has_perishable_filters() {
            true => Ok(true),
            false if self.pushes() && !gives_way => Err(Misuse::ModernFilter),
            false => Ok(false),
        }
    }

    /// The form below version 29.
    fn old(self, rule: &Rule) -> Result<Vec<u8>, Misuse> {
        let flags = rule.flags;
        let beyond = RuleFlags::ABSOLUTE | RuleFlags::NEGATE | RuleFlags::XATTR;
        let protects = self.pushes() && self.delete_excluded && flags.contains(RuleFlags::RECEIVER);
        if rule.kind == RuleKind::DirMerge || flags.intersects(beyond) || protects {
            return Err(Misuse::ModernFilter);
        }
        if flags.contains(RuleFlags::PERISHABLE) {
            self.carries_perishable(rule)?;
        }
        let prefix: &[u8] = match rule.kind {
            RuleKind::Include => b"+ ",
            // Without a prefix these would be read as something else.
            _ if matches!(&rule.pattern[..], b"!" | [b'-' | b'+', b' ', ..]) => b"- ",
            _ => b"",
        };
        let slash: &[u8] = if flags.contains(RuleFlags::DIR_ONLY) { b"/" } else { b"" };
        Ok([prefix, &rule.pattern, slash].concat())
    }
}

/// Appends a filter list: texts with their lengths, and its end.
pub fn put_texts(texts: &[Vec<u8>], out: &mut Vec<u8>) -> Result<(), Misuse> {
    for text in texts.iter().filter(|text| !text.is_empty()) {
        if text.len() >= TEXT_MAX {
            return Err(Misuse::LongName);
        }
        put_i32(text.len() as i32, out);
        out.extend_from_slice(text);
    }
    put_i32(0, out);
    Ok(())
}

/// Takes one text of a filter list; nothing at its end.
pub fn decode_text<'a>(input: &mut Reader<'a>) -> Decode<Option<&'a [u8]>> {
    let announced = input.i32()?;
    match usize::try_from(announced) {
        Ok(0) => Ok(None),
        Ok(len) if len < TEXT_MAX => input.take(len).map(Some),
        _ => Err(Malformed::Overflow { field: "filter rule", length: u64::from(announced as u32) }.into()),
    }
}

#[cfg(test)]
mod tests;
