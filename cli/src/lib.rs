//! The command: words, printing, transports, exit codes.
//!
//! [`options`] reads the command line, [`plan`] says where it leads, [`client`] and [`server`] run
//! one end of a transfer with the engine, [`daemon`] serves modules, [`remote`] leads to the other machine, [`output`] words
//! and prints.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

pub mod batch;
pub mod client;
pub mod daemon;
pub mod exit;
pub mod filters;
pub mod glob;
mod named;
pub mod options;
pub mod output;
pub mod plan;
pub mod remote;
pub mod server;
pub mod signals;

use exit::{Code, Refusal};
use options::environment::Environment;
use options::typed::{Outbuf, Stderr};
use options::{help, parse};
use output::escape::HighBytes;
use output::log::LogFile;
use output::{final_line, Buffering, Channel, Screen};
use plan::{Intent, Plan};

/// Runs the program; `words` is the whole argument vector. The name it was called by does not
/// count: a link called `rsync` works the same.
pub fn main(words: Vec<OsString>) -> ExitCode {
    ExitCode::from(run(words))
}

fn run(argv: Vec<OsString>) -> u8 {
    let words = argv.get(1..).unwrap_or_default();
    let environment = Environment::of_process();
    if daemon::options::is_asked(words) {
        return daemon::run(words, &environment);
    }
    let interrupted = match signals::install() {
        Ok(flag) => flag,
        Err(error) => {
            eprintln!("rsync: cannot watch for signals: {error}");
            return Code::Ipc as u8;
        }
    };
    let is_server = words.first().is_some_and(|word| word == "--server");
    let intent = if is_server { Ok(Intent::Serve) } else { plan::intent(words, &environment) };
    let plain = |high| Screen::new(high, false, Buffering::Lines, interrupted.clone());
    match intent {
        Ok(Intent::Serve) => {
            let line: Vec<Vec<u8>> = words.iter().map(|word| word.clone().into_vec()).collect();
            server::run(&line, &environment, interrupted)
        }
        Ok(Intent::Run(plan)) => {
            let argv: Vec<Vec<u8>> = argv.iter().map(|word| word.clone().into_vec()).collect();
            let screen = Arc::new(with_log(screen(&plan, interrupted.clone()), &plan));
            if let Err(refusal) = parse::refuse_not_yet(&plan.wishes.typed) {
                return refuse(&refusal, &screen);
            }
            client::Client { words: &argv, plan: &plan, environment: &environment, screen, interrupted }.run()
        }
        Ok(Intent::Execute(words)) => refuse(&execute(&words), &plain(HighBytes::Escape)),
        Ok(Intent::Show(show)) => {
            plain(HighBytes::Raw).lines(Channel::Out, help::text(show).as_bytes());
            Code::Ok as u8
        }
        Ok(Intent::Usage(who)) => {
            plain(HighBytes::Raw).lines(Channel::Err, help::usage().as_bytes());
            refuse(&Refusal::usage("").said_by(who), &plain(HighBytes::Raw))
        }
        Err(refusal) => refuse(&refusal, &plain(HighBytes::Escape)),
    }
}

/// Becomes another program; returns only if that cannot be.
fn execute(words: &[OsString]) -> Refusal {
    let Some((program, arguments)) = words.split_first() else { return Refusal::silent(Code::Syntax) };
    let error = Command::new(program).args(arguments).exec();
    let text = error.to_string();
    let why = text.split(" (os error").next().unwrap_or_default();
    Refusal::usage([b"rsync: ", program.as_bytes(), b": ", why.as_bytes()].concat())
}

fn screen(plan: &Plan, interrupted: Arc<AtomicBool>) -> Screen {
    let output = &plan.wishes.typed.output;
    let high = if output.eight_bit { HighBytes::Raw } else { HighBytes::Escape };
    let buffering = if output.outbuf == Some(Outbuf::Full) { Buffering::Blocks } else { Buffering::Lines };
    Screen::new(high, plan.wishes.stderr() == Stderr::All, buffering, interrupted)
}

/// Adds the log; one that cannot be opened is done without.
fn with_log(screen: Screen, plan: &Plan) -> Screen {
    let Some(path) = &plan.wishes.typed.output.log_file else { return screen };
    match LogFile::open(path) {
        Ok(log) => screen.with_log(log),
        Err(error) => {
            screen.lines(Channel::Err, &LogFile::complaint("client", path, &error));
            if plan.wishes.typed.output.quiet == 0 {
                screen.lines(Channel::Out, LogFile::WITHOUT);
            }
            screen
        }
    }
}

fn refuse(refusal: &Refusal, screen: &Screen) -> u8 {
    if !refusal.text.is_empty() {
        screen.lines(Channel::Err, &[refusal.text.as_slice(), b"\n"].concat());
    }
    screen.lines(Channel::Err, final_line(refusal.code, refusal.who.unwrap_or("client")).as_bytes());
    refusal.code
}
