use super::*;
use suisei_protocol::filter::RuleKind;

use Outcome::{Hidden, ParentHidden, Shown};

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Outcome {
    Shown,
    Hidden,
    /// This directory was hidden first.
    ParentHidden(&'static [u8]),
}

/// Number, pattern, path, whether it is a directory, and what `--exclude` with that pattern does.
type Vector = (u8, &'static [u8], &'static [u8], bool, Outcome);

/// Section 8 of the specification.
#[rustfmt::skip]
const VECTORS: [Vector; 75] = [
    (1, b"foo", b"foo", false, Hidden),
    (2, b"foo", b"a/foo", false, Hidden),
    (3, b"foo", b"foo", true, Hidden),
    (4, b"foo", b"foobar", false, Shown),
    (5, b"foo", b"a/xfoo", false, Shown),
    (6, b"/foo", b"foo", false, Hidden),
    (7, b"/foo", b"a/foo", false, Shown),
    (8, b"foo/", b"foo", false, Shown),
    (9, b"foo/", b"foo", true, Hidden),
    (10, b"foo/", b"a/foo", true, Hidden),
    (11, b"a/foo", b"a/foo", false, Hidden),
    (12, b"a/foo", b"b/a/foo", false, Hidden),
    (13, b"a/foo", b"xa/foo", false, Shown),
    (14, b"/a/foo", b"b/a/foo", false, Shown),
    (15, b"a/foo", b"a/b/foo", false, Shown),
    (16, b"*.o", b"x.o", false, Hidden),
    (17, b"*.o", b"d/x.o", false, Hidden),
    (18, b"*.o", b".o", false, Hidden),
    (19, b"*", b"a/b", false, ParentHidden(b"a")),
    (20, b"/*", b"a/b", false, ParentHidden(b"a")),
    (21, b"/*", b"b", false, Hidden),
    (22, b"a*b", b"a/b", false, Shown),
    (23, b"a/*", b"a/b", false, Hidden),
    (24, b"a/*", b"a/b/c", false, ParentHidden(b"a/b")),
    (25, b"a/*", b"z/a/q", false, Hidden),
    (26, b"/a/*", b"z/a/q", false, Shown),
    (27, b"a**b", b"a/x/b", false, Hidden),
    (28, b"a/**", b"a/x/b", false, ParentHidden(b"a/x")),
    (29, b"a/**", b"a", true, Shown),
    (30, b"a/***", b"a", true, Hidden),
    (31, b"a/***", b"a/x/b", false, ParentHidden(b"a")),
    (32, b"/a/***", b"z/a/q", false, Shown),
    (33, b"a/***", b"z/a/q", false, ParentHidden(b"z/a")),
    (34, b"**/foo", b"foo", false, Hidden),
    (35, b"**/foo", b"a/foo", false, Hidden),
    (36, b"**/foo", b"a/b/foo", false, Hidden),
    (37, b"**foo", b"a/xfoo", false, Hidden),
    (38, b"/**/foo", b"foo", false, Shown),
    (39, b"/**/foo", b"a/foo", false, Hidden),
    (40, b"foo**", b"a/foobar", false, Hidden),
    (41, b"foo**", b"a/b/foo", true, Hidden),
    (42, b"b/**c", b"a/b/x/c", false, Hidden),
    (43, b"a/**/z", b"a/z", false, Shown),
    (44, b"a/**/z", b"a/b/z", false, Hidden),
    (45, b"f?o", b"fxo", false, Hidden),
    (46, b"f?o", b"f/o", false, Shown),
    (47, b"f?o", b"fo", false, Shown),
    (48, b"[a-c]x", b"bx", false, Hidden),
    (49, b"[!a-c]x", b"bx", false, Shown),
    (50, b"[^a-c]x", b"dx", false, Hidden),
    (51, b"[]a]x", b"]x", false, Hidden),
    (52, b"[a-]x", b"-x", false, Hidden),
    (53, b"[[:digit:]]x", b"5x", false, Hidden),
    (54, b"[[:foo:]]x", b"fx", false, Shown),
    (55, b"[abc", b"[abc", false, Shown),
    (56, b"f\\*o", b"f*o", false, Hidden),
    (57, b"f\\*o", b"fxo", false, Shown),
    (58, b"f\\o", b"f\\o", false, Hidden),
    (59, b"f\\o", b"fo", false, Shown),
    (60, b"f\\o*", b"fox", false, Hidden),
    (61, b"f\\\\o*", b"f\\ox", false, Hidden),
    (62, b"[", b"[", false, Shown),
    (63, b"FOO", b"foo", false, Shown),
    (64, b"foo ", b"foo", false, Shown),
    (65, b"a//b", b"a/b", false, Shown),
    (66, b"./foo", b"foo", false, Shown),
    (67, b"*/", b"d", true, Hidden),
    (68, b"*/", b"d", false, Shown),
    (69, b"a?c", b"a/c", false, Shown),
    (70, b"a[/]c", b"a/c", false, Shown),
    (71, b"**", b"x/y", false, ParentHidden(b"x")),
    (72, b"***", b"d", true, Hidden),
    (73, b"/", b"x", false, Shown),
    (74, b"\xc3\xa9?", b"\xc3\xa9x", false, Hidden),
    (75, b"??", b"\xc3\xa9", false, Hidden),
];

fn pattern(text: &[u8], flags: RuleFlags) -> Pattern {
    Pattern::new(&Rule::new(RuleKind::Exclude, flags, text).unwrap())
}

fn name(path: &[u8], is_dir: bool) -> Name<'_> {
    Name { path, is_dir, root: b"/srv/tree" }
}

/// Judges the parents of a path first, as a sender does that does not enter what is hidden.
fn outcome(pattern: &Pattern, path: &'static [u8], is_dir: bool) -> Outcome {
    for (at, _) in path.iter().enumerate().filter(|(_, &byte)| byte == b'/') {
        if pattern.matches(name(&path[..at], true)) {
            return ParentHidden(&path[..at]);
        }
    }
    if pattern.matches(name(path, is_dir)) {
        Hidden
    } else {
        Shown
    }
}

#[test]
fn one_pattern_and_one_name() {
    for (number, text, path, is_dir, expected) in VECTORS {
        let found = outcome(&pattern(text, RuleFlags::empty()), path, is_dir);
        assert_eq!(
            found,
            expected,
            "vector {number}: {:?} and {:?}",
            text.escape_ascii(),
            path.escape_ascii()
        );
    }
}

fn hidden<'a>(text: &[u8], names: &[&'a str]) -> Vec<&'a str> {
    let pattern = pattern(text, RuleFlags::empty());
    names.iter().copied().filter(|path| pattern.matches(name(path.as_bytes(), false))).collect()
}

/// Captured with files of these names side by side.
#[test]
fn sets_are_read_as_stock_reads_them() {
    let names = ["a!b", "a-b", "a\\b", "a]b", "a^b", "aab", "azb"];
    let table: [(&[u8], &[&str]); 21] = [
        (b"a[a-]b", &["a-b", "aab"]),
        (b"a[]-a]b", &["a]b", "a^b", "aab"]),
        (b"a[^]b", &[]),
        (b"a[!]b", &[]),
        (b"a[!!]b", &["a-b", "a\\b", "a]b", "a^b", "aab", "azb"]),
        (b"a[^^]b", &["a!b", "a-b", "a\\b", "a]b", "aab", "azb"]),
        (b"a[\\]]b", &["a]b"]),
        (b"a[]]b", &["a]b"]),
        (b"a[a\\-z]b", &["a-b", "aab", "azb"]),
        (b"a[[:alpha:]b", &[]),
        (b"a[[:alpha:]]b", &["aab", "azb"]),
        (b"a[[:alpha:]-z]b", &["a-b", "aab", "azb"]),
        (b"a[z-a]b", &["azb"]),
        (b"a[a-[:digit:]]b", &[]),
        (b"a[[:alpha]b", &["aab"]),
        (b"a[\\\\]b", &["a\\b"]),
        (b"a[-z]b", &["a-b", "azb"]),
        (b"a[--z]b", &["a-b", "a\\b", "a]b", "a^b", "aab", "azb"]),
        (b"a[a-a-z]b", &["a-b", "aab", "azb"]),
        (b"a[[.-.]]b", &[]),
        (b"a[\\z-\\a]b", &["azb"]),
    ];
    for (text, expected) in table {
        assert_eq!(hidden(text, &names), expected, "{}", text.escape_ascii());
    }
}

#[test]
fn backslashes_escape_in_wild_patterns_only() {
    let names = ["ab\\x", "ab\\", "abc", "c[x"];
    let table: [(&[u8], &[&str]); 8] = [
        (b"a*\\", &[]),
        (b"a*\\\\", &["ab\\"]),
        (b"ab\\", &["ab\\"]),
        (b"[a-c]b\\", &[]),
        (b"c[[]x", &["c[x"]),
        (b"c\\[x", &["c[x"]),
        (b"c\\[*", &["c[x"]),
        (b"*[", &[]),
    ];
    for (text, expected) in table {
        assert_eq!(hidden(text, &names), expected, "{}", text.escape_ascii());
    }
}

#[test]
fn absolute_rules_see_the_whole_path() {
    let absolute = |text: &[u8]| pattern(text, RuleFlags::ABSOLUTE);
    assert!(absolute(b"/srv/tree/top").matches(name(b"top", false)));
    assert!(absolute(b"/srv/*/a/b").matches(name(b"a/b", false)));
    assert!(!absolute(b"/top").matches(name(b"top", false)));
    assert!(absolute(b"tree/top").matches(name(b"top", false)));
    // Without a slash only the last component counts.
    assert!(absolute(b"top").matches(name(b"a/top", false)));
}

#[test]
fn negation_turns_the_directory_test_too() {
    let files = pattern(b"*/", RuleFlags::NEGATE);
    assert!(files.matches(name(b"f", false)));
    assert!(!files.matches(name(b"d", true)));
}

#[test]
fn stars_backtrack_as_far_as_they_must() {
    for (text, path, expected) in [
        (&b"**a*b"[..], "a/xab", true),
        (b"**/x*/y*z", "q/xa/b/x1/ycz", true),
        (b"/*a*/**b", "xa/q/b", true),
        (b"/*a*b", "xa/b", false),
        (b"/a**b*c", "a/b/b/xc", false),
        (b"/a**b*c", "a/b/bxc", true),
        (b"/**", "a/b", true),
        (b"/*", "a/b", false),
        (b"a*", "a", true),
    ] {
        let found = pattern(text, RuleFlags::empty()).matches(name(path.as_bytes(), false));
        assert_eq!(found, expected, "{} and {path}", text.escape_ascii());
    }
}

#[test]
fn many_stars_are_decided_soon() {
    let text = [b"**".to_vec(), b"a*".repeat(200), b"b".to_vec()].concat();
    let long = [b"a".repeat(255), b"/".to_vec(), b"a".repeat(255)].concat();
    assert!(!pattern(&text, RuleFlags::empty()).matches(name(&long, false)));
}
