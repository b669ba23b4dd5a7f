//! The table of integers, both ways.

use suisei_protocol::session::Version;
use suisei_protocol::wire::{put_longint, put_varint, put_varlong, NdxCoder, Reader};
use suisei_protocol::Stop;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn integers_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/tables/integers.tsv");
    let table = std::fs::read_to_string(path).unwrap();
    let (mut reads, mut writes) = (NdxCoder::new(Version::NEWEST), NdxCoder::new(Version::NEWEST));
    for row in table.lines().filter(|row| !row.starts_with('#')) {
        let [coding, value, hex] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let (value, expected) = (value.parse::<i64>().unwrap(), bytes(hex));
        let mut decode = |bytes: &[u8]| {
            let mut reader = Reader::new(bytes);
            match coding {
                "varint" => reader.varint().map(i64::from),
                "varlong3" => reader.varlong(3),
                "varlong4" => reader.varlong(4),
                "longint" => reader.longint(),
                "ndx" => reads.decode(&mut reader).map(i64::from),
                _ => panic!("{row}"),
            }
        };
        for cut in 0..expected.len() {
            assert_eq!(decode(&expected[..cut]), Err(Stop::Short), "{row}");
        }
        assert_eq!(decode(&expected), Ok(value), "{row}");
        let mut out = Vec::new();
        match coding {
            "varint" => put_varint(value as i32, &mut out),
            "varlong3" => put_varlong(value, 3, &mut out),
            "varlong4" => put_varlong(value, 4, &mut out),
            "longint" => put_longint(value, &mut out),
            _ => writes.encode(value as i32, &mut out),
        }
        assert_eq!(out, expected, "{row}");
    }
}
