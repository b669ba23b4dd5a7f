use std::io::Write;

use suisei_protocol::session::Version;

use super::*;
use crate::delta::{Signer, Strength};

fn file(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

fn signature(basis: &[u8], block_size: Option<u32>) -> BlockSignature {
    let signer = Signer::of(Version::NEWEST, KIND, 1, block_size);
    let head = signer.head(basis.len() as u64, Strength::Short).unwrap();
    signer.sign(&file(basis), head).unwrap()
}

const KIND: SumKind = SumKind::Xxh128;

fn search(signature: &BlockSignature, basis: BasisUse, append: Append) -> Search<'_> {
    Search { signature, block_sum: BlockSum::new(KIND, 1), sum_kind: KIND, seed: 1, basis, append }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Literal(Vec<u8>),
    Copy(u32),
}

/// Runs a search; literal pieces that belong together are joined.
fn found(search: Search<'_>, source: &[u8], len: u64) -> (Vec<Found>, Searched) {
    let mut all: Vec<Found> = Vec::new();
    let searched = search
        .run(&file(source), len, &mut |event| {
            match event {
                SearchEvent::Literal(data) => {
                    assert!(!data.is_empty() && data.len() <= LITERAL_WRITTEN_MAX);
                    match all.last_mut() {
                        Some(Found::Literal(joined)) => joined.extend_from_slice(&data),
                        _ => all.push(Found::Literal(data.to_vec())),
                    }
                }
                SearchEvent::Copy { block, data } => {
                    assert!(!data.is_empty());
                    all.push(Found::Copy(block.0));
                }
            }
            Ok(())
        })
        .unwrap();
    (all, searched)
}

fn rebuilt(found: &[Found], basis: &[u8], head: SumHead) -> Vec<u8> {
    let mut built = Vec::new();
    for part in found {
        match part {
            Found::Literal(data) => built.extend_from_slice(data),
            Found::Copy(index) => {
                let at = head.offset_of(*index) as usize;
                built.extend_from_slice(&basis[at..at + head.len_of(*index) as usize]);
            }
        }
    }
    built
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

fn sum(content: &[u8]) -> Bytes {
    let mut sum = FileSum::new(KIND, 1);
    sum.update(content);
    sum.finish()
}

#[test]
fn the_captured_example_of_stock_is_found() {
    // Basis of 200 blocks; source: 0..69, "XXXXX", 100, "Y", 5, 40000 x "Z", 101..199.
    let basis = noise(1, 140_000);
    let block = |range: std::ops::Range<usize>| &basis[range.start * 700..range.end * 700];
    let zeds = vec![b'Z'; 40_000];
    let source =
        [block(0..70), b"XXXXX", block(100..101), b"Y", block(5..6), &zeds, block(101..200)].concat();
    let signature = signature(&basis, None);
    let (found, searched) =
        found(search(&signature, BasisUse::Intact, Append::Off), &source, source.len() as u64);
    let mut expected: Vec<Found> = (0..70).map(Found::Copy).collect();
    expected.extend([Found::Literal(b"XXXXX".to_vec()), Found::Copy(100), Found::Literal(b"Y".to_vec())]);
    expected.extend([Found::Copy(5), Found::Literal(zeds)]);
    expected.extend((101..200).map(Found::Copy));
    assert_eq!(found, expected);
    assert_eq!(searched.sum, sum(&source));
    assert_eq!((searched.tally.literal, searched.tally.matched), (40_006, 171 * 700));
    assert_eq!(searched.tally.matches, 171);
    assert!(searched.flaw.is_none());
}

#[test]
fn the_short_last_block_matches_only_at_the_end() {
    let basis = noise(2, 1500);
    let signature = signature(&basis, None);
    let tail = &basis[1400..];
    let run = |source: &[u8]| {
        found(search(&signature, BasisUse::Intact, Append::Off), source, source.len() as u64).0
    };
    assert_eq!(run(&basis), [Found::Copy(0), Found::Copy(1), Found::Copy(2)]);
    assert_eq!(run(tail), [Found::Copy(2)]);
    let behind = [tail, b"x"].concat();
    assert_eq!(run(&behind), [Found::Literal(behind)]);
    let two = [tail, &basis[..700], tail].concat();
    assert_eq!(run(&two), [Found::Literal(tail.to_vec()), Found::Copy(0), Found::Copy(2)]);
    assert_eq!(run(&[&b"abc"[..], tail].concat()), [Found::Literal(b"abc".to_vec()), Found::Copy(2)]);
}

#[test]
fn a_basis_shorter_than_a_block_is_found_at_the_end() {
    let basis = noise(3, 300);
    let signature = signature(&basis, None);
    let source = [noise(4, 600_000), basis.clone()].concat();
    let (found, searched) =
        found(search(&signature, BasisUse::Intact, Append::Off), &source, source.len() as u64);
    assert_eq!(found.last(), Some(&Found::Copy(0)));
    assert_eq!((searched.tally.literal, searched.tally.matched), (600_000, 300));
    assert!(rebuilt(&found, &basis, signature.head) == source);
}

#[test]
fn whole_files_are_sent_in_full_pieces() {
    let source = noise(5, 700_001);
    let whole = BlockSignature::whole_file();
    let mut lens = Vec::new();
    let searched = search(&whole, BasisUse::Intact, Append::Off)
        .run(&file(&source), source.len() as u64, &mut |event| {
            if let SearchEvent::Literal(data) = event {
                lens.push(data.len());
            }
            Ok(())
        })
        .unwrap();
    assert!(lens[..lens.len() - 1].iter().all(|&len| len == LITERAL_WRITTEN_MAX));
    assert_eq!(searched.tally.literal, 700_001);
    assert_eq!(searched.sum, sum(&source));
    let empty = found(search(&whole, BasisUse::Intact, Append::Off), &[], 0);
    assert_eq!((empty.0.len(), empty.1.sum), (0, sum(&[])));
}

#[test]
fn append_modes_send_what_is_behind_the_basis() {
    let source = noise(6, 500_000);
    let signer = Signer::of(Version::NEWEST, KIND, 1, None);
    let head = signer.head(1500, Strength::Short).unwrap();
    let signature = BlockSignature { head, sums: Bytes::new() };
    for (append, expected) in [(Append::Plain, sum(&source[1500..])), (Append::Verify, sum(&source))] {
        let (found, searched) = found(search(&signature, BasisUse::Overwritten, append), &source, 500_000);
        assert!(found == [Found::Literal(source[1500..].to_vec())]);
        assert_eq!(searched.sum, expected, "{append:?}");
    }
    let (nothing, searched) =
        found(search(&signature, BasisUse::Overwritten, Append::Verify), &source[..900], 900);
    assert!(nothing.is_empty());
    assert_eq!(searched.sum, sum(&source[..900]));
}

#[test]
fn a_source_cut_short_is_completed_and_its_sum_is_wrong() {
    let basis = noise(7, 7000);
    let signature = signature(&basis, None);
    for signature in [&signature, &BlockSignature::whole_file()] {
        let (found, searched) = found(search(signature, BasisUse::Intact, Append::Off), &basis[..2000], 7000);
        let built = rebuilt(&found, &basis, signature.head);
        assert_eq!(built.len(), 7000);
        assert!(built[..2000] == basis[..2000] && built[2000..].iter().all(|&byte| byte == 0));
        assert_eq!(searched.sum, Bytes::from(vec![0; 16]));
        assert!(searched.flaw.is_some());
    }
    assert_eq!(wrong(&[0, 0, 0]), Bytes::from(vec![0, 0, 1]));
}

#[test]
fn in_place_never_uses_what_was_overwritten() {
    let basis = noise(8, 7000);
    let block = |index: usize| &basis[index * 700..(index + 1) * 700];
    let signature = signature(&basis, None);
    let run = |basis_use, source: &[u8]| {
        found(search(&signature, basis_use, Append::Off), source, source.len() as u64).0
    };

    // Blocks may move to the front, but not to the back.
    let to_front = [block(3), block(4)].concat();
    assert_eq!(run(BasisUse::Overwritten, &to_front), [Found::Copy(3), Found::Copy(4)]);
    let to_back = [b"x", block(0), block(1)].concat();
    assert_eq!(run(BasisUse::Intact, &to_back)[1..], [Found::Copy(0), Found::Copy(1)]);
    assert_eq!(run(BasisUse::Overwritten, &to_back), [Found::Literal(to_back)]);

    // A block that stayed where it was may be used again later.
    let again = [block(0), block(1), block(0)].concat();
    assert_eq!(run(BasisUse::Overwritten, &again), [Found::Copy(0), Found::Copy(1), Found::Copy(0)]);
    // One that was overwritten may not.
    let gone = [block(1), block(1), block(0)].concat();
    let expected = [Found::Copy(1), Found::Copy(1), Found::Literal(block(0).to_vec())];
    assert_eq!(run(BasisUse::Overwritten, &gone), expected);
}

#[test]
fn in_place_prefers_the_block_that_is_already_there() {
    let basis = vec![9; 7000];
    let signature = signature(&basis, None);
    let (found, _) = found(search(&signature, BasisUse::Overwritten, Append::Off), &basis, 7000);
    assert_eq!(found, (0..10).map(Found::Copy).collect::<Vec<_>>());
}

#[test]
fn equal_blocks_follow_each_other() {
    let basis = [vec![0; 70_000], noise(9, 70_000)].concat();
    let signature = signature(&basis, None);
    let source = basis.clone();
    let (found, searched) = found(search(&signature, BasisUse::Intact, Append::Off), &source, 140_000);
    assert_eq!(found, (0..200).map(Found::Copy).collect::<Vec<_>>());
    assert_eq!(searched.tally.hash_hits, 200);
}

#[test]
fn work_on_false_alarms_is_bounded() {
    // Every window of the source has the weak sum of every block, and no strong sum agrees.
    let block_len = 8192;
    let count = 4000;
    let mut sums = Vec::new();
    for _ in 0..count {
        sums.extend_from_slice(&[0, 0, 0, 0, 0xEE, 0xEE]);
    }
    let head = SumHead { count, block_len, sum_len: 2, remainder: 0 };
    let signature = BlockSignature { head, sums: sums.into() };
    let source = vec![0; 4 << 20];
    let (found, searched) =
        found(search(&signature, BasisUse::Intact, Append::Off), &source, source.len() as u64);
    assert_eq!(found.len(), 1);
    let hashed = searched.tally.false_alarms * u64::from(block_len);
    assert!(hashed <= CREDIT_AT_START + CREDIT_PER_BYTE * source.len() as u64, "{hashed} bytes hashed");
    assert!(searched.tally.hash_hits <= searched.tally.false_alarms * (CHAIN_MAX as u64 + 1));
}

mod property {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Edit {
        Insert(usize, Vec<u8>),
        Remove(usize, usize),
        Overwrite(usize, Vec<u8>),
        Move(usize, usize, usize),
    }

    fn edited(basis: &[u8], edits: &[Edit]) -> Vec<u8> {
        let mut content = basis.to_vec();
        for edit in edits {
            let len = content.len();
            match edit {
                Edit::Insert(at, data) => {
                    drop(content.splice(at % (len + 1)..at % (len + 1), data.iter().copied()))
                }
                Edit::Remove(at, n) => drop(content.drain(at % (len + 1)..len.min(at % (len + 1) + n))),
                Edit::Overwrite(at, data) => {
                    content.iter_mut().skip(at % (len + 1)).zip(data).for_each(|(byte, new)| *byte = *new);
                }
                Edit::Move(from, n, to) => {
                    let from = from % (len + 1);
                    let piece: Vec<u8> = content.drain(from..len.min(from + n)).collect();
                    let to = to % (content.len() + 1);
                    content.splice(to..to, piece);
                }
            }
        }
        content
    }

    fn edits() -> impl Strategy<Value = Vec<Edit>> {
        let data = || (any::<u64>(), 1usize..5000).prop_map(|(seed, len)| noise(seed, len));
        let at = || 0usize..400_000;
        proptest::collection::vec(
            prop_oneof![
                (at(), data()).prop_map(|(at, data)| Edit::Insert(at, data)),
                (at(), 1usize..20_000).prop_map(|(at, n)| Edit::Remove(at, n)),
                (at(), data()).prop_map(|(at, data)| Edit::Overwrite(at, data)),
                (at(), 1usize..50_000, at()).prop_map(|(from, n, to)| Edit::Move(from, n, to)),
            ],
            0..6,
        )
    }

    fn basis() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            (any::<u64>(), 0usize..400_000).prop_map(|(seed, len)| noise(seed, len)),
            // Periodic content: many equal blocks.
            (any::<u64>(), 1usize..1500, 0usize..100_000).prop_map(|(seed, period, len)| noise(seed, period)
                .iter()
                .copied()
                .cycle()
                .take(len)
                .collect()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_found_makes_the_source(
            basis in basis(),
            edits in edits(),
            block_size in proptest::option::of(100u32..9000),
        ) {
            let source = edited(&basis, &edits);
            let signature = signature(&basis, block_size);
            let whole = search(&signature, BasisUse::Intact, Append::Off);
            let (parts, searched) = found(whole, &source, source.len() as u64);
            prop_assert!(rebuilt(&parts, &basis, signature.head) == source);
            prop_assert_eq!(searched.sum, sum(&source));
            let total = searched.tally.literal + searched.tally.matched;
            prop_assert_eq!(total, source.len() as u64);

            let in_place = search(&signature, BasisUse::Overwritten, Append::Off);
            let (parts, _) = found(in_place, &source, source.len() as u64);
            prop_assert!(written_in_place(&parts, &basis, signature.head) == source);
        }
    }

    /// What a receiver has that overwrites the basis as it goes.
    fn written_in_place(parts: &[Found], basis: &[u8], head: SumHead) -> Vec<u8> {
        let mut file = basis.to_vec();
        let mut at = 0;
        for part in parts {
            let data = match part {
                Found::Literal(data) => data.clone(),
                Found::Copy(index) => {
                    let from = head.offset_of(*index) as usize;
                    file[from..from + head.len_of(*index) as usize].to_vec()
                }
            };
            if file.len() < at + data.len() {
                file.resize(at + data.len(), 0);
            }
            file[at..at + data.len()].copy_from_slice(&data);
            at += data.len();
        }
        file.truncate(at);
        file
    }
}
