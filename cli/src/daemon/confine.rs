//! The kernel's help in keeping a child where it belongs: Landlock, where there is such a thing.
//!
//! What it forbids the program does not try; this is for the mistakes that nobody knows of.

use std::os::fd::AsFd;
#[cfg(target_os = "linux")]
use std::path::Path;

/// What a child may do below its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Read and change.
    Write,
}

/// What resolving names of users and hosts, and the clock, need of the rest of the machine.
#[cfg(target_os = "linux")]
const SYSTEM: [&str; 9] = ["/etc", "/usr", "/lib", "/lib64", "/run", "/var/run", "/var/lib", "/proc", "/dev"];

/// Keeps this process, from now on, below a directory. Where the kernel cannot, nothing happens.
#[cfg(target_os = "linux")]
pub fn below(root: impl AsFd, access: Access) -> Result<(), landlock::RulesetError> {
    use landlock::{
        Access as _, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, ABI,
    };

    let abi = ABI::V3;
    let reading = AccessFs::from_read(abi);
    let granted = match access {
        Access::Read => reading,
        Access::Write => AccessFs::from_all(abi),
    };
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .create()?
        .add_rule(PathBeneath::new(root, granted))?;
    for path in SYSTEM.iter().map(Path::new) {
        if let Ok(fd) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(fd, reading))?;
        }
    }
    rules.restrict_self().map(drop)
}

/// Whether the kernel can do it.
#[cfg(target_os = "linux")]
pub fn is_possible() -> bool {
    use landlock::{Access as _, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, ABI};

    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create)
        .is_ok()
}

/// Keeps nothing: this platform has no such thing.
#[cfg(not(target_os = "linux"))]
pub fn below(_root: impl AsFd, _access: Access) -> Result<(), std::io::Error> {
    Ok(())
}

/// Whether the kernel can do it.
#[cfg(not(target_os = "linux"))]
pub fn is_possible() -> bool {
    false
}
