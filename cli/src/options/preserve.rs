//! Rows: attributes.
//!
//! Wire: protocol/doc/12-owners-links-xattrs-acls.md#1-owner-and-group-mapping-receiving-side-only

use super::row::{flag, valued, Row};
use super::typed::{Recursive, Typed};
use crate::exit::Refusal;

fn count(on: bool, now: u8) -> u8 {
    if on {
        (now + 1).min(2)
    } else {
        0
    }
}

/// The rows.
pub const ROWS: &[Row] = &[
    flag("archive", "the same as -rlptgoD", |t, _| {
        if t.select.recursive == Recursive::Off {
            t.select.recursive = Recursive::Archive;
        }
        let p = &mut t.preserve;
        (p.links, p.perms, p.times, p.group, p.owner, p.devices, p.specials) =
            (true, true, true, true, true, true, true);
        Ok(())
    })
    .letter('a'),
    flag("links", "copy symlinks as symlinks", |t, g| {
        t.preserve.links = g.on;
        Ok(())
    })
    .letter('l')
    .off(&["no-links", "no-l"]),
    flag("hard-links", "keep files linked that are linked", |t, g| {
        t.preserve.hard_links = count(g.on, t.preserve.hard_links);
        Ok(())
    })
    .letter('H')
    .off(&["no-hard-links", "no-H"]),
    flag("perms", "keep permissions", |t, g| {
        t.preserve.perms = g.on;
        Ok(())
    })
    .letter('p')
    .off(&["no-perms", "no-p"]),
    flag("executability", "keep whether a file can be executed", |t, _| {
        t.preserve.executability = true;
        Ok(())
    })
    .letter('E'),
    valued("chmod", "CHMOD", "change permissions on the way", |t, g| {
        t.preserve.chmod.add(g.value).map_err(|_| {
            Refusal::usage([b"rsync: Invalid argument passed to --chmod (", g.value, b")"].concat())
        })
    }),
    flag("acls", "keep access control lists (with --perms)", |t, g| {
        t.preserve.acls = g.on;
        t.preserve.perms |= g.on;
        Ok(())
    })
    .letter('A')
    .off(&["no-acls", "no-A"])
    .here(cfg!(target_os = "linux"), "rsync: ACLs are not supported on this client"),
    flag("xattrs", "keep extended attributes", |t, g| {
        t.preserve.xattrs = count(g.on, t.preserve.xattrs);
        Ok(())
    })
    .letter('X')
    .off(&["no-xattrs", "no-X"]),
    flag("owner", "keep the owner (as root)", |t, g| {
        t.preserve.owner = g.on;
        Ok(())
    })
    .letter('o')
    .off(&["no-owner", "no-o"]),
    flag("group", "keep the group", |t, g| {
        t.preserve.group = g.on;
        Ok(())
    })
    .letter('g')
    .off(&["no-group", "no-g"]),
    flag("devices", "keep device nodes (as root)", |t, g| {
        t.preserve.devices = g.on;
        Ok(())
    })
    .off(&["no-devices"]),
    flag("specials", "keep pipes and sockets", |t, g| {
        t.preserve.specials = g.on;
        Ok(())
    })
    .off(&["no-specials"]),
    flag("", "same as --devices --specials", |t, g| {
        (t.preserve.devices, t.preserve.specials) = (g.on, g.on);
        Ok(())
    })
    .letter('D')
    .off(&["no-D"]),
    flag("copy-devices", "copy what a device holds", |t, _| {
        t.change.copy_devices = true;
        Ok(())
    }),
    flag("write-devices", "write into devices (with --inplace)", |t, g| {
        t.change.write_devices = g.on;
        Ok(())
    })
    .off(&["no-write-devices"]),
    flag("drop-D", "create no devices and no special files", |t, g| {
        t.preserve.drop_devices = g.on;
        Ok(())
    })
    .off(&["no-drop-D"]),
    flag("times", "keep modification times", |t, g| {
        t.preserve.times = g.on;
        Ok(())
    })
    .letter('t')
    .off(&["no-times", "no-t"]),
    flag("atimes", "keep access times", |t, g| {
        t.preserve.atimes = count(g.on, t.preserve.atimes);
        t.preserve.open_noatime |= t.preserve.atimes > 1;
        Ok(())
    })
    .letter('U')
    .off(&["no-atimes", "no-U"]),
    flag("open-noatime", "read without changing access times", |t, g| {
        t.preserve.open_noatime = g.on;
        Ok(())
    })
    .off(&["no-open-noatime"]),
    flag("crtimes", "keep creation times", |t, g| {
        t.preserve.crtimes = g.on;
        Ok(())
    })
    .letter('N')
    .off(&["no-crtimes", "no-N"])
    .never("rsync: This rsync does not support --crtimes (-N)"),
    flag("omit-dir-times", "but not those of directories", |t, g| {
        t.preserve.omit_dir_times = g.on;
        Ok(())
    })
    .letter('O')
    .off(&["no-omit-dir-times", "no-O"]),
    flag("omit-link-times", "but not those of symlinks", |t, g| {
        t.preserve.omit_link_times = g.on;
        Ok(())
    })
    .letter('J')
    .off(&["no-omit-link-times", "no-J"]),
    flag("super", "let the receiver do what only root may", |t, g| {
        t.preserve.super_user = Some(g.on);
        t.preserve.fake_super = false;
        Ok(())
    })
    .off(&["no-super"]),
    flag("fake-super", "keep privileged attributes in extended ones", |t, _| {
        t.preserve.super_user = None;
        t.preserve.fake_super = true;
        Ok(())
    }),
    flag("numeric-ids", "use ids as they are, never by name", |t, g| {
        t.preserve.numeric_ids = g.on;
        Ok(())
    })
    .off(&["no-numeric-ids"]),
    valued("usermap", "STRING", "map user names", |t, g| user_map(t, g.value.to_vec(), false)),
    valued("groupmap", "STRING", "map group names", |t, g| group_map(t, g.value.to_vec(), false)),
    valued("chown", "USER:GROUP", "give everything to USER and GROUP", |t, g| {
        let mut parts = g.value.splitn(2, |&b| b == b':');
        let mut star = || parts.next().filter(|name| !name.is_empty()).map(|name| [b"*:", name].concat());
        if let Some(map) = star() {
            user_map(t, map, true)?;
        }
        if let Some(map) = star() {
            group_map(t, map, true)?;
        }
        Ok(())
    }),
];

fn user_map(t: &mut Typed, map: Vec<u8>, by_chown: bool) -> Result<(), Refusal> {
    let p = &mut t.preserve;
    check_map(&p.user_map, p.by_chown.0, by_chown, ["--usermap", "user"])?;
    (p.user_map, p.by_chown.0) = (Some(map), by_chown);
    // A server is told by its own letter.
    p.owner |= !t.connect.server;
    Ok(())
}

fn group_map(t: &mut Typed, map: Vec<u8>, by_chown: bool) -> Result<(), Refusal> {
    let p = &mut t.preserve;
    check_map(&p.group_map, p.by_chown.1, by_chown, ["--groupmap", "group"])?;
    (p.group_map, p.by_chown.1) = (Some(map), by_chown);
    p.group |= !t.connect.server;
    Ok(())
}

/// Refuses a second map of one kind.
fn check_map(
    earlier: &Option<Vec<u8>>,
    was_chown: bool,
    is_chown: bool,
    [option, kind]: [&str; 2],
) -> Result<(), Refusal> {
    let text = match (was_chown, is_chown) {
        _ if earlier.is_none() => return Ok(()),
        (true, true) => format!("You can only specify a {kind}-affecting --chown once."),
        (true, false) => format!("{option} conflicts with prior --chown."),
        (false, true) => format!("--chown conflicts with prior {option}."),
        (false, false) => format!("You can only specify {option} once."),
    };
    Err(Refusal::usage(format!("rsync: {text}")))
}
