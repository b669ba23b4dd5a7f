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

/// The rows.
pub const ROWS: &[Row] = &[
    valued("rsh", "COMMAND", "specify the remote shell to use", |t, g| {
        t.connect.rsh = Some(g.value.to_vec());
        Ok(())
    })
    .letter('e'),
    valued("rsync-path", "PROGRAM", "specify the rsync to run on remote machine", |t, g| {
        t.connect.rsync_path = Some(g.value.to_vec());
        Ok(())
    }),
    valued("remote-option", "OPT", "send OPTION to the remote side only", |t, g| {
        if !g.value.starts_with(b"-") {
            return Err(Refusal::usage([b"rsync: Remote option must start with a dash: ", g.value].concat()));
        }
        t.connect.remote_options.push(g.value.to_vec());
        Ok(())
    })
    .letter('M'),
    flag("secluded-args", "use the protocol to safely send the args", |t, g| {
        t.connect.secluded = Some(g.on);
        Ok(())
    })
    .letter('s')
    .also(&["protect-args"])
    .off(&["no-secluded-args", "no-protect-args", "no-s"]),
    flag("old-args", "disable the modern arg-protection idiom", |t, g| {
        t.connect.old_args = Some(if g.on { t.connect.old_args.unwrap_or(0).saturating_add(1) } else { 0 });
        Ok(())
    })
    .off(&["no-old-args"]),
    flag("trust-sender", "trust the remote sender's file list", |t, _| {
        t.connect.trust_sender = true;
        Ok(())
    }),
    valued("protocol", "NUM", "force an older protocol version to be used", |t, g| {
        t.connect.protocol = Some(int(g)?);
        Ok(())
    }),
    valued("port", "PORT", "specify double-colon alternate port number", |t, g| {
        t.connect.port = Some(int(g)?);
        Ok(())
    }),
    valued("address", "ADDRESS", "bind address for outgoing socket to daemon", |t, g| {
        t.connect.address = Some(g.value.to_vec());
        Ok(())
    }),
    valued("sockopts", "OPTIONS", "specify custom TCP options", |t, g| {
        t.connect.sockopts = Some(g.value.to_vec());
        Ok(())
    }),
    flag("ipv4", "prefer IPv4", |t, _| {
        t.connect.family = Family::V4;
        Ok(())
    })
    .letter('4'),
    flag("ipv6", "prefer IPv6", |t, _| {
        t.connect.family = Family::V6;
        Ok(())
    })
    .letter('6'),
    flag("blocking-io", "use blocking I/O for the remote shell", |t, g| {
        t.connect.blocking_io = Some(g.on);
        Ok(())
    })
    .off(&["no-blocking-io"]),
    valued("contimeout", "SECONDS", "set daemon connection timeout in seconds", |t, g| {
        t.connect.timeout = if g.on { int(g)?.max(0) } else { 0 };
        Ok(())
    })
    .off(&["no-contimeout"]),
    valued("password-file", "FILE", "read daemon-access password from FILE", |t, g| {
        t.connect.password_file = Some(g.value.to_vec());
        Ok(())
    }),
    valued("early-input", "FILE", "use FILE for daemon's early exec input", |_, _| Ok(())).not_yet(),
    flag("motd", "show the daemon's message of the day (default)", |t, g| {
        t.connect.no_motd = !g.on;
        Ok(())
    })
    .off(&["no-motd"]),
    valued("iconv", "CONVERT_SPEC", "request charset conversion of filenames", |t, g| {
        t.connect.iconv = Some(g.value.to_vec()).filter(|_| g.on);
        Ok(())
    })
    .off(&["no-iconv"])
    .not_yet(),
    valued("copy-as", "USER[:GROUP]", "specify user & optional group for the copy", |_, _| Ok(())).not_yet(),
    valued("confine-root", "DIR", "keep operator paths below DIR", |_, _| Ok(())).not_yet(),
    flag("server", "run as the far end of a transfer", |t, _| {
        t.connect.server = true;
        Ok(())
    }),
    flag("sender", "with --server: this end sends", |t, _| {
        t.connect.sender = true;
        Ok(())
    }),
    flag("daemon", "run as a daemon", |_, _| Ok(())).not_yet(),
    valued("config", "FILE", "daemon: alternate configuration file", |_, _| Ok(())).never(DAEMON_ONLY),
    valued("dparam", "NAME=VALUE", "daemon: override a global parameter", |_, _| Ok(())).never(DAEMON_ONLY),
    flag("detach", "daemon: go to the background", |_, _| Ok(())).off(&["no-detach"]).never(DAEMON_ONLY),
];
