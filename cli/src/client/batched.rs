//! Runs that write a batch file, and runs that read one.
//!
//! Wire: protocol/doc/04-batch-and-files-from.md#44-reading

use std::sync::Arc;
use std::time::Instant;

use suisei_engine::context::{Batch, Reporter};
use suisei_engine::ids::IdMap;
use suisei_engine::run::{self, allows_incremental, layout};
use suisei_engine::{Context, TransferOptions};
use suisei_protocol::batch::recorded_compressor;
use suisei_protocol::session::{Compat, Direction, IncrementalRecursion, Layout, Recursion, Session, Side};

use super::{Client, End, Inputs};
use crate::batch::{self, Recording, Script};
use crate::exit::Refusal;
use crate::options::meaning::{BatchUse, Wishes};
use crate::output::info::Info;
use crate::output::itemize::Way;
use crate::output::Channel;
use crate::plan::Plan;
use crate::remote::spec::{self, Route};

impl Client<'_> {
    /// Opens the batch file that the run is recorded in, if it is.
    pub(super) fn record(&self) -> Result<Option<Recording>, Refusal> {
        match &self.wishes().batch {
            BatchUse::Write(name, _) => Recording::open(name, self.wishes()).map(Some),
            _ => Ok(None),
        }
    }

    /// Gives the session of a recorded local run what the record says of it: a compressor, and only
    /// the flags of what is used.
    pub(super) fn compress_record(&self, session: &mut Session) -> Result<(), Refusal> {
        let wishes = self.wishes();
        let wish = wishes.compress_wish()?;
        (session.compressor, session.compress_level) =
            recorded_compressor(wish, wishes.typed.delta.compress_level);
        session.compat.set(Compat::INC_RECURSE, session.recursion == Recursion::Incremental);
        session.layout.withheld = wishes.withholds(Side::Client, Direction::Sending);
        Ok(())
    }

    /// Writes the head of the batch file and the script, now that a session is agreed.
    pub(super) fn begin_record(
        &self,
        mut recording: Recording,
        session: &Session,
        options: &TransferOptions,
    ) -> Result<Batch, Refusal> {
        let wishes = self.wishes();
        let operands = &wishes.typed.operands;
        let destination: &[u8] = match &self.plan.route {
            Route::Push { path, .. } => path,
            Route::Pull { paths, destination: None, .. } => paths.last().map_or(b"", Vec::as_slice),
            _ => operands.last().map_or(b"", Vec::as_slice),
        };
        let script = Script {
            words: self.words,
            destination,
            rules: &options.select.filters,
            nul_separated: wishes.typed.select.from0,
        };
        recording.begin(session, &script)?;
        Ok(Batch::Written(recording.record))
    }

    /// Replays a batch file.
    pub(super) fn replay(&self, inputs: Inputs, to: &[u8], started: Instant) -> Result<End, Refusal> {
        let BatchUse::Read(name) = &self.wishes().batch else {
            return Err(Refusal::usage("rsync: no batch file to read"));
        };
        if spec::split_host(to).is_some() {
            return Err(Refusal::usage("remote destination is not allowed with --read-batch"));
        }
        let file = batch::open(name, &self.wishes().trust_in_files())?;
        let (header, input) = batch::read_head(file, self.wishes().version, &self.interrupted)?;
        let typed = self.wishes().transfer(Vec::new(), header.version, false);
        let mut wishes = self.wishes().clone();
        let lines = batch::adopt(&mut wishes, header.flags, header.version)?;
        if wishes.info.of(Info::Misc) >= 1 && wishes.typed.output.quiet == 0 {
            lines.iter().for_each(|line| self.screen.line(Channel::Out, line.as_bytes()));
        }
        let is_incremental = header.compat.contains(Compat::INC_RECURSE);
        if is_incremental && allows_incremental(&typed, Direction::Receiving) == IncrementalRecursion::Refused
        {
            return Err(Refusal::usage("Incompatible options specified for inc-recursive batch file."));
        }
        let options = wishes.transfer(inputs.rules, header.version, false);
        let session = session(&wishes, &header, &options)?;
        let plan = Plan { wishes, route: self.plan.route.clone() };
        let adopted = Client {
            words: self.words,
            plan: &plan,
            environment: self.environment,
            screen: self.screen.clone(),
            interrupted: self.interrupted.clone(),
        };
        let printer = adopted.printer(&session, &options, Way::In, "recv");
        let ids = IdMap::new(options.preserve.numeric_ids, rustix::process::geteuid().is_root());
        let interrupted = self.interrupted.clone();
        let mut context =
            Context::new(session, options, printer.clone(), Reporter::Receiver, ids, interrupted);
        context.batch = Batch::Read;
        let context = Arc::new(context);
        let result = run::replaying(context.clone(), input, to);
        Ok(adopted.finish(&context, result, &printer, 0, started))
    }
}

fn session(
    wishes: &Wishes,
    header: &suisei_protocol::batch::BatchHeader,
    options: &TransferOptions,
) -> Result<Session, Refusal> {
    let (compressor, _) = recorded_compressor(wishes.compress_wish()?, None);
    // The file holds data, whatever is done with it here.
    let layout = Layout { dry_run: false, ..layout(options) };
    let charset = wishes.conversion.as_ref().map(|conversion| conversion.charset);
    Ok(Session { charset, ..header.session(wishes.sums()?, compressor, layout) })
}
