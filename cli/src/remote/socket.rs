//! TCP to a daemon: every address in turn, with the user's socket options.
//!
//! Wire: protocol/doc/03-daemon.md#31-client-side-address-forms

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{self, sockopt, AddressFamily, SocketFlags, SocketType};
use suisei_engine::link::Stream;

use super::wait;
use crate::exit::{Code, Refusal};
use crate::options::typed::{Connect, Family};
use crate::output::info::{Debug, DebugLevels};
use crate::output::{reason, Channel, Screen};

/// The daemon's port if nothing else is said.
pub const DAEMON_PORT: u32 = 873;

/// What it takes to connect.
pub struct Dialing<'a> {
    /// Address family, own address, socket options, patience.
    pub wishes: &'a Connect,
    /// This end's role in messages.
    pub who: &'a str,
    /// How much is said of it.
    pub debug: &'a DebugLevels,
    /// For addresses that do not answer.
    pub screen: &'a Screen,
    /// Set by a signal.
    pub interrupted: &'a AtomicBool,
}

impl Dialing<'_> {
    /// Connects to the first address of `host` that answers.
    pub fn connect(&self, host: &[u8], port: u32) -> Result<OwnedFd, Refusal> {
        let patience = Some(self.wishes.timeout).filter(|&seconds| seconds > 0);
        let deadline = patience.map(|seconds| Instant::now() + Duration::from_secs(seconds as u64));
        let from = match &self.wishes.address {
            Some(text) => resolve(text, 0, self.wishes.family)?,
            None => Vec::new(),
        };
        self.trace(1, &format!("opening tcp connection to {} port {port}", String::from_utf8_lossy(host)));
        for address in resolve(host, port, self.wishes.family)? {
            match self.attempt(address, &from, deadline) {
                Ok(socket) => {
                    let name = String::from_utf8_lossy(host);
                    self.trace(2, &format!("Connected to {name} ({})", address.ip()));
                    return Ok(socket);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    return Err(Refusal::silent(Code::Signal));
                }
                Err(_) if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                    return Err(Refusal::silent(Code::ConnectTimeout));
                }
                Err(error) => {
                    let host = String::from_utf8_lossy(host);
                    let (who, ip, why) = (self.who, address.ip(), reason(&error));
                    let line = format!("rsync: [{who}] failed to connect to {host} ({ip}): {why}");
                    self.screen.line(Channel::Err, line.as_bytes());
                }
            }
        }
        Err(Refusal::silent(Code::Socket))
    }

    /// Says how the connection comes about (debug CONNECT).
    fn trace(&self, level: u8, line: &str) {
        if self.debug.of(Debug::Connect) >= level {
            self.screen.line(Channel::Out, line.as_bytes());
        }
    }

    fn attempt(
        &self,
        address: SocketAddr,
        from: &[SocketAddr],
        deadline: Option<Instant>,
    ) -> io::Result<OwnedFd> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::empty(), None)?;
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        if let Some(list) = &self.wishes.sockopts {
            let mut say = |line: &str| self.screen.line(Channel::Err, line.as_bytes());
            set_options(&socket, &String::from_utf8_lossy(list), &mut say);
        }
        if !from.is_empty() {
            let from = from.iter().find(|from| from.is_ipv4() == address.is_ipv4());
            net::bind(&socket, from.ok_or(io::ErrorKind::AddrNotAvailable)?)?;
        }
        rustix::io::ioctl_fionbio(&socket, true)?;
        match net::connect(&socket, &address) {
            Ok(()) => {}
            Err(Errno::INPROGRESS) => {
                wait::until(&socket, PollFlags::OUT, deadline, self.interrupted)?;
                sockopt::socket_error(&socket)?.map_err(io::Error::from)?;
            }
            Err(error) => return Err(error.into()),
        }
        rustix::io::ioctl_fionbio(&socket, false)?;
        // Our writes are whole frames already: waiting for more to send only adds latency.
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        Ok(socket)
    }
}

fn resolve(host: &[u8], port: u32, family: Family) -> Result<Vec<SocketAddr>, Refusal> {
    let name = String::from_utf8_lossy(host);
    let refused = |why: &str| Refusal::new(Code::Socket, format!("rsync: getaddrinfo: {name} {port}: {why}"));
    let number = u16::try_from(port).map_err(|_| refused("Servname not supported for ai_socktype"))?;
    let found = (name.as_ref(), number).to_socket_addrs().map_err(|error| {
        let text = error.to_string();
        refused(text.rsplit(": ").next().unwrap_or(&text))
    })?;
    let fits = |address: &SocketAddr| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    let addresses: Vec<SocketAddr> = found.filter(fits).collect();
    if addresses.is_empty() {
        return Err(refused("Address family for hostname not supported"));
    }
    Ok(addresses)
}

/// Makes a stream of a socket: both directions.
pub fn stream(socket: OwnedFd) -> io::Result<Stream> {
    let input = socket.try_clone()?;
    Ok(Stream { input, output: socket, early: Vec::new() })
}

/// Sets options from a list; what cannot be set is said and left alone.
pub fn set_options(socket: &OwnedFd, list: &str, say: &mut dyn FnMut(&str)) {
    for item in list.split([' ', '\t', ',']).filter(|item| !item.is_empty()) {
        let (name, value) = item.split_once('=').unwrap_or((item, "1"));
        let value: u32 = value.parse().unwrap_or(0);
        let line = match set_option(socket, name, value) {
            None => format!("Unknown socket option {name}"),
            Some(Ok(())) => continue,
            Some(Err(error)) => {
                format!("rsync: failed to set socket option {name}: {}", reason(&io::Error::from(error)))
            }
        };
        say(&line);
    }
}

fn set_option(socket: &OwnedFd, name: &str, value: u32) -> Option<rustix::io::Result<()>> {
    let on = value != 0;
    let timeout = Some(Duration::from_secs(u64::from(value))).filter(|_| on);
    Some(match name {
        "SO_KEEPALIVE" => sockopt::set_socket_keepalive(socket, on),
        "SO_REUSEADDR" => sockopt::set_socket_reuseaddr(socket, on),
        "SO_BROADCAST" => sockopt::set_socket_broadcast(socket, on),
        "SO_SNDBUF" => sockopt::set_socket_send_buffer_size(socket, value as usize),
        "SO_RCVBUF" => sockopt::set_socket_recv_buffer_size(socket, value as usize),
        "SO_SNDTIMEO" => sockopt::set_socket_timeout(socket, sockopt::Timeout::Send, timeout),
        "SO_RCVTIMEO" => sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, timeout),
        // No kernel of ours lets these two be set.
        "SO_SNDLOWAT" | "SO_RCVLOWAT" => Err(Errno::NOPROTOOPT),
        "TCP_NODELAY" => sockopt::set_tcp_nodelay(socket, on),
        "IPTOS_LOWDELAY" => set_service(socket, 0x10),
        "IPTOS_THROUGHPUT" => set_service(socket, 0x08),
        _ => return None,
    })
}

#[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "netbsd"))]
fn set_service(socket: &OwnedFd, value: u8) -> rustix::io::Result<()> {
    sockopt::set_ip_tos(socket, value)
}

#[cfg(not(any(target_os = "linux", target_os = "freebsd", target_os = "netbsd")))]
fn set_service(_socket: &OwnedFd, _value: u8) -> rustix::io::Result<()> {
    Err(Errno::NOPROTOOPT)
}
