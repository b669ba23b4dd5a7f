//! The command: words, printing, transports, exit codes.
//!
//! [`options`] reads the command line, [`plan`] says where it leads, [`client`] and [`server`] run
//! one end of a transfer with the engine, [`remote`] leads to the other machine, [`output`] words
//! and prints.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::sync::Arc;

pub mod client;
pub mod exit;
pub mod filters;
pub mod glob;
pub mod options;
pub mod output;
pub mod plan;
pub mod remote;
pub mod server;
pub mod signals;

use exit::{Code, Refusal};
use options::environment::Environment;
use options::{help, parse};
use output::escape::HighBytes;
use output::{final_line, Channel, Screen};
use plan::{Intent, Plan};

/// Runs the program; `words` is the whole argument vector. The name it was called by does not
/// count: a link called `rsync` works the same.
pub fn main(words: Vec<OsString>) -> ExitCode {
    ExitCode::from(run(words))
}

fn run(words: Vec<OsString>) -> u8 {
    let words = words.get(1..).unwrap_or_default();
    let environment = Environment::of_process();
    let interrupted = match signals::install() {
        Ok(flag) => flag,
        Err(error) => {
            eprintln!("rsync: cannot watch for signals: {error}");
            return Code::Ipc as u8;
        }
    };
    let is_server = words.first().is_some_and(|word| word == "--server");
    let intent = if is_server { Ok(Intent::Serve) } else { plan::intent(words, &environment) };
    let screen = |high, all_to_err| Arc::new(Screen::new(high, all_to_err, interrupted.clone()));
    match intent {
        Ok(Intent::Serve) => {
            let line: Vec<Vec<u8>> = words.iter().map(|word| word.clone().into_vec()).collect();
            server::run(&line, &environment, interrupted)
        }
        Ok(Intent::Run(plan)) => {
            let screen = screen(high_bytes(&plan), plan.wishes.stderr() == options::typed::Stderr::All);
            if let Err(refusal) = parse::refuse_not_yet(&plan.wishes.typed) {
                return refuse(&refusal, &screen);
            }
            client::Client { plan: &plan, environment: &environment, screen, interrupted }.run()
        }
        Ok(Intent::Show(show)) => {
            screen(HighBytes::Raw, false).lines(Channel::Out, help::text(show).as_bytes());
            Code::Ok as u8
        }
        Ok(Intent::Usage) => {
            screen(HighBytes::Raw, false).lines(Channel::Err, help::usage().as_bytes());
            refuse(&Refusal::usage(""), &screen(HighBytes::Raw, false))
        }
        Err(refusal) => refuse(&refusal, &screen(HighBytes::Escape, false)),
    }
}

fn high_bytes(plan: &Plan) -> HighBytes {
    if plan.wishes.typed.output.eight_bit {
        HighBytes::Raw
    } else {
        HighBytes::Escape
    }
}

fn refuse(refusal: &Refusal, screen: &Screen) -> u8 {
    if !refusal.text.is_empty() {
        screen.lines(Channel::Err, &[refusal.text.as_slice(), b"\n"].concat());
    }
    screen.lines(Channel::Err, final_line(refusal.code, "client").as_bytes());
    refusal.code
}
