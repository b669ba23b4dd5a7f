//! Whether a host's key is the one we know.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::engine::general_purpose::STANDARD_NO_PAD;
use base64::Engine;
use ssh2::{CheckResult, HashType, HostKeyType, KnownHostFileKind, Session};

/// A key that a host showed.
pub struct HostKey {
    bytes: Vec<u8>,
    kind_of_key: HostKeyType,
    /// Its kind, as users see it.
    pub kind: &'static str,
    /// Its fingerprint.
    pub fingerprint: String,
}

/// What our list of known hosts says.
pub enum Verdict {
    /// The key is listed.
    Known,
    /// The host is not listed.
    Unknown(HostKey),
    /// The host is listed with another key.
    Other,
}

/// Looks a host's key up.
pub fn check(session: &Session, host: &[u8], port: u16, file: &Path) -> Verdict {
    let Some((key, kind_of_key)) = session.host_key() else { return Verdict::Other };
    let Ok(mut known) = session.known_hosts() else { return Verdict::Other };
    // A missing list knows nobody.
    let _ = known.read_file(file, KnownHostFileKind::OpenSSH);
    match known.check_port(&String::from_utf8_lossy(host), port, key) {
        CheckResult::Match => Verdict::Known,
        CheckResult::NotFound => Verdict::Unknown(HostKey {
            bytes: key.to_vec(),
            kind_of_key,
            kind: match kind_of_key {
                HostKeyType::Rsa => "RSA",
                HostKeyType::Ed25519 => "ED25519",
                HostKeyType::Dss => "DSA",
                HostKeyType::Unknown => "host",
                _ => "ECDSA",
            },
            fingerprint: match session.host_key_hash(HashType::Sha256) {
                Some(hash) => format!("SHA256:{}", STANDARD_NO_PAD.encode(hash)),
                None => "unknown".to_owned(),
            },
        }),
        CheckResult::Mismatch | CheckResult::Failure => Verdict::Other,
    }
}

/// Appends a key to the list.
pub fn remember(session: &Session, host: &[u8], port: u16, key: &HostKey, file: &Path) -> io::Result<()> {
    let mut known = session.known_hosts()?;
    let host = String::from_utf8_lossy(host);
    let host = if port == 22 { host.into_owned() } else { format!("[{host}]:{port}") };
    known.add(&host, &key.bytes, "", key.kind_of_key.into())?;
    let entries = known.hosts()?;
    let entry = entries.first().ok_or(io::ErrorKind::NotFound)?;
    let line = known.write_string(entry, KnownHostFileKind::OpenSSH)?;
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let mut list = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
    list.write_all(format!("{}\n", line.trim_end()).as_bytes())
}
