//! Names of hosts: the questions to the resolver that the standard library does not ask.

use std::ffi::{CStr, CString};
use std::mem::size_of;
use std::net::IpAddr;

use nix::libc;

/// Longest name that a resolver gives.
const NAME_BYTES: usize = 1025;

/// Returns the name of an address, if it has one.
pub fn name_of(address: IpAddr) -> Option<String> {
    let mut name = [0 as libc::c_char; NAME_BYTES];
    let (storage, length) = socket_address(address);
    // SAFETY: the address is initialised for `length` bytes, and the buffer is as long as said.
    let failed = unsafe {
        libc::getnameinfo(
            std::ptr::from_ref(&storage).cast(),
            length,
            name.as_mut_ptr(),
            NAME_BYTES as libc::socklen_t,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    if failed != 0 {
        return None;
    }
    // SAFETY: on success the buffer holds a string with its NUL.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    Some(name.to_str().ok()?.to_owned())
}

#[allow(clippy::cast_possible_truncation)]
fn socket_address(address: IpAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all of these are plain integers, for which zero is a value.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let length = match address {
        IpAddr::V4(v4) => {
            // SAFETY: a sockaddr_storage has the size and alignment of every socket address.
            let socket = unsafe { &mut *std::ptr::from_mut(&mut storage).cast::<libc::sockaddr_in>() };
            socket.sin_family = libc::AF_INET as libc::sa_family_t;
            socket.sin_addr.s_addr = u32::from_ne_bytes(v4.octets());
            size_of::<libc::sockaddr_in>()
        }
        IpAddr::V6(v6) => {
            // SAFETY: as above.
            let socket = unsafe { &mut *std::ptr::from_mut(&mut storage).cast::<libc::sockaddr_in6>() };
            socket.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            socket.sin6_addr.s6_addr = v6.octets();
            size_of::<libc::sockaddr_in6>()
        }
    };
    #[cfg(target_vendor = "apple")]
    {
        storage.ss_len = length as u8;
    }
    (storage, length as libc::socklen_t)
}

/// Whether a host belongs to a netgroup; nothing where the platform cannot tell.
pub fn in_netgroup(group: &str, host: &str) -> Option<bool> {
    #[cfg(any(target_env = "gnu", target_vendor = "apple"))]
    {
        extern "C" {
            fn innetgr(
                group: *const libc::c_char,
                host: *const libc::c_char,
                user: *const libc::c_char,
                domain: *const libc::c_char,
            ) -> libc::c_int;
        }
        let (group, host) = (CString::new(group).ok()?, CString::new(host).ok()?);
        // SAFETY: both strings end in NUL and live through the call; the others may be null.
        let found = unsafe { innetgr(group.as_ptr(), host.as_ptr(), std::ptr::null(), std::ptr::null()) };
        Some(found == 1)
    }
    #[cfg(not(any(target_env = "gnu", target_vendor = "apple")))]
    {
        let _ = (CString::new(group), host);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_a_name_and_a_documentation_address_has_none() {
        if let Some(name) = name_of("127.0.0.1".parse().unwrap()) {
            assert!(!name.is_empty() && name.parse::<IpAddr>().is_err());
        }
        assert_eq!(name_of("192.0.2.1".parse().unwrap()), None);
        assert_ne!(in_netgroup("no-such-netgroup", "localhost"), Some(true));
    }
}
