//! `demo`: data over emulated lossy links on real UDP sockets, with a verdict.

mod live;
pub mod path;
mod plan;
mod report;
mod simulated;
mod source;
mod table;
mod transfer;
mod watch;

use std::time::Duration;

use crate::args::DemoArgs;
use crate::failure::Failure;
use crate::output;
use crate::record::{FORMAT, Header, KIND, Recorder};
use live::Screen;
use plan::Plan;
use report::Report;
use source::Source;
use transfer::Outcome;

/// Longest wait for the runtime to shut down after the transfer.
const SHUTDOWN: Duration = Duration::from_millis(500);

/// Runs the demo as `args` say and reports.
///
/// # Errors
/// When the plan is impossible, a file or socket fails, or not every byte arrives intact.
pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    let plan = Plan::new(args)?;
    if let Some(warning) = plan.warning() {
        eprintln!("anabranch: note: {warning}");
    }
    let source = Source::open(&plan.goal, plan.seed)?;
    let recorder = args.record.as_deref().map(|path| Recorder::start(path, &header(&plan)));
    let recorder = recorder.transpose()?;
    let mut screen = Screen::open(&plan);
    let result = transfer(&plan, source, recorder.as_ref(), &mut screen);
    screen.close();
    // The recording is finished even if the demo failed; a failure of the recording is reported first.
    recorder.map_or(Ok(()), Recorder::finish)?;
    let outcome = result?;
    let simulated = simulated::simulate(&plan, outcome.elapsed());
    let report = Report::new(&plan, &outcome, simulated);
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.text(&plan, &outcome))?;
    }
    if !report.sha256_ok {
        return Err(Failure::failed("what arrived is not what was sent: the SHA-256 sums differ"));
    }
    if outcome.interrupted {
        return Err(Failure::interrupted("interrupted: the figures cover the time up to then"));
    }
    Ok(())
}

fn header(plan: &Plan) -> Header {
    Header {
        kind: KIND.to_owned(),
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        profile: plan.profile_name.clone(),
        seed: Some(plan.seed),
        paths: plan.paths.iter().map(|path| path.forward.name.clone()).collect(),
    }
}

fn transfer(
    plan: &Plan,
    source: Source,
    recorder: Option<&Recorder>,
    screen: &mut Screen,
) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start threads: {error}")))?;
    let result = runtime.block_on(transfer::run(plan, source, recorder, screen));
    runtime.shutdown_timeout(SHUTDOWN);
    result
}
