//! The program: everything lives in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    suisei::main(std::env::args_os().collect())
}
