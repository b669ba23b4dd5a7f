use super::*;

fn load(files: &[(&str, &str)], overrides: &[(&str, &str)]) -> Result<Config, Broken> {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap().to_owned();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace("{at}", &at)).unwrap();
    }
    let overrides: Vec<_> =
        overrides.iter().map(|(n, v)| (n.as_bytes().to_vec(), v.as_bytes().to_vec())).collect();
    let plain = |text: &String| text.replace(&at, "AT");
    match Config::load(&folder.path().join(files[0].0), &overrides) {
        Ok(config) => Ok(Config { mistakes: config.mistakes.iter().map(plain).collect(), ..config.clone() }),
        Err(Broken(text)) => Err(Broken(plain(&text))),
    }
}

fn text(config: &Config, module: &str, name: &str) -> String {
    let settings = config.section(module.as_bytes()).expect("the module is there").settings(&environment);
    String::from_utf8(settings.text(name)).unwrap()
}

#[test]
fn what_a_stock_daemon_was_seen_to_read() {
    let conf = "Use Chroot = no\nreadonly = no\ncomment = dflt \\\n   continued   here\n\
        [ one  two ]  junk\npath = /x/mod/\n[Global]\ncomment = second\n\
        [%HOME%x]\ncomment = %HOME% a%b\n[one TWO]\ncomment = merged\n[e1]\ncomment =\nlist = 0\n\
        [e2]\n&merge {at}/inc.inc\npath = /y\n[e3]\n&include = {at}/incd\npath = /z\n";
    let files = [
        ("rsyncd.conf", conf),
        ("incd/a.conf", "comment = fromglobal\n"),
        ("incd/b.conf", "[inc]\npath=/x\n"),
        ("incd/c.inc", "garbage"),
        ("inc.inc", "comment = frommerge\n"),
    ];
    let config = load(&files, &[]).unwrap();
    let names: Vec<String> =
        config.sections().iter().map(|s| String::from_utf8(s.raw_name.clone()).unwrap()).collect();
    assert_eq!(names, ["one two", "%HOME%x", "e1", "e2", "e3", "inc"]);
    assert_eq!(text(&config, "one two", "comment"), "merged");
    assert_eq!(text(&config, "one two", "path"), "/x/mod");
    assert_eq!(text(&config, "e1", "comment"), "");
    assert!(!config.section(b"e1").unwrap().settings(&environment).flag("list"));
    assert_eq!(text(&config, "e2", "comment"), "frommerge");
    assert_eq!(text(&config, "e2", "path"), "/y");
    assert_eq!((text(&config, "e3", "comment"), text(&config, "e3", "path")), ("second".into(), "/z".into()));
    assert_eq!(text(&config, "inc", "comment"), "second");
    assert!(!config.global().flag("read only") && config.global().flag3("use chroot") == Some(false));
    assert!(config.mistakes.is_empty(), "{:?}", config.mistakes);
}

#[test]
fn a_mistake_names_file_line_and_parameter() {
    let conf = "port = 99\n\nuse chroot = \\\n maybe\nfoo bar\nnosuch = 1\n[m]\nport = 9\nlist = perhaps\n";
    let config = load(&[("c", conf)], &[]).unwrap();
    assert_eq!(
        config.mistakes,
        [
            "AT/c line 3: \"use chroot\" is neither yes, no nor unset: \"maybe\"",
            "AT/c line 5: \"foo bar\" has no \"=\" and is ignored",
            "AT/c line 6: \"nosuch\" is no parameter and is ignored",
            "AT/c line 8: \"port\" belongs to the global part and is ignored",
            "AT/c line 9: \"list\" is neither yes nor no: \"perhaps\"",
        ]
    );
    assert!(config.section(b"m").unwrap().settings(&environment).flag("list"));
    let broken = |text: &str| load(&[("c", text)], &[]).unwrap_err().0;
    assert_eq!(broken("[a/b]\n"), "AT/c line 1: the name of module [a/b] holds a slash");
    assert_eq!(broken("\n[ ]\n"), "AT/c line 2: the name of a module is empty");
    assert_eq!(broken("&foo x\n"), "AT/c line 1: unknown directive \"&foo\"");
    assert!(broken("&include {at}/none\n").contains("No such file"));
    assert!(broken("&merge {at}/c\n").contains("without end"));
}

#[test]
fn settings_of_the_command_line_end_the_first_global_part() {
    let conf = "comment = a\nport = 1\n[m]\npath = /\n[global]\ncomment = later\n[n]\n";
    let config = load(&[("c", conf)], &[("Comment", "b"), ("port", "2")]).unwrap();
    assert_eq!((text(&config, "m", "comment"), text(&config, "n", "comment")), ("b".into(), "later".into()));
    assert_eq!(config.global().number("port"), 2);
}

#[test]
fn variables_are_replaced_where_they_exist() {
    let variable = |name: &str| (name == "V").then(|| b"v".to_vec());
    for (text, expected) in
        [("%V%", "v"), ("a%V%b%V", "avb%V"), ("%v%", "%v%"), ("%X%V%", "%Xv"), ("100%", "100%")]
    {
        assert_eq!(expand(text.as_bytes(), &variable), expected.as_bytes(), "{text}");
    }
}
