//! The parameters of the configuration: names, types, defaults.
//!
//! Wire: protocol/doc/03-daemon.md#39-parameters

/// What a parameter's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text; variables are replaced when it is used.
    Text,
    /// The same, without slashes at its end.
    Path,
    /// `yes`, `true`, `1`; `no`, `false`, `0`.
    Flag,
    /// The same, and `unset` or `-1`.
    Flag3,
    /// Decimal digits in front; garbage is 0.
    Number,
    /// The name of a syslog facility.
    Facility,
}

/// Where a parameter may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In the global part only.
    Global,
    /// In a module, or in the global part as the default of modules behind it.
    Module,
}

/// One parameter.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name, as the manual writes it.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// Where it may stand.
    pub scope: Scope,
    /// Its value if nothing is said.
    pub default: &'static str,
}

const fn global(name: &'static str, kind: Kind, default: &'static str) -> Parameter {
    Parameter { name, kind, scope: Scope::Global, default }
}

const fn module(name: &'static str, kind: Kind, default: &'static str) -> Parameter {
    Parameter { name, kind, scope: Scope::Module, default }
}

/// The suffixes that stock leaves uncompressed.
const DONT_COMPRESS: &str = "*.3g2 *.3gp *.7z *.aac *.ace *.apk *.avi *.bz2 *.deb *.dmg *.ear *.f4v *.flac \
    *.flv *.gpg *.gz *.iso *.jar *.jpeg *.jpg *.lrz *.lz *.lz4 *.lzma *.lzo *.m1a *.m1v *.m2a *.m2ts *.m2v \
    *.m4a *.m4b *.m4p *.m4r *.m4v *.mka *.mkv *.mov *.mp1 *.mp2 *.mp3 *.mp4 *.mpa *.mpeg *.mpg *.mpv *.mts \
    *.odb *.odf *.odg *.odi *.odm *.odp *.ods *.odt *.oga *.ogg *.ogm *.ogv *.ogx *.opus *.otg *.oth *.otp \
    *.ots *.ott *.oxt *.png *.qt *.rar *.rpm *.rz *.rzip *.spx *.squashfs *.sxc *.sxd *.sxg *.sxm *.sxw \
    *.sz *.tbz *.tbz2 *.tgz *.tlz *.ts *.txz *.tzo *.vob *.war *.webm *.webp *.xz *.z *.zip *.zst";

/// All parameters.
pub const PARAMETERS: &[Parameter] = &[
    global("address", Kind::Text, ""),
    global("port", Kind::Number, "0"),
    global("daemon chroot", Kind::Text, ""),
    global("daemon uid", Kind::Text, ""),
    global("daemon gid", Kind::Text, ""),
    global("motd file", Kind::Text, ""),
    global("pid file", Kind::Text, ""),
    global("socket options", Kind::Text, ""),
    global("listen backlog", Kind::Number, "5"),
    global("proxy protocol", Kind::Flag, "no"),
    global("proxy protocol hosts", Kind::Text, ""),
    module("path", Kind::Path, ""),
    module("comment", Kind::Text, ""),
    module("list", Kind::Flag, "yes"),
    module("read only", Kind::Flag, "yes"),
    module("write only", Kind::Flag, "no"),
    module("use chroot", Kind::Flag3, "unset"),
    module("uid", Kind::Text, ""),
    module("gid", Kind::Text, ""),
    module("numeric ids", Kind::Flag3, "unset"),
    module("name converter", Kind::Text, ""),
    module("munge symlinks", Kind::Flag3, "unset"),
    module("insecure links", Kind::Flag, "no"),
    module("charset", Kind::Text, ""),
    module("max connections", Kind::Number, "0"),
    module("lock file", Kind::Text, "/var/run/rsyncd.lock"),
    module("log file", Kind::Text, ""),
    module("syslog facility", Kind::Facility, "daemon"),
    module("syslog tag", Kind::Text, "rsyncd"),
    module("transfer logging", Kind::Flag, "no"),
    module("log format", Kind::Text, "%o %h [%a] %m (%u) %f %l"),
    module("max verbosity", Kind::Number, "1"),
    module("timeout", Kind::Number, "0"),
    module("hosts allow", Kind::Text, ""),
    module("hosts deny", Kind::Text, ""),
    module("reverse lookup", Kind::Flag, "yes"),
    module("forward lookup", Kind::Flag, "yes"),
    module("auth users", Kind::Text, ""),
    module("secrets file", Kind::Text, ""),
    module("strict modes", Kind::Flag, "yes"),
    module("auth digest", Kind::Text, ""),
    module("refuse options", Kind::Text, ""),
    module("filter", Kind::Text, ""),
    module("include from", Kind::Text, ""),
    module("include", Kind::Text, ""),
    module("exclude from", Kind::Text, ""),
    module("exclude", Kind::Text, ""),
    module("incoming chmod", Kind::Text, ""),
    module("outgoing chmod", Kind::Text, ""),
    module("fake super", Kind::Flag, "no"),
    module("ignore errors", Kind::Flag, "no"),
    module("ignore nonreadable", Kind::Flag, "no"),
    module("open noatime", Kind::Flag3, "unset"),
    module("temp dir", Kind::Path, ""),
    module("dont compress", Kind::Text, DONT_COMPRESS),
    module("early exec", Kind::Text, ""),
    module("pre-xfer exec", Kind::Text, ""),
    module("post-xfer exec", Kind::Text, ""),
];

/// The facilities of syslog, and their numbers.
const FACILITIES: &[(&str, i32)] = &[
    ("kern", 0),
    ("user", 1),
    ("mail", 2),
    ("daemon", 3),
    ("auth", 4),
    ("syslog", 5),
    ("lpr", 6),
    ("news", 7),
    ("uucp", 8),
    ("cron", 9),
    ("authpriv", 10),
    ("ftp", 11),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];

/// Finds a parameter, whatever the case and the blanks of its name.
pub fn find(name: &[u8]) -> Option<&'static Parameter> {
    let squeezed = |name: &[u8]| -> Vec<u8> {
        name.iter().filter(|b| !b.is_ascii_whitespace()).map(u8::to_ascii_lowercase).collect()
    };
    let wanted = squeezed(name);
    PARAMETERS.iter().find(|parameter| squeezed(parameter.name.as_bytes()) == wanted)
}

/// Reads a flag; nothing inside for `unset`.
pub fn flag(value: &[u8]) -> Option<Option<bool>> {
    match value.to_ascii_lowercase().as_slice() {
        b"yes" | b"true" | b"1" => Some(Some(true)),
        b"no" | b"false" | b"0" => Some(Some(false)),
        b"unset" | b"-1" => Some(None),
        _ => None,
    }
}

/// Reads a number: digits in front, a sign before them; anything else is 0.
pub fn number(value: &[u8]) -> i64 {
    let text = String::from_utf8_lossy(value);
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse::<i64>().map_or(0, |n| sign * n)
}

/// Reads a facility: a name, or its number.
pub fn facility(value: &[u8]) -> Option<i32> {
    let text = String::from_utf8_lossy(value).to_ascii_lowercase();
    let named = FACILITIES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    named.or_else(|| i32::try_from(number(value)).ok().filter(|n| *n > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_however_they_are_written() {
        assert_eq!(find(b"UseChroot").map(|p| p.name), Some("use chroot"));
        assert_eq!(find(b"  pre-xfer \t Exec").map(|p| p.name), Some("pre-xfer exec"));
        assert!(find(b"bind address").is_none());
    }

    #[test]
    fn values_are_read_as_their_kinds() {
        assert_eq!((number(b"12x"), number(b"x"), number(b"-3")), (12, 0, -3));
        assert_eq!((flag(b"TRUE"), flag(b"-1"), flag(b"maybe")), (Some(Some(true)), Some(None), None));
        assert_eq!((facility(b"local3"), facility(b"7"), facility(b"nosuch")), (Some(19), Some(7), None));
    }
}
