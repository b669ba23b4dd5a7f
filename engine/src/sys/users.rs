//! Users and groups: names of numbers, numbers of names, and who this process is.

/// Returns the name of a user.
pub fn user_name(_uid: u32) -> Option<Vec<u8>> {
    todo!()
}

/// Returns the name of a group.
pub fn group_name(_gid: u32) -> Option<Vec<u8>> {
    todo!()
}

/// Returns the number of a user.
pub fn user_id(_name: &[u8]) -> Option<u32> {
    todo!()
}

/// Returns the number of a group.
pub fn group_id(_name: &[u8]) -> Option<u32> {
    todo!()
}

/// Returns the effective user id.
pub fn effective_uid() -> u32 {
    todo!()
}

/// Returns the effective group and the supplementary groups.
pub fn groups() -> Vec<u32> {
    todo!()
}

/// Returns the process umask, read once. The first call must come before threads create files:
/// `run` makes it.
pub fn umask() -> u32 {
    todo!()
}
