//! Our daemon beside a stock one: the same modules, the same clients, the same answers.

use std::time::Duration;

use suisei_interop_tests::lines::comparable;
use suisei_interop_tests::peers::{has_stock, Peer};
use suisei_interop_tests::site::{agree, is_luck, Args, Site};
use suisei_interop_tests::trees::{self, is_root};

#[test]
fn modules_are_listed_with_their_comments() {
    let config =
        "motd file = {at}/src/a.txt\ncomment = of all\n[one]\npath = {at}/mod\ncomment = the first\n\
        [two words]\npath = {at}/mod\n[hidden]\npath = {at}/mod\nlist = no\n[longer than fifteen columns]\n\
        path = {at}\n";
    agree(config, &[&["{url}/"], &["{url}"], &["--no-motd", "{url}/"], &["{url}/hidden/"], &["{url}/One/"]]);
}

#[test]
fn every_version_is_served_both_ways() {
    let config = "[m]\npath = {at}/mod\n[w]\npath = {at}/in\nread only = no\n";
    for version in ["27", "28", "29", "30", "31", "32"] {
        let version = format!("--protocol={version}");
        agree(
            config,
            &[
                &["-aH", &version, "{url}/m/", "got/"],
                &["-aH", "--delete", &version, "src/", "{url}/w/"],
                &["-aH", &version, "src/", "{url}/w/"],
                &["-r", &version, "{url}/m/"],
            ],
        );
    }
}

#[test]
fn what_a_module_does_not_grant_is_refused() {
    let config = "[m]\npath = {at}/mod\n[wo]\npath = {at}/in\nwrite only = yes\nread only = no\n\
        [nopath]\n[gone]\npath = {at}/gone\n[unlisted]\npath = {at}/mod\nlist = no\nhosts deny = *\n\
        [denied]\npath = {at}/mod\nhosts deny = *\n[uid]\npath = {at}/mod\nuid = no-such-user\n\
        [gid]\npath = {at}/mod\ngid = no-such-group\n[closed]\npath = {at}/mod\nmax connections = -1\n";
    let runs: Vec<Vec<&str>> = vec![
        vec!["-a", "src/", "{url}/m/"],
        vec!["-a", "{url}/wo/", "got/"],
        vec!["-a", "--remove-source-files", "{url}/m/a.txt", "got/"],
        vec!["{url}/nopath/"],
        vec!["{url}/gone/"],
        vec!["{url}/unlisted/"],
        vec!["{url}/denied/"],
        vec!["{url}/uid/"],
        vec!["{url}/gid/"],
        vec!["{url}/closed/"],
        vec!["{url}/no such module/"],
        vec!["-a", "{url}/m/missing", "got/"],
    ];
    agree(config, &runs.iter().map(Vec::as_slice).collect::<Vec<_>>());
}

#[test]
fn logins_follow_the_rules_of_the_module() {
    let secrets = "secrets file = {at}/secrets\n";
    let config = format!(
        "[plain]\npath = {{at}}/mod\nauth users = bob, ann\n{secrets}\
         [rw]\npath = {{at}}/in\nauth users = bob:ro ann:rw b*:deny\n{secrets}\
         [commas]\npath = {{at}}/mod\nauth users = , b b, bob\n{secrets}\
         [strict]\npath = {{at}}/mod\nauth users = bob\nsecrets file = {{at}}/open\n\
         [lax]\npath = {{at}}/mod\nauth users = bob\nsecrets file = {{at}}/open\nstrict modes = no\n\
         [floor]\npath = {{at}}/mod\nauth users = bob\n{secrets}auth digest = sha256\n\
         [none]\npath = {{at}}/mod\nauth users = bob\n"
    );
    if !has_stock() {
        return;
    }
    let transcript = |client: Peer, server: Peer| {
        let site = Site::new(&config);
        for (name, mode) in [("secrets", 0o600), ("open", 0o604)] {
            trees::file(site.at(), name, b"# users\nbob:s3cret:word\nann:pw\nann:second\nb b:x\n", mode);
        }
        let daemon = site.start(server);
        let mut seen = Vec::new();
        for (user, password, module) in [
            ("bob", "s3cret:word", "plain"),
            ("bob", "wrong", "plain"),
            ("ann", "second", "plain"),
            ("eve", "pw", "plain"),
            ("ann", "pw", "rw"),
            ("bill", "pw", "rw"),
            ("bob", "s3cret:word", "commas"),
            ("bob", "s3cret:word", "strict"),
            ("bob", "s3cret:word", "lax"),
            ("bob", "s3cret:word", "floor"),
            ("bob", "s3cret:word", "none"),
        ] {
            let password = format!("RSYNC_PASSWORD={password}");
            let url = format!("rsync://{user}@127.0.0.1:{}/{module}/", daemon.port());
            for args in [vec![&*password, "-r", &*url], vec![&*password, "-a", "src/a.txt", &*url]] {
                let output = site.run(client, daemon.port(), &args);
                let err = String::from_utf8_lossy(&output.stderr).into_owned();
                let said: Vec<&str> =
                    err.lines().filter(|l| l.starts_with("@ERROR") || l.starts_with("ERROR")).collect();
                seen.push(format!("{user} {password} {module} => {:?} {said:?}", output.status.code()));
            }
        }
        (seen, site.log().into_iter().filter(|line| line.starts_with("auth failed")).collect::<Vec<_>>())
    };
    let expected = transcript(Peer::Stock, Peer::Stock);
    for client in [Peer::Stock, Peer::Ours] {
        let got = transcript(client, Peer::Ours);
        assert_eq!(got.0, expected.0, "{client:?}");
        assert_eq!(got.1.len(), expected.1.len(), "each failure is logged: {:#?}", got.1);
    }
}

#[test]
fn hosts_are_let_in_by_the_lists() {
    let lists = [
        ("hosts allow = 127.0.0.1", ""),
        ("hosts allow = 10.0.0.0/8", ""),
        ("hosts allow = 10.0.0.0/8", "hosts deny = 11.0.0.0/8"),
        ("hosts allow = 127.0.0.0/8", "hosts deny = *"),
        ("", "hosts deny = 127.0.0.0/255.0.0.0"),
        ("", "hosts deny = ::1 10.0.0.1"),
        ("", "hosts deny = no-such-host.invalid"),
        ("hosts allow = localhost", "hosts deny = *"),
        ("hosts allow = no-such-host.invalid", ""),
        ("", "hosts deny = 127.0.0.1/x"),
    ];
    let modules: String = lists
        .iter()
        .enumerate()
        .map(|(at, (allow, deny))| format!("[m{at}]\npath = {{at}}/mod\n{allow}\n{deny}\n"))
        .collect();
    let runs: Vec<Vec<String>> = (0..lists.len()).map(|at| vec![format!("{{url}}/m{at}/a.txt")]).collect();
    let runs: Vec<Vec<&str>> = runs.iter().map(|run| run.iter().map(String::as_str).collect()).collect();
    agree(&modules, &runs.iter().map(Vec::as_slice).collect::<Vec<_>>());
}

#[test]
fn paths_stay_below_the_module() {
    let config = "[m]\npath = {at}/mod\n[w]\npath = {at}/in\nread only = no\n";
    agree(
        config,
        &[
            &["-ai", "{url}/m/d/*", "got/"],
            &["-ai", "{url}/m/../../../etc/passwd", "got/"],
            &["-ai", "{url}/m/d/../a.txt", "got/"],
            &["-ai", "{url}/m/with blank/f", "got/"],
            &["-ais", "{url}/m/with blank/", "got/s/"],
            &["-aiR", "{url}/m/d/e/z", "got/r/"],
            &["-aiR", "{url}/m/d/./e/z", "got/r/"],
            &["-ai", "src/a.txt", "{url}/w/new name"],
            &["-ai", "src/", "{url}/w/../../up/"],
            &["-ai", "src/", "{url}/w/no/such/dir/"],
            &["-ai", "--mkpath", "src/", "{url}/w/new/dirs/"],
            &["-ai", "src/a.txt", "{url}/w/no/file"],
        ],
    );
}

#[test]
fn symlinks_do_not_lead_out_of_a_module() {
    if !has_stock() {
        return;
    }
    let config = "[m]\npath = {at}/mod\n[w]\npath = {at}/in\nread only = no\nmunge symlinks = no\n";
    let site = Site::new(config);
    std::fs::write(site.at().join("outside"), "out of reach").expect("writable");
    for (target, name) in [
        ("../outside", "mod/far"),
        ("/etc", "mod/etc"),
        ("../..", "mod/d/up"),
        ("../a.txt", "mod/d/near"),
        ("../..", "in/up"),
    ] {
        std::os::unix::fs::symlink(target, site.at().join(name)).expect("writable");
    }
    let daemon = site.start(Peer::Ours);
    for client in [Peer::Stock, Peer::Ours] {
        let run = |args: Args<'_>| site.run(client, daemon.port(), args);
        let followed = run(&["-aL", "{url}/m/", "got/"]);
        assert_eq!(followed.status.code(), Some(23), "what leads out is an error");
        assert!(site.at().join("got/d/near").is_file(), "what stays inside is followed");
        for name in ["far", "etc", "d/up"] {
            assert!(!site.at().join("got").join(name).exists(), "{name} leads out");
        }
        for path in ["etc/passwd", "etc/", "d/up/", "d/up/outside", "far"] {
            let output = run(&["-rL", &format!("{{url}}/m/{path}"), "leak/"]);
            assert_ne!(output.status.code(), Some(0), "{path}");
        }
        for path in ["up/escaped", "up/escaped/", "up/../escaped/"] {
            run(&["-a", "src/a.txt", &format!("{{url}}/w/{path}")]);
        }
        for option in ["--backup-dir=up/b", "--temp-dir=up", "--partial-dir=up/p"] {
            run(&["-ab", option, "--ignore-times", "src/", "{url}/w/"]);
        }
        for name in ["escaped", "leak/passwd", "leak/outside", "b", "p"] {
            assert!(!site.at().join(name).exists(), "{name} was made outside");
        }
        std::fs::remove_dir_all(site.at().join("got")).expect("it was fetched");
    }
}

#[test]
fn symlinks_are_munged_or_confined() {
    if !has_stock() {
        return;
    }
    let config = "[munge]\npath = {at}/in\nread only = no\n[plain]\npath = {at}/in\nread only = no\n\
        munge symlinks = no\n";
    let transcript = |client: Peer, server: Peer| {
        let site = Site::new(config);
        for (target, name) in [
            ("/etc/passwd", "l1"),
            ("../x", "l2"),
            ("../../x", "d/l3"),
            ("a/../../../b", "d/l4"),
            ("../..", "d/l5"),
            ("./q/./r", "l6"),
            ("../y", "d/l7"),
        ] {
            std::os::unix::fs::symlink(target, site.at().join("src").join(name)).expect("writable");
        }
        let daemon = site.start(server);
        for module in ["munge", "plain"] {
            site.run(client, daemon.port(), &["-a", "src/", &format!("{{url}}/{module}/{module}/")]);
            site.run(
                client,
                daemon.port(),
                &["-a", &format!("{{url}}/{module}/{module}/"), &format!("got-{module}/")],
            );
        }
        let mut targets = Vec::new();
        for root in ["in/munge", "in/plain", "got-munge", "got-plain"] {
            for name in ["l1", "l2", "d/l3", "d/l4", "d/l5", "l6", "d/l7"] {
                let target = std::fs::read_link(site.at().join(root).join(name));
                targets.push(format!("{root}/{name} -> {target:?}"));
            }
        }
        targets
    };
    let expected = transcript(Peer::Stock, Peer::Stock);
    for client in [Peer::Stock, Peer::Ours] {
        assert_eq!(transcript(client, Peer::Ours), expected, "{client:?}");
    }
}

#[test]
fn hidden_names_do_not_exist() {
    let config = "exclude = *.o /secret\n[r]\npath = {at}/mod\n[w]\npath = {at}/in\nread only = no\n\
        [ordered]\npath = {at}/mod\ninclude = d/*.o\nexclude = *.o\nfilter = - /d/y.txt\n\
        [file]\npath = {at}/mod\nexclude =\nexclude from = {at}/src/a.txt\n";
    agree(
        config,
        &[
            &["-ai", "{url}/r/", "got/"],
            &["-ai", "{url}/r/b.o", "got/"],
            &["-ai", "{url}/r/secret/", "got/"],
            &["-ai", "{url}/r/secret/s", "got/"],
            &["-ai", "{url}/r/*", "got2/"],
            &["-aiR", "{url}/r/d/x.o", "got/"],
            &["-r", "{url}/ordered/"],
            &["-r", "{url}/file/"],
            &["-ai", "--delete", "src/", "{url}/w/"],
            &["-ai", "src/b.o", "{url}/w/"],
            &["-ai", "src/a.txt", "{url}/w/secret/"],
            &["-ai", "src/a.txt", "{url}/w/new.o"],
            &["-ai", "-b", "--backup-dir=secret", "src/", "{url}/w/"],
            &["-ai", "--temp-dir=secret", "src/", "{url}/w/"],
        ],
    );
}

#[test]
fn options_are_refused_by_name_and_by_wildcard() {
    let modules = [
        ("delete", "delete"),
        ("before", "delete-before"),
        ("during", "delete-during"),
        ("all", "*"),
        ("most", "* !a !v"),
        ("partial", "partial"),
        ("inplace", "inplace"),
        ("compress", "compress"),
        ("archive", "archive"),
        ("no", "no-*"),
        ("letter", "n"),
        ("nothing", "no-such-option"),
    ];
    let config: String = modules
        .iter()
        .map(|(name, terms)| {
            format!("[{name}]\npath = {{at}}/in\nread only = no\nrefuse options = {terms}\n")
        })
        .collect();
    let runs: Vec<(&str, &[&str])> = vec![
        ("delete", &["--delete"]),
        ("delete", &["--del"]),
        ("delete", &["--delete-excluded"]),
        ("before", &["--delete"]),
        ("before", &["--delete-before"]),
        ("during", &["--delete"]),
        ("during", &["--del"]),
        ("all", &["-n"]),
        ("most", &["-lptgoD"]),
        ("most", &["-c"]),
        ("partial", &["-P", "--info=progress0"]),
        ("partial", &["--inplace"]),
        ("partial", &["--partial-dir=.x"]),
        ("inplace", &["--append"]),
        ("compress", &["-z"]),
        ("compress", &["--zc=zstd"]),
        ("archive", &["-n"]),
        ("no", &["--no-implied-dirs", "-R"]),
        ("letter", &["--dry-run"]),
        ("nothing", &["-n"]),
        ("nothing", &["-M--config=x"]),
        ("nothing", &["-M--log-file=x"]),
        ("nothing", &["-M--insecure-links"]),
        ("nothing", &["--write-devices"]),
        ("nothing", &["-M--bogus"]),
        ("nothing", &["-M--timeout=x"]),
    ];
    let runs: Vec<Vec<String>> = runs
        .iter()
        .map(|(module, options)| {
            let mut args = vec!["-r".to_owned()];
            args.extend(options.iter().map(|option| (*option).to_owned()));
            args.extend(["src/".to_owned(), format!("{{url}}/{module}/")]);
            args
        })
        .collect();
    let runs: Vec<Vec<&str>> = runs.iter().map(|run| run.iter().map(String::as_str).collect()).collect();
    agree(&config, &runs.iter().map(Vec::as_slice).collect::<Vec<_>>());
}

#[test]
fn transfers_are_logged_as_stock_logs_them() {
    if !has_stock() {
        return;
    }
    let config = "transfer logging = yes\n[m]\npath = {at}/mod\n[w]\npath = {at}/in\nread only = no\n\
        log format = %o %-9m|%8l|%f %n %h [%a] (%u)\n";
    let log = |client: Peer, server: Peer| {
        let site = Site::new(config);
        let daemon = site.start(server);
        for args in [
            &["-a", "{url}/m/", "got/"][..],
            &["-a", "{url}/m/missing", "got/"],
            &["-a", "src/", "{url}/w/"],
            &["{url}/"],
            &["-a", "src/", "{url}/m/"],
            &["{url}/nothing/"],
        ] {
            site.run(client, daemon.port(), args);
            // The child may still be writing its last line.
            std::thread::sleep(Duration::from_millis(300));
        }
        let text = site.log().join("\n").replace(&daemon.port().to_string(), "PORT");
        let text = text.replace("/rsyncd version 3.5.0", "/rsyncd");
        let mut lines = comparable(text.as_bytes(), site.at());
        for line in &mut lines {
            if line.starts_with("sent ") {
                let size = line.rsplit(' ').next().unwrap_or_default().to_owned();
                *line = format!("sent N bytes  received N bytes  total size {size}");
            }
        }
        lines
    };
    let expected = log(Peer::Stock, Peer::Stock);
    assert_eq!(log(Peer::Stock, Peer::Ours), expected);
}

#[test]
fn hooks_know_the_connection() {
    if !has_stock() {
        return;
    }
    let show = "printf \"%s|\" \"$RSYNC_MODULE_NAME\" \"$RSYNC_MODULE_PATH\" \"$RSYNC_HOST_ADDR\" \
        \"$RSYNC_USER_NAME\" \"$RSYNC_REQUEST\" \"$RSYNC_ARG0\" \"$RSYNC_ARG1\" \"$RSYNC_EXIT_STATUS\" \
        \"$RSYNC_RAW_STATUS\"";
    let config = format!(
        "[m]\npath = {{at}}/mod\nearly exec = (cat; {show}) > {{at}}/early\n\
         pre-xfer exec = ({show}) > {{at}}/pre\npost-xfer exec = ({show}) > {{at}}/post\n\
         [refuses]\npath = {{at}}/mod\npre-xfer exec = echo no, sorry; exit 3\n\
         [early]\npath = {{at}}/mod\nearly exec = false\n"
    );
    let seen = |client: Peer, server: Peer| {
        let site = Site::new(&config);
        std::fs::write(site.at().join("early-in"), "hello").expect("writable");
        let daemon = site.start(server);
        let ok = site.run(client, daemon.port(), &["-n", "{url}/m/a.txt", "{url}/m/d", "got/"]);
        std::thread::sleep(Duration::from_millis(500));
        let mut lines = vec![format!("{:?}", ok.status.code())];
        for name in ["early", "pre", "post"] {
            let text = std::fs::read_to_string(site.at().join(name)).unwrap_or_default();
            lines.push(format!("{name}: {}", text.replace(&*site.at().to_string_lossy(), "AT")));
        }
        for module in ["refuses", "early"] {
            let output = site.run(client, daemon.port(), &["-a", "src/", &format!("{{url}}/{module}/")]);
            lines.push(format!("{module} => {:?}", output.status.code()));
            let said = comparable(&output.stderr, site.at());
            lines.extend(said.into_iter().filter(|line| !is_luck(line)));
        }
        lines
    };
    let expected = seen(Peer::Stock, Peer::Stock);
    assert_eq!(seen(Peer::Stock, Peer::Ours), expected);
}

#[test]
fn a_chroot_may_hold_more_than_the_module() {
    if !is_root() {
        println!("skipped: only root can change its root");
        return;
    }
    let config = "munge symlinks = no\n[whole]\npath = {at}/mod\nuse chroot = yes\n\
        [inner]\npath = {at}/./mod\nuse chroot = yes\n[auto]\npath = {at}/./in\nread only = no\n";
    agree(
        config,
        &[
            &["-ai", "{url}/whole/d/", "got/"],
            &["-ai", "{url}/whole/missing", "got/"],
            &["-ai", "{url}/inner/d/", "got/i/"],
            &["-ai", "{url}/inner/missing", "got/"],
            &["-ai", "{url}/inner/../in/", "got/"],
            &["-ai", "src/", "{url}/auto/"],
            &["-ai", "src/a.txt", "{url}/auto/no/file"],
        ],
    );
}
