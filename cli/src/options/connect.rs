//! Rows: the way to the peer, and how arguments travel there.
//!
//! Wire: protocol/doc/02-session-start.md#21-command-that-is-run

use super::number::int;
use super::row::{flag, valued, Row};
use super::typed::Family;
use crate::exit::Refusal;

/// The text that stock prints for an option of the daemon.
const DAEMON_ONLY: &str = "Daemon option(s) used without --daemon.\n\
    (Type \"rsync --daemon --help\" for assistance with daemon mode.)";

/// What follows a complaint about such an option.
const HINT: &[u8] = b"\n(Type \"rsync --daemon --help\" for assistance with daemon mode.)";

/// The rows.
pub const ROWS: &[Row] = &[
    valued("rsh", "COMMAND", "reach other machines by COMMAND", |t, g| {
        t.connect.rsh = Some(g.value.to_vec());
        Ok(())
    })
    .letter('e'),
    valued("rsync-path", "PROGRAM", "run PROGRAM there", |t, g| {
        t.connect.rsync_path = Some(g.value.to_vec());
        Ok(())
    }),
    valued("remote-option", "OPT", "an option for the other end only", |t, g| {
        if !g.value.starts_with(b"-") {
            return Err(Refusal::usage([b"rsync: Remote option must start with a dash: ", g.value].concat()));
        }
        t.connect.remote_options.push(g.value.to_vec());
        Ok(())
    })
    .letter('M'),
    flag("secluded-args", "send arguments by the protocol, not by the shell", |t, g| {
        t.connect.secluded = Some(g.on);
        Ok(())
    })
    .letter('s')
    .also(&["protect-args"])
    .off(&["no-secluded-args", "no-protect-args", "no-s"]),
    flag("old-args", "leave the shell of the other end its way with arguments", |t, g| {
        t.connect.old_args = Some(if g.on { t.connect.old_args.unwrap_or(0).saturating_add(1) } else { 0 });
        Ok(())
    })
    .off(&["no-old-args"]),
    flag("trust-sender", "accept names that were not asked for", |t, _| {
        t.connect.trust_sender = true;
        Ok(())
    }),
    valued("protocol", "NUM", "speak an older version", |t, g| {
        t.connect.protocol = Some(int(g)?);
        Ok(())
    }),
    valued("port", "PORT", "port of the daemon", |t, g| {
        t.connect.port = Some(int(g)?);
        Ok(())
    }),
    valued("address", "ADDRESS", "connect from this address", |t, g| {
        t.connect.address = Some(g.value.to_vec());
        Ok(())
    }),
    valued("sockopts", "OPTIONS", "set socket options", |t, g| {
        t.connect.sockopts = Some(g.value.to_vec());
        Ok(())
    }),
    flag("ipv4", "use IPv4 only", |t, _| {
        t.connect.family = Family::V4;
        Ok(())
    })
    .letter('4'),
    flag("ipv6", "use IPv6 only", |t, _| {
        t.connect.family = Family::V6;
        Ok(())
    })
    .letter('6'),
    flag("blocking-io", "blocking pipes to the remote shell", |t, g| {
        t.connect.blocking_io = Some(g.on);
        Ok(())
    })
    .off(&["no-blocking-io"]),
    valued("contimeout", "SECONDS", "give up connecting after SECONDS", |t, g| {
        t.connect.timeout = if g.on { int(g)?.max(0) } else { 0 };
        Ok(())
    })
    .off(&["no-contimeout"]),
    valued("password-file", "FILE", "read the password for a daemon from FILE", |t, g| {
        t.connect.password_file = Some(g.value.to_vec());
        Ok(())
    }),
    valued("early-input", "FILE", "send FILE to a daemon before anything else", |t, g| {
        t.connect.early_input = Some(g.value.to_vec());
        Ok(())
    }),
    flag("motd", "show a daemon's message (default)", |t, g| {
        t.connect.no_motd = !g.on;
        Ok(())
    })
    .off(&["no-motd"]),
    valued("iconv", "CONVERT_SPEC", "convert names between charsets", |t, g| {
        t.connect.iconv = Some(if g.on { g.value.to_vec() } else { b"-".to_vec() });
        Ok(())
    })
    .off(&["no-iconv"]),
    valued("copy-as", "USER[:GROUP]", "copy as another user", |t, g| {
        t.connect.copy_as = Some(g.value.to_vec());
        Ok(())
    }),
    valued("confine-root", "DIR", "keep paths of options below DIR", |t, g| {
        if !g.value.starts_with(b"/") {
            return Err(Refusal::usage("rsync: --confine-root must be an absolute path"));
        }
        t.select.confine_root = Some(g.value.to_vec());
        Ok(())
    }),
    flag("server", "run as the far end of a transfer", |t, _| {
        t.connect.server = true;
        Ok(())
    }),
    flag("sender", "with --server: this end sends", |t, _| {
        t.connect.sender = true;
        Ok(())
    }),
    flag("daemon", "run as a daemon", |_, _| Ok(())),
    valued("config", "FILE", "daemon: its configuration", |_, _| Ok(())).never(DAEMON_ONLY),
    valued("dparam", "NAME=VALUE", "daemon: a parameter", |_, g| match g.value.contains(&b'=') {
        true => Ok(()),
        false => Err(Refusal::usage([b"--dparam value is missing an '=': ", g.value, HINT].concat())),
    })
    .never(DAEMON_ONLY),
    flag("detach", "daemon: go to the background", |_, _| Ok(())).never(DAEMON_ONLY),
    flag("no-detach", "daemon: stay in the foreground", |_, _| Ok(())).never(DAEMON_ONLY),
];
