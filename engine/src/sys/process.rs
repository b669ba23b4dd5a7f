//! What happens to a process as a whole: copies of it, and whom it runs as.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::libc;
use nix::unistd::{fork, setgid, setsid, setuid, ForkResult, Gid, Uid};

/// Leaves the foreground: the caller's process ends with 0, and a copy of it without a terminal
/// goes on. Must be called while this is the only thread.
pub fn detach() -> io::Result<()> {
    // SAFETY: there is one thread, so the copy holds no lock that nobody will release.
    match unsafe { fork() }? {
        ForkResult::Parent { .. } => std::process::exit(0),
        ForkResult::Child => {
            setsid()?;
            Ok(())
        }
    }
}

/// Which of two copies of a process this is.
#[derive(Debug)]
pub enum Copy {
    /// The one that goes on; the other waits for its end.
    Worker,
    /// The one that waited: how the worker ended.
    Watcher(ExitStatus),
}

/// Goes on in a copy of this process; this one waits for its end. Must be called while this is the
/// only thread.
pub fn watch_a_copy() -> io::Result<Copy> {
    // SAFETY: as above.
    match unsafe { fork() }? {
        ForkResult::Child => Ok(Copy::Worker),
        ForkResult::Parent { child } => {
            let mut status = 0;
            loop {
                // SAFETY: the status is ours to write to.
                if unsafe { libc::waitpid(child.as_raw(), &mut status, 0) } == child.as_raw() {
                    return Ok(Copy::Watcher(ExitStatus::from_raw(status)));
                }
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Sets group and supplementary groups of the whole process.
pub fn set_groups(groups: &[u32]) -> io::Result<()> {
    let Some(first) = groups.first() else { return Ok(()) };
    setgid(Gid::from_raw(*first))?;
    #[allow(clippy::useless_conversion)] // the type differs between platforms
    let count = groups.len().try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the list has as many entries as said.
    match unsafe { libc::setgroups(count, groups.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the user of the whole process: real, effective and saved.
pub fn set_user(uid: u32) -> io::Result<()> {
    Ok(setuid(Uid::from_raw(uid))?)
}

/// Starts a copy of this process that does one thing and ends with its answer. Must be called while
/// this is the only thread. Nobody waits for it: its caller ends, too.
pub fn spawn_copy(work: impl FnOnce() -> i32) -> io::Result<()> {
    // SAFETY: as above.
    match unsafe { fork() }? {
        ForkResult::Parent { .. } => Ok(()),
        ForkResult::Child => std::process::exit(work()),
    }
}
