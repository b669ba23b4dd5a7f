//! The sender's search: which blocks of the basis does the source hold, and where.
//!
//! After a match whole blocks are skipped; elsewhere the weak sum rolls from byte to byte behind a
//! filter. Work is linear in the size of the source whatever the two files hold: comparing and
//! hashing that leads to nothing is paid from a credit that only grows with progress.
//! Wire: protocol/doc/20-transfer.md#34-weak-checksum, protocol/doc/20-transfer.md#11---inplace

use std::fs::File;
use std::io;

use bytes::Bytes;
use suisei_protocol::limits::{CHAIN_MAX, LITERAL_WRITTEN_MAX};
use suisei_protocol::session::Session;
use suisei_protocol::sum::{BlockSum, Digest, FileSum, Rolling, SumKind};
use suisei_protocol::transfer::{BlockIndex, BlockSignature, SumHead};

use super::table::Table;
use super::window::Window;
use crate::options::Append;
use crate::Failure;

/// Bytes of fruitless work that one byte of progress pays for.
const CREDIT_PER_BYTE: u64 = 16;
/// Credit at the start: small files are searched without looking at the cost.
const CREDIT_AT_START: u64 = 64 << 20;
/// What one step along a chain costs.
const STEP_COST: u64 = 32;
/// Longest literal piece.
const PIECE: u64 = LITERAL_WRITTEN_MAX as u64;

/// Whether the receiver writes into the basis while it reads from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasisUse {
    /// The basis stays as it is: every block can be used everywhere.
    Intact,
    /// The basis is updated in place: blocks that were overwritten cannot be used any more.
    Overwritten,
}

/// What the search found next.
#[derive(Debug)]
pub enum SearchEvent<'a> {
    /// Bytes that no block holds: 1 byte to 32 KiB.
    Literal(Bytes),
    /// A block of the basis.
    Copy {
        /// Which.
        block: BlockIndex,
        /// Its bytes, for compressors that add them to their history.
        data: &'a [u8],
    },
}

/// What a search counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Blocks whose weak sum was found.
    pub hash_hits: u64,
    /// Places where a weak sum was found, but no strong sum agreed.
    pub false_alarms: u64,
    /// Blocks used.
    pub matches: u64,
    /// Bytes sent as they are.
    pub literal: u64,
    /// Bytes taken from the basis.
    pub matched: u64,
}

/// What a search leaves behind.
#[derive(Debug)]
pub struct Searched {
    /// Sum of the whole file, as it follows the tokens; deliberately wrong if there is a flaw.
    pub sum: Bytes,
    /// Counters.
    pub tally: Tally,
    /// Why the source could not be read to its announced end. The rest was sent as zeros.
    pub flaw: Option<io::Error>,
}

/// Where the events of a search go.
type Sink<'s> = &'s mut dyn FnMut(SearchEvent<'_>) -> Result<(), Failure>;

/// One file's search.
#[derive(Debug)]
pub struct Search<'a> {
    signature: &'a BlockSignature,
    block_sum: BlockSum,
    sum_kind: SumKind,
    seed: i32,
    basis: BasisUse,
    append: Append,
}

impl<'a> Search<'a> {
    /// Prepares the search for blocks of `signature`; an empty one sends everything. With
    /// `append` (off in a redo) everything behind the basis is sent, and nothing else.
    pub fn new(session: &Session, signature: &'a BlockSignature, basis: BasisUse, append: Append) -> Self {
        // Old versions know one append mode only, the verifying one.
        let append = match append {
            Append::Plain if !session.version.has_plain_append() => Append::Verify,
            other => other,
        };
        Search {
            signature,
            block_sum: BlockSum::new(session.transfer_sum, session.seed),
            sum_kind: session.transfer_sum,
            seed: session.seed,
            basis,
            append,
        }
    }

    /// Describes the first `len` bytes of `source` to `sink`, in order. Fails only where the sink
    /// does.
    pub fn run(self, source: &File, len: u64, sink: Sink<'_>) -> Result<Searched, Failure> {
        let mut tally = Tally::default();
        let sum = Some(FileSum::new(self.sum_kind, self.seed));
        let head = self.signature.head;
        let window = match self.append {
            Append::Off if head.count != 0 && len >= shortest_block(head) => {
                let mut scan = Scan::new(self, source, len, sum, sink);
                scan.run()?;
                tally = scan.tally;
                scan.window
            }
            Append::Off => {
                let mut window = Window::new(source, 0, len, sum);
                send_rest(&mut window, &mut tally, sink)?;
                window
            }
            Append::Plain | Append::Verify => {
                let from = head.basis_len().min(len);
                let start = if self.append == Append::Verify { 0 } else { from };
                let mut window = Window::new(source, start, len, sum);
                while window.end() < from {
                    window.advance(window.end(), 0);
                }
                send(&mut window, from, &mut tally, sink)?;
                send_rest(&mut window, &mut tally, sink)?;
                window
            }
        };
        let (sum, flaw) = window.finish();
        let sum = sum.map(FileSum::finish).unwrap_or_default();
        Ok(Searched { sum: if flaw.is_some() { wrong(&sum) } else { sum }, tally, flaw })
    }
}

/// The length of the only block that may be shorter than others.
fn shortest_block(head: SumHead) -> u64 {
    u64::from(head.len_of(head.count - 1))
}

/// A sum that no receiver can find right.
///
/// Wire: protocol/doc/20-transfer.md#26-failures-at-the-sender
fn wrong(sum: &[u8]) -> Bytes {
    let mut lie = vec![0; sum.len()];
    if sum.iter().all(|&byte| byte == 0) {
        if let Some(last) = lie.last_mut() {
            *last = 1;
        }
    }
    lie.into()
}

/// Sends everything from what is in view to the end.
fn send_rest(window: &mut Window<'_>, tally: &mut Tally, sink: Sink<'_>) -> Result<(), Failure> {
    while !window.is_last() {
        window.advance(window.end(), 0);
        send(window, window.start(), tally, sink)?;
    }
    Ok(())
}

/// Sends what is in view from `from` on.
fn send(window: &mut Window<'_>, from: u64, tally: &mut Tally, sink: Sink<'_>) -> Result<(), Failure> {
    send_range(window, from, window.end(), tally, sink)
}

fn send_range(
    window: &Window<'_>,
    from: u64,
    to: u64,
    tally: &mut Tally,
    sink: Sink<'_>,
) -> Result<(), Failure> {
    let mut at = from;
    while at < to {
        let end = to.min(at + PIECE);
        sink(SearchEvent::Literal(window.slice(at..end)))?;
        tally.literal += end - at;
        at = end;
    }
    Ok(())
}

/// A search in progress.
struct Scan<'a, 's> {
    search: Search<'a>,
    head: SumHead,
    table: Table,
    window: Window<'a>,
    sink: Sink<'s>,
    tally: Tally,
    /// Offset of the window that is looked at.
    at: u64,
    /// Offset of the first byte that was not sent yet; at most `at`.
    unsent: u64,
    /// The block behind the last match.
    wanted: u32,
    credit: u64,
    /// In place: blocks that were found where they already are, and so stay usable.
    stayed: Vec<bool>,
}

impl<'a, 's> Scan<'a, 's> {
    fn new(search: Search<'a>, source: &'a File, len: u64, sum: Option<FileSum>, sink: Sink<'s>) -> Self {
        let head = search.signature.head;
        // The last block, if short, can only match at the very end and is looked for there.
        let whole_blocks = if head.remainder == 0 { head.count } else { head.count - 1 };
        let stayed = match search.basis {
            BasisUse::Intact => Vec::new(),
            BasisUse::Overwritten => vec![false; head.count as usize],
        };
        Scan {
            head,
            table: Table::new(search.signature, whole_blocks),
            window: Window::new(source, 0, len, sum),
            search,
            sink,
            tally: Tally::default(),
            at: 0,
            unsent: 0,
            wanted: 0,
            credit: CREDIT_AT_START.max(4 * u64::from(head.block_len)),
            stayed,
        }
    }

    fn run(&mut self) -> Result<(), Failure> {
        loop {
            self.send_pieces()?;
            // One byte more than a block, so that the sum can roll at least once.
            self.window.advance(self.unsent, self.head.block_len as usize + 1);
            self.scan_view()?;
            if self.window.is_last() {
                return self.finish();
            }
        }
    }

    /// Looks at all windows that are in view. Stops where fewer bytes than a block are left.
    fn scan_view(&mut self) -> Result<(), Failure> {
        let block_len = self.head.block_len as usize;
        if self.table.is_empty() {
            self.at = self.at.max(self.window.end().saturating_sub(block_len as u64));
            return Ok(());
        }
        let view = self.window.view();
        let base = self.window.start();
        let mut from = (self.at - base) as usize;
        while let Some(block) = view.get(from..from + block_len) {
            let mut rolling = Rolling::of(block);
            if let Some(index) = self.find(rolling.value(), block) {
                self.matched(index, block)?;
                from += block_len;
                continue;
            }
            // Roll to the next window that the filter lets pass; look closer there.
            loop {
                let ahead = roll(&view[from..], block_len, &mut rolling, &self.table);
                self.credit = self.credit.saturating_add(CREDIT_PER_BYTE * ahead.moved as u64);
                from += ahead.moved;
                self.at = base + from as u64;
                if !ahead.passed {
                    return Ok(());
                }
                let block = &view[from..from + block_len];
                if let Some(index) = self.find(rolling.value(), block) {
                    self.matched(index, block)?;
                    from += block_len;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the best block that has these bytes, all of them of full length.
    fn find(&mut self, weak: u32, block: &[u8]) -> Option<u32> {
        let cost_of_sum = block.len() as u64;
        if !self.table.may_hold(weak) || self.credit < cost_of_sum {
            return None;
        }
        let mut strong = None;
        for index in self.favourites().into_iter().flatten() {
            if self.table.weak(index) == Some(weak) && self.agrees(index, block, &mut strong) {
                return Some(index);
            }
        }
        let mut cost = 0;
        let mut chain = self.table.first(weak);
        for _ in 0..CHAIN_MAX {
            let Some(index) = chain else { break };
            cost += STEP_COST;
            if self.table.weak(index) == Some(weak) && self.agrees(index, block, &mut strong) {
                self.credit = self.credit.saturating_sub(cost);
                return Some(index);
            }
            chain = self.table.next(index);
        }
        if strong.is_some() {
            self.tally.false_alarms += 1;
            cost += cost_of_sum;
        }
        self.credit = self.credit.saturating_sub(cost);
        None
    }

    /// The blocks to be tried first: in place the one that is already here, then the one behind
    /// the last match.
    fn favourites(&self) -> [Option<u32>; 2] {
        let here = match self.search.basis {
            BasisUse::Intact => None,
            BasisUse::Overwritten => self.block_here(),
        };
        [here, Some(self.wanted)]
    }

    /// The block whose place in the basis is the current offset.
    fn block_here(&self) -> Option<u32> {
        let block_len = u64::from(self.head.block_len);
        match self.at % block_len {
            0 => u32::try_from(self.at / block_len).ok().filter(|&index| index < self.head.count),
            _ => None,
        }
    }

    /// Whether a block can be used here and has the same strong sum, as far as it was sent.
    fn agrees(&mut self, index: u32, block: &[u8], strong: &mut Option<Digest>) -> bool {
        if !self.is_usable(index) {
            return false;
        }
        self.tally.hash_hits += 1;
        let digest = strong.get_or_insert_with(|| self.search.block_sum.of(block));
        self.search.signature.block(index).is_some_and(|(_, sent)| digest.starts_with(sent))
    }

    /// In place, what lies before the current offset has been overwritten.
    fn is_usable(&self, index: u32) -> bool {
        self.search.basis == BasisUse::Intact
            || self.head.offset_of(index) >= self.at
            || self.stayed.get(index as usize) == Some(&true)
    }

    /// Sends the literal in front of a match, and the match.
    fn matched(&mut self, index: u32, block: &[u8]) -> Result<(), Failure> {
        send_range(&self.window, self.unsent, self.at, &mut self.tally, self.sink)?;
        (self.sink)(SearchEvent::Copy { block: BlockIndex(index), data: block })?;
        if self.head.offset_of(index) == self.at {
            if let Some(stayed) = self.stayed.get_mut(index as usize) {
                *stayed = true;
            }
        }
        self.tally.matches += 1;
        self.tally.matched += block.len() as u64;
        self.at += block.len() as u64;
        self.unsent = self.at;
        self.wanted = index.saturating_add(1);
        self.credit = self.credit.saturating_add(CREDIT_PER_BYTE * block.len() as u64);
        Ok(())
    }

    /// Sends all full pieces in front of the current offset: a literal stays in view only as long
    /// as it may still grow into a longer piece.
    fn send_pieces(&mut self) -> Result<(), Failure> {
        let whole = (self.at - self.unsent) / PIECE * PIECE;
        send_range(&self.window, self.unsent, self.unsent + whole, &mut self.tally, self.sink)?;
        self.unsent += whole;
        Ok(())
    }

    /// Fewer bytes are left than a block has: only the short last block can match, and only at
    /// the end.
    fn finish(&mut self) -> Result<(), Failure> {
        let end = self.window.end();
        let last = self.head.count - 1;
        let short = u64::from(self.head.remainder);
        if short != 0 && self.at + short <= end {
            self.at = end - short;
            let view = self.window.view();
            let block = &view[view.len() - short as usize..];
            let weak = Rolling::of(block).value();
            let expected = self.search.signature.block(last).map(|(weak, _)| weak);
            if expected == Some(weak) {
                if self.agrees(last, block, &mut None) {
                    return self.matched(last, block);
                }
                self.tally.false_alarms += u64::from(self.is_usable(last));
            }
        }
        send_range(&self.window, self.unsent, end, &mut self.tally, self.sink)
    }
}

/// How far a sum was rolled.
struct Ahead {
    moved: usize,
    /// Whether the filter let the last window pass; if not, the view ended.
    passed: bool,
}

/// Rolls from the window at the start of `view` to the next one that the filter lets pass.
fn roll(view: &[u8], block_len: usize, rolling: &mut Rolling, table: &Table) -> Ahead {
    let mut sum = *rolling;
    let incoming = view.get(block_len..).unwrap_or_default();
    for (moved, (&out, &next)) in view.iter().zip(incoming).enumerate() {
        sum.roll(out, next, block_len as u32);
        if table.may_hold(sum.value()) {
            *rolling = sum;
            return Ahead { moved: moved + 1, passed: true };
        }
    }
    *rolling = sum;
    Ahead { moved: incoming.len(), passed: false }
}

#[cfg(test)]
mod tests;
