//! The header by which a trusted proxy says whom it speaks for.
//!
//! Wire: protocol/doc/03-daemon.md#37-proxy-protocol

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bstr::ByteSlice;

/// What the second form of header begins with.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Longest line of the first form, its end included.
const LINE_MAX: usize = 107;
/// Longest body of the second form.
const BODY_MAX: usize = 216;

/// Whom a header names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// This address.
    Address(IpAddr),
    /// Nobody: the address of the socket counts.
    Socket,
}

/// How far the reading of a header is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// It ends after so many bytes.
    Complete(usize, Named),
    /// So many bytes in all are needed before more can be told: never one beyond the header.
    Need(usize),
    /// It is none.
    Malformed,
}

/// Reads a header from its first bytes.
pub fn read(bytes: &[u8]) -> Header {
    let start = bytes.len().min(SIGNATURE.len());
    if bytes.len() > 1 && bytes[..start] == SIGNATURE[..start] {
        return read_binary(bytes);
    }
    let start = bytes.len().min(b"PROXY ".len());
    if bytes[..start] != b"PROXY "[..start] && bytes[..start] != SIGNATURE[..start] {
        return Header::Malformed;
    }
    match bytes.find_byte(b'\n') {
        Some(end) => read_line(&bytes[..=end]),
        None if bytes.len() >= LINE_MAX => Header::Malformed,
        // Byte by byte: what follows the line is the client's.
        None => Header::Need(bytes.len() + 1),
    }
}

fn read_line(line: &[u8]) -> Header {
    let length = line.len();
    let Some(text) = line.strip_suffix(b"\r\n").and_then(|text| text.to_str().ok()) else {
        return Header::Malformed;
    };
    if length > LINE_MAX {
        return Header::Malformed;
    }
    if text.strip_prefix("PROXY UNKNOWN").is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')) {
        return Header::Complete(length, Named::Socket);
    }
    let words: Vec<&str> = text.split(' ').collect();
    let ["PROXY", family, source, destination, from, to] = words[..] else { return Header::Malformed };
    let port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0 && !text.starts_with('+'));
    let address = |text: &str| match family {
        "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        _ => None,
    };
    match (address(source), address(destination)) {
        (Some(source), Some(_)) if port(from) && port(to) => Header::Complete(length, Named::Address(source)),
        _ => Header::Malformed,
    }
}

fn read_binary(bytes: &[u8]) -> Header {
    let Some(fixed) = bytes.get(..16) else { return Header::Need(16) };
    let (version, family) = (fixed[12], fixed[13]);
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if version >> 4 != 2 || length > BODY_MAX {
        return Header::Malformed;
    }
    let Some(body) = bytes.get(16..16 + length) else { return Header::Need(16 + length) };
    let named = match (version & 15, family, length) {
        (0, ..) => Named::Socket,
        (1, 0x11, 12) => match body.first_chunk::<4>() {
            Some(address) => Named::Address(Ipv4Addr::from(*address).into()),
            None => return Header::Malformed,
        },
        (1, 0x21, 36) => match body.first_chunk::<16>() {
            Some(address) => Named::Address(Ipv6Addr::from(*address).into()),
            None => return Header::Malformed,
        },
        (1, 0x11 | 0x21, _) => return Header::Malformed,
        (1, ..) => Named::Socket,
        _ => return Header::Malformed,
    };
    Header::Complete(16 + length, named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_an_address_and_end_where_they_end() {
        let line = b"PROXY TCP4 192.0.2.7 10.0.0.1 5000 873\r\n";
        let named = Named::Address("192.0.2.7".parse().unwrap());
        assert_eq!(read(line), Header::Complete(line.len(), named));
        assert_eq!(read(&line[..20]), Header::Need(21));
        assert_eq!(read(b""), Header::Need(1));
        assert_eq!(read(b"PROXY UNKNOWN any thing\r\n"), Header::Complete(25, Named::Socket));
        let six = b"PROXY TCP6 2001:db8::1 ::1 5000 873\r\n";
        assert_eq!(read(six), Header::Complete(six.len(), Named::Address("2001:db8::1".parse().unwrap())));
        for bad in [
            "PROXY TCP4 192.0.2.7 10.0.0.1 5000 873\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 0 873\r\n",
            "PROXY TCP4 ::1 ::1 5000 873\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 5000\r\n",
            "PROXY UDP4 192.0.2.7 10.0.0.1 5000 873\r\n",
            "PROXY TCP4 host 10.0.0.1 5000 873\r\n",
            "@RSYNCD: 32.0\n",
        ] {
            assert_eq!(read(bad.as_bytes()), Header::Malformed, "{bad}");
        }
        assert_eq!(read(&[b"PROXY ".as_slice(), &[b'x'; 101]].concat()), Header::Malformed);
    }

    fn binary(version: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [SIGNATURE, &[version, family], &length, body].concat()
    }

    #[test]
    fn the_second_form_has_exact_lengths() {
        let four = binary(0x21, 0x11, &[192, 0, 2, 7, 10, 0, 0, 1, 19, 136, 3, 105]);
        assert_eq!(read(&four), Header::Complete(28, Named::Address("192.0.2.7".parse().unwrap())));
        assert_eq!(read(&four[..13]), Header::Need(16));
        assert_eq!(read(&four[..16]), Header::Need(28));
        assert_eq!(read(&binary(0x20, 0, b"xyz")), Header::Complete(19, Named::Socket));
        assert_eq!(read(&binary(0x21, 0x31, b"xyz")), Header::Complete(19, Named::Socket));
        assert_eq!(read(&binary(0x21, 0x11, &[0; 13])), Header::Malformed, "no extensions");
        assert_eq!(read(&binary(0x11, 0x11, &[0; 12])), Header::Malformed);
        assert_eq!(read(&binary(0x22, 0x11, &[0; 12])), Header::Malformed);
        assert_eq!(read(&binary(0x21, 0x11, &[0; 217])), Header::Malformed);
        let mut six = [0; 36];
        six[15] = 1;
        assert_eq!(
            read(&binary(0x21, 0x21, &six)),
            Header::Complete(52, Named::Address("::1".parse().unwrap()))
        );
    }
}
