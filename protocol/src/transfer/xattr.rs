//! Long values of extended attributes, which travel with items: asked for by number, sent by
//! number.
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#value-exchange-in-the-transfer-phase

use bytes::{Bytes, BytesMut};

use crate::codec::Input;
use crate::error::{Decode, Misuse, PeerMisbehaved, Stop};
use crate::flist::XattrList;
use crate::limits::{XATTRS_MAX, XATTR_LIST_MAX, XATTR_VALUE_MAX};
use crate::wire::put_varint;

/// What an item carries of long values. Whether it may carry anything is the session's to say
/// ([`crate::session::Session::exchanges_xattrs`]).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum XattrExchange {
    /// Nothing.
    #[default]
    Nothing,
    /// To the sender: the numbers, in the entry's list, of the values that are wanted.
    Wanted(Vec<u32>),
    /// To the receiver: numbers with their values. A value that could not be read is empty.
    Values(Vec<(u32, Bytes)>),
}

impl XattrExchange {
    /// Returns the numbers that are wanted.
    pub fn wanted(&self) -> &[u32] {
        match self {
            XattrExchange::Wanted(numbers) => numbers,
            _ => &[],
        }
    }

    /// Returns the values that were sent.
    pub fn values(&self) -> &[(u32, Bytes)] {
        match self {
            XattrExchange::Values(values) => values,
            _ => &[],
        }
    }

    /// Appends the field. Fails on a value that is too long to be sent.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), Misuse> {
        let mut previous = 0;
        let mut put_number = |number: u32, out: &mut Vec<u8>| {
            put_varint((number as i32).wrapping_sub(previous), out);
            previous = number as i32;
        };
        match self {
            XattrExchange::Nothing => {}
            XattrExchange::Wanted(numbers) => numbers.iter().for_each(|&number| put_number(number, out)),
            XattrExchange::Values(values) => {
                for (number, value) in values {
                    let len = i32::try_from(value.len()).map_err(|_| Misuse::LongName)?;
                    put_number(*number, out);
                    put_varint(len, out);
                    out.extend_from_slice(value);
                }
            }
        }
        out.push(0);
        Ok(())
    }
}

/// Numbers that are arriving.
#[derive(Debug, Default)]
pub(crate) struct WantedDecoder {
    previous: i32,
    numbers: Vec<u32>,
}

impl WantedDecoder {
    /// Goes on taking numbers until their end, then returns them. What they mean is checked by who
    /// knows the entry.
    pub(crate) fn decode(&mut self, input: &mut Input) -> Decode<XattrExchange> {
        loop {
            let step = input.decode(|r| r.varint())?;
            if step == 0 {
                return Ok(XattrExchange::Wanted(std::mem::take(&mut self.numbers)));
            }
            self.previous = advance(self.previous, step)?;
            if self.numbers.len() >= XATTRS_MAX {
                return Err(PeerMisbehaved::Rule("too many values of attributes are wanted").into());
            }
            self.numbers.push(self.previous as u32);
        }
    }
}

/// Values that are arriving.
#[derive(Debug, Default)]
pub(crate) struct ValuesDecoder {
    previous: i32,
    /// The number and the missing bytes of the value that is arriving.
    arriving: Option<(u32, usize)>,
    bytes: BytesMut,
    total: usize,
    values: Vec<(u32, Bytes)>,
}

impl ValuesDecoder {
    /// Goes on taking values until their end, then returns them. Each must be a long one of the
    /// entry's list, and comes at most once.
    pub(crate) fn decode(&mut self, list: Option<&XattrList>, input: &mut Input) -> Decode<XattrExchange> {
        loop {
            if let Some((number, missing)) = self.arriving {
                self.gather(number, missing, input)?;
            }
            let started = input.decode(|r| match r.varint()? {
                0 => Ok(None),
                step => Ok(Some((step, r.varint()?))),
            })?;
            let Some((step, len)) = started else {
                return Ok(XattrExchange::Values(std::mem::take(&mut self.values)));
            };
            let number = advance(self.previous, step)?;
            let is_long = list
                .and_then(|list| list.by_number(number as u32))
                .is_some_and(|xattr| xattr.value.is_long());
            if number <= self.previous || !is_long {
                return Err(PeerMisbehaved::OutOfRange { field: "xattr number", value: number.into() }.into());
            }
            let length = usize::try_from(len).ok().filter(|&len| len <= XATTR_VALUE_MAX);
            let length = length
                .ok_or(PeerMisbehaved::OutOfRange { field: "xattr value length", value: len.into() })?;
            self.total += length;
            if self.total > XATTR_LIST_MAX {
                return Err(PeerMisbehaved::Rule("the values of attributes are too long").into());
            }
            self.previous = number;
            self.arriving = Some((number as u32, length));
        }
    }

    /// What is allocated grows with what has arrived, not with what was announced.
    fn gather(&mut self, number: u32, mut missing: usize, input: &mut Input) -> Decode<()> {
        while missing > 0 {
            let piece = input.take_piece(missing);
            if piece.is_empty() {
                return Err(Stop::Short);
            }
            missing -= piece.len();
            self.arriving = Some((number, missing));
            self.bytes.extend_from_slice(&piece);
        }
        self.arriving = None;
        self.values.push((number, std::mem::take(&mut self.bytes).freeze()));
        Ok(())
    }
}

fn advance(previous: i32, step: i32) -> Result<i32, PeerMisbehaved> {
    let number = i64::from(previous) + i64::from(step);
    i32::try_from(number)
        .ok()
        .filter(|&number| number > 0)
        .ok_or(PeerMisbehaved::OutOfRange { field: "xattr number", value: number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flist::{Xattr, XattrTable, XattrValue};

    fn input(bytes: &[u8]) -> Input {
        let mut input = Input::new();
        input.push(Bytes::copy_from_slice(bytes));
        input
    }

    #[test]
    fn numbers_may_go_back_but_not_below_one() {
        let wanted = XattrExchange::Wanted(vec![5, 2, 9]);
        let mut bytes = Vec::new();
        wanted.encode(&mut bytes).unwrap();
        assert_eq!(WantedDecoder::default().decode(&mut input(&bytes)), Ok(wanted));
        let mut low = Vec::new();
        put_varint(-1, &mut low);
        assert!(matches!(WantedDecoder::default().decode(&mut input(&low)), Err(Stop::Bad(_))));
    }

    #[test]
    fn values_arrive_in_pieces_and_only_those_of_the_list() {
        let value = |len| XattrValue::of(&vec![7; len]);
        let items = [("user.a", 40), ("user.b", 3), ("user.c", 50)]
            .map(|(name, len)| Xattr { name: name.as_bytes().into(), value: value(len) });
        let list = XattrTable::default().list(items.to_vec()).unwrap();
        let sent = XattrExchange::Values(vec![(1, vec![1; 40].into()), (3, Bytes::new())]);
        let mut bytes = Vec::new();
        sent.encode(&mut bytes).unwrap();
        let (mut decoder, mut arrived) = (ValuesDecoder::default(), Input::new());
        for (at, byte) in bytes.iter().enumerate() {
            arrived.push(Bytes::copy_from_slice(&[*byte]));
            match decoder.decode(Some(&list), &mut arrived) {
                Err(Stop::Short) => assert!(at + 1 < bytes.len()),
                done => assert_eq!(done.as_ref(), Ok(&sent)),
            }
        }
        for lie in [&b"\x02\x01x\0"[..], b"\x04\x01x\0", b"\x01\xff\xff\xff\xff\xff", b"\x01\x01x\x01"] {
            let mut lie = lie.to_vec();
            // A number that does not advance.
            if lie == b"\x01\x01x\x01" {
                lie.truncate(3);
                put_varint(-1, &mut lie);
                lie.extend_from_slice(b"\x01x\0");
            }
            let answer = ValuesDecoder::default().decode(Some(&list), &mut input(&lie));
            assert!(matches!(answer, Err(Stop::Bad(_))), "{lie:x?}: {answer:?}");
        }
    }
}
