//! Questions to the user: only on a terminal, never on standard input.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::sync::atomic::AtomicBool;

use rustix::event::PollFlags;
use rustix::termios::{self, LocalModes, OptionalActions};

use super::wait;

/// Asks for a password without showing it. Nothing if there is no terminal.
pub fn password(prompt: &str, interrupted: &AtomicBool) -> io::Result<Option<Vec<u8>>> {
    let Ok(mut terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return Ok(None);
    };
    terminal.write_all(prompt.as_bytes())?;
    let shown = termios::tcgetattr(&terminal)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    termios::tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
    let line = read_line(&terminal, interrupted);
    termios::tcsetattr(&terminal, OptionalActions::Flush, &shown)?;
    terminal.write_all(b"\n")?;
    line.map(Some)
}

/// Asks a question that only `yes` affirms. Nothing if there is no terminal.
pub fn confirm(question: &str, interrupted: &AtomicBool) -> io::Result<Option<bool>> {
    let Ok(mut terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return Ok(None);
    };
    terminal.write_all(question.as_bytes())?;
    Ok(Some(read_line(&terminal, interrupted)?.eq_ignore_ascii_case(b"yes")))
}

/// Reads a line, which a terminal hands over as a whole.
fn read_line(terminal: &File, interrupted: &AtomicBool) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    wait::until(terminal, PollFlags::IN, None, interrupted)?;
    BufReader::new(terminal).read_until(b'\n', &mut line)?;
    while line.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
        line.pop();
    }
    Ok(line)
}
