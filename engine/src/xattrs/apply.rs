//! Giving an item the attributes of its entry.

use std::collections::HashSet;
use std::io;

use bstr::ByteSlice;
use rustix::io::Errno;
use suisei_protocol::flist::{EntryRef, FileKind, Xattr, XattrList, XattrValue};

use super::names::Names;
use crate::filter::FilterSide;
use crate::observe::{Class, Problem, What, Who};
use crate::options::Xattrs;
use crate::tree::HeldItem;
use crate::Context;

/// What attributes are set on.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The item.
    pub item: &'a HeldItem<'a>,
    /// What stood at its place before, where that is another item.
    pub basis: Option<&'a HeldItem<'a>>,
    /// Its full name, for messages.
    pub name: &'a dyn Fn() -> Vec<u8>,
    /// Who speaks.
    pub who: Who,
}

/// Sets all listed attributes that are not right already, then removes those that are not listed.
/// Each that fails is reported. Call with the item's final owner: a change of it may drop some.
/// Whether all are right now.
pub fn apply(ctx: &Context, entry: EntryRef<'_>, target: Target<'_>) -> bool {
    if ctx.options.preserve.xattrs == Xattrs::Off {
        return true;
    }
    let mut setter = Setter { ctx, entry, target, restore: None, is_right: true };
    setter.apply();
    if let Some(permissions) = setter.restore {
        // It was allowed a moment ago; a failure leaves the owner one right more.
        let _ = target.item.chmod(permissions);
    }
    setter.is_right
}

struct Setter<'a> {
    ctx: &'a Context,
    entry: EntryRef<'a>,
    target: Target<'a>,
    /// Permissions to come back to.
    restore: Option<u32>,
    is_right: bool,
}

impl Setter<'_> {
    fn apply(&mut self) {
        let names = Names::of(self.ctx, FilterSide::Receiver);
        // What cannot be listed has nothing that could be removed.
        let there = self.target.item.list().unwrap_or_default();
        let mut kept: HashSet<Vec<u8>> = HashSet::new();
        if let Some(list) = self.entry.xattrs() {
            for (number, xattr) in (1..).zip(list.items()) {
                let Some(name) = names.to_local(&xattr.name) else { continue };
                let now = match there.iter().any(|there| **there == *name) {
                    true => self.target.item.value(&name).ok().flatten(),
                    false => None,
                };
                if !now.is_some_and(|now| xattr.value.stands_for(&now)) {
                    self.set(list, number, xattr, &name);
                }
                kept.insert(name);
            }
        }
        for name in there.iter().filter(|name| !kept.contains(&***name) && names.takes(name)) {
            let removed = self.writing(|item| item.remove(name));
            if let Err(error) = removed {
                self.problem("remove", name, &error);
            }
        }
    }

    fn set(&mut self, list: &XattrList, number: u32, xattr: &Xattr, name: &[u8]) {
        let value = match &xattr.value {
            XattrValue::Whole(value) => value.to_vec(),
            XattrValue::Digest { .. } => match self.long_value(list, number, xattr, name) {
                Some(value) => value,
                None => return self.missing(name),
            },
        };
        let set = self.writing(|item| item.set(name, &value));
        if let Err(error) = set {
            self.problem("set", name, &error);
        }
    }

    /// Returns a long value: as it arrived, or from what stood there before.
    fn long_value(&self, list: &XattrList, number: u32, xattr: &Xattr, name: &[u8]) -> Option<Vec<u8>> {
        if let Some(value) = self.ctx.xattr_store.value(list, number) {
            return Some(value.to_vec());
        }
        let value = self.target.basis?.value(name).ok()??;
        xattr.value.stands_for(&value).then_some(value)
    }

    /// Runs a change; where the item is our own and lacks the right to be written, it gets it for
    /// as long as its attributes are being set.
    fn writing(&mut self, change: impl Fn(&HeldItem<'_>) -> io::Result<()>) -> io::Result<()> {
        let item = self.target.item;
        match change(item) {
            Err(error) if crate::sys::is(&error, Errno::ACCESS) && self.restore.is_none() => {
                let Ok(meta) = item.meta() else { return Err(error) };
                let permissions = meta.mode.permissions();
                if meta.kind() == FileKind::Symlink
                    || permissions & 0o200 != 0
                    || item.chmod(permissions | 0o200).is_err()
                {
                    return Err(error);
                }
                self.restore = Some(permissions);
                change(item)
            }
            answer => answer,
        }
    }

    fn missing(&mut self, name: &[u8]) {
        self.is_right = false;
        let path = [name, b", for \"", &(self.target.name)()[..], b"\""].concat();
        let what = What::Sentence { before: "Missing abbreviated xattr value, ", path: &path, after: "" };
        self.ctx.report_problem(Problem { who: self.target.who, class: Class::Transfer, what });
    }

    fn problem(&mut self, call: &'static str, name: &[u8], error: &io::Error) {
        self.is_right = false;
        // Stock opens neither symlinks nor devices for this.
        let is_named = |kind: FileKind| kind == FileKind::Symlink || kind.is_device();
        let letter = if self.target.item.meta().is_ok_and(|meta| is_named(meta.kind())) { "l" } else { "f" };
        let path = format!("{letter}{call}xattr(\"").into_bytes();
        let path = [&path, &(self.target.name)()[..]].concat();
        let after = format!("\",\"{}\") failed", name.as_bstr()).into_bytes();
        let what = What::Around { before: "rsync_xal_set: ", path: &path, after: &after, error };
        self.ctx.report_problem(Problem { who: self.target.who, class: Class::Transfer, what });
    }
}
