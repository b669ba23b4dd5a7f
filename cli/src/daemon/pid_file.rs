//! The file that tells the number of the listening process, locked while it lives.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{fcntl, FcntlArg};
use nix::libc;
use suisei_engine::sys::operator;

use crate::output::reason;

/// A pid file of ours; it goes with this value.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    _file: File,
}

impl PidFile {
    /// Writes the number of this process; a sentence says why it cannot be.
    pub fn take(path: &[u8]) -> Result<PidFile, String> {
        let shown = Path::new(OsStr::from_bytes(path)).to_path_buf();
        let failed = |what: &str, error: &io::Error| {
            format!("failed to {what} pid file {}: {}", shown.display(), reason(error))
        };
        let mut file = operator::open_private(path).map_err(|error| failed("create", &error))?;
        let whole = libc::flock {
            l_type: libc::F_WRLCK as _,
            l_whence: libc::SEEK_SET as _,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        fcntl(file.as_fd(), FcntlArg::F_SETLK(&whole)).map_err(|error| {
            let text = failed("lock", &error.into());
            // The reason in words alone, as stock gives it.
            text.rsplit_once(" (").map_or(text.clone(), |(text, _)| text.to_owned())
        })?;
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
            file.write_all(format!("{}\n", std::process::id()).as_bytes())
        };
        write(&mut file).map_err(|error| failed("write", &error))?;
        Ok(PidFile { path: shown, _file: file })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_our_number_and_goes_with_us() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        std::fs::write(&path, "a longer text than any number").unwrap();
        let file = PidFile::take(path.as_os_str().as_bytes()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        drop(file);
        assert!(!path.exists());
        let refused = PidFile::take(b"/nonexistent/pid").unwrap_err();
        assert!(refused.starts_with("failed to create pid file /nonexistent/pid: No such file"), "{refused}");
    }
}
