//! Which attributes take part, and what they are called on the other side.
//!
//! Linux has namespaces in front of its names, and the wire speaks Linux. Elsewhere there is one
//! flat space: everything there is the user's.
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#which-names-are-copied-linux

use crate::filter::FilterSide;
use crate::options::{Preserve, Xattrs};
use crate::Context;

/// Namespace of the user's own attributes on the wire.
const USER: &[u8] = b"user.";
/// What kept privileged names begin with on disk.
const KEPT: &[u8] = if cfg!(target_os = "linux") { b"user.rsync." } else { b"rsync." };
/// The same on the wire.
const KEPT_ON_WIRE: &[u8] = b"user.rsync.";
/// What the names of stored metadata go on with.
const OWN_MARK: u8 = b'%';

/// What decides about names at one end.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    ctx: &'a Context,
    side: FilterSide,
}

impl<'a> Names<'a> {
    pub(super) fn of(ctx: &'a Context, side: FilterSide) -> Self {
        Names { ctx, side }
    }

    fn preserve(&self) -> &Preserve {
        &self.ctx.options.preserve
    }

    /// Returns the wire name of an attribute of a source; nothing if it does not travel.
    pub(super) fn to_wire(self, local: &[u8]) -> Option<Vec<u8>> {
        if !self.takes(local) {
            return None;
        }
        let kept = local.strip_prefix(KEPT);
        if let (Some(own), true) = (kept, self.preserve().fake_super) {
            return Some(own.to_vec());
        }
        if cfg!(target_os = "linux") {
            return Some(local.to_vec());
        }
        match kept {
            Some([OWN_MARK, ..]) | None => Some([USER, local].concat()),
            Some(own) => Some(own.to_vec()),
        }
    }

    /// Returns the name under which an attribute from the wire is stored; nothing if it is not.
    pub(super) fn to_local(self, wire: &[u8]) -> Option<Vec<u8>> {
        if is_own(KEPT_ON_WIRE, wire) && self.preserve().xattrs != Xattrs::All {
            return None;
        }
        let filtered = self.ctx.xattr_filters.excludes(self.side, wire);
        match filtered {
            Some(true) => return None,
            None if wire.starts_with(b"system.") => return None,
            _ => {}
        }
        let preserve = self.preserve();
        let own = wire.strip_prefix(USER);
        if cfg!(target_os = "linux") {
            let as_is = own.is_some() || (preserve.super_user && !preserve.fake_super);
            return match as_is {
                true => Some(wire.to_vec()),
                false if preserve.fake_super || filtered.is_some() => Some([KEPT, wire].concat()),
                false => None,
            };
        }
        match own {
            Some(own) => Some(own.to_vec()),
            None if preserve.super_user || preserve.fake_super => Some([KEPT, wire].concat()),
            None => None,
        }
    }

    /// Whether an attribute of an item takes part: is sent, or compared and removed.
    pub(super) fn takes(self, local: &[u8]) -> bool {
        let preserve = self.preserve();
        if is_own(KEPT, local) && (preserve.xattrs != Xattrs::All || preserve.fake_super) {
            return false;
        }
        match self.ctx.xattr_filters.excludes(self.side, local) {
            Some(excluded) => !excluded,
            None if !cfg!(target_os = "linux") => true,
            None if self.side == FilterSide::Receiver => {
                local.starts_with(USER)
                    || (preserve.super_user && !preserve.fake_super && !local.starts_with(b"system."))
            }
            None => !local.starts_with(b"system."),
        }
    }
}

/// Whether a name is that of metadata that `--fake-super` stores.
fn is_own(kept: &[u8], name: &[u8]) -> bool {
    name.strip_prefix(kept).is_some_and(|rest| rest.first() == Some(&OWN_MARK))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use suisei_protocol::session::Recursion;

    use super::*;
    use crate::source::tests as support;
    use crate::TransferOptions;

    fn ctx(change: impl FnOnce(&mut Preserve)) -> Context {
        let mut options = TransferOptions::default();
        options.preserve.xattrs = Xattrs::Plain;
        change(&mut options.preserve);
        support::context(support::session(32, Recursion::Whole), options).0
    }

    fn sent(ctx: &Context, name: &str) -> Option<String> {
        let wire = Names::of(ctx, FilterSide::Sender).to_wire(name.as_bytes());
        wire.map(|name| String::from_utf8(name).unwrap())
    }

    fn stored(ctx: &Context, name: &str) -> Option<String> {
        let local = Names::of(ctx, FilterSide::Receiver).to_local(name.as_bytes());
        local.map(|name| String::from_utf8(name).unwrap())
    }

    #[test]
    fn a_sender_sends_all_but_the_systems_and_its_own() {
        let plain = ctx(|_| {});
        for name in ["user.a", "trusted.a", "security.a", "user.rsync.trusted.a"] {
            assert_eq!(sent(&plain, name).as_deref(), Some(name));
        }
        for name in ["system.posix_acl_access", "user.rsync.%stat", "user.rsync.%aacl"] {
            assert_eq!(sent(&plain, name), None);
        }
        let all = ctx(|preserve| preserve.xattrs = Xattrs::All);
        assert_eq!(sent(&all, "user.rsync.%stat").as_deref(), Some("user.rsync.%stat"));
        let fake = ctx(|preserve| preserve.fake_super = true);
        assert_eq!(sent(&fake, "user.rsync.trusted.a").as_deref(), Some("trusted.a"));
        assert_eq!(sent(&fake, "user.rsync.%stat"), None);
    }

    #[test]
    fn a_receiver_stores_what_it_may() {
        let (user, root) = (ctx(|_| {}), ctx(|preserve| preserve.super_user = true));
        let fake = ctx(|preserve| (preserve.super_user, preserve.fake_super) = (true, true));
        assert_eq!(stored(&user, "user.a").as_deref(), Some("user.a"));
        assert_eq!(stored(&user, "trusted.a"), None);
        assert_eq!(stored(&root, "trusted.a").as_deref(), Some("trusted.a"));
        assert_eq!(stored(&fake, "trusted.a").as_deref(), Some("user.rsync.trusted.a"));
        for ctx in [&user, &root] {
            assert_eq!(stored(ctx, "system.a"), None);
            assert_eq!(stored(ctx, "user.rsync.%stat"), None);
        }
        let names = Names::of(&fake, FilterSide::Receiver);
        assert!(names.takes(b"user.a") && !names.takes(b"user.rsync.%stat") && !names.takes(b"trusted.a"));
    }
}
