//! The transfer that a client of a module asks for.
//!
//! Its words are read against what the module refuses, its paths below the module, and the rest is
//! a server like any other, on the module's terms.
//! Wire: protocol/doc/03-daemon.md#34-argument-block

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bstr::ByteSlice;
use suisei_engine::chmod::Chmod;
use suisei_engine::filter::Hidden;
use suisei_engine::source::sanitise;
use suisei_engine::sys::process;
use suisei_engine::tree::{SymlinkPolicy, Tree};
use suisei_protocol::flist::{FileKind, RelPath};
use suisei_protocol::session::Direction;

use super::arguments::{self, Words};
use super::config::Settings;
use super::conversation::Broken;
use super::hooks::{self, Variables};
use super::log::Level;
use super::module::Inside;
use super::refuse::Refused;
use super::session::Session;
use super::terms::{Links, Terms};
use crate::exit::{Code, Refusal};
use crate::glob::Names;
use crate::options::meaning::{self, FilesFrom, Wishes};
use crate::options::server_args::{self, Asked, ServerWords};
use crate::options::typed::Typed;
use crate::output::format::Format;
use crate::output::log::LogFile;
use crate::server;

/// A module that was entered, and what is known of its client.
pub(super) struct Transfer<'a> {
    pub(super) module: &'a [u8],
    pub(super) path: &'a [u8],
    pub(super) settings: &'a Settings<'a>,
    pub(super) user: &'a [u8],
    pub(super) read_only: bool,
    pub(super) inside: Inside,
    pub(super) hidden: Option<Arc<Hidden>>,
    pub(super) temp_dir: Option<Vec<u8>>,
    pub(super) pre_exec: Option<PreExec>,
}

impl Transfer<'_> {
    /// Reads the arguments and runs the transfer to its end.
    pub(super) fn run(mut self, session: &mut Session<'_>) -> Result<u8, Broken> {
        let refused = Refused::read(
            &self.settings.text("refuse options"),
            self.settings.non_empty("charset").is_some(),
        );
        let check = |asked: Asked<'_>| match asked {
            Asked::Option(row, off) => refused.check(row, off),
            Asked::Capabilities => refused.check_capabilities(),
        };
        let wants_second = |options: &[Vec<u8>]| {
            let (words, refusal) = server_args::read_checked(options, None, &check);
            refusal.is_none() && words.typed.connect.secluded == Some(true)
        };
        let version = session.version;
        let words = arguments::read(&mut session.conversation, version, wants_second)?;
        let (mut read, mut refusal) =
            server_args::read_checked(&words.options, words.secluded.as_deref(), &check);
        let direction = if read.typed.connect.sender { Direction::Sending } else { Direction::Receiving };
        self.log_request(session, &words, direction);
        refused.steer_deletion(&mut read.typed, version.deletes_during());
        let paths = words.below(self.module, &ModuleNames(self.hidden.as_deref()))?;
        // The module confines more than a client could wish.
        read.typed.select.confine_root = None;
        let preserve = &mut read.typed.preserve;
        if std::mem::replace(&mut preserve.fake_super, self.settings.flag("fake super")) {
            // Not the client's to choose: what it gets is root's own way, as far as there is one.
            preserve.super_user = Some(true);
        }
        if read.typed.connect.iconv.is_some() {
            // The client cannot know what names are written in here.
            read.typed.connect.iconv = self.settings.non_empty("charset");
        }
        read.typed.operands.clone_from(&paths);
        let mut wishes =
            match refusal.is_none().then(|| meaning::resolve(read.typed.clone(), session.environment)) {
                Some(Ok(wishes)) => wishes,
                Some(Err(why)) => {
                    refusal = Some(why);
                    self.least(&read, session)?
                }
                None => self.least(&read, session)?,
            };
        if refusal.is_none() {
            refusal = refused.check_implied(&wishes, direction).err().or_else(|| self.rejected(&wishes));
        }
        if refusal.is_none() {
            refusal = self.pre_exec.take().and_then(|hook| hook.ask(&words).err());
        }
        let temp_dir = &mut wishes.typed.change.temp_dir;
        *temp_dir = temp_dir.take().or_else(|| self.temp_dir.clone());
        let terms = self.terms(session, direction, refusal);
        terms.limit(&mut wishes);
        let early = std::mem::take(&mut session.conversation.stream.early);
        let stream = suisei_engine::link::Stream {
            input: session.conversation.stream.input.try_clone()?,
            output: session.conversation.stream.output.try_clone()?,
            early,
        };
        let interrupted = session.interrupted.clone();
        let end =
            server::serve_module(&wishes, &read, paths, stream, session.environment, interrupted, &terms);
        Ok(end.unwrap_or_else(|refusal| {
            session.log.line(Level::Error, &refusal.text);
            refusal.code
        }))
    }

    /// Places that the client names and the module hides.
    fn rejected(&self, wishes: &Wishes) -> Option<Refusal> {
        let hidden = self.hidden.as_deref()?;
        let change = &wishes.typed.change;
        let basis_dirs = change.basis_dirs.iter().map(|(_, dir)| dir);
        let list = match &wishes.files_from {
            Some(FilesFrom::Here(path) | FilesFrom::There { path, .. }) if path != b"-" => Some(path),
            _ => None,
        };
        let mut named = basis_dirs.chain(&change.temp_dir).chain(&change.backup_dir).chain(list);
        let is_hidden = named.any(|path| hidden.hides(&sanitise(path), true));
        is_hidden
            .then(|| Refusal::new(Code::Unsupported, "rsync: Your options have been rejected by the server."))
    }

    /// What is known of wishes that cannot be read to their end, at least the direction: for a
    /// handshake in which the client can be told.
    fn least(&self, read: &ServerWords, session: &Session<'_>) -> Result<Wishes, Broken> {
        if let Ok(wishes) = meaning::resolve(read.typed.clone(), session.environment) {
            return Ok(wishes);
        }
        let mut typed = Typed::default();
        typed.connect.server = true;
        typed.connect.sender = read.typed.connect.sender;
        meaning::resolve(typed, session.environment).map_err(|_| Broken::Closed)
    }

    fn log_request(&self, session: &Session<'_>, words: &Words, direction: Direction) {
        let way = if direction == Direction::Sending { "on" } else { "to" };
        let user = if self.user.is_empty() { Vec::new() } else { [self.user, b"@"].concat() };
        let text =
            format!("rsync {way} {} from {}{}", words.request().as_bstr(), user.as_bstr(), session.who());
        session.log.line(Level::Info, text);
    }

    fn log_file(&self, session: &Session<'_>) -> Arc<LogFile> {
        let log = session.log.clone();
        Arc::new(LogFile::elsewhere(Box::new(move |line| log.escaped_line(Level::Info, line))))
    }

    /// The lines of transfers, with what is known of the client put in.
    fn log_format(&self, session: &Session<'_>) -> Format {
        let said = session.options.log_file_format.clone();
        let format = Format::parse(&said.unwrap_or_else(|| self.settings.text("log format")));
        format.filled_in(&|letter| match letter {
            b'a' => Some(session.host.address.to_string().into_bytes()),
            b'h' => Some(session.host.name.clone().into_bytes()),
            b'm' => Some(self.module.to_vec()),
            b'P' => Some(self.path.to_vec()),
            b'u' => Some(self.user.to_vec()),
            _ => None,
        })
    }

    /// What modes become here; the module was refused if it cannot be read.
    fn chmod(&self, direction: Direction) -> Option<Chmod> {
        let name = chmod_parameter(direction);
        let text = self.settings.non_empty(name)?;
        let mut chmod = Chmod::default();
        chmod.add(&text).ok().map(|()| chmod)
    }

    fn terms(&self, session: &Session<'_>, direction: Direction, refusal: Option<Refusal>) -> Terms {
        let settings = self.settings;
        let seconds = u64::try_from(settings.number("timeout")).ok().filter(|seconds| *seconds > 0);
        let numeric_ids = settings
            .flag3("numeric ids")
            .unwrap_or(self.inside.is_chrooted && settings.non_empty("name converter").is_none());
        let links = match settings.flag3("munge symlinks").unwrap_or(!self.inside.is_whole_root) {
            true => Links::Munged,
            false if self.inside.is_whole_root || settings.flag("insecure links") => Links::Kept,
            false => Links::Confined,
        };
        Terms {
            hidden: self.hidden.clone(),
            links,
            ignore_unreadable: settings.flag("ignore nonreadable"),
            chmod: self.chmod(direction),
            open_noatime: settings.flag3("open noatime"),
            version: session.version,
            read_only: self.read_only,
            write_only: settings.flag("write only"),
            timeout: seconds.map(Duration::from_secs),
            bytes_per_second: Some(session.options.bwlimit * 1024).filter(|rate| *rate > 0),
            verbosity: u32::try_from(settings.number("max verbosity")).unwrap_or(0),
            ignore_errors: settings.flag("ignore errors"),
            numeric_ids,
            log: self.log_file(session),
            log_format: settings.flag("transfer logging").then(|| self.log_format(session)),
            refusal,
        }
    }
}

/// The parameter that changes modes in a direction.
fn chmod_parameter(direction: Direction) -> &'static str {
    match direction {
        Direction::Sending => "outgoing chmod",
        Direction::Receiving => "incoming chmod",
    }
}

/// The names below the module, for wildcards.
struct ModuleNames<'a>(Option<&'a Hidden>);

impl ModuleNames<'_> {
    fn shows(&self, path: &[u8], is_dir: bool) -> bool {
        !self.0.is_some_and(|hidden| hidden.hides(path, is_dir))
    }
}

impl Names for ModuleNames<'_> {
    fn members(&self, dir: &[u8]) -> Vec<Vec<u8>> {
        let found = Tree::open(Path::new("."), SymlinkPolicy::FollowDirs)
            .and_then(|tree| tree.dir(RelPath::new(dir.trim_end_with(|c| c == '/')))?.list());
        let slash: &[u8] = if dir.is_empty() || dir.ends_with(b"/") { b"" } else { b"/" };
        let members = found.into_iter().flatten().filter(|member| {
            let is_dir = member.kind == Some(FileKind::Directory);
            self.shows(&[dir, slash, &member.name].concat(), is_dir)
        });
        members.map(|member| member.name.into_vec()).collect()
    }

    fn exists(&self, path: &[u8]) -> bool {
        let path = path.trim_end_with(|c| c == '/');
        Tree::open(Path::new("."), SymlinkPolicy::FollowDirs)
            .and_then(|tree| tree.stat(RelPath::new(path)))
            .is_ok_and(|found| found.is_some())
    }
}

/// A copy of this process that waits outside of the module for the client's request.
pub(super) struct PreExec {
    request: File,
    answer: File,
}

impl PreExec {
    /// Starts it. Must be called while this is the only thread.
    pub(super) fn start(command: Vec<u8>, variables: Variables) -> io::Result<PreExec> {
        let pipe = || -> io::Result<(File, File)> {
            let (read, write): (OwnedFd, OwnedFd) = rustix::pipe::pipe()?;
            for end in [&read, &write] {
                rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
            }
            Ok((read.into(), write.into()))
        };
        let ((request_in, request), (answer, answer_out)) = (pipe()?, pipe()?);
        let (mut held, mut kept) = (Some(request), Some(answer));
        process::spawn_copy(|| {
            drop((held.take(), kept.take()));
            answer_request(&command, variables, request_in, answer_out)
        })?;
        match (held, kept) {
            (Some(request), Some(answer)) => Ok(PreExec { request, answer }),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Hands the request over; the transfer is refused if the command says so.
    fn ask(mut self, words: &Words) -> Result<(), Refusal> {
        let failed = |error: io::Error| {
            Refusal::new(
                Code::Unsupported,
                format!("pre-xfer exec failed: {}", crate::output::reason(&error)),
            )
        };
        let mut all = vec![b"rsyncd".to_vec()];
        all.extend(words.options.iter().cloned());
        all.extend(words.secluded.iter().flatten().cloned());
        all.push(b".".to_vec());
        all.extend(words.paths.iter().cloned());
        let mut text = words.request();
        for word in &all {
            text.push(0);
            text.extend_from_slice(word);
        }
        let length = u32::try_from(text.len()).map_err(|_| failed(io::ErrorKind::InvalidInput.into()))?;
        self.request.write_all(&length.to_le_bytes()).map_err(failed)?;
        self.request.write_all(&text).map_err(failed)?;
        let mut status = [0; 4];
        self.answer.read_exact(&mut status).map_err(failed)?;
        let mut output = Vec::new();
        self.answer.read_to_end(&mut output).map_err(failed)?;
        match i32::from_le_bytes(status) {
            0 => Ok(()),
            raw => {
                let mut text = format!("pre-xfer exec returned failure ({raw})").into_bytes();
                if !output.is_empty() {
                    text.extend_from_slice(b":\n");
                    text.extend_from_slice(output.trim_end_with(|c| c == '\n'));
                }
                Err(Refusal::new(Code::Unsupported, text))
            }
        }
    }
}

/// The copy's work: reads the request, runs the command, tells how it ended.
fn answer_request(command: &[u8], mut variables: Variables, mut request: File, mut answer: File) -> i32 {
    let mut work = || -> io::Result<()> {
        let mut length = [0; 4];
        request.read_exact(&mut length)?;
        let mut text = vec![0; u32::from_le_bytes(length) as usize];
        request.read_exact(&mut text)?;
        let mut words = text.split(|byte| *byte == 0);
        variables.set("RSYNC_REQUEST", words.next().unwrap_or_default());
        for (number, word) in words.enumerate() {
            variables.set(&format!("RSYNC_ARG{number}"), word);
        }
        let (status, output) = hooks::run(command, &variables, b"")?;
        answer.write_all(&hooks::raw_status(status).to_le_bytes())?;
        answer.write_all(&output)
    };
    i32::from(work().is_err())
}
