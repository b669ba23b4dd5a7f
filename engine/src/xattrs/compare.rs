//! What a generator asks: do the attributes of an item differ, and which long values are missing?

use std::collections::HashMap;

use suisei_protocol::flist::{EntryRef, XattrList, XattrValue};
use suisei_protocol::transfer::XattrExchange;

use super::names::Names;
use crate::filter::FilterSide;
use crate::options::Xattrs;
use crate::tree::HeldItem;
use crate::Context;

/// Whether an entry's attributes differ from those of `existing` (nothing: a new item, which has
/// none), as far as this end keeps and may set them. What cannot be read differs.
pub fn xattrs_differ(ctx: &Context, entry: EntryRef<'_>, existing: Option<&HeldItem<'_>>) -> bool {
    if ctx.options.preserve.xattrs == Xattrs::Off {
        return false;
    }
    let names = Names::of(ctx, FilterSide::Receiver);
    let mut wanted: HashMap<Vec<u8>, &XattrValue> = HashMap::new();
    for xattr in entry.xattrs().into_iter().flat_map(|list| list.items()) {
        wanted.extend(names.to_local(&xattr.name).map(|name| (name, &xattr.value)));
    }
    let Some(existing) = existing else { return !wanted.is_empty() };
    let Ok(there) = existing.list() else { return true };
    let mut same = 0;
    for name in there.iter().filter(|name| names.takes(name)) {
        match wanted.get(&**name) {
            Some(value) if has_value(existing, name, value) => same += 1,
            _ => return true,
        }
    }
    same < wanted.len()
}

/// Returns what an item asks of the sender: the long values that this item lacks and that nobody
/// asked for yet.
pub fn request(ctx: &Context, entry: EntryRef<'_>, existing: Option<&HeldItem<'_>>) -> XattrExchange {
    let Some(list) = entry.xattrs() else { return XattrExchange::Wanted(Vec::new()) };
    let names = Names::of(ctx, FilterSide::Receiver);
    let lacks = |list: &XattrList, number| {
        let Some(xattr) = list.by_number(number) else { return false };
        let Some(local) = names.to_local(&xattr.name) else { return false };
        !existing.is_some_and(|existing| has_value(existing, &local, &xattr.value))
    };
    let numbers = list.long_values().map(|(number, _)| number);
    XattrExchange::Wanted(numbers.filter(|&n| lacks(list, n) && ctx.xattr_store.ask(list, n)).collect())
}

fn has_value(item: &HeldItem<'_>, name: &[u8], wanted: &XattrValue) -> bool {
    item.value(name).ok().flatten().is_some_and(|value| wanted.stands_for(&value))
}
