//! One connection: who calls, which module, whether it may, and what it gets.
//!
//! Everything of a client is hostile: lines have limits, stages have deadlines, and nothing of what
//! it says is used before the module's rules were asked.
//! Wire: protocol/doc/03-daemon.md#32-text-phase

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use bstr::ByteSlice;
use suisei_engine::link::Stream;
use suisei_engine::sys::process::{self, Copy};
use suisei_engine::sys::{random, users};
use suisei_engine::tree::open_operator_file;
use suisei_protocol::limits::{DAEMON_LINE_MAX, DAEMON_REQUEST_MAX};
use suisei_protocol::session::{early_input_length, AuthDigest, Greeting, Missing, ModuleRequest, Version};

use super::access::{self, Host, Lookups};
use super::config::{Config, Section, Settings};
use super::confine::Access;
use super::conversation::{Broken, Conversation, PATIENCE};
use super::hooks::{self, Variables};
use super::log::{Level, Log};
use super::module::{Closed, Place};
use super::options::DaemonOptions;
use super::privilege::Identity;
use super::proxy_header::Named;
use super::secrets::{self, Grant};
use super::slots::{self, NoSlot};
use super::transfer::{PreExec, Transfer};
use super::Start;
use crate::exit::Code;
use crate::options::environment::Environment;
use crate::output::reason;

/// What a text phase without a transfer ends with: stock's -1.
const ENDED: u8 = 255;

/// Serves the connection on standard input to its end.
pub fn run(
    options: &DaemonOptions,
    config: &Config,
    start: Start,
    environment: &Environment,
    interrupted: Arc<AtomicBool>,
) -> u8 {
    let log = Arc::new(Log::open(options.log_file.as_deref(), &config.global()));
    super::log_mistakes(&log, config);
    let peer = peer_address(start);
    let stream = match own_stream(start) {
        Ok(stream) => stream,
        Err(error) => {
            log.line(Level::Error, format!("rsync: cannot use the connection: {}", reason(&error)));
            return Code::Ipc as u8;
        }
    };
    let patience = (start == Start::Socket).then(|| patience(&config.global()));
    let flag = interrupted.clone();
    let conversation = Conversation::new(stream, patience, &flag);
    let version = options.protocol.unwrap_or(Version::NEWEST);
    let mut session = Session {
        options,
        config,
        start,
        environment,
        interrupted,
        log,
        conversation,
        host: Host { address: peer, name: access::UNDETERMINED.to_owned() },
        version,
        digests: None,
    };
    match session.serve() {
        Ok(code) => code,
        Err(End::Answered) => ENDED,
        Err(End::Broken(broken)) => session.broken(&broken),
    }
}

/// Absolute: not the time without a byte, but the time for a whole stage.
fn patience(settings: &Settings<'_>) -> Duration {
    let said = u64::try_from(settings.number("timeout")).unwrap_or(0);
    match said {
        0 => PATIENCE,
        said => PATIENCE.min(Duration::from_secs(said)),
    }
}

fn peer_address(start: Start) -> IpAddr {
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    if start == Start::RemoteShell {
        let names = ["REMOTE_HOST", "SSH_CONNECTION", "SSH_CLIENT", "SSH2_CLIENT"];
        let text = names.iter().find_map(|name| std::env::var(name).ok()).unwrap_or_default();
        let first = text.split(' ').next().unwrap_or_default();
        return first.parse().map_or(unknown, access::plain);
    }
    let found = rustix::net::getpeername(io::stdin()).ok().flatten();
    let address = found.and_then(|address| std::net::SocketAddr::try_from(address).ok());
    address.map_or(unknown, |address| access::plain(address.ip()))
}

/// Takes the connection and leaves `/dev/null` in its place: what is printed by accident must not
/// reach a client.
fn own_stream(start: Start) -> io::Result<Stream> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = match start {
        Start::RemoteShell => io::stdout().as_fd().try_clone_to_owned()?,
        _ => input.try_clone()?,
    };
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    if start != Start::RemoteShell {
        rustix::stdio::dup2_stderr(&nothing)?;
    }
    Ok(Stream { input, output, early: Vec::new() })
}

/// Why a session ends before a transfer.
enum End {
    /// The client was told.
    Answered,
    /// There is nobody to tell.
    Broken(Broken),
}

impl From<Broken> for End {
    fn from(broken: Broken) -> End {
        End::Broken(broken)
    }
}

pub(super) struct Session<'a> {
    pub(super) options: &'a DaemonOptions,
    config: &'a Config,
    start: Start,
    pub(super) environment: &'a Environment,
    pub(super) interrupted: Arc<AtomicBool>,
    pub(super) log: Arc<Log>,
    pub(super) conversation: Conversation<'a>,
    pub(super) host: Host,
    pub(super) version: Version,
    digests: Option<Vec<u8>>,
}

impl Session<'_> {
    fn serve(&mut self) -> Result<u8, End> {
        let settings = self.config.global();
        if settings.flag("proxy protocol") && self.start == Start::Socket {
            self.take_proxy_header(&settings)?;
        }
        self.name_host();
        self.enter_daemon(&settings)?;
        let who = self.who();
        self.log.line(Level::Info, format!("connect from {who}"));
        self.greet(&settings)?;
        let (request, early_input) = self.request()?;
        let name = match request {
            ModuleRequest::List => return self.list(),
            ModuleRequest::Module(name) => name,
        };
        let config = self.config;
        match config.section(&name) {
            Some(section) => self.module(&name, section, &early_input),
            None => {
                let shown = name.to_str_lossy().into_owned();
                self.log.line(Level::Error, format!("unknown module '{shown}' tried from {who}"));
                self.unknown_module(&name)
            }
        }
    }

    /// Who calls, as logs show it.
    pub(super) fn who(&self) -> String {
        format!("{} ({})", self.host.name, self.host.address)
    }

    fn take_proxy_header(&mut self, settings: &Settings<'_>) -> Result<(), End> {
        if !access::is_listed(self.host.address, &settings.text("proxy protocol hosts")) {
            let address = self.host.address;
            self.log.line(Level::Error, format!("refused a connection that is not from a proxy: {address}"));
            return Err(End::Broken(Broken::Closed));
        }
        match self.conversation.proxy_header() {
            Ok(Named::Address(address)) => self.host.address = access::plain(address),
            Ok(Named::Socket) => {}
            Err(broken) => {
                self.log.line(Level::Error, format!("no proper proxy header from {}", self.host.address));
                return Err(broken.into());
            }
        }
        Ok(())
    }

    /// Asks for the name of the address while the resolver can be reached.
    fn name_host(&mut self) {
        let always = |_: &str| None;
        let wanted = self.config.global().flag("reverse lookup")
            || self.config.sections().iter().any(|section| section.settings(&always).flag("reverse lookup"));
        if !wanted {
            return;
        }
        self.host.name = match self.host.address {
            IpAddr::V4(address) if address.is_unspecified() => access::UNKNOWN.to_owned(),
            address => access::reverse_name(address),
        };
        if self.host.name == access::UNKNOWN && !self.host.address.is_unspecified() {
            let text = format!("name lookup failed for {}", self.host.address);
            self.log.line(Level::Info, text);
        }
    }

    /// `daemon chroot`, `daemon uid`, `daemon gid`.
    fn enter_daemon(&mut self, settings: &Settings<'_>) -> Result<(), End> {
        let failed = |what: &str, error: io::Error| format!("daemon {what} failed: {}", reason(&error));
        let enter = || -> Result<(), String> {
            if let Some(path) = settings.non_empty("daemon chroot") {
                let path = path.as_slice();
                rustix::process::chroot(path).map_err(|error| failed("chroot", error.into()))?;
                rustix::process::chdir("/").map_err(|error| failed("chdir", error.into()))?;
            }
            let identity =
                Identity::of_daemon(settings).map_err(|unknown| format!("daemon uid or gid: {unknown:?}"))?;
            identity.assume_groups().map_err(|error| failed("setgroups", error))?;
            identity.assume_user().map_err(|error| failed("setuid", error))
        };
        enter().map_err(|why| {
            self.log.line(Level::Error, why);
            End::Broken(Broken::Closed)
        })
    }

    fn greet(&mut self, settings: &Settings<'_>) -> Result<(), End> {
        let mut hello = Greeting::ours(self.version).to_line();
        if let Some(path) = settings.non_empty("motd file") {
            let path = std::path::Path::new(std::ffi::OsStr::from_bytes(&path));
            let mut text = Vec::new();
            if open_operator_file(path).and_then(|mut file| file.read_to_end(&mut text)).is_ok() {
                hello.extend_from_slice(&text);
                hello.push(b'\n');
            }
        }
        self.conversation.write(&hello)?;
        let line = self.conversation.line(DAEMON_REQUEST_MAX)?;
        let Some(greeting) = Greeting::parse(&line) else {
            return self.refuse("protocol startup error");
        };
        let shown = line.to_str_lossy();
        match greeting.missing() {
            Some(Missing::Subprotocol) => {
                return self.refuse(&format!("your client omitted the subprotocol value: {shown}"));
            }
            Some(Missing::Digests) => {
                return self.refuse(&format!("your client omitted the digest name list: {shown}"));
            }
            None => {}
        }
        match greeting.agree(self.version) {
            Ok(version) => self.version = version,
            Err(error) => return self.refuse(&error.to_string().replace('\n', " ")),
        }
        self.digests = greeting.digests;
        Ok(())
    }

    fn request(&mut self) -> Result<(ModuleRequest, Vec<u8>), End> {
        let mut early_input = Vec::new();
        loop {
            let line = self.conversation.line(DAEMON_REQUEST_MAX)?;
            match early_input_length(&line) {
                Some(Ok(length)) if early_input.is_empty() => {
                    early_input = self.conversation.bytes(length)?
                }
                Some(_) => return self.refuse("invalid early_input length"),
                None => match ModuleRequest::parse(&line) {
                    Some(request) => return Ok((request, early_input)),
                    None => {
                        let shown = line.to_str_lossy().into_owned();
                        return self.refuse(&format!("Unknown command '{shown}'"));
                    }
                },
            }
        }
    }

    fn list(&mut self) -> Result<u8, End> {
        let who = self.who();
        self.log.line(Level::Info, format!("module-list request from {who}"));
        let mut text = Vec::new();
        for section in self.config.sections() {
            let settings = section.settings(&super::config::environment);
            if settings.flag("list") {
                text.extend_from_slice(format!("{:<15}\t", section.name().as_bstr()).as_bytes());
                text.extend_from_slice(&settings.text("comment"));
                text.push(b'\n');
            }
        }
        text.extend_from_slice(b"@RSYNCD: EXIT\n");
        self.conversation.write(&text)?;
        Err(End::Answered)
    }

    fn refuse<T>(&mut self, why: &str) -> Result<T, End> {
        self.conversation.write(format!("@ERROR: {why}\n").as_bytes())?;
        Err(End::Answered)
    }

    fn unknown_module<T>(&mut self, name: &[u8]) -> Result<T, End> {
        let shown = name.to_str_lossy().into_owned();
        self.refuse(&format!("Unknown module '{shown}'"))
    }

    fn close<T>(&mut self, closed: &Closed) -> Result<T, End> {
        self.log.line(Level::Error, &closed.log);
        self.refuse(&closed.answer)
    }

    /// Ends without a word to the client.
    fn broken(&mut self, broken: &Broken) -> u8 {
        let who = self.who();
        match broken {
            Broken::Closed => ENDED,
            Broken::Interrupted => Code::Signal as u8,
            Broken::TooSlow => {
                self.log.line(Level::Error, format!("{who} was too slow: connection closed"));
                30
            }
            Broken::TooMany => {
                self.log.line(Level::Error, format!("too many daemon arguments from {who}"));
                Code::Protocol as u8
            }
        }
    }

    fn module(&mut self, name: &[u8], section: &Section, early_input: &[u8]) -> Result<u8, End> {
        let shown = name.to_str_lossy().into_owned();
        let mut variables = Variables::default();
        variables.set("RSYNC_MODULE_NAME", name);
        variables.set("RSYNC_HOST_ADDR", self.host.address.to_string());
        variables.set("RSYNC_PID", std::process::id().to_string());
        let settings_of = |variables: &Variables| variables.clone();
        let before_login = settings_of(&variables);
        let value = |name: &str| before_login.value(name);
        let settings = section.settings(&value);
        if !settings.flag("reverse lookup") {
            self.host.name = access::UNDETERMINED.to_owned();
        }
        variables.set("RSYNC_HOST_NAME", self.host.name.clone());
        self.log.enter(&settings);
        let patience = patience(&settings);
        self.conversation.restart(Some(patience));
        self.admit(name, &shown, &settings)?;
        let _slot = self.take_slot(&settings)?;
        let (user, grant) = self.log_in(&shown, &settings)?;
        variables.set("RSYNC_USER_NAME", user.clone());
        let after_login = settings_of(&variables);
        let value = |name: &str| after_login.value(name);
        let settings = section.settings(&value);
        let read_only = match grant {
            Grant::ReadOnly => true,
            Grant::ReadWrite => false,
            Grant::AsConfigured => settings.flag("read only"),
        };
        if let Some(name) = super::module::bad_chmod(&settings) {
            let text = format!("module {shown}: Invalid \"{name}\" directive.");
            return self.close(&Closed::new(format!("invalid {name}"), text));
        }
        let place = match Place::find(&shown, &settings) {
            Ok(place) => place,
            Err(closed) => return self.close(&closed),
        };
        let path = place.path.clone();
        variables.set("RSYNC_MODULE_PATH", path.clone());
        if let Some(code) = self.hooks_before(&settings, &variables, early_input)? {
            return Ok(code);
        }
        let pre_exec = self.pre_exec(&settings, &variables)?;
        let converter = self.converter(&settings, &variables)?;
        let hidden = match super::hiding::of(&settings) {
            Ok(hidden) => hidden,
            Err(why) => return self.close(&Closed::new("failed to read the module's filters", why)),
        };
        let access = if read_only { Access::Read } else { Access::Write };
        let temp_dir = settings.non_empty("temp dir").or_else(|| self.options.temp_dir.clone());
        let inside = match place.enter(
            name,
            access,
            settings.flag("insecure links"),
            settings.flag3("munge symlinks"),
            &self.log,
        ) {
            Ok(inside) => inside,
            Err(closed) => return self.close(&closed),
        };
        if let Some(converter) = converter {
            users::convert_by(converter);
        }
        self.conversation.write(b"@RSYNCD: OK\n")?;
        self.conversation.restart(Some(patience));
        let transfer = Transfer {
            module: name,
            path: &path,
            settings: &settings,
            user: &user,
            read_only,
            inside,
            hidden,
            temp_dir,
            pre_exec,
        };
        Ok(transfer.run(self)?)
    }

    /// `hosts allow` and `hosts deny`.
    fn admit(&mut self, name: &[u8], shown: &str, settings: &Settings<'_>) -> Result<(), End> {
        let lookups = if settings.flag("forward lookup") { Lookups::Forward } else { Lookups::Off };
        let (allow, deny) = (settings.text("hosts allow"), settings.text("hosts deny"));
        let who = self.who();
        if access::allows(&self.host, &allow, &deny, lookups) {
            self.log.line(Level::Info, format!("rsync allowed access on module {shown} from {who}"));
            return Ok(());
        }
        self.log.line(Level::Error, format!("rsync denied on module {shown} from {who}"));
        if !settings.flag("list") {
            return self.unknown_module(name);
        }
        self.refuse(&format!("access denied to {shown} from {who}"))
    }

    fn take_slot(&mut self, settings: &Settings<'_>) -> Result<slots::Slot, End> {
        let most = settings.number("max connections");
        match slots::take(&settings.text("lock file"), most) {
            Ok(slot) => Ok(slot),
            Err(NoSlot::Full) => {
                self.log.line(Level::Error, format!("max connections ({most}) reached"));
                self.refuse(&format!("max connections ({most}) reached -- try again later"))
            }
            Err(NoSlot::LockFile(error)) => {
                let path = settings.text("lock file");
                let text = format!("failed to open lock file {}: {}", path.as_bstr(), reason(&error));
                self.close(&Closed::new("failed to open lock file", text))
            }
        }
    }

    /// Asks for a login where the module wants one.
    fn log_in(&mut self, shown: &str, settings: &Settings<'_>) -> Result<(Vec<u8>, Grant), End> {
        if settings.text("auth users").trim().is_empty() {
            return Ok((Vec::new(), Grant::AsConfigured));
        }
        let Some(digest) = AuthDigest::choose(self.digests.as_deref(), self.version) else {
            let ours = AuthDigest::LISTED.map(AuthDigest::name).join(" ");
            return self
                .refuse(&format!("your client does not support one of our daemon-auth checksums: {ours}"));
        };
        let failed = format!("auth failed on module {shown}");
        let who = self.who();
        if let Some(floor) = settings.non_empty("auth digest") {
            let floor = AuthDigest::find(&floor.to_str_lossy());
            if !floor.is_some_and(|floor| digest.meets(floor)) {
                let text = format!("{failed} from {who}: {} is too weak a digest", digest.name());
                return self.close(&Closed::new(failed, text));
            }
        }
        let mut bytes = [0; 32];
        random::fill(&mut bytes).map_err(|_| End::Broken(Broken::Closed))?;
        let challenge = digest.challenge(&bytes);
        self.conversation.write(format!("@RSYNCD: AUTHREQD {challenge}\n").as_bytes())?;
        let answer = self.conversation.line(DAEMON_LINE_MAX)?;
        match secrets::check(&answer, &challenge, digest, settings) {
            Ok(granted) => Ok(granted),
            Err((user, why)) => {
                let text = format!("{failed} from {who} for {}: {}", user.as_bstr(), why.0);
                self.close(&Closed::new(failed, text))
            }
        }
    }

    /// Sets up `post-xfer exec` and runs `early exec`. Returns the code of a transfer that is over:
    /// this process was the one that waited for it.
    fn hooks_before(
        &mut self,
        settings: &Settings<'_>,
        variables: &Variables,
        early_input: &[u8],
    ) -> Result<Option<u8>, End> {
        if hooks::are_disabled() {
            return Ok(None);
        }
        if let Some(command) = self.command(settings, "post-xfer exec", variables)? {
            match process::watch_a_copy() {
                Ok(Copy::Worker) => {}
                Ok(Copy::Watcher(status)) => return Ok(Some(self.after(&command, variables, status))),
                Err(error) => {
                    let text = format!("cannot watch the transfer: {}", reason(&error));
                    return self.close(&Closed::new("post-xfer exec failed", text));
                }
            }
        }
        if let Some(command) = self.command(settings, "early exec", variables)? {
            let mut variables = variables.clone();
            variables.set("RSYNC_REQUEST", "(NONE)");
            let failed = |why: String| Closed::new("early exec failed", format!("early exec {why}"));
            match hooks::run(&command, &variables, early_input) {
                Ok((status, _)) if status.success() => {}
                Ok((status, _)) => {
                    let raw = hooks::raw_status(status);
                    return self.close(&failed(format!("returned failure ({raw})")));
                }
                Err(error) => return self.close(&failed(format!("failed: {}", reason(&error)))),
            }
        }
        Ok(None)
    }

    fn after(&mut self, command: &[u8], variables: &Variables, status: std::process::ExitStatus) -> u8 {
        let mut variables = variables.clone();
        let code = status.code().unwrap_or(-1);
        variables.set("RSYNC_EXIT_STATUS", code.to_string());
        variables.set("RSYNC_RAW_STATUS", hooks::raw_status(status).to_string());
        if let Err(error) = hooks::run(command, &variables, b"") {
            self.log.line(Level::Error, format!("post-xfer exec failed: {}", reason(&error)));
        }
        u8::try_from(code).unwrap_or(ENDED)
    }

    fn pre_exec(&mut self, settings: &Settings<'_>, variables: &Variables) -> Result<Option<PreExec>, End> {
        if hooks::are_disabled() {
            return Ok(None);
        }
        let Some(command) = self.command(settings, "pre-xfer exec", variables)? else { return Ok(None) };
        match PreExec::start(command, variables.clone()) {
            Ok(started) => Ok(Some(started)),
            Err(error) => {
                let text = format!("pre-xfer exec failed: {}", reason(&error));
                self.close(&Closed::new("pre-xfer exec failed", text))
            }
        }
    }

    /// Starts the program that knows names, while it can be reached.
    fn converter(
        &mut self,
        settings: &Settings<'_>,
        variables: &Variables,
    ) -> Result<Option<users::Converter>, End> {
        let Some(command) = self.command(settings, "name converter", variables)? else { return Ok(None) };
        match hooks::converter(&command, variables) {
            Ok(converter) => Ok(Some(converter)),
            Err(error) => {
                let text = format!("name converter failed: {}", reason(&error));
                self.close(&Closed::new("name converter failed", text))
            }
        }
    }

    /// Returns a command of the module with its variables filled in.
    fn command(
        &mut self,
        settings: &Settings<'_>,
        name: &str,
        variables: &Variables,
    ) -> Result<Option<Vec<u8>>, End> {
        let raw = settings.raw(name);
        if raw.is_empty() {
            return Ok(None);
        }
        match hooks::fill_in(&raw, variables) {
            Ok(command) => Ok(Some(command)),
            Err(hooks::Unsafe(variable)) => {
                let text = format!("{name}: the value of {variable} is not safe in a command");
                self.log.line(Level::Error, text);
                Err(End::Answered)
            }
        }
    }
}
