use super::*;

fn charset(name: &str) -> Charset {
    Charset::named(name).unwrap()
}

#[test]
fn names_are_found_by_alias_and_never_guessed() {
    assert_eq!(charset("utf8"), Charset::UTF_8);
    assert_eq!(charset("Latin1").name(), "ISO-8859-1");
    assert_eq!(charset("latin1//TRANSLIT").name(), "ISO-8859-1");
    assert_eq!(charset("windows-31j").name(), "CP932");
    // The Web reads these as other charsets, or only half.
    for name in ["", "SHIFT_JIS", "ISO-8859-9", "EUC-JP", "UTF-16", "ISO-2022-JP", "nonsense"] {
        assert_eq!(Charset::named(name), None, "{name}");
    }
    let mut names: Vec<&str> =
        Charset::all().flat_map(|(c, aliases)| [&[c.name()], aliases].concat()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name stands for one charset");
}

#[test]
fn what_a_charset_has_goes_there_and_back() {
    for (name, utf8, bytes) in [
        ("UTF-8", "caf\u{e9} \u{1f600}", "caf\u{e9} \u{1f600}".as_bytes()),
        ("latin1", "caf\u{e9}\u{81}", b"caf\xe9\x81"),
        ("CP1252", "\u{20ac}5", b"\x805"),
        ("KOI8-R", "\u{434}\u{430}", b"\xc4\xc1"),
        ("CP932", "\u{65e5}\u{672c}\u{ff5e}", b"\x93\xfa\x96\x7b\x81\x60"),
        ("CP949", "\u{d55c}", b"\xc7\xd1"),
    ] {
        let charset = charset(name);
        assert_eq!(*charset.to_utf8(bytes).unwrap(), *utf8.as_bytes(), "{name}");
        assert_eq!(*charset.from_utf8(utf8.as_bytes()).unwrap(), *bytes, "{name}");
    }
}

#[test]
fn what_it_has_not_is_refused() {
    assert_eq!(Charset::UTF_8.to_utf8(b"caf\xe9"), Err(Unconvertible));
    assert_eq!(charset("ascii").to_utf8(b"caf\xe9"), Err(Unconvertible));
    assert_eq!(charset("CP1252").to_utf8(b"\x81"), Err(Unconvertible));
    assert_eq!(charset("CP1252").from_utf8("\u{81}".as_bytes()), Err(Unconvertible));
    assert_eq!(charset("latin1").from_utf8("\u{65e5}".as_bytes()), Err(Unconvertible));
    assert_eq!(charset("CP932").to_utf8(b"\x93"), Err(Unconvertible));
}

#[test]
fn a_directory_has_one_form_whatever_its_members_hold() {
    let latin1 = charset("latin1");
    let (dir, end) = latin1.path_from_utf8("\u{f6}".as_bytes());
    assert_eq!((&*dir, end), (&b"\xf6"[..], Ok(())));
    let (path, end) = latin1.path_from_utf8("\u{f6}/\u{65e5}".as_bytes());
    assert_eq!((&*path, end), (&b"\xf6/\xe6\x97\xa5"[..], Err(Unconvertible)));
    let (path, end) = latin1.path_to_utf8(b"/a//\xf6/.");
    assert_eq!((&*path, end), ("/a//\u{f6}/.".as_bytes(), Ok(())));
}

#[test]
fn a_message_keeps_what_cannot_be_converted() {
    let text = b"deleting \xff caf\xc3\xa9 \xe6\x97\xa5\n";
    assert_eq!(charset("latin1").message_from_utf8(text), b"deleting \xff caf\xe9 \xe6\x97\xa5\n");
    assert_eq!(Charset::UTF_8.message_to_utf8(text), text);
    assert_eq!(charset("CP932").message_to_utf8(b"\x93\xfa\xff"), b"\xe6\x97\xa5\xff");
}
