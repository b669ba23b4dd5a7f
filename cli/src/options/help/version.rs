//! What `--version` says, once as text and twice as JSON.
//!
//! Programs look for capabilities here, so an option that this end refuses is not among them.

use std::fmt::Write;

use suisei_protocol::session::Version;

use crate::options::row::Support;
use crate::options::rows;

/// The release of rsync whose options and output we follow: scripts ask for it.
pub const COMPATIBLE: &str = "3.5.0";

/// Widest line of a list.
const WIDTH: usize = 79;

/// What a capability is: a number of bits, or something that a build has or has not.
#[derive(Debug, Clone, Copy)]
enum Has {
    Bits(u8),
    Yes,
    Optional,
    /// If the option of this name works.
    Option(&'static str),
}

/// Names as JSON has them; the text has dashes and spaces for underlines.
const CAPABILITIES: [(&str, Has); 23] = [
    ("file_bits", Has::Bits(64)),
    ("inum_bits", Has::Bits(64)),
    ("timestamp_bits", Has::Bits(64)),
    ("long_int_bits", Has::Bits(64)),
    ("socketpairs", Has::Yes),
    ("symlinks", Has::Yes),
    ("symtimes", Has::Yes),
    ("hardlinks", Has::Yes),
    ("hardlink_specials", Has::Yes),
    ("hardlink_symlinks", Has::Yes),
    ("IPv6", Has::Yes),
    ("atimes", Has::Yes),
    ("batchfiles", Has::Option("write-batch")),
    ("inplace", Has::Yes),
    ("append", Has::Yes),
    ("ACLs", Has::Option("acls")),
    ("ACL_at", Has::Option("acls")),
    ("xattrs", Has::Option("xattrs")),
    ("secluded_args", Has::Optional),
    ("iconv", Has::Option("iconv")),
    ("prealloc", Has::Yes),
    ("stop_at", Has::Option("stop-at")),
    ("crtimes", Has::Option("crtimes")),
];

const CHECKSUMS: [&str; 7] = ["xxh128", "xxh3", "xxh64", "md5", "md4", "sha1", "none"];
const COMPRESSORS: [&str; 5] = ["zstd", "lz4", "zlibx", "zlib", "none"];
const LOGINS: [&str; 5] = ["sha512", "sha256", "sha1", "md5", "md4"];

fn works(option: &str) -> bool {
    rows().any(|row| row.long == option && row.support == Support::Full)
}

/// Returns the lines that name program and version. The first one is what programs look for.
pub(super) fn first_lines() -> String {
    format!(
        "rsync  version {COMPATIBLE}  protocol version {protocol}\n\
         suisei {ours}, an independent implementation in Rust. Licence: MIT OR Apache-2.0.\n",
        protocol = Version::NEWEST,
        ours = env!("CARGO_PKG_VERSION"),
    )
}

/// Returns the version and the capabilities as text.
pub fn version() -> String {
    let mut text = first_lines();
    let words = CAPABILITIES.map(|(name, has)| {
        let shown = name.replace('_', "-");
        match has {
            Has::Bits(bits) => {
                let what = shown.trim_end_matches("-bits").replace('-', " ");
                format!("{bits}-bit {what}s")
            }
            Has::Yes => shown,
            Has::Optional => format!("optional {shown}"),
            Has::Option(option) if works(option) => shown,
            Has::Option(_) => format!("no {shown}"),
        }
    });
    let checksums = CHECKSUMS.map(|name| if name == "xxh64" { "xxh64 (xxhash)" } else { name });
    let lists = [
        ("Capabilities", wrapped(&words, ", ")),
        ("Checksum list", wrapped(&checksums, " ")),
        ("Compress list", wrapped(&COMPRESSORS, " ")),
        ("Daemon auth list", wrapped(&LOGINS, " ")),
    ];
    for (title, list) in lists {
        let _ = write!(text, "{title}:\n{list}");
    }
    text
}

/// Returns indented lines of words.
fn wrapped(words: &[impl AsRef<str>], between: &str) -> String {
    let mut lines = vec![String::from("   ")];
    for (at, word) in words.iter().map(AsRef::as_ref).enumerate() {
        let mark = if at + 1 < words.len() { between.trim_end() } else { "" };
        if lines.last().is_some_and(|line| line.len() + word.len() + mark.len() >= WIDTH) {
            lines.push(String::from("   "));
        }
        if let Some(line) = lines.last_mut() {
            let _ = write!(line, " {word}{mark}");
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns the version and the capabilities as JSON, with the keys of stock.
pub fn json() -> String {
    let capabilities: Vec<String> = CAPABILITIES
        .iter()
        .map(|(name, has)| match has {
            Has::Bits(bits) => format!("    \"{name}\": {bits}"),
            Has::Yes => format!("    \"{name}\": true"),
            Has::Optional => format!("    \"{name}\": \"optional\""),
            Has::Option(option) => format!("    \"{name}\": {}", works(option)),
        })
        .collect();
    let list = |names: &[&str]| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    format!(
        "{{\n  \"program\": \"rsync\",\n  \"version\": \"{COMPATIBLE}\",\n  \"protocol\": \"{protocol}.0\",\n  \
         \"implementation\": \"suisei\",\n  \"implementation_version\": \"{ours}\",\n  \
         \"capabilities\": {{\n{capabilities}\n  }},\n  \
         \"optimizations\": {{\n    \"SIMD_roll\": false, \"asm_roll\": false, \"openssl_crypto\": false,\n    \
         \"asm_MD5\": false\n  }},\n  \
         \"checksum_list\": [\n    {checksums}\n  ],\n  \"compress_list\": [\n    {compressors}\n  ],\n  \
         \"daemon_auth_list\": [\n    {logins}\n  ],\n  \"license\": \"MIT OR Apache-2.0\"\n}}\n",
        protocol = Version::NEWEST,
        ours = env!("CARGO_PKG_VERSION"),
        capabilities = capabilities.join(",\n"),
        checksums = list(&CHECKSUMS),
        compressors = list(&COMPRESSORS),
        logins = list(&LOGINS),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_find_the_version_where_they_look() {
        let text = version();
        let first = text.lines().next().unwrap();
        assert_eq!(first, format!("rsync  version {COMPATIBLE}  protocol version 32"));
        assert!(text.lines().nth(1).unwrap().starts_with("suisei "));
        assert!(
            text.contains(
                "    64-bit files, 64-bit inums, 64-bit timestamps, 64-bit long ints,\n    socketpairs"
            ),
            "{text}"
        );
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }

    #[test]
    fn a_capability_follows_its_option() {
        let capable = version().contains(", ACLs,");
        assert_eq!(capable, works("acls"));
        assert!(version().contains("no crtimes"));
        assert!(json().contains("\"crtimes\": false"));
    }
}
