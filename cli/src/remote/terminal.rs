//! Questions to the user: only on a terminal, never on standard input.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};

use rustix::termios::{self, LocalModes, OptionalActions};

/// Asks for a password without showing it. Nothing if there is no terminal.
pub fn password(prompt: &str) -> io::Result<Option<Vec<u8>>> {
    let Ok(mut terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return Ok(None);
    };
    terminal.write_all(prompt.as_bytes())?;
    let shown = termios::tcgetattr(&terminal)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    termios::tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
    let line = read_line(&terminal);
    termios::tcsetattr(&terminal, OptionalActions::Flush, &shown)?;
    terminal.write_all(b"\n")?;
    line.map(Some)
}

/// Asks a question that only `yes` affirms. Nothing if there is no terminal.
pub fn confirm(question: &str) -> io::Result<Option<bool>> {
    let Ok(mut terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return Ok(None);
    };
    terminal.write_all(question.as_bytes())?;
    Ok(Some(read_line(&terminal)?.eq_ignore_ascii_case(b"yes")))
}

fn read_line(terminal: &File) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(terminal).read_until(b'\n', &mut line)?;
    while line.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
        line.pop();
    }
    Ok(line)
}
