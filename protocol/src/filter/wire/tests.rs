use super::*;
use crate::error::Stop;
use crate::filter::{Directive, OldKind};

const PUSH: Direction = Direction::Sending;
const PULL: Direction = Direction::Receiving;

/// Parses rules as the command line has them; `e` and `-C` are expanded as the parser above does.
fn rules(texts: &[&str]) -> Vec<Rule> {
    let mut rules = Vec::new();
    for text in texts {
        match Directive::parse(text.as_bytes()).unwrap() {
            Directive::Rule(rule) => {
                if rule.flags.contains(RuleFlags::EXCLUDE_SELF) {
                    rules.push(Rule::excluding_file(&rule.pattern).unwrap());
                }
                rules.push(rule);
            }
            Directive::CvsList { kind, flags } => {
                let flags = flags | RuleFlags::PERISHABLE;
                rules.extend([b"RCS", b"*.o"].map(|name| Rule::new(kind, flags, name).unwrap()));
                rules.push(Rule::new(kind, flags - RuleFlags::PERISHABLE, b"env2/").unwrap());
            }
            other => panic!("{other:?}"),
        }
    }
    rules
}

fn sent(
    rules: &[Rule],
    direction: Direction,
    version: u32,
    delete_excluded: bool,
) -> Result<Vec<String>, Misuse> {
    let texts = texts_for_server(rules, direction, Version::new(version).unwrap(), delete_excluded)?;
    Ok(texts.into_iter().map(|text| String::from_utf8(text).unwrap()).collect())
}

#[track_caller]
fn check(options: &[&str], direction: Direction, version: u32, delete_excluded: bool, expected: &[&str]) {
    assert_eq!(sent(&rules(options), direction, version, delete_excluded).unwrap(), expected);
}

#[track_caller]
fn refused(options: &[&str], direction: Direction, version: u32, delete_excluded: bool) {
    assert_eq!(sent(&rules(options), direction, version, delete_excluded), Err(Misuse::ModernFilter));
}

#[test]
fn captured_lists() {
    let four = ["- *.o", "+ /a/", "P keep", "H hid"];
    check(
        &["- *.o", "+ /a/", "P keep", "H hid", "-! x*"],
        PUSH,
        32,
        false,
        &["- *.o", "+ /a/", "-r keep", "-! x*"],
    );
    check(&four, PULL, 32, false, &["- *.o", "+ /a/", "-s hid"]);
    check(&four, PULL, 28, false, &["*.o", "+ /a/", "hid"]);
    check(&["P keep", "- x"], PUSH, 28, false, &["keep", "x"]);
    refused(&["P keep"], PUSH, 28, true);
    refused(&["-p keep"], PUSH, 29, false);
    check(&["-p keep", "P zz", "S show", "R ri"], PULL, 28, false, &["keep", "+ show"]);
    check(
        &[
            ": /.rsync-filter",
            "- .rsync-filter",
            "dir-merge,n- /.rules",
            ":w+e .inc",
            "-p perish",
            "-r recv",
            "-s send",
            "-rs both",
            "- - dash",
            "- foo/",
        ],
        PUSH,
        32,
        false,
        &[
            ": /.rsync-filter",
            "- .rsync-filter",
            ":n- /.rules",
            "- .inc",
            ":w+ .inc",
            "-p perish",
            "-r recv",
            "-sr both",
            "- - dash",
            "- foo/",
        ],
    );
    let excluded = ["- *.o", "P keep", "-r recv", ":- .ign", ": .m"];
    check(&excluded, PUSH, 32, true, &["-r keep", "-r recv", ": .m"]);
    check(&excluded, PULL, 32, true, &["-s *.o", ":- .ign", ": .m"]);
    check(&["-/ /abs", "-x user.foo", "-p .pp/"], PUSH, 32, false, &["-/ /abs", "-x user.foo", "-p .pp/"]);
    check(&["-//! x", "-x/ y", "-/!sr x"], PUSH, 32, false, &["-/! x", "-/x y", "-/!sr x"]);
    check(
        &[":s ms", ":r mr", ":Cp", ":Cn", ":/x .a"],
        PULL,
        32,
        false,
        &[":s ms", ":Cp .cvsignore", ":C .cvsignore", ":/x .a"],
    );
}

#[test]
fn modern_rules_are_refused_by_old_versions() {
    for text in ["-/ a", "-x a", "-! a", ": m", ":C"] {
        refused(&[text], PUSH, 28, false);
        refused(&[text], PULL, 28, false);
    }
    check(&["-p a"], PULL, 29, false, &["- a"]);
    check(&["P a", "-rs e"], PUSH, 28, false, &["a", "e"]);
}

#[test]
fn old_excludes_that_look_like_rules_get_a_prefix() {
    let old = |text: &str| match Directive::parse_old(text.as_bytes(), OldKind::Exclude).unwrap() {
        Directive::Rule(rule) => rule,
        other => panic!("{other:?}"),
    };
    let rules: Vec<Rule> = ["- - a", "+ b", "+ - d", "-x", "!x", "- !"].map(old).to_vec();
    assert_eq!(sent(&rules, PUSH, 28, false).unwrap(), ["- - a", "+ b", "+ - d", "-x", "!x", "- !"]);
    assert_eq!(sent(&rules, PUSH, 30, false).unwrap(), ["- - a", "+ b", "+ - d", "- -x", "- !x", "- !"]);
}

#[test]
fn the_cvs_list_is_sent_as_the_server_needs_it() {
    let typed = ["- z", "-C", "+ y"];
    check(&typed, PUSH, 32, false, &["- z", "-p RCS", "-p *.o", "- env2/", "+ y"]);
    check(&typed, PUSH, 29, false, &["- z", "- RCS", "- *.o", "- env2/", "+ y"]);
    check(&typed, PUSH, 28, false, &["z", "RCS", "*.o", "env2/", "+ y"]);
    check(&typed, PULL, 32, false, &["- z", "-C ", "+ y"]);
    check(&typed, PULL, 28, false, &["z", "RCS", "*.o", "env2/", "+ y"]);

    let by_option: Vec<Rule> = rules(&[":C", "-C"])
        .into_iter()
        .map(|rule| Rule { flags: rule.flags | RuleFlags::BUILT_IN, ..rule })
        .collect();
    assert_eq!(sent(&by_option, PUSH, 30, false).unwrap(), [":C .cvsignore", "-p RCS", "-p *.o", "- env2/"]);
    assert_eq!(sent(&by_option, PUSH, 28, false).unwrap(), ["RCS", "*.o", "env2/"]);
    for version in [28, 29, 32] {
        assert!(sent(&by_option, PULL, version, false).unwrap().is_empty());
    }
    assert!(sent(&by_option, PUSH, 32, true).unwrap().is_empty());
}

#[test]
fn the_partial_dir_rule_gives_way() {
    let flags = RuleFlags::PERISHABLE | RuleFlags::BUILT_IN;
    let rules = [Rule::new(RuleKind::Exclude, flags, b"pp/").unwrap()];
    for direction in [PUSH, PULL] {
        assert_eq!(sent(&rules, direction, 30, false).unwrap(), ["-p pp/"]);
        assert_eq!(sent(&rules, direction, 29, false).unwrap(), ["- pp/"]);
        assert_eq!(sent(&rules, direction, 28, false).unwrap(), ["pp/"]);
    }
}

#[test]
fn lists_travel() {
    let mut bytes = Vec::new();
    put_texts(&[b"- a".to_vec(), b"+ bc".to_vec()], &mut bytes).unwrap();
    assert_eq!(bytes, b"\x03\0\0\0- a\x04\0\0\0+ bc\0\0\0\0");
    let mut input = Reader::new(&bytes);
    assert_eq!(decode_text(&mut input), Ok(Some(&b"- a"[..])));
    assert_eq!(decode_text(&mut input), Ok(Some(&b"+ bc"[..])));
    assert_eq!(decode_text(&mut input), Ok(None));
    for end in 0..7 {
        assert_eq!(decode_text(&mut Reader::new(&bytes[..end])), Err(Stop::Short));
    }
}

#[test]
fn over_long_texts_end_with_code_22() {
    for length in [5120i32, i32::MAX, -1] {
        let Err(Stop::Bad(error)) = decode_text(&mut Reader::new(&length.to_le_bytes())) else { panic!() };
        assert_eq!(error.exit_code(), 22);
    }
}

#[test]
fn received_texts_count_whatever_their_side() {
    let received =
        |text: &[u8], version| Directive::parse_received(text, Version::new(version).unwrap()).unwrap();
    let Directive::Rule(rule) = received(b"-r keep", 32) else { panic!() };
    assert_eq!(rule.flags, RuleFlags::RECEIVER | RuleFlags::RECEIVED);
    let Directive::Rule(rule) = received(b"-r keep", 28) else { panic!() };
    assert_eq!((rule.flags, &rule.pattern[..]), (RuleFlags::RECEIVED, &b"-r keep"[..]));
    assert!(matches!(received(b"-C ", 30), Directive::CvsList { .. }));
}
