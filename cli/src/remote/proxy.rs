//! Ways to a daemon that the environment names: a program, or an HTTP proxy.
//!
//! Wire: protocol/doc/03-daemon.md#31-client-side-address-forms

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use crate::exit::{Code, Refusal};
use crate::options::environment::Environment;

/// Longest request and longest line of an answer, in bytes.
const LINE_MAX: usize = 1023;

/// A proxy, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Its machine.
    pub host: Vec<u8>,
    /// Its port.
    pub port: u32,
    login: Option<Vec<u8>>,
}

/// Reads `[USER:PASS@]HOST:PORT`.
pub fn parse(text: &[u8]) -> Result<Proxy, Refusal> {
    let refused = |text: String| Refusal::new(Code::Socket, text);
    let (login, place) = match text.iter().rposition(|&b| b == b'@') {
        Some(at) => (Some(text[..at].to_vec()), &text[at + 1..]),
        None => (None, text),
    };
    if login.as_ref().is_some_and(|login| !login.contains(&b':')) {
        return Err(refused("invalid proxy specification: should be USER:PASS@HOST:PORT".to_owned()));
    }
    let at = place
        .iter()
        .rposition(|&b| b == b':')
        .ok_or_else(|| refused("invalid proxy specification: should be HOST:PORT".to_owned()))?;
    let (host, service) = (&place[..at], String::from_utf8_lossy(&place[at + 1..]));
    let port = service.parse().map_err(|_| {
        let host = String::from_utf8_lossy(host);
        refused(format!("rsync: getaddrinfo: {host} {service}: Servname not supported for ai_socktype"))
    })?;
    Ok(Proxy { host: place[..at].to_vec(), port, login })
}

impl Proxy {
    /// Asks the proxy, over a connection to it, for a way to a daemon.
    pub fn open(&self, socket: &OwnedFd, host: &[u8], port: u32) -> Result<(), Refusal> {
        let refused = |text: String| Refusal::new(Code::Socket, text);
        let request = self
            .request(host, port)
            .ok_or_else(|| refused("proxy: the host name cannot be sent".to_owned()))?;
        write_all(socket, &request).map_err(|error| refused(format!("failed to write to proxy: {error}")))?;
        let read =
            || read_line(socket).map_err(|error| refused(format!("failed to read from proxy: {error}")));
        let status = read()?;
        if !accepts(&status) {
            let text = [b"bad response from proxy -- ".as_slice(), &status].concat();
            return Err(Refusal::new(Code::Socket, text));
        }
        while !read()?.is_empty() {}
        Ok(())
    }

    fn request(&self, host: &[u8], port: u32) -> Option<Vec<u8>> {
        if host.iter().any(|&b| b < 0x20 || b == 0x7f) {
            return None;
        }
        let mut request = [b"CONNECT ", host, format!(":{port} HTTP/1.0\r\n").as_bytes()].concat();
        if let Some(login) = &self.login {
            request.extend(format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(login)).into_bytes());
        }
        request.extend_from_slice(b"\r\n");
        (request.len() <= LINE_MAX).then_some(request)
    }
}

/// Whether a status line says 2xx.
fn accepts(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"HTTP/") else { return false };
    let version = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    let blanks = rest[version..].iter().take_while(|&&b| b == b' ').count();
    blanks > 0 && rest[version + blanks..].starts_with(b"2")
}

/// Reads one line byte by byte: what follows the header belongs to the daemon.
fn read_line(socket: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        match rustix::io::read(socket, &mut byte) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() >= LINE_MAX => return Err(io::ErrorKind::InvalidData.into()),
            Ok(_) => line.push(byte[0]),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(line)
}

/// Writes all bytes to a descriptor.
pub fn write_all(fd: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Runs the program of `RSYNC_CONNECT_PROG`; a socket stands for its stdin and stdout.
pub fn run_program(text: &[u8], host: &[u8], environment: &Environment) -> Result<OwnedFd, Refusal> {
    let command = expand(text, host).ok_or_else(|| {
        Refusal::new(Code::Socket, [b"invalid host name for RSYNC_CONNECT_PROG: ".as_slice(), host].concat())
    })?;
    let failed =
        |error: io::Error| Refusal::new(Code::Ipc, format!("rsync: cannot run RSYNC_CONNECT_PROG: {error}"));
    let (ours, theirs) = net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)
        .map_err(|error| failed(error.into()))?;
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    use std::os::unix::ffi::OsStrExt;
    let shell = environment.non_empty("RSYNC_SHELL").unwrap_or(b"/bin/sh");
    let input = theirs.try_clone().map_err(failed)?;
    Command::new(std::ffi::OsStr::from_bytes(shell))
        .arg("-c")
        .arg(std::ffi::OsStr::from_bytes(&command))
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(theirs))
        .spawn()
        .map_err(failed)?;
    Ok(ours)
}

/// Replaces `%H` by the quoted host; nothing if the host could be misread by a shell.
fn expand(text: &[u8], host: &[u8]) -> Option<Vec<u8>> {
    if !text.contains(&b'%') {
        return Some(text.to_vec());
    }
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"._:-%+~".contains(b);
    if host.is_empty() || !host.iter().all(plain) || b"-+~%".contains(&host[0]) {
        return None;
    }
    let mut out = Vec::new();
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.peek()) {
            (b'%', Some(b'H')) => {
                bytes.next();
                out.extend_from_slice(&[b"'", host, b"'"].concat());
            }
            (b'%', Some(b'%')) => {
                bytes.next();
                out.push(b'%');
            }
            _ => out.push(byte),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_the_one_that_stock_sends() {
        let proxy = parse(b"u:pw@proxy:3128").unwrap();
        assert_eq!((proxy.host.as_slice(), proxy.port), (b"proxy".as_slice(), 3128));
        let request = proxy.request(b"target.example", 8730).unwrap();
        assert_eq!(
            String::from_utf8(request).unwrap(),
            "CONNECT target.example:8730 HTTP/1.0\r\nProxy-Authorization: Basic dTpwdw==\r\n\r\n"
        );
        assert_eq!(proxy.request(b"a\r\nb", 1), None);
        assert!(parse(b"proxy").is_err());
    }

    #[test]
    fn only_a_2xx_answer_opens_the_way() {
        assert!(accepts(b"HTTP/1.0 200 Connection established"));
        assert!(accepts(b"HTTP/1.1   204"));
        assert!(!accepts(b"HTTP/1.0 403 Forbidden"));
        assert!(!accepts(b"HTTP/1.0200"));
        assert!(!accepts(b"SSH-2.0"));
    }

    #[test]
    fn hosts_reach_a_shell_only_quoted_and_plain() {
        assert_eq!(expand(b"ssh %H nc %% %x", b"h.example").unwrap(), b"ssh 'h.example' nc % %x");
        assert_eq!(expand(b"nc", b"any;thing").unwrap(), b"nc");
        assert_eq!(expand(b"nc %H", b"-x"), None);
        assert_eq!(expand(b"nc %H", b"a b"), None);
    }
}
