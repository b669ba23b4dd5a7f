//! The names that CVS ignores.
//!
//! Wire: protocol/doc/13-filters.md#-c

use suisei_protocol::filter::{Rule, RuleFlags, RuleKind};

/// The list that every `-C` begins with.
const NAMES: &str = "RCS SCCS CVS CVS.adm RCSLOG cvslog.* tags TAGS .make.state .nse_depinfo *~ #* .#* ,* _$* *$ \
    *.old *.bak *.BAK *.orig *.rej .del-* *.a *.olb *.o *.obj *.so *.exe *.Z *.elc *.ln core .svn/ .git/ .hg/ .bzr/";

/// Returns the rules of the list. They are perishable, and have `flags` beside it.
pub(super) fn rules(kind: RuleKind, flags: RuleFlags) -> impl Iterator<Item = Rule> {
    let flags = flags | RuleFlags::CVS | RuleFlags::PERISHABLE;
    NAMES.split(' ').filter_map(move |name| Rule::new(kind, flags, name.as_bytes()).ok())
}
