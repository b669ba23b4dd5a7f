//! Messages as text, the same however the stream was cut.

use std::fmt::Write;

use suisei_protocol::flist::{Acl, EntryRef, HardLink, IdKind, Segment, XattrValue};
use suisei_protocol::message::{ToReceiver, ToSender};
use suisei_protocol::mux::{Notice, TextKind};
use suisei_protocol::transfer::{Item, SumHead, Token, XattrExchange};

use super::replay::Message;

/// Prints messages, one a line. Pieces of a literal, and runs of blocks, are one line.
pub fn print<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    let mut text = String::new();
    let mut literal = Vec::new();
    let mut run: Option<(u32, u32)> = None;
    for message in messages {
        match message {
            Message::ToReceiver(ToReceiver::Token(Token::Literal(bytes))) => {
                put_run(&mut run, &mut text);
                literal.extend_from_slice(bytes);
            }
            Message::ToReceiver(ToReceiver::Token(Token::Copy(block))) => {
                put_literal(&mut literal, &mut text);
                match &mut run {
                    Some((_, last)) if *last + 1 == block.0 => *last = block.0,
                    _ => {
                        put_run(&mut run, &mut text);
                        run = Some((block.0, block.0));
                    }
                }
            }
            other => {
                put_run(&mut run, &mut text);
                put_literal(&mut literal, &mut text);
                put_message(other, &mut text);
            }
        }
    }
    put_run(&mut run, &mut text);
    put_literal(&mut literal, &mut text);
    text
}

fn put_run(run: &mut Option<(u32, u32)>, text: &mut String) {
    if let Some((first, last)) = run.take() {
        let _ = writeln!(text, "copy {first}..={last}");
    }
}

fn put_literal(literal: &mut Vec<u8>, text: &mut String) {
    if !literal.is_empty() {
        let start = String::from_utf8_lossy(&literal[..literal.len().min(16)]).into_owned();
        let _ = writeln!(text, "literal {} {:08x} {start:?}", literal.len(), hash(literal));
        literal.clear();
    }
}

/// FNV-1a: tells contents apart in a line of text.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

fn put_message(message: &Message, text: &mut String) {
    let _ = match message {
        Message::Filter(rule) => writeln!(text, "filter {:?}", String::from_utf8_lossy(rule)),
        Message::Name(name) => writeln!(text, "name {:?}", String::from_utf8_lossy(name)),
        Message::Notice(notice) => writeln!(text, "notice {}", notice_text(notice)),
        Message::ToSender(message) => put_to_sender(message, text),
        Message::ToReceiver(message) => put_to_receiver(message, text),
    };
}

fn put_to_sender(message: &ToSender, text: &mut String) -> std::fmt::Result {
    match message {
        ToSender::Item { ndx, item } => writeln!(text, "item {ndx} {}", item_text(item)),
        ToSender::Want { ndx, item, basis } => {
            let sums = hash(&basis.sums);
            writeln!(text, "want {ndx} {} {} sums {sums:08x}", item_text(item), head_text(&basis.head))
        }
        other => writeln!(text, "{other:?}"),
    }
}

fn put_to_receiver(message: &ToReceiver, text: &mut String) -> std::fmt::Result {
    match message {
        ToReceiver::Segment(segment) => put_segment(segment, text),
        ToReceiver::Item { ndx, item } => writeln!(text, "item {ndx} {}", item_text(item)),
        ToReceiver::Begin { ndx, item, head } => {
            writeln!(text, "begin {ndx} {} {}", item_text(item), head_text(head))
        }
        ToReceiver::End { sum } => writeln!(text, "end {}", hex(sum)),
        other => writeln!(text, "{other:?}"),
    }
}

fn put_segment(segment: &Segment, text: &mut String) -> std::fmt::Result {
    let dir = segment.dir().map(|(ndx, entry)| (ndx.0, entry.entry().wire_path().to_vec()));
    let dir = dir.map_or("-".to_owned(), |(ndx, path)| format!("{ndx} {}", path.escape_ascii()));
    writeln!(text, "segment start {} dir {dir} errors {}", segment.start(), segment.io_errors().bits())?;
    for (ndx, entry) in segment.iter() {
        writeln!(text, "  {ndx} {}", entry_text(entry))?;
    }
    for name in segment.id_names() {
        writeln!(text, "  {:?} {} is {}", name.kind, name.id, name.name.escape_ascii())?;
    }
    Ok(())
}

fn entry_text(e: EntryRef<'_>) -> String {
    let mut text = format!("{:o} {} {}.{:09}", e.mode().0, e.size(), e.mtime(), e.mtime_nsec());
    let _ = write!(text, " {} {} {:?} {}", e.uid(), e.gid(), e.flags().bits(), e.wire_path().escape_ascii());
    if let Some(target) = e.link_target() {
        let _ = write!(text, " -> {}", target.escape_ascii());
    }
    if let Some(rdev) = e.rdev() {
        let _ = write!(text, " rdev {}:{}", rdev.major, rdev.minor);
    }
    match e.hard_link() {
        Some(HardLink::Group { group, first }) => {
            let _ = write!(text, " group {group}{}", if first { " first" } else { "" });
        }
        Some(HardLink::Inode { dev, ino }) => {
            let _ = write!(text, " inode {dev}:{ino}");
        }
        None => {}
    }
    if let Some(sum) = e.checksum() {
        let _ = write!(text, " sum {}", hex(sum));
    }
    for (title, acl) in [("acl", e.access_acl()), ("default-acl", e.default_acl())] {
        if let Some(acl) = acl {
            let _ = write!(text, " {title} {}", list(acl));
        }
    }
    if let Some(atime) = e.atime() {
        let _ = write!(text, " atime {atime}");
    }
    for xattr in e.xattrs().into_iter().flat_map(|list| list.items()) {
        let value = match &xattr.value {
            XattrValue::Whole(value) => value.escape_ascii().to_string(),
            XattrValue::Digest { len, md5 } => format!("{len} bytes {}", hex(md5)),
        };
        let _ = write!(text, " {}={value}", xattr.name.escape_ascii());
    }
    text
}

fn item_text(item: &Item) -> String {
    let mut text = format!("{:04x}", item.flags.bits());
    if let Some(basis) = item.basis {
        let _ = write!(text, " {basis:?}");
    }
    if let Some(name) = &item.xname {
        let _ = write!(text, " {:?}", String::from_utf8_lossy(name));
    }
    match &item.xattrs {
        XattrExchange::Nothing => {}
        XattrExchange::Wanted(numbers) => {
            let _ = write!(text, " wants {numbers:?}");
        }
        XattrExchange::Values(values) => {
            for (number, value) in values {
                let _ = write!(text, " value {number} {} {:08x}", value.len(), hash(value));
            }
        }
    }
    text
}

fn head_text(head: &SumHead) -> String {
    format!("[{} {} {} {}]", head.count, head.block_len, head.sum_len, head.remainder)
}

fn notice_text(notice: &Notice) -> String {
    match notice {
        Notice::Text(kind, text) => {
            let kind = match kind {
                TextKind::ErrorXfer => "error-xfer",
                TextKind::Info => "info",
                TextKind::Error => "error",
                TextKind::Warning => "warning",
            };
            format!("{kind} {}", text.escape_ascii())
        }
        Notice::Deleted { path, is_dir } => {
            format!("deleted {}{}", path.escape_ascii(), if *is_dir { "/" } else { "" })
        }
        other => format!("{other:?}"),
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Spells an ACL: `u=`, `g=`, `m=`, `o=` where they are said, then named entries.
fn list(acl: &Acl) -> String {
    let objects = [("u", acl.user), ("g", acl.group), ("m", acl.mask), ("o", acl.other)];
    let objects = objects.iter().filter_map(|(who, access)| Some(format!("{who}={}", (*access)?)));
    let named = acl.named.iter().map(|named| match named.kind {
        IdKind::User => format!("u:{}={}", named.id, named.access),
        IdKind::Group => format!("g:{}={}", named.id, named.access),
    });
    objects.chain(named).collect::<Vec<_>>().join(",")
}
