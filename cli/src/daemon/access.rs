//! Which hosts may use a module, and which may speak for others.
//!
//! A rule that cannot be judged denies: a name that does not resolve matches in `hosts deny` and
//! does not in `hosts allow`.
//! Wire: protocol/doc/03-daemon.md#310-access-control

use std::net::{IpAddr, ToSocketAddrs};

use suisei_engine::sys::hosts;

use crate::glob;

/// Who a client is, as far as its address tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The numeric address.
    pub address: IpAddr,
    /// The name it has in both directions; `UNKNOWN` or `UNDETERMINED` if none.
    pub name: String,
}

/// What a name is while look-ups are off.
pub const UNDETERMINED: &str = "UNDETERMINED";
/// What a name is that the resolver does not confirm.
pub const UNKNOWN: &str = "UNKNOWN";

/// The address as it is compared and shown: an IPv4 client of an IPv6 socket is an IPv4 client.
pub fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Looks an address up, and confirms that its name leads back to it.
pub fn reverse_name(address: IpAddr) -> String {
    let confirmed = |name: &String| {
        (name.as_str(), 0)
            .to_socket_addrs()
            .is_ok_and(|mut all| all.any(|found| plain(found.ip()) == address))
    };
    hosts::name_of(address).filter(confirmed).unwrap_or_else(|| UNKNOWN.to_owned())
}

/// Whether names of a list may be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookups {
    /// They may.
    Forward,
    /// Only addresses, and names that the client has, count.
    Off,
}

/// Which list a token stands in: what cannot be judged counts against the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Allow,
    Deny,
}

/// Whether a module lets a host in.
pub fn allows(host: &Host, allow: &[u8], deny: &[u8], lookups: Lookups) -> bool {
    let (allow, deny) = (tokens(allow), tokens(deny));
    if !allow.is_empty() {
        if allow.iter().any(|token| matches(host, token, lookups, List::Allow)) {
            return true;
        }
        if deny.is_empty() {
            return false;
        }
    }
    !deny.iter().any(|token| matches(host, token, lookups, List::Deny))
}

/// Whether an address is listed, for `proxy protocol hosts`: nobody if the list is empty.
pub fn is_listed(address: IpAddr, list: &[u8]) -> bool {
    let host = Host { address, name: UNDETERMINED.to_owned() };
    tokens(list).iter().any(|token| matches(&host, token, Lookups::Off, List::Allow))
}

fn tokens(list: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(list).to_lowercase();
    text.split([' ', ',', '\t']).filter(|token| !token.is_empty()).map(str::to_owned).collect()
}

fn matches(host: &Host, token: &str, lookups: Lookups, list: List) -> bool {
    let has_name = host.name != UNDETERMINED && host.name != UNKNOWN;
    let name = host.name.to_lowercase();
    if let Some(group) = token.strip_prefix('@') {
        let unknown = list == List::Deny;
        return has_name && hosts::in_netgroup(group, &host.name).unwrap_or(unknown);
    }
    if has_name && glob::matches(token.as_bytes(), name.as_bytes()) {
        return true;
    }
    if let Some(answer) = matches_address(host.address, token) {
        return answer;
    }
    let is_name = !token.contains([':', '/', '*', '?', '[']);
    if !is_name || lookups == Lookups::Off {
        // Without a name nothing of the client can be held against a pattern of names.
        return false;
    }
    match (token, 0).to_socket_addrs() {
        Ok(mut found) => found.any(|found| plain(found.ip()) == host.address),
        Err(_) => list == List::Deny,
    }
}

/// Compares with an address, with or without a mask; nothing if the token is no address. A mask
/// that cannot be read matches nothing.
fn matches_address(address: IpAddr, token: &str) -> Option<bool> {
    let (text, mask) = match token.split_once('/') {
        Some((text, mask)) => (text, Some(mask)),
        None => (token, None),
    };
    let text = text.split_once('%').map_or(text, |(text, _scope)| text);
    let network = plain(text.parse::<IpAddr>().ok()?);
    let (network, address, width) = match (network, address) {
        (IpAddr::V4(n), IpAddr::V4(a)) => (u128::from(n.to_bits()), u128::from(a.to_bits()), 32),
        (IpAddr::V6(n), IpAddr::V6(a)) => (n.to_bits(), a.to_bits(), 128),
        _ => return Some(false),
    };
    let all = if width == 32 { u128::from(u32::MAX) } else { u128::MAX };
    let mask = match mask {
        None => all,
        Some(mask) => match (mask.parse::<u32>(), mask.parse::<IpAddr>()) {
            (Ok(0), _) => 0,
            (Ok(bits), _) if bits <= width => (all << (width - bits)) & all,
            (_, Ok(IpAddr::V4(mask))) if width == 32 => u128::from(mask.to_bits()),
            (_, Ok(IpAddr::V6(mask))) if width == 128 => mask.to_bits(),
            _ => return Some(false),
        },
    };
    Some(network & mask == address & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: &str, name: &str) -> Host {
        Host { address: plain(address.parse().unwrap()), name: name.to_owned() }
    }

    #[test]
    fn addresses_masks_and_families() {
        let yes =
            |address: &str, token: &str| matches_address(host(address, "").address, token) == Some(true);
        for (address, token) in [
            ("10.1.2.3", "10.1.2.3"),
            ("10.1.2.3", "10.1.2.0/24"),
            ("10.1.2.3", "10.1.0.0/255.255.0.0"),
            ("10.1.2.3", "9.9.9.9/0"),
            ("::ffff:10.1.2.3", "10.1.2.3"),
            ("fe80::1", "fe80::1%eth0"),
            ("2001:db8::5", "2001:db8::/32"),
            ("2001:db8::5", "2001:db8::/ffff:ffff::"),
        ] {
            assert!(yes(address, token), "{address} {token}");
        }
        for (address, token) in [
            ("10.1.2.3", "10.1.3.0/24"),
            ("10.1.2.3", "10.1.2.0/33"),
            ("10.1.2.3", "10.1.2.0/x"),
            ("10.1.2.3", "::/0"),
            ("2001:db8::5", "0.0.0.0/0"),
        ] {
            assert!(!yes(address, token), "{address} {token}");
        }
        assert_eq!(matches_address("10.1.2.3".parse().unwrap(), "name.example"), None);
    }

    #[test]
    fn the_lists_decide_in_their_order() {
        let client = host("10.1.2.3", "box.example.org");
        let answer =
            |allow: &str, deny: &str| allows(&client, allow.as_bytes(), deny.as_bytes(), Lookups::Off);
        assert!(answer("", ""));
        assert!(answer("10.0.0.0/8", "*"));
        assert!(!answer("11.0.0.0/8", ""));
        assert!(answer("11.0.0.0/8", "12.0.0.0/8"));
        assert!(!answer("11.0.0.0/8", "*.Example.ORG"));
        assert!(answer("BOX.example.org", "*"));
        assert!(!answer("", "x 10.1.2.3,y"));
    }

    #[test]
    fn what_cannot_be_judged_denies() {
        let client = host("10.1.2.3", UNKNOWN);
        let name = "no-such-host.invalid";
        assert!(!allows(&client, b"", name.as_bytes(), Lookups::Forward));
        assert!(!allows(&client, name.as_bytes(), b"", Lookups::Forward));
        assert!(!is_listed(client.address, b""));
        assert!(is_listed(client.address, b"10.1.2.0/24"));
    }
}
