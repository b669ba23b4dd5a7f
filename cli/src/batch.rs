//! Batch files at a client: opening them, their stream flags, and what a replay adopts of them.
//!
//! Wire: protocol/doc/04-batch-and-files-from.md#41-options

mod script;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::event::PollFlags;
use rustix::fs::{fstat, FileType};
use suisei_engine::link::{BatchInput, Record};
use suisei_engine::observe::Who;
use suisei_engine::sys::operator::{self, Trust, Wanted};
use suisei_engine::Failure;
use suisei_protocol::batch::{BatchHeader, StreamFlags};
use suisei_protocol::session::{Session, Version};
use suisei_protocol::wire::Reader;
use suisei_protocol::Stop;

use crate::exit::{Code, Refusal};
use crate::options::meaning::Wishes;
use crate::options::typed::{Append, Recursive};
use crate::output::{cause, reason};
use crate::remote::wait;

pub use script::Script;

/// Mode of a batch file: it holds what the sources hold.
const FILE_MODE: u32 = 0o600;
/// Mode of the script beside it.
const SCRIPT_MODE: u32 = 0o700;

/// A stream flag, how a message calls it, and how it is read from and written to wishes.
struct Flag {
    flag: StreamFlags,
    label: &'static str,
    /// 0 is off; stock tells some kinds of on apart.
    of: fn(&Wishes) -> u8,
    set: fn(&mut Wishes, bool),
}

/// Makes a row of the table.
const fn flag(
    flag: StreamFlags,
    label: &'static str,
    of: fn(&Wishes) -> u8,
    set: fn(&mut Wishes, bool),
) -> Flag {
    Flag { flag, label, of, set }
}

/// In the order of their bits, which is that of the messages.
const FLAGS: [Flag; 15] = [
    flag(
        StreamFlags::RECURSIVE,
        "--recurse (-r)",
        |w| if w.typed.select.recursive == Recursive::Explicit { 2 } else { w.recursive.into() },
        |w, on| w.recursive = on,
    ),
    flag(
        StreamFlags::OWNER,
        "--owner (-o)",
        |w| w.typed.preserve.owner.into(),
        |w, on| w.typed.preserve.owner = on,
    ),
    flag(
        StreamFlags::GROUP,
        "--group (-g)",
        |w| w.typed.preserve.group.into(),
        |w, on| w.typed.preserve.group = on,
    ),
    flag(
        StreamFlags::LINKS,
        "--links (-l)",
        |w| w.typed.preserve.links.into(),
        |w, on| w.typed.preserve.links = on,
    ),
    flag(
        StreamFlags::DEVICES,
        "--devices (-D)",
        |w| w.typed.preserve.devices.into(),
        |w, on| w.typed.preserve.devices = on,
    ),
    flag(
        StreamFlags::HARD_LINKS,
        "--hard-links (-H)",
        |w| (w.typed.preserve.hard_links > 0).into(),
        |w, on| w.typed.preserve.hard_links = on.into(),
    ),
    flag(
        StreamFlags::CHECKSUM,
        "--checksum (-c)",
        |w| w.typed.select.checksum.into(),
        |w, on| w.typed.select.checksum = on,
    ),
    flag(
        StreamFlags::DIRS,
        "--dirs (-d)",
        |w| (w.dirs || w.recursive).into(),
        |w, on| w.dirs = on && !w.recursive,
    ),
    flag(
        StreamFlags::COMPRESS,
        "--compress (-z)",
        |w| w.compress.into(),
        |w, on| {
            w.compress = on;
            w.compressor = w.compressor.take().filter(|_| on);
        },
    ),
    flag(StreamFlags::ICONV, "--iconv", |w| w.typed.connect.iconv.is_some().into(), |_, _| ()),
    flag(
        StreamFlags::ACLS,
        "--acls (-A)",
        |w| w.typed.preserve.acls.into(),
        |w, on| w.typed.preserve.acls = on,
    ),
    flag(
        StreamFlags::XATTRS,
        "--xattrs (-X)",
        |w| w.typed.preserve.xattrs,
        |w, on| w.typed.preserve.xattrs = on.into(),
    ),
    flag(StreamFlags::INPLACE, "--inplace", |w| w.inplace.into(), |w, on| w.inplace = on),
    flag(
        StreamFlags::APPEND,
        "--append",
        |w| (w.typed.change.append == Append::Plain).into(),
        |w, on| w.typed.change.append = if on { Append::Plain } else { Append::Off },
    ),
    flag(
        StreamFlags::APPEND_VERIFY,
        "--append-verify",
        |w| (w.typed.change.append == Append::Verify).into(),
        |w, on| w.typed.change.append = if on { Append::Verify } else { Append::Off },
    ),
];

/// Returns the stream flags of a run.
fn flags_of(wishes: &Wishes) -> StreamFlags {
    FLAGS.iter().filter(|flag| (flag.of)(wishes) > 0).map(|flag| flag.flag).collect()
}

/// Makes wishes agree with the recording run where the form of the stream depends on them. Returns
/// a line for each that differed.
pub fn adopt(wishes: &mut Wishes, recorded: StreamFlags, version: Version) -> Result<Vec<String>, Refusal> {
    let mut lines = Vec::new();
    let known = StreamFlags::known_to(version);
    let own = FLAGS.each_ref().map(|flag| (flag.of)(wishes));
    for (Flag { flag, label, set, .. }, own) in FLAGS.iter().zip(own) {
        let on = recorded.contains(*flag);
        if !known.contains(*flag) || own == u8::from(on) {
            continue;
        }
        if *flag == StreamFlags::ICONV {
            let please = if on { "Please specify" } else { "Do not specify" };
            return Err(Refusal::usage(format!("{please} the --iconv option to use this batch file.")));
        }
        set(wishes, on);
        let verb = if on { "Setting" } else { "Clearing" };
        lines.push(format!("{verb} the {label} option to match the batchfile."));
    }
    if !known.contains(StreamFlags::DIRS) {
        wishes.dirs = false;
    }
    Ok(lines)
}

/// A batch file that is being written, and the script beside it.
pub struct Recording {
    /// Where the run is recorded.
    pub record: Record,
    script: File,
}

impl Recording {
    /// Opens both files, and writes what is known before the run.
    pub fn open(name: &[u8], wishes: &Wishes) -> Result<Recording, Refusal> {
        let trust = wishes.trust_in_files();
        let script_name = [name, b".sh"].concat();
        let script = operator::create_file(&script_name, SCRIPT_MODE, &trust)
            .map_err(|error| cannot_open(&script_name, &error, Code::Select))?;
        let file = create(name, &trust).map_err(|error| cannot_open(name, &error, Code::File))?;
        let record = Record::new(file);
        let mut bytes = Vec::new();
        BatchHeader::put_flags(flags_of(wishes), &mut bytes);
        record.write(&bytes).map_err(|failure| refused(&failure))?;
        Ok(Recording { record, script })
    }

    /// Writes what is known once a session is agreed.
    pub fn begin(&mut self, session: &Session, script: &Script<'_>) -> Result<(), Refusal> {
        let mut bytes = Vec::new();
        BatchHeader::put_session(session, &mut bytes);
        self.record.write(&bytes).map_err(|failure| refused(&failure))?;
        let text = script.text(session.direction, session.version)?;
        self.script.write_all(&text).map_err(|error| {
            Refusal::new(
                Code::File,
                format!("rsync: [Receiver] write failed on batch script: {}", reason(&error)),
            )
        })
    }
}

fn create(name: &[u8], trust: &Trust) -> io::Result<File> {
    match name {
        b"" => Err(rustix::io::Errno::INVAL.into()),
        name => operator::create_file(name, FILE_MODE, trust),
    }
}

fn refused(failure: &Failure) -> Refusal {
    let mut text = cause(Who::ReceivingSide, failure);
    text.pop();
    Refusal::with_code(failure.exit_code(), text)
}

fn cannot_open(name: &[u8], error: &io::Error, code: Code) -> Refusal {
    let text = format!("\" open error: {}", reason(error));
    Refusal::new(
        code,
        [b"rsync: [Receiver] Batch file \"", full_name(name).as_slice(), text.as_bytes()].concat(),
    )
}

/// Returns a name as stock shows it: with the working directory in front.
fn full_name(name: &[u8]) -> Vec<u8> {
    match std::env::current_dir() {
        Ok(here) if !name.starts_with(b"/") => [here.as_os_str().as_bytes(), b"/", name].concat(),
        _ => name.to_vec(),
    }
}

/// Opens a batch file for a replay: a regular file, a pipe, or standard input (`-`).
pub fn open(name: &[u8], trust: &Trust) -> Result<OwnedFd, Refusal> {
    let cannot = |error: io::Error| cannot_open(name, &error, Code::File);
    if name == b"-" {
        return io::stdin().as_fd().try_clone_to_owned().map_err(cannot);
    }
    if name.is_empty() {
        return Err(cannot(rustix::io::Errno::INVAL.into()));
    }
    let file = operator::open_file(None, name, Wanted::Any, trust).map_err(cannot)?;
    let stat = fstat(&file).map_err(|error| cannot(error.into()))?;
    if !matches!(FileType::from_raw_mode(stat.st_mode as _), FileType::RegularFile | FileType::Fifo) {
        let after: &[u8] = b"\" is neither a regular file nor a FIFO";
        return Err(Refusal::new(Code::File, [b"Batch file \"", full_name(name).as_slice(), after].concat()));
    }
    Ok(file.into())
}

/// Reads the head of a batch file. `newest` is the version that this run speaks.
pub fn read_head(
    file: OwnedFd,
    newest: Version,
    interrupted: &std::sync::atomic::AtomicBool,
) -> Result<(BatchHeader, BatchInput), Refusal> {
    let mut early = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let mut reader = Reader::new(&early);
        match BatchHeader::decode(&mut reader, newest) {
            Ok(header) => {
                let consumed = reader.consumed();
                early.drain(..consumed);
                return Ok((header, BatchInput { file, early }));
            }
            Err(Stop::Bad(error)) => return Err(refused(&error.into())),
            Err(Stop::Short) => {}
        }
        let read = wait::until(&file, PollFlags::IN, None, interrupted)
            .and_then(|()| Ok(rustix::io::read(&file, &mut buffer)?));
        let failure = match read {
            Ok(0) => Failure::PeerClosed { received: 0, who: Who::ReceivingSide },
            Ok(read) => {
                early.extend_from_slice(&buffer[..read]);
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Err(Refusal::silent(Code::Signal))
            }
            Err(error) => Failure::Connection { call: "read", error },
        };
        return Err(refused(&failure));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::environment::Environment;
    use crate::options::{meaning, parse};

    fn wishes(words: &[&str]) -> Wishes {
        let words: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
        let typed = parse::parse(&words).unwrap();
        meaning::resolve(typed, &Environment::of_process()).unwrap()
    }

    #[test]
    fn captured_flags() {
        let bits = |words: &[&str]| flags_of(&wishes(words)).bits();
        assert_eq!(bits(&["-a", "a", "b"]), 0x9F);
        assert_eq!(bits(&["-r", "a", "b"]), 0x81);
        assert_eq!(bits(&["-az", "a", "b"]), 0x19F);
        assert_eq!(bits(&["--append", "a", "b"]), 0x3000);
        assert_eq!(bits(&["--append-verify", "a", "b"]), 0x5000);
    }

    #[test]
    fn a_replay_takes_over_what_its_version_knows() {
        let mut w = wishes(&["-r", "a"]);
        let lines =
            adopt(&mut w, StreamFlags::all() - StreamFlags::ICONV, Version::new(28).unwrap()).unwrap();
        assert_eq!(lines.len(), 7);
        assert_eq!(lines[1], "Setting the --owner (-o) option to match the batchfile.");
        assert!(!w.inplace && w.typed.select.checksum);
        let lines = adopt(&mut w, StreamFlags::empty(), Version::NEWEST).unwrap();
        assert_eq!(lines[0], "Clearing the --recurse (-r) option to match the batchfile.");
        assert!(!w.recursive && !w.dirs);
        let refusal = adopt(&mut w, StreamFlags::ICONV, Version::NEWEST).unwrap_err();
        assert_eq!(refusal.text, b"Please specify the --iconv option to use this batch file.");
    }
}
