//! The listening process: sockets, children, its own end.
//!
//! It reads nothing of any client. A connection becomes the standard input of a child of the same
//! program with the same words, which finds a socket there and serves it.
//! Wire: protocol/doc/03-daemon.md#36-listening-daemon

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::net::{self, sockopt, AddressFamily, SocketFlags, SocketType};
use suisei_engine::sys::process;
use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};

use super::config::Config;
use super::confine;
use super::log::{Level, Log};
use super::options::DaemonOptions;
use super::pid_file::PidFile;
use crate::exit::Code;
use crate::options::help::COMPATIBLE;
use crate::options::typed::Family;
use crate::output::{final_line, reason, Channel};
use crate::remote::socket::{set_options, DAEMON_PORT};

/// How long accepting rests when the process has run out of descriptors or memory.
const REST: Duration = Duration::from_millis(500);

/// Listens until a signal ends it. `words` are the command line that children get too.
pub fn run(options: &DaemonOptions, config: &Config, words: &[OsString]) -> u8 {
    let settings = config.global();
    if !options.no_detach {
        if let Err(error) = process::detach() {
            super::screen()
                .line(Channel::Err, format!("rsync: cannot detach: {}", reason(&error)).as_bytes());
            return Code::Ipc as u8;
        }
    }
    let log = Log::open(options.log_file.as_deref(), &settings);
    super::log_mistakes(&log, config);
    let fail = |code: Code, text: &str| {
        log.line(Level::Error, text);
        log.line(Level::Error, final_line(code as u8, "Receiver"));
        code as u8
    };
    let pid_file = match settings.non_empty("pid file").map(|path| PidFile::take(&path)).transpose() {
        Ok(file) => file,
        Err(why) => {
            super::screen().line(Channel::Err, why.as_bytes());
            return fail(Code::File, &why);
        }
    };
    if !options.no_detach {
        if let Err(error) = leave_terminal() {
            return fail(Code::Ipc, &format!("rsync: cannot leave the terminal: {}", reason(&error)));
        }
    }
    let port = port(options, config);
    log.line(Level::Info, format!("rsyncd version {COMPATIBLE} starting, listening on port {port}"));
    if settings.flag("proxy protocol") && settings.non_empty("proxy protocol hosts").is_none() {
        log.line(
            Level::Error,
            "\"proxy protocol\" without \"proxy protocol hosts\": every connection is refused",
        );
    }
    if !confine::is_possible() {
        let text = "the kernel has no Landlock: connections are kept in their modules by this program alone";
        log.line(Level::Info, text);
    }
    let sockets = match bind_all(options, config, port, &log) {
        Ok(sockets) => sockets,
        Err(why) => return fail(Code::Socket, &why),
    };
    let served = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| runtime.block_on(serve(sockets, words, &log)));
    drop(pid_file);
    match served {
        Ok(()) => fail(Code::Signal, ""),
        Err(error) => fail(Code::Socket, &format!("rsync: cannot serve: {}", reason(&error))),
    }
}

/// Puts `/dev/null` in the place of the three standard streams.
fn leave_terminal() -> io::Result<()> {
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}

fn port(options: &DaemonOptions, config: &Config) -> u16 {
    let said = options.port.map(i64::from).filter(|port| *port != 0);
    let port = said.unwrap_or_else(|| config.global().number("port"));
    u16::try_from(port).ok().filter(|port| *port != 0).unwrap_or(DAEMON_PORT as u16)
}

/// Binds every address; it is enough that one can be bound.
fn bind_all(options: &DaemonOptions, config: &Config, port: u16, log: &Log) -> Result<Vec<OwnedFd>, String> {
    let settings = config.global();
    let address = options.address.clone().or_else(|| settings.non_empty("address"));
    let wanted = match address.map(|address| String::from_utf8_lossy(&address).into_owned()) {
        Some(name) => (name.as_str(), port)
            .to_socket_addrs()
            .map_err(|error| format!("rsync: getaddrinfo: bind address {name}: {error}"))?
            .collect::<Vec<SocketAddr>>(),
        None => vec![(Ipv4Addr::UNSPECIFIED, port).into(), (Ipv6Addr::UNSPECIFIED, port).into()],
    };
    let fits = |address: &SocketAddr| match options.family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    let sockopts = options.sockopts.clone().or_else(|| settings.non_empty("socket options"));
    let sockopts = String::from_utf8_lossy(&sockopts.unwrap_or_default()).into_owned();
    let backlog = i32::try_from(settings.number("listen backlog")).unwrap_or(5).max(0);
    let mut sockets: Vec<OwnedFd> = Vec::new();
    let mut complaints = Vec::new();
    for address in wanted.into_iter().filter(fits) {
        match bind(address, &sockopts, backlog, log) {
            Ok(socket) => sockets.push(socket),
            Err((call, error)) => {
                let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
                let why = reason(&error);
                let why = why.rsplit_once(" (").map_or(why.as_str(), |(why, _)| why);
                complaints.push(format!("{call}() failed: {why} (address-family {})", family.as_raw()));
            }
        }
    }
    if sockets.is_empty() {
        complaints.push(format!("unable to bind any inbound sockets on port {port}"));
        return Err(complaints.join("\n"));
    }
    Ok(sockets)
}

fn bind(
    address: SocketAddr,
    sockopts: &str,
    backlog: i32,
    log: &Log,
) -> Result<OwnedFd, (&'static str, io::Error)> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let at = |call: &'static str| move |error: rustix::io::Errno| (call, io::Error::from(error));
    let socket =
        net::socket_with(family, SocketType::STREAM, SocketFlags::empty(), None).map_err(at("socket"))?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC).map_err(at("socket"))?;
    rustix::io::ioctl_fionbio(&socket, true).map_err(at("socket"))?;
    sockopt::set_socket_reuseaddr(&socket, true).map_err(at("setsockopt"))?;
    set_options(&socket, sockopts, &mut |line| log.line(Level::Error, line));
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true).map_err(at("setsockopt"))?;
    }
    net::bind(&socket, &address).map_err(at("bind"))?;
    net::listen(&socket, backlog).map_err(at("listen"))?;
    Ok(socket)
}

/// Accepts until a signal.
async fn serve(sockets: Vec<OwnedFd>, words: &[OsString], log: &Log) -> io::Result<()> {
    let (mut terminate, mut interrupt, mut hang_up) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
    let (connected, mut connections) = tokio::sync::mpsc::channel::<OwnedFd>(1);
    for socket in sockets {
        let listener = TcpListener::from_std(socket.into())?;
        let connected = connected.clone();
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let Ok(stream) = stream.into_std() else { continue };
                        if connected.send(stream.into()).await.is_err() {
                            return;
                        }
                    }
                    Err(_) => tokio::time::sleep(REST).await,
                }
            }
        });
    }
    loop {
        tokio::select! {
            Some(connection) = connections.recv() => {
                if let Err(error) = hand_over(connection, words) {
                    log.line(Level::Error, format!("could not create child server process: {}", reason(&error)));
                    tokio::time::sleep(REST).await;
                }
            }
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = hang_up.recv() => return Ok(()),
        }
    }
}

/// Starts the child that serves a connection.
fn hand_over(connection: OwnedFd, words: &[OsString]) -> io::Result<()> {
    rustix::io::ioctl_fionbio(&connection, false)?;
    // A peer that vanishes without a word must not hold a child for ever.
    let _ = sockopt::set_socket_keepalive(&connection, true);
    let mut child = tokio::process::Command::new(own_program())
        .args(words)
        .stdin(Stdio::from(connection))
        .stdout(Stdio::null())
        .kill_on_drop(false)
        .spawn()?;
    tokio::spawn(async move {
        let _ = child.wait().await;
    });
    Ok(())
}

/// The program that runs now, even if its file was replaced.
fn own_program() -> PathBuf {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() {
        return running;
    }
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("rsync"))
}
