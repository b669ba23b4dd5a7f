//! The charsets by name. A name that is not here means nothing: it is never looked up elsewhere.
//!
//! A row stands here only where the coder agrees with iconv(3) of the GNU C library on every
//! sequence of one and two bytes and on every code point below U+30000, or differs in what is
//! said beside it. Wire: protocol/doc/02-session-start.md#23-iconv

use encoding_rs as web;

use super::Coder;

/// One charset.
#[derive(Debug)]
pub(super) struct Row {
    /// Its name.
    pub(super) name: &'static str,
    /// Other names for it.
    pub(super) aliases: &'static [&'static str],
    pub(super) coder: Coder,
    /// Whether bytes below 0x80 are ASCII by themselves: such texts need no conversion.
    pub(super) contains_ascii: bool,
}

const fn row(name: &'static str, aliases: &'static [&'static str], coder: Coder) -> Row {
    Row { name, aliases, coder, contains_ascii: true }
}

pub(super) static ROWS: [Row; 26] = [
    row("UTF-8", &["UTF8"], Coder::Utf8),
    row(
        "US-ASCII",
        &["ASCII", "ANSI_X3.4-1968", "ISO646-US", "ISO_646.IRV:1991", "US", "646", "CP367", "IBM367"],
        Coder::Ascii,
    ),
    row("ISO-8859-1", &["ISO8859-1", "ISO_8859-1", "LATIN1", "L1", "CP819", "IBM819"], Coder::Latin1),
    row("ISO-8859-2", &["ISO8859-2", "ISO_8859-2", "LATIN2", "L2"], Coder::Web(web::ISO_8859_2)),
    row("ISO-8859-3", &["ISO8859-3", "ISO_8859-3", "LATIN3", "L3"], Coder::Web(web::ISO_8859_3)),
    row("ISO-8859-4", &["ISO8859-4", "ISO_8859-4", "LATIN4", "L4"], Coder::Web(web::ISO_8859_4)),
    row("ISO-8859-5", &["ISO8859-5", "ISO_8859-5", "CYRILLIC"], Coder::Web(web::ISO_8859_5)),
    row("ISO-8859-6", &["ISO8859-6", "ISO_8859-6", "ARABIC"], Coder::Web(web::ISO_8859_6)),
    row("ISO-8859-7", &["ISO8859-7", "ISO_8859-7", "GREEK", "GREEK8"], Coder::Web(web::ISO_8859_7)),
    row("ISO-8859-8", &["ISO8859-8", "ISO_8859-8", "HEBREW"], Coder::Web(web::ISO_8859_8)),
    row("ISO-8859-10", &["ISO8859-10", "ISO_8859-10", "LATIN6", "L6"], Coder::Web(web::ISO_8859_10)),
    row("ISO-8859-13", &["ISO8859-13", "ISO_8859-13", "LATIN7", "L7"], Coder::Web(web::ISO_8859_13)),
    row("ISO-8859-14", &["ISO8859-14", "ISO_8859-14", "LATIN8", "L8"], Coder::Web(web::ISO_8859_14)),
    row("ISO-8859-15", &["ISO8859-15", "ISO_8859-15", "LATIN-9"], Coder::Web(web::ISO_8859_15)),
    row("ISO-8859-16", &["ISO8859-16", "ISO_8859-16", "LATIN10", "L10"], Coder::Web(web::ISO_8859_16)),
    row("CP1250", &["WINDOWS-1250", "MS-EE"], Coder::WebWithoutControls(web::WINDOWS_1250)),
    row("CP1251", &["WINDOWS-1251", "MS-CYRL"], Coder::WebWithoutControls(web::WINDOWS_1251)),
    row("CP1252", &["WINDOWS-1252", "MS-ANSI"], Coder::WebWithoutControls(web::WINDOWS_1252)),
    row("CP1253", &["WINDOWS-1253", "MS-GREEK"], Coder::WebWithoutControls(web::WINDOWS_1253)),
    row("CP1254", &["WINDOWS-1254", "MS-TURK"], Coder::WebWithoutControls(web::WINDOWS_1254)),
    row("CP1256", &["WINDOWS-1256", "MS-ARAB"], Coder::Web(web::WINDOWS_1256)),
    row("CP1257", &["WINDOWS-1257", "WINBALTRIM"], Coder::WebWithoutControls(web::WINDOWS_1257)),
    row("KOI8-R", &["CSKOI8R"], Coder::Web(web::KOI8_R)),
    row("CP866", &["IBM866", "866"], Coder::Web(web::IBM866)),
    // What the Web calls Shift_JIS is Microsoft's table. iconv also reads the reserved user area,
    // and writes some characters to a look-alike (U+00A2 as U+FFE0): those are refused here.
    row(
        "CP932",
        &["MS932", "SJIS-OPEN", "SJIS-WIN", "IBM943", "WINDOWS-31J"],
        Coder::WebWithoutControls(web::SHIFT_JIS),
    ),
    row("CP949", &["UHC", "MSCP949"], Coder::Web(web::EUC_KR)),
];
