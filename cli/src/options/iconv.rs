//! `--iconv`: which charset this end's names are in, and which the far end is told.
//!
//! Wire: protocol/doc/02-session-start.md#23-iconv

use suisei_protocol::charset::Charset;

use super::environment::Environment;
use super::typed::Typed;
use crate::exit::{Code, Refusal};

/// Switches conversion off, also what the environment asks for.
const OFF: &[u8] = b"-";
/// Stands for the charset of the locale.
const LOCALE: &[u8] = b".";

/// This end's charset under `--iconv`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversion {
    /// The charset.
    pub charset: Charset,
    /// Its name as typed, or as the locale calls it.
    pub name: String,
}

/// Puts the default of the environment in the place of an option that was not typed.
pub fn default(typed: &mut Typed, environment: &Environment) {
    let connect = &mut typed.connect;
    if connect.iconv.is_none() && !connect.server {
        connect.iconv = environment.non_empty("RSYNC_ICONV").map(<[u8]>::to_vec);
    }
    connect.iconv = connect.iconv.take().filter(|set| !set.is_empty());
}

/// Returns this end's conversion: a client's is in front of the comma.
pub fn here(typed: &Typed, environment: &Environment) -> Result<Option<Conversion>, Refusal> {
    let Some(set) = typed.connect.iconv.as_deref().filter(|set| *set != OFF) else { return Ok(None) };
    let name = if typed.connect.server { set } else { set.split(|&b| b == b',').next().unwrap_or(set) };
    conversion(name, environment).map(Some)
}

/// Returns what the far end is told: behind the comma, or all of it. Nothing: no conversion.
pub fn there(typed: &Typed) -> Option<&[u8]> {
    let set = typed.connect.iconv.as_deref().filter(|set| *set != OFF)?;
    Some(set.iter().position(|&b| b == b',').map_or(set, |comma| &set[comma + 1..]))
}

/// Looks up a charset as this machine would understand it.
pub fn conversion(name: &[u8], environment: &Environment) -> Result<Conversion, Refusal> {
    let name = match name {
        b"" | LOCALE => locale(environment),
        name => String::from_utf8_lossy(name).into_owned(),
    };
    match Charset::named(&name) {
        Some(charset) => Ok(Conversion { charset, name }),
        None => Err(Refusal::new(Code::Unsupported, format!("iconv_open(\"UTF-8\", \"{name}\") failed"))),
    }
}

/// Returns the charset of the locale, as nl_langinfo(3) names it.
pub fn locale(environment: &Environment) -> String {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| environment.non_empty(name));
    let locale = String::from_utf8_lossy(locale.unwrap_or(b"C")).into_owned();
    match locale.split('@').next().unwrap_or_default().split_once('.') {
        Some((_, codeset)) if codeset.eq_ignore_ascii_case("utf8") => "UTF-8".to_owned(),
        Some((_, codeset)) => codeset.to_owned(),
        None if matches!(locale.as_str(), "C" | "POSIX") => "ANSI_X3.4-1968".to_owned(),
        // A language alone: this is what systems give it today.
        None => "UTF-8".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(iconv: &str, server: bool) -> Typed {
        let mut typed = Typed::default();
        typed.connect.iconv = Some(iconv.as_bytes().to_vec());
        typed.connect.server = server;
        typed
    }

    fn here_of(iconv: &str, server: bool) -> Option<String> {
        here(&typed(iconv, server), &Environment::of(&[])).unwrap().map(|c| c.charset.name().to_owned())
    }

    #[test]
    fn a_client_stands_in_front_of_the_comma() {
        assert_eq!(here_of("utf8,latin1", false).as_deref(), Some("UTF-8"));
        assert_eq!(there(&typed("utf8,latin1", false)), Some(&b"latin1"[..]));
        assert_eq!(here_of("latin1", false).as_deref(), Some("ISO-8859-1"));
        assert_eq!(there(&typed("latin1", false)), Some(&b"latin1"[..]));
        assert_eq!(here_of("latin1", true).as_deref(), Some("ISO-8859-1"));
        assert_eq!((here_of("-", false), there(&typed("-", false))), (None, None));
    }

    #[test]
    fn a_point_is_the_charset_of_the_locale() {
        for (variables, charset) in [
            (&[("LC_ALL", "de_DE.ISO-8859-1@euro"), ("LANG", "C.UTF-8")][..], "ISO-8859-1"),
            (&[("LANG", "C.utf8")], "UTF-8"),
            (&[("LC_ALL", "C"), ("LANG", "C.UTF-8")], "ANSI_X3.4-1968"),
            (&[], "ANSI_X3.4-1968"),
        ] {
            assert_eq!(locale(&Environment::of(variables)), charset);
        }
        assert_eq!(here_of(".", false).as_deref(), Some("US-ASCII"));
    }

    #[test]
    fn an_unknown_charset_is_named() {
        let refusal = here(&typed("nonsense,utf8", false), &Environment::of(&[])).unwrap_err();
        assert_eq!(
            (refusal.code, refusal.text.as_slice()),
            (4, &b"iconv_open(\"UTF-8\", \"nonsense\") failed"[..])
        );
    }

    #[test]
    fn the_environment_gives_the_default() {
        let environment = Environment::of(&[("RSYNC_ICONV", "latin1")]);
        let mut nothing = Typed::default();
        default(&mut nothing, &environment);
        assert_eq!(nothing.connect.iconv.as_deref(), Some(&b"latin1"[..]));
        let mut off = typed("-", false);
        default(&mut off, &environment);
        assert_eq!(off.connect.iconv.as_deref(), Some(OFF));
    }
}
