//! Signals: the first asks for a clean end, the second does not ask.
//!
//! SIGPIPE stays ignored, as the runtime sets it: a reader that went away is a write error.
//! Wire: protocol/doc/24-environment-and-exit.md#5-signals

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Code;

/// Makes SIGINT, SIGTERM and SIGHUP set the returned flag; a second one ends the process.
pub fn install() -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The order counts: the shutdown looks at the flag before this signal sets it.
        flag::register_conditional_shutdown(signal, i32::from(Code::Signal as u8), interrupted.clone())?;
        flag::register(signal, interrupted.clone())?;
    }
    Ok(interrupted)
}
