//! `--out-format` and its escapes.
//!
//! Wire: protocol/doc/22-output.md#7-format-escapes---out-format---log-file-format-daemon-log-format

use suisei_engine::observe::ItemReport;
use suisei_protocol::flist::{EntryRef, FileKind, RelPath};
use suisei_protocol::sum::SumKind;

use super::human::Human;
use super::itemize::{itemize, Style};
use super::time::{local_time, Clock};

/// A format, parsed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    Escape(Escape),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Escape {
    letter: u8,
    /// The escape as written, for those that have no value here.
    source: Vec<u8>,
    left: bool,
    width: usize,
    number: Human,
}

/// What the values of a session depend on.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    /// For `%i`.
    pub style: Style,
    /// `%o` of a transfer: `send` or `recv`.
    pub operation: &'static str,
    /// For `%C`.
    pub transfer_sum: SumKind,
    /// For `%C` with `-c`.
    pub list_sum: SumKind,
}

/// What a line is about.
pub enum Subject<'a> {
    /// An item.
    Item(&'a ItemReport<'a>),
    /// A deletion.
    Deletion(RelPath<'a>, FileKind),
}

impl Format {
    /// Parses a format. Nothing is refused: what is no escape stays as written.
    pub fn parse(text: &[u8]) -> Format {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some((&byte, tail)) = rest.split_first() {
            if byte != b'%' {
                literal.push(byte);
                rest = tail;
                continue;
            }
            let (escape, after) = parse_escape(rest);
            rest = after;
            match escape {
                Some(e) if e.letter == b'%' => literal.push(b'%'),
                Some(e) => {
                    if !literal.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Escape(e));
                }
                None => literal.push(b'%'),
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Format { parts }
    }

    /// Puts in what is the same in every line: the values of a daemon's connection.
    pub fn filled_in(mut self, value: &dyn Fn(u8) -> Option<Vec<u8>>) -> Format {
        for part in &mut self.parts {
            if let Part::Escape(escape) = part {
                if let Some(value) = value(escape.letter) {
                    let mut text = Vec::new();
                    escape.pad(&value, &mut text);
                    *part = Part::Text(text);
                }
            }
        }
        self
    }

    /// Whether the format makes no line at all.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether the format holds one of these letters.
    pub fn has(&self, letters: &[u8]) -> bool {
        self.parts.iter().any(|p| matches!(p, Part::Escape(e) if letters.contains(&e.letter)))
    }

    /// Whether a transfer can only be reported when it is over.
    pub fn needs_end(&self) -> bool {
        self.has(b"bcC")
    }

    /// Formats one line, without its newline.
    pub fn line(&self, subject: &Subject<'_>, scene: &Scene) -> Vec<u8> {
        let mut out = Vec::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Escape(escape) => escape.write(subject, scene, &mut out),
            }
        }
        out
    }
}

/// Parses the escape that starts at a percent sign; nothing if it is cut short.
fn parse_escape(text: &[u8]) -> (Option<Escape>, &[u8]) {
    let count = |from: usize, is: fn(&u8) -> bool| text[from..].iter().take_while(|b| is(b)).count();
    let quotes_before = count(1, |&b| b == b'\'');
    let mut at = 1 + quotes_before;
    let left = text.get(at) == Some(&b'-');
    at += usize::from(left);
    let digits = count(at, u8::is_ascii_digit);
    let width = text[at..at + digits].iter().fold(0, |n, b| (n * 10 + usize::from(b - b'0')).min(4096));
    at += digits;
    // Behind a sign alone nothing is a quote.
    let quotes_after = if left && digits == 0 { 0 } else { count(at, |&b| b == b'\'') };
    at += quotes_after;
    let Some(&letter) = text.get(at) else { return (None, &text[1..]) };
    let number = match quotes_before + quotes_after {
        0 => Human::Plain,
        1 => Human::Grouped,
        2 => Human::Decimal,
        _ => Human::Binary,
    };
    (Some(Escape { letter, source: text[..=at].to_vec(), left, width, number }), &text[at + 1..])
}

impl Escape {
    fn write(&self, subject: &Subject<'_>, scene: &Scene, out: &mut Vec<u8>) {
        let value = match subject {
            Subject::Item(report) => self.item_value(report, scene),
            Subject::Deletion(path, kind) => self.deletion_value(*path, *kind),
        };
        match value {
            // A width counts from behind the arrow.
            Some(value) if self.letter == b'L' && self.width > 0 => {
                let (arrow, name) = value.split_at_checked(4).unwrap_or((b"    ", b""));
                out.extend_from_slice(arrow);
                self.pad(name, out);
            }
            Some(value) => self.pad(&value, out),
            None => out.extend_from_slice(&self.source),
        }
    }

    fn pad(&self, value: &[u8], out: &mut Vec<u8>) {
        let blanks = self.width.saturating_sub(value.len());
        if !self.left {
            out.extend(std::iter::repeat_n(b' ', blanks));
        }
        out.extend_from_slice(value);
        if self.left {
            out.extend(std::iter::repeat_n(b' ', blanks));
        }
    }

    fn item_value(&self, report: &ItemReport<'_>, scene: &Scene) -> Option<Vec<u8>> {
        let entry = report.entry;
        let number = |n: u64| self.number.bytes(n).into_bytes();
        Some(match self.letter {
            b'b' => number(report.data_bytes),
            b'c' => number(report.sum_bytes),
            b'B' => permissions(entry.mode().permissions())[1..].to_vec(),
            b'C' => checksum(report, scene),
            b'f' => without_slashes(report.long_name),
            b'G' if !report.has_group => b"DEFAULT".to_vec(),
            b'G' => entry.gid().to_string().into_bytes(),
            b'i' => itemize(report.item, entry.kind(), scene.style).into_bytes(),
            b'l' => number(entry.size()),
            b'L' => self.arrow(report),
            b'm' => Vec::new(),
            b'M' => local_time(entry.mtime(), Clock::Dashed).into_bytes(),
            b'n' => short_name(entry.path(), entry.kind()),
            b'o' => scene.operation.as_bytes().to_vec(),
            b'U' => entry.uid().to_string().into_bytes(),
            _ => return self.global_value(),
        })
    }

    fn deletion_value(&self, path: RelPath<'_>, kind: FileKind) -> Option<Vec<u8>> {
        Some(match self.letter {
            b'i' => b"*deleting  ".to_vec(),
            b'o' => b"del.".to_vec(),
            b'n' => short_name(path, kind),
            b'f' => path.as_bytes().to_vec(),
            b'l' | b'b' | b'c' => b"0".to_vec(),
            b'B' => b"---------".to_vec(),
            b'C' => vec![b' '; 32],
            b'L' | b'm' => Vec::new(),
            b'M' => local_time(0, Clock::Dashed).into_bytes(),
            b'U' | b'G' => b"0".to_vec(),
            _ => return self.global_value(),
        })
    }

    fn global_value(&self) -> Option<Vec<u8>> {
        Some(match self.letter {
            b'p' => std::process::id().to_string().into_bytes(),
            b't' => local_time(super::time::now(), Clock::Spaced).into_bytes(),
            _ => return None,
        })
    }

    /// ` -> TARGET` or ` => NAME`; a width pads the name behind the arrow.
    fn arrow(&self, report: &ItemReport<'_>) -> Vec<u8> {
        let (arrow, name) = match (&report.item.xname, report.entry.link_target()) {
            // That of a transfer is the name of its basis.
            (Some(name), _) if !name.is_empty() && !report.item.is_transfer() => (&b" => "[..], &name[..]),
            (_, Some(target)) => (&b" -> "[..], target),
            _ => return Vec::new(),
        };
        [arrow, name].concat()
    }
}

/// Returns the name that lines show: directories end in a slash.
pub fn short_name(path: RelPath<'_>, kind: FileKind) -> Vec<u8> {
    let mut name = path.as_bytes().to_vec();
    if kind == FileKind::Directory {
        name.push(b'/');
    }
    name
}

fn without_slashes(name: &[u8]) -> Vec<u8> {
    let start = name.iter().take_while(|&&b| b == b'/').count();
    name[start..].to_vec()
}

/// Returns the ten characters of a mode: type, then three times `rwx` with `s` and `t`.
pub fn permissions(mode: u32) -> [u8; 10] {
    let mut text = *b"----------";
    for (i, letter) in b"rwxrwxrwx".iter().enumerate() {
        if mode & (0o400 >> i) != 0 {
            text[i + 1] = *letter;
        }
    }
    for (bit, at, with_x, without) in
        [(0o4000, 3, b's', b'S'), (0o2000, 6, b's', b'S'), (0o1000, 9, b't', b'T')]
    {
        if mode & bit != 0 {
            text[at] = if text[at] == b'x' { with_x } else { without };
        }
    }
    text
}

/// Returns the ten characters of an entry's mode.
pub fn mode_string(entry: EntryRef<'_>) -> [u8; 10] {
    let mut text = permissions(entry.mode().permissions());
    text[0] = match entry.kind() {
        FileKind::Directory => b'd',
        FileKind::Symlink => b'l',
        FileKind::BlockDevice => b'b',
        FileKind::CharDevice => b'c',
        FileKind::Socket => b's',
        FileKind::Fifo => b'p',
        FileKind::Regular | FileKind::Missing => b'-',
    };
    text
}

/// The list sum with `-c`, else the transfer sum, in hex; blanks of the same width if there is
/// none. The seeded MD4 is never shown.
fn checksum(report: &ItemReport<'_>, scene: &Scene) -> Vec<u8> {
    let (kind, sum) = match report.entry.checksum() {
        Some(sum) => (scene.list_sum, Some(sum)),
        None => (scene.transfer_sum, report.sum),
    };
    let width = 2 * kind.len();
    let Some(sum) = sum.filter(|s| s.len() == kind.len() && kind != SumKind::Md4Seeded) else {
        return vec![b' '; width];
    };
    let hex =
        |bytes: &mut dyn Iterator<Item = &u8>| bytes.flat_map(|b| format!("{b:02x}").into_bytes()).collect();
    match kind {
        SumKind::Xxh64 | SumKind::Xxh3 | SumKind::Xxh128 => hex(&mut sum.iter().rev()),
        _ => hex(&mut sum.iter()),
    }
}

#[cfg(test)]
mod tests {
    use suisei_engine::observe::Moment;
    use suisei_protocol::flist::{EntryFlags, Extra, Mode, Ndx, NewEntry, SegmentBuilder};
    use suisei_protocol::transfer::{Item, ItemFlags};

    use super::super::itemize::Way;
    use super::*;

    fn line(format: &str, mode: u32, extra: Extra) -> String {
        let mut builder = SegmentBuilder::new(Ndx(0), None);
        let entry = NewEntry {
            path: b"d/big",
            mode: Mode(mode),
            size: 3_000_000,
            mtime: 0,
            mtime_nsec: 0,
            uid: 7,
            gid: 8,
            flags: EntryFlags::empty(),
        };
        builder.push(entry, extra).unwrap();
        let segment = builder.finish();
        let item = Item::new(ItemFlags::IS_NEW | ItemFlags::TRANSFER);
        let report = ItemReport {
            moment: Moment::Finished,
            ndx: Ndx(0),
            entry: segment.get(0).unwrap(),
            item: &item,
            has_group: true,
            long_name: b"/src/d/big",
            data_bytes: 5,
            sum_bytes: 6,
            sum: Some(&[0xA2, 0xB9, 0xEB, 0x7B, 0xD6, 0x47, 0xDA, 0xCC]),
        };
        let scene = Scene {
            style: Style { way: Way::In, has_flags: true, keeps_times: true, keeps_link_times: true },
            operation: "recv",
            transfer_sum: SumKind::Xxh3,
            list_sum: SumKind::Xxh3,
        };
        String::from_utf8(Format::parse(format.as_bytes()).line(&Subject::Item(&report), &scene)).unwrap()
    }

    #[test]
    fn widths_and_number_styles() {
        assert_eq!(
            line("%n|%'l|%''l|%10l|%-10l|%'15l|", 0o100644, Extra::default()),
            "d/big|3,000,000|3.00M|   3000000|3000000   |      3,000,000|"
        );
    }

    #[test]
    fn values_of_an_item() {
        assert_eq!(
            line("%i %B %f %o %U:%G %b %c %% %h %", 0o104755, Extra::default()),
            ">f+++++++++ rwsr-xr-x src/d/big recv 7:8 5 6 % %h %"
        );
        assert_eq!(line("%C", 0o100644, Extra::default()), "ccda47d67bebb9a2");
    }

    #[test]
    fn arrows() {
        let extra = Extra { link_target: Some((*b"to").into()), ..Extra::default() };
        assert_eq!(line("%n%L", 0o120777, extra), "d/big -> to");
    }
}
