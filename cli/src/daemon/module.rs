//! Entering a module: its directory, its walls, and whom it runs as.
//!
//! Wire: protocol/doc/03-daemon.md#311-per-connection-set-up-and-hooks

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use bstr::ByteSlice;
use rustix::fs::AtFlags;
use suisei_engine::chmod::Chmod;
use suisei_engine::sys::confine::{self as walls, Walls};
use suisei_engine::sys::open::open_beneath;
use suisei_engine::sys::operator::{self, Absent};
use suisei_engine::tree::SymlinkPolicy;

use super::config::Settings;
use super::confine::{self, Access};
use super::log::{Level, Log};
use super::privilege::{Identity, Unknown};
use crate::output::reason;

/// Why a module cannot be entered: what the log says, and the client's `@ERROR` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// For the log.
    pub log: String,
    /// For the client, behind `@ERROR: `.
    pub answer: String,
}

impl Closed {
    pub(super) fn new(answer: impl Into<String>, log: impl Into<String>) -> Closed {
        Closed { log: log.into(), answer: answer.into() }
    }
}

/// Where a module lies.
#[derive(Debug)]
pub struct Place {
    /// What a chroot is made of.
    outer: OwnedFd,
    /// The served part below it; empty: all of it.
    inner: Vec<u8>,
    chroot: Chroot,
    identity: Identity,
    /// The path without its `/./`, for hooks.
    pub path: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chroot {
    Never,
    Try,
    Must,
}

/// What a child that has entered knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inside {
    /// Whether the kernel's root is exactly the module: symlinks may be absolute then.
    pub is_whole_root: bool,
    /// Whether it is in a chroot at all.
    pub is_chrooted: bool,
}

impl Place {
    /// Works out where a module lies and whom it runs as.
    pub fn find(module: &str, settings: &Settings<'_>) -> Result<Place, Closed> {
        let identity = Identity::of(settings).map_err(|unknown| {
            let (kind, name) = match unknown {
                Unknown::User(name) => ("uid", name),
                Unknown::Group(name) => ("gid", name),
            };
            let name = name.to_str_lossy();
            Closed::new(format!("invalid {kind} {name}"), format!("Invalid {kind} {name}"))
        })?;
        let path = settings.text("path");
        if path.is_empty() {
            return Err(Closed::new("no path setting.", format!("No path specified for module {module}")));
        }
        let (outer, inner) = match path.find(b"/./") {
            Some(at) => (&path[..at.max(1)], path[at + 3..].trim_with(|c| c == '/').to_vec()),
            None => (path.as_slice(), Vec::new()),
        };
        let chroot = match settings.flag3("use chroot") {
            Some(true) => Chroot::Must,
            Some(false) => Chroot::Never,
            None if !inner.is_empty() => Chroot::Must,
            None => Chroot::Try,
        };
        let outer_fd = open(outer).map_err(|error| {
            let text = format!("rsync: [Receiver] chdir {} failed: {}", outer.to_str_lossy(), reason(&error));
            Closed::new(if chroot == Chroot::Must { "chroot failed" } else { "chdir failed" }, text)
        })?;
        let whole = if inner.is_empty() { outer.to_vec() } else { [outer, b"/", &inner].concat() };
        Ok(Place { outer: outer_fd, inner, chroot, identity, path: whole })
    }

    /// Enters. There is no way back.
    pub fn enter(
        self,
        module: &[u8],
        access: Access,
        follows_all: bool,
        munge: Option<bool>,
        log: &Log,
    ) -> Result<Inside, Closed> {
        let shown = self.path.to_str_lossy().into_owned();
        let closed = |call: &str, error: &io::Error| {
            Closed::new(format!("{call} failed"), format!("rsync: {call} {shown} failed: {}", reason(error)))
        };
        rustix::process::fchdir(&self.outer).map_err(|error| closed("chdir", &error.into()))?;
        let is_chrooted = match self.chroot {
            Chroot::Never => false,
            Chroot::Try | Chroot::Must => match rustix::process::chroot(".") {
                Ok(()) => {
                    rustix::process::chdir("/").map_err(|error| closed("chdir", &error.into()))?;
                    true
                }
                Err(error) if self.chroot == Chroot::Must => return Err(closed("chroot", &error.into())),
                Err(error) => {
                    let why = reason(&error.into());
                    log.line(Level::Info, format!("no chroot for {shown}, going on without: {why}"));
                    false
                }
            },
        };
        let is_whole_root = is_chrooted && self.inner.is_empty();
        let root = if self.inner.is_empty() {
            self.outer
        } else {
            open_beneath(self.outer.as_fd(), &self.inner, SymlinkPolicy::FollowDirs)
                .map_err(|error| closed("chdir", &error))?
        };
        rustix::process::fchdir(&root).map_err(|error| closed("chdir", &error.into()))?;
        if !follows_all {
            if let Err(error) = confine::below(&root, access) {
                log.line(Level::Error, format!("cannot confine the connection to {shown}: {error}"));
            }
        }
        if rustix::fs::statat(&root, "rsyncd-munged", AtFlags::empty()).is_ok()
            && munge.unwrap_or(!is_whole_root)
        {
            let text = "Symlink munging is unsafe when a /rsyncd-munged directory exists.";
            return Err(Closed::new("daemon security issue -- contact admin", text));
        }
        self.identity.assume_groups().map_err(|error| closed("setgroups", &error))?;
        self.identity.assume_user().map_err(|error| closed("setuid", &error))?;
        let walls = match (is_whole_root, follows_all) {
            (true, _) => Walls::Root,
            (false, true) => Walls::None,
            (false, false) => Walls::Directory(root),
        };
        walls::enter(walls, module);
        Ok(Inside { is_whole_root, is_chrooted })
    }
}

/// Returns a parameter whose value is no change of modes.
pub fn bad_chmod(settings: &Settings<'_>) -> Option<&'static str> {
    ["incoming chmod", "outgoing chmod"]
        .into_iter()
        .find(|name| settings.non_empty(name).is_some_and(|text| Chmod::default().add(&text).is_err()))
}

fn open(path: &[u8]) -> io::Result<OwnedFd> {
    operator::open_dir(path, Absent::Refuse)
}
