//! A sender's part: the list of an entry, and the values that are asked for.

use std::collections::HashSet;
use std::io;

use bytes::Bytes;
use suisei_protocol::error::PeerMisbehaved;
use suisei_protocol::flist::{Xattr, XattrList, XattrValue};
use suisei_protocol::transfer::XattrExchange;

use super::names::Names;
use crate::filter::FilterSide;
use crate::tree::HeldItem;
use crate::Context;

/// Why the attributes of a source cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The attribute; nothing: they could not be listed.
    pub(crate) name: Option<Box<[u8]>>,
    pub(crate) error: io::Error,
}

/// Reads the attributes of a source as they travel.
pub(crate) fn read(ctx: &Context, item: &HeldItem<'_>) -> Result<Vec<Xattr>, Unreadable> {
    let names = Names::of(ctx, FilterSide::Sender);
    let mut items = Vec::new();
    for local in item.list().map_err(|error| Unreadable { name: None, error })? {
        let Some(wire) = names.to_wire(&local) else { continue };
        match item.value(&local) {
            Ok(Some(value)) => {
                items.push(Xattr { name: wire.into(), value: XattrValue::of(&value) });
            }
            // Gone meanwhile.
            Ok(None) => {}
            Err(error) => return Err(Unreadable { name: Some(local), error }),
        }
    }
    Ok(items)
}

/// Values that were sent: each goes out once in a run.
#[derive(Debug, Default)]
pub(crate) struct Answered(HashSet<(u32, u32)>);

/// Reads the values that an item asks for from its source (nothing: it cannot be reached). A value
/// that cannot be read any more is empty. Fails on numbers that nobody may ask for.
pub(crate) fn answer(
    ctx: &Context,
    answered: &mut Answered,
    list: Option<&XattrList>,
    wanted: &[u32],
    source: Option<&HeldItem<'_>>,
) -> Result<XattrExchange, PeerMisbehaved> {
    let mut numbers = wanted.to_vec();
    numbers.sort_unstable();
    let names = Names::of(ctx, FilterSide::Sender);
    let locals = match (numbers.is_empty(), source) {
        (false, Some(source)) => source.list().unwrap_or_default(),
        _ => Vec::new(),
    };
    let mut values = Vec::with_capacity(numbers.len());
    for number in numbers {
        let unasked = PeerMisbehaved::OutOfRange { field: "xattr number", value: number.into() };
        let Some(list) = list else { return Err(unasked) };
        let xattr = list.by_number(number).filter(|xattr| xattr.value.is_long());
        let Some(xattr) = xattr.filter(|_| answered.0.insert((list.id(), number))) else {
            return Err(unasked);
        };
        let local = locals.iter().find(|local| names.to_wire(local).as_deref() == Some(&xattr.name));
        let value = local.and_then(|local| source?.value(local).ok().flatten());
        values.push((number, Bytes::from(value.unwrap_or_default())));
    }
    Ok(XattrExchange::Values(values))
}
