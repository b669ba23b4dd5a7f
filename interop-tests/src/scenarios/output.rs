//! What is said about a run.

use std::path::Path;

use super::Before::{Absent, Older, Same};
use super::{from, listing, row, Scenario};
use crate::peers::Mode;

/// Every escape that does not depend on the raw bytes of the wire.
const ESCAPES: &str = "-a --out-format=%i|%n|%L|%l|%o|%f|%m|%B|%U|%G|%M|%h|%a|%u|%P|%%|%z|%'l|%''l|\
    %'''l|%12l|%-12l|%'-12l|%-'12l|%20n|%-20n|%30L|%5o|%-5o|%20M|%12i|%7U|";

/// Takes away what cannot be replaced: the receiving side's complaint is not in a client's log.
fn no_obstacle(work: &Path) {
    std::fs::remove_dir_all(work.join("dst/dir-2")).expect("the tree is ours");
}

pub(super) const ROWS: &[Scenario] = &[
    // Formats.
    row(Absent, "-a --out-format=%i|%n%L|%l|%o|%B"),
    row(Older, ESCAPES),
    row(Older, "-a --delete --out-format=%i|%n|%L|%5l|%o|%f|%U|%G|%M|%t|%p|pid"),
    row(Older, "-aH --delete --out-format=%o|%n|%C|"),
    row(Older, "-ac --out-format=%n|%C|%i"),
    row(Older, "-a --cc=md5 --out-format=%C|%n"),
    row(Older, "-a --protocol=29 --out-format=%C|%n").only(&[Mode::Push, Mode::Pull]),
    row(Same, "-a -ii --out-format=%n|%40L|%l"),
    row(Older, "-ai --out-format= --delete"),
    row(Older, "-a --delete --log-format=%n%L"),
    row(Older, "-aH --no-W --out-format=%n|%b|%c --exclude=sparse --exclude=leaf")
        .only(&[Mode::Push, Mode::Pull]),
    row(Absent, "-a --out-format=%n|%t|%p|pid").only(&[Mode::Local]),
    // Info words.
    row(Absent, "-a --progress"),
    row(Older, "-aP"),
    row(Older, "-aP --info=progress2 --exclude=dir-2"),
    row(Absent, "-a --info=progress2"),
    row(Absent, "-a --info=progress2,name -v"),
    row(Absent, "-a --info=progress --no-inc-recursive"),
    row(Absent, "-avv --progress --no-inc-recursive"),
    row(Absent, "-ah --stats --info=name"),
    row(Older, "-ahh --stats"),
    row(Older, "-a --no-h --stats -v"),
    row(Older, "-a --delete --stats --info=stats1"),
    row(Older, "-a --delete --info=stats2"),
    row(Older, "-a --info=del,name2,skip -u --delete"),
    row(Older, "-ab --info=backup,del --delete"),
    row(Older, "-a --info=all,progress0 --delete"),
    row(Older, "-avv --info=none --delete"),
    row(Older, "-av --info=flist0,stats0,name0 --delete"),
    row(Older, "-r --info=nonreg0"),
    row(Older, "-r --info=skip2 --existing"),
    row(Older, "-a --info=skip2 --ignore-existing --exclude=dir"),
    row(Older, "-a --info=misc2,mount,copy,symsafe --safe-links"),
    row(Older, "-ai --remove-source-files"),
    row(Older, "-a --info=remove --remove-source-files"),
    row(Older, "-aii --delete"),
    row(Older, "-aiivv --delete"),
    row(Older, "-aqv --delete --stats"),
    row(Older, "-av --stderr=all"),
    row(Older, "-av --msgs2stderr --delete"),
    row(Older, "-avv --stderr=client --safe-links"),
    row(Absent, "-av8"),
    row(Absent, "-av --outbuf=b --stats"),
    row(Absent, "-av --outbuf=L"),
    row(Absent, "-av --outbuf=n"),
    row(Absent, "-av --outbuf=x"),
    row(Absent, "-a --stderr=x"),
    row(Absent, "-a --info=bogus"),
    row(Absent, "-a --debug=flist,bogus2"),
    // Listings.
    listing("", "src/"),
    listing("-a", "src/"),
    listing("-r --no-h", "src"),
    listing("-rhh", "src"),
    listing("-aUv", "src/dir"),
    listing("-aq", "src/dir"),
    listing("-a --out-format=%n", "src/dir"),
    row(Absent, "-r --list-only"),
    // Logs.
    row(Older, "-aH --delete --log-file=log").also(&["log"]),
    row(Older, "-aiv --delete --stats --log-file=log").also(&["log"]),
    row(Older, "-aq --log-file=log --exclude=dir-2").only(&[Mode::Push, Mode::Pull]).also(&["log"]),
    row(Older, "-a --delete --log-file=log --log-file-format=").also(&["log"]),
    row(Older, "-a --exclude=dir-2 --log-file=log --log-file-format=%o|%f|%n|%l|%i|%B|%U|%G|%C|%%|%h")
        .also(&["log"]),
    row(Older, "-avv --info=progress2 --log-file=log -u").with(no_obstacle).also(&["log"]),
    row(Older, "-ab --delete -M--log-file=log").only(&[Mode::Push, Mode::Pull]).also(&["log"]),
    row(Older, "-avv --delete -M--log-file=log -M--log-file-format=%n|%o|%f|%i")
        .only(&[Mode::Push, Mode::Pull])
        .also(&["log"]),
    row(Older, "-a --log-file=none/log"),
    row(Older, "-a -M--log-file=none/log").only(&[Mode::Push, Mode::Pull]),
    row(Older, "-a --protocol=28 --log-file=log -M--log-file=far.log")
        .only(&[Mode::Push, Mode::Pull])
        .also(&["log", "far.log"]),
    from("src/ missing", "-a --log-file=log").only(&[Mode::Local, Mode::Push]).also(&["log"]),
    row(Same, "-aii --log-file=log").also(&["log"]),
    // Debug words.
    row(Older, "-a --debug=filter --delete -C --exclude=*.o --include=/dir/ --exclude=dir-2"),
    row(Older, "-a --debug=filter2,del3 --delete --exclude=*.o"),
    row(Older, "-a --debug=filter --delete --filter=:_.rules --exclude-from={work}/rules"),
    row(Older, "-a --debug=del3 --delete"),
    row(Older, "-a --debug=del2 --force"),
    row(Older, "-a --debug=deltasum2 --no-W"),
    row(Older, "-aH --debug=flist2"),
    row(Older, "-aH --debug=genr,recv,send"),
    row(Older, "-ab --debug=backup --delete"),
    row(Older, "-a --debug=own2"),
    row(Older, "-a --debug=cmd2,connect2,bind"),
    row(Older, "-a --debug=exit3"),
    row(Older, "-avv --delete"),
    row(Older, "-aHvvv --delete"),
];
