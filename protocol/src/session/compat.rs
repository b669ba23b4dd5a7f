//! Compat flags: what the server switches on, from the letters that the client offered.
//!
//! Wire: protocol/doc/02-session-start.md#221-compat-flags-the-server-decides-the-client-obeys

bitflags::bitflags! {
    /// The compat flags of a session.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Compat: u32 {
        /// Incremental file lists.
        const INC_RECURSE = 0x001;
        /// The receiving end can set times of symlinks.
        const SYMLINK_TIMES = 0x002;
        /// Symlink targets are converted under `--iconv`.
        const SYMLINK_ICONV = 0x004;
        /// The I/O-error end mark is usable.
        const SAFE_FLIST = 0x008;
        /// The xattr optimisation for hard links is off.
        const AVOID_XATTR_OPTIM = 0x010;
        /// The seed goes before the data of MD5 block sums.
        const SEED_FIX = 0x020;
        /// A partial-dir file may be updated in place.
        const INPLACE_PARTIAL = 0x040;
        /// Varint list flags, and names of algorithms are negotiated.
        const VARINT_FLIST = 0x080;
        /// Id lists end with the name of id 0.
        const ID0_NAMES = 0x100;
    }
}
