use std::io::Write;
use std::os::unix::fs::MetadataExt;

use suisei_protocol::sum::SumKind;

use super::*;

const KIND: SumKind = SumKind::Xxh128;

fn file(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

fn content(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn patch<'a>(
    output: &'a File,
    kind: Output,
    holes: Holes,
    basis: Option<&'a File>,
    head: SumHead,
) -> Patch<'a> {
    Patch {
        version: Version::NEWEST,
        head,
        basis: basis.map(|file| Basis::new(file, head.basis_len())),
        writer: Writer::new(output, kind, holes),
        sum: FileSum::new(KIND, 1),
        literal: 0,
        matched: 0,
        tokens: 0,
        flaw: None,
    }
}

fn sum(content: &[u8]) -> Bytes {
    let mut sum = FileSum::new(KIND, 1);
    sum.update(content);
    sum.finish()
}

fn cut(len: usize, block_len: u32) -> SumHead {
    let count = (len as u32).div_ceil(block_len);
    SumHead { count, block_len, sum_len: 2, remainder: len as u32 % block_len }
}

fn numbered(len: usize) -> Vec<u8> {
    (0..len as u32).map(|n| (n / 3 + n / 700) as u8 | 1).collect()
}

#[test]
fn literals_and_blocks_become_the_file() {
    let basis_bytes = numbered(1_000_000);
    let head = cut(basis_bytes.len(), 700);
    let (basis, output) = (file(&basis_bytes), file(b""));
    let mut patch = patch(&output, Output::Fresh, Holes::Fill, Some(&basis), head);
    let mut expected = Vec::new();
    for index in (0..1000).chain([5, 1428, 3, 4]) {
        let from = head.offset_of(index) as usize;
        let block = &basis_bytes[from..from + head.len_of(index) as usize];
        assert!(patch.copy(BlockIndex(index)).unwrap() == block);
        expected.extend_from_slice(block);
    }
    for len in [1, 70_000, 300_000, 9] {
        patch.literal(&numbered(len)).unwrap();
        expected.extend(numbered(len));
    }
    assert_eq!(patch.len(), expected.len() as u64);
    let patched = patch.finish().unwrap();
    assert!(content(&output) == expected);
    assert_eq!(patched.sum, sum(&expected));
    assert_eq!((patched.literal, patched.literal + patched.matched), (370_010, expected.len() as u64));
    assert!(patched.flaw.is_none());
}

#[test]
fn blocks_without_a_basis_are_an_error() {
    let output = file(b"");
    let mut patch = patch(&output, Output::Fresh, Holes::Fill, None, cut(700, 700));
    assert!(matches!(patch.copy(BlockIndex(0)), Err(PatchError::NoBasis)));
}

#[test]
fn a_basis_that_shrank_shows_as_a_wrong_sum() {
    let (basis, output) = (file(&numbered(1000)), file(b""));
    let mut patch = patch(&output, Output::Fresh, Holes::Fill, Some(&basis), cut(2100, 700));
    for index in 0..3 {
        patch.copy(BlockIndex(index)).unwrap();
    }
    let patched = patch.finish().unwrap();
    assert_eq!(patched.len, 2100);
    assert!(patched.flaw.is_some());
    assert_ne!(patched.sum, sum(&numbered(2100)));
}

#[test]
fn in_place_moves_keeps_and_cuts() {
    let before = numbered(7000);
    let target = file(&before);
    let head = cut(7000, 700);
    let mut patch = patch(&target, Output::InPlace, Holes::Fill, Some(&target), head);
    let mut expected = Vec::new();
    for index in [0, 1, 4, 5] {
        expected.extend_from_slice(patch.copy(BlockIndex(index)).unwrap());
    }
    patch.literal(b"end").unwrap();
    expected.extend_from_slice(b"end");
    let patched = patch.finish().unwrap();
    assert!(content(&target) == expected);
    assert_eq!(expected[..1400], before[..1400]);
    assert_eq!(expected[1400..2800], before[2800..4200]);
    assert_eq!(patched.sum, sum(&expected));
}

#[test]
fn a_block_in_its_place_is_copied_if_the_basis_is_another_file() {
    let (basis, target) = (file(&numbered(1400)), file(&[9; 5000]));
    let mut patch = patch(&target, Output::InPlace, Holes::Fill, Some(&basis), cut(1400, 700));
    patch.copy(BlockIndex(0)).unwrap();
    patch.copy(BlockIndex(1)).unwrap();
    patch.finish().unwrap();
    assert!(content(&target) == numbered(1400));
}

#[test]
fn append_modes_start_behind_what_is_there() {
    let old = numbered(900_000);
    let head = cut(old.len(), 700);
    for (append, covered) in [(Append::Plain, false), (Append::Verify, true)] {
        let target = file(&old);
        let mut patch = patch(&target, Output::InPlace, Holes::Fill, None, head);
        patch.append(append);
        patch.literal(b"more").unwrap();
        let patched = patch.finish().unwrap();
        let all = [&old[..], b"more"].concat();
        assert!(content(&target) == all);
        assert_eq!(patched.sum, if covered { sum(&all) } else { sum(b"more") });
        assert_eq!(patched.len, all.len() as u64);
    }
}

#[test]
fn zeros_become_holes() {
    let zeros = vec![0; 2 << 20];
    for kind in [Output::Fresh, Output::InPlace] {
        let output = if kind == Output::Fresh { file(b"") } else { file(&numbered(6 << 20)) };
        let mut patch = patch(&output, kind, Holes::Make, None, SumHead::default());
        let mut expected = Vec::new();
        for piece in [&b"begin"[..], &zeros, &numbered(100_000), &zeros] {
            for piece in piece.chunks(32 * 1024) {
                patch.literal(piece).unwrap();
            }
            expected.extend_from_slice(piece);
        }
        let patched = patch.finish().unwrap();
        assert!(content(&output) == expected, "{kind:?}");
        assert_eq!(patched.sum, sum(&expected));
        let allocated = output.metadata().unwrap().blocks() * 512;
        assert!(allocated < 1 << 20, "{kind:?}: {allocated} bytes allocated");
    }
}

#[test]
fn preallocated_room_is_given_back() {
    let output = file(b"");
    crate::sys::copy::preallocate(&output, 1 << 20).ok();
    let mut patch = patch(&output, Output::Preallocated, Holes::Fill, None, SumHead::default());
    patch.literal(b"short").unwrap();
    patch.finish().unwrap();
    assert_eq!(content(&output), b"short");
    assert!(output.metadata().unwrap().blocks() * 512 < 1 << 20);
}
