//! The disk as the roles see it: held directories, and verbs on their members.
//!
//! Every path is resolved beneath a held root; a role opens the *parent* safely once and then
//! acts on (parent, last name). Only this module and [`crate::sys`] make file system calls.

mod apply;
mod cache;
mod dir;
mod meta;
mod stored;
mod stored_acl;
mod temp;
mod tree;

pub use crate::sys::acl::AclKind;
pub use crate::sys::open::spare_atime;
pub use crate::sys::operator::{is_untrusted, Absent, Trust, Wanted};
pub use crate::sys::xattr::Held as HeldItem;
pub use apply::{Attributes, NotApplied, Times, WantedAcls};
pub use dir::{Devices, Dir, DirMember};
pub use meta::Meta;
pub use stored::Privileges;
pub use temp::TempFile;
pub use tree::{open_named_file, open_operator_file, SymlinkPolicy, Tree};
