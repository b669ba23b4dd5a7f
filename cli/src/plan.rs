//! What a client is about to do: the wishes, and where they lead.

use std::ffi::OsString;

use crate::exit::{Code, Refusal};
use crate::options::alias::{self, Aliases, Expanded};
use crate::options::environment::Environment;
use crate::options::iconv;
use crate::options::meaning::{self, BatchUse, FilesFrom, Protection, Wishes};
use crate::options::parse;
use crate::options::typed::{Append, Show, Typed};
use crate::remote::spec::{self, Kind, Machine, Route};

/// A client's run, before anything happened.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What the command line means.
    pub wishes: Wishes,
    /// Where it leads.
    pub route: Route,
}

/// What a command line comes to.
#[derive(Debug, Clone)]
pub enum Intent {
    /// A transfer, or a listing.
    Run(Box<Plan>),
    /// Another program, with its words: an alias file says so.
    Execute(Vec<OsString>),
    /// Nothing but a text.
    Show(Show),
    /// The far end of somebody's transfer: its words are read by other rules.
    Serve,
    /// Too few or too many operands: the usage goes to standard error, in the name of this role.
    Usage(&'static str),
}

/// Reads a client's command line, the program's name left out.
pub fn intent(words: &[OsString], environment: &Environment) -> Result<Intent, Refusal> {
    // Only a user's own command line has aliases.
    let is_far = words.iter().any(|word| word == "--server" || word == "--daemon");
    let aliases = if is_far { Aliases::default() } else { Aliases::of_system(environment) };
    let Expanded { words, program } = aliases.expand(words);
    let typed = parse::parse(&words)?;
    if typed.connect.server {
        return Ok(Intent::Serve);
    }
    if let Some(program) = program.filter(|_| !typed.output.show.is_some_and(Show::ends_the_line)) {
        return Ok(Intent::Execute(program.into_iter().chain(alias::spelled_out(&words)).collect()));
    }
    if let Some(show) = typed.output.show {
        return Ok(Intent::Show(show));
    }
    if typed.connect.sender {
        return Ok(Intent::Usage("client"));
    }
    let who = if typed.operands.is_empty() { "Receiver" } else { "client" };
    plan(typed, environment).map(|plan| plan.map_or(Intent::Usage(who), |plan| Intent::Run(Box::new(plan))))
}

/// Makes a plan of what was typed; nothing if there are not as many operands as it takes.
pub fn plan(typed: Typed, environment: &Environment) -> Result<Option<Plan>, Refusal> {
    let wishes = meaning::resolve(typed, environment)?;
    if wishes.typed.operands.is_empty() {
        return Ok(None);
    }
    // A list of names is looked up in one directory.
    if wishes.files_from.is_some() && wishes.typed.operands.len() > 2 {
        return Ok(None);
    }
    let old_args = matches!(wishes.protection, Protection::OldPaths | Protection::OldAll);
    let who = match spec::split_host(&wishes.typed.operands[0]) {
        Some(_) => "Receiver",
        None => "sender",
    };
    let said = |refusal: Refusal| refusal.said_by(who);
    let route = match &wishes.batch {
        BatchUse::Read(_) => replay_route(&wishes.typed.operands),
        _ => spec::route(&wishes.typed.operands, old_args).map_err(said)?,
    };
    check_files_from(&wishes, &route).map_err(said)?;
    check_connection(&wishes, &route).map_err(said)?;
    let (wishes, route) = with_two_ends(wishes, route, environment).map_err(said)?;
    Ok(Some(Plan { wishes, route }))
}

/// Gives a local run whose ends differ, by charset or by option, a server of its own.
fn with_two_ends(
    mut wishes: Wishes,
    route: Route,
    environment: &Environment,
) -> Result<(Wishes, Route), Refusal> {
    let differ = wishes.conversion.is_some() || !wishes.typed.connect.remote_options.is_empty();
    match route {
        Route::Local { destination: None, .. } if !wishes.typed.connect.remote_options.is_empty() => {
            let text = "rsync: --remote-option: a listing of this machine has no other end";
            Err(Refusal::new(Code::Unsupported, text))
        }
        Route::Local { sources, destination: Some(path) } if differ => {
            if let Some(set) = iconv::there(&wishes.typed) {
                iconv::conversion(set, environment)?;
            }
            // No shell stands between the ends, and no wire that deltas would spare.
            wishes.protection = Protection::OldAll;
            let may_go_whole = !wishes.is_recorded() && wishes.typed.change.append == Append::Off;
            if wishes.whole_file.is_none() && may_go_whole {
                wishes.whole_file = Some(true);
                wishes.typed.delta.whole_file = Some(true);
            }
            Ok((wishes, Route::Push { sources, machine: Machine::here(), path }))
        }
        route => Ok((wishes, route)),
    }
}

/// The last operand is the destination; what stood for sources in the recording run is not looked at.
fn replay_route(operands: &[Vec<u8>]) -> Route {
    Route::Replay { destination: operands.last().cloned().unwrap_or_default() }
}

fn check_files_from(wishes: &Wishes, route: &Route) -> Result<(), Refusal> {
    let Some(FilesFrom::There { host, .. }) = &wishes.files_from else { return Ok(()) };
    match route {
        Route::Local { .. } | Route::Replay { .. } => {
            Err(Refusal::usage("--files-from cannot be remote when the transfer is local"))
        }
        Route::Push { machine, .. } | Route::Pull { machine, .. }
            if !host.is_empty() && *host != machine.host =>
        {
            Err(Refusal::usage("--files-from hostname is not the same as the transfer hostname"))
        }
        Route::Push { .. } | Route::Pull { .. } => Ok(()),
    }
}

fn check_connection(wishes: &Wishes, route: &Route) -> Result<(), Refusal> {
    let connect = &wishes.typed.connect;
    let (machine, by_shell) = match route {
        Route::Local { .. } | Route::Replay { .. } => (None, true),
        Route::Push { machine, .. } | Route::Pull { machine, .. } => {
            (Some(machine), is_by_shell(wishes, machine))
        }
    };
    let is_daemon = machine.is_some_and(|machine| machine.kind == Kind::Daemon);
    if connect.password_file.is_some() && !is_daemon {
        let text = "The --password-file option may only be used when accessing an rsync daemon.";
        return Err(Refusal::usage(text));
    }
    if connect.timeout > 0 && by_shell {
        let text = "The --contimeout option may only be used when connecting to an rsync daemon.";
        return Err(Refusal::usage(text));
    }
    Ok(())
}

/// Whether a machine is reached by a remote shell: a daemon only if the shell was typed.
pub fn is_by_shell(wishes: &Wishes, machine: &Machine) -> bool {
    machine.kind != Kind::Daemon || wishes.typed.connect.rsh.is_some()
}
