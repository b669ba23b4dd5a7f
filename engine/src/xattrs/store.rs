//! Long values on a receiving side: which were asked for, and those that arrived.
//!
//! A value of a list that entries share is asked for once in a run, so it is kept for those that
//! come later.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use suisei_protocol::flist::XattrList;

/// Most bytes of values that are kept. The oldest go first: they are of lists that later entries
/// rarely name.
const KEPT_MAX: usize = 1 << 30;

/// A list's id and the number of a value in it.
type Key = (u32, u32);

/// Shared by generator and receiver.
#[derive(Debug, Default)]
pub struct Store(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    asked: HashSet<Key>,
    values: HashMap<Key, Bytes>,
    order: VecDeque<Key>,
    bytes: usize,
}

impl Store {
    /// Notes that a value is asked for; false if it was before.
    pub(super) fn ask(&self, list: &XattrList, number: u32) -> bool {
        self.lock().asked.insert((list.id(), number))
    }

    /// Keeps values that arrived.
    pub fn keep(&self, list: &XattrList, values: &[(u32, Bytes)]) {
        if values.is_empty() {
            return;
        }
        let mut kept = self.lock();
        for (number, value) in values {
            let key = (list.id(), *number);
            // Only what was asked for counts, and only once.
            if kept.asked.contains(&key) && kept.values.insert(key, value.clone()).is_none() {
                kept.bytes += value.len();
                kept.order.push_back(key);
            }
        }
        while kept.bytes > KEPT_MAX {
            let Some(oldest) = kept.order.pop_front() else { break };
            let freed = kept.values.remove(&oldest).map_or(0, |value| value.len());
            kept.bytes -= freed;
        }
    }

    /// Returns a value that arrived.
    pub(super) fn value(&self, list: &XattrList, number: u32) -> Option<Bytes> {
        self.lock().values.get(&(list.id(), number)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // The maps are whole after every step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
