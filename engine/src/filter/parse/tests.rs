use bstr::ByteSlice;

use super::*;

/// Rules in the wire's form, which shows everything about them.
fn shown(rules: &[Rule]) -> Vec<String> {
    let texts = suisei_protocol::filter::texts_for_server(
        rules,
        suisei_protocol::session::Direction::Sending,
        Version::NEWEST,
        false,
    );
    texts.unwrap().into_iter().map(|text| text.to_str_lossy().into_owned()).collect()
}

/// Parses `- zero` and one more rule; `files` can be merged.
fn parsed(text: &str, files: &[(&str, &[u8])]) -> Result<Vec<String>, FilterError> {
    let mut read = |name: &[u8]| {
        let found = files.iter().find(|(own, _)| own.as_bytes() == name);
        found.map(|(_, content)| content.to_vec()).ok_or_else(|| io::Error::from_raw_os_error(2))
    };
    let mut parser = RuleParser::new(&mut read, LineEnd::Newline);
    parser.filter(b"- zero")?;
    parser.filter(text.as_bytes())?;
    Ok(shown(&parser.finish()))
}

const MIXED: &[u8] = b"# c\n; c\n\n- one\n+ two/\r\nH h\nP p\n-x xa\n: .inner\n-! neg\n";
const CLEARING: &[u8] = b"- a\n!\n- b\n";

/// Captured from stock, push at version 32.
#[test]
fn merged_files_stand_where_their_rule_stood() {
    let files: [(&str, &[u8]); 3] = [("m1", MIXED), ("m4", CLEARING), ("d/m8", b"-_*.o +_b.c\n#x -_z ")];
    for (text, expected) in [
        (". m1", &["- zero", "- one", "+ two/", "-r p", "-x xa", ": .inner", "-! neg"][..]),
        ("./p m1", &["- zero", "-/p one", "+/p two/", "-/rp p", "-/xp xa", ":/p .inner", "-/!p neg"]),
        (".e m1", &["- zero", "- m1", "- one", "+ two/", "-r p", "-x xa", ": .inner", "-! neg"]),
        (".ep/ m4", &["-/p b"]),
        (". m4", &["- b"]),
        (".n m4", &["- b"]),
        (".s m4", &[]),
        (".- m4", &["- zero", "- - a", "- !", "- - b"]),
        (".+p m4", &["- zero", "+p - a", "+p !", "+p - b"]),
        (".w- d/m8", &["- zero", "- -_*.o", "- +_b.c", "- #x", "- -_z"]),
        (":ep/x a/.q", &["- zero", "- .q", ":/xp a/.q"]),
        (":es a/b", &["- zero", "- b"]),
    ] {
        assert_eq!(parsed(text, &files).unwrap(), expected, "{text}");
    }
    let sided = parsed(".s/p m1", &files).unwrap_err();
    assert_eq!(sided.text, "specified-side merge file contains specified-side filter: <rule from m1 line 6>");
    assert_eq!(sided.code, 1);
}

#[test]
fn missing_files_end_with_code_11() {
    let error = parsed(". /nonex", &[]).unwrap_err();
    assert_eq!(error.text, "failed to open exclude file /nonex: No such file or directory (2)");
    assert_eq!(error.code, 11);
}

#[test]
fn endless_nesting_is_fatal() {
    assert_eq!(parsed(". me", &[("me", b". me\n")]).unwrap_err().code, 1);
}

#[test]
fn lists_of_patterns_have_the_old_form() {
    let mut read = |_: &[u8]| Ok(b"# c\n- one\n+ two/\r\n !x\nplain\n".to_vec());
    let mut parser = RuleParser::new(&mut read, LineEnd::Newline);
    parser.patterns_from(b"list", OldKind::Exclude).unwrap();
    parser.patterns_from(b"list", OldKind::Include).unwrap();
    let expected = ["- one", "+ two/", "-  !x", "- plain", "- one", "+ two/", "+  !x", "+ plain"];
    assert_eq!(shown(&parser.finish()), expected);
}

#[test]
fn over_long_patterns_are_left_out() {
    let mut read = |_: &[u8]| Ok(Vec::new());
    let mut parser = RuleParser::new(&mut read, LineEnd::Newline);
    parser.pattern(&[b'x'; 4095], OldKind::Exclude).unwrap();
    parser.pattern(&[b'x'; 4096], OldKind::Exclude).unwrap();
    assert_eq!(parser.discarded().len(), 1);
    assert_eq!(parser.finish().len(), 1);
}

#[test]
fn the_cvs_list_ends_with_personal_names() {
    let mut read = |_: &[u8]| Ok(Vec::new());
    let mut parser = RuleParser::new(&mut read, LineEnd::Newline);
    parser.personal_cvs_names(vec![b"homepat + \n".to_vec(), b"env1 env2/".to_vec()]);
    parser.filter(b"- z").unwrap();
    parser.cvs_exclude().unwrap();
    let sent = shown(&parser.finish());
    assert_eq!(sent[..3], ["- z", ":C .cvsignore", "-p RCS"]);
    assert_eq!(sent[37..], ["-p .bzr/", "- homepat", "- +", "- env1", "- env2/"]);

    // A lone "!" in one of them clears everything in front of it.
    let mut read = |_: &[u8]| Ok(Vec::new());
    let mut parser = RuleParser::new(&mut read, LineEnd::Newline);
    parser.personal_cvs_names(vec![b"homepat !".to_vec(), b"env1 env2/".to_vec()]);
    parser.filter(b"- z").unwrap();
    parser.filter(b"-C").unwrap();
    assert_eq!(shown(&parser.finish()), ["- env1", "- env2/"]);
}

#[test]
fn options_add_rules_of_their_own() {
    let mut read = |_: &[u8]| Ok(Vec::new());
    let mut parser = RuleParser::new(&mut read, LineEnd::Newline);
    parser.partial_dir(b".pp");
    parser.backup_suffix(b"~");
    parser.old_dirs();
    assert_eq!(shown(&parser.finish()), ["-p .pp/", "-r *~", "- /*/*"]);
}
