//! `doctor`: examines this machine and the links to a peer, and says what is in order, what is not, and what to do
//! about it.

pub mod args;
mod facts;
mod judge;
mod load;
mod local;
mod probe;
mod report;
mod trace;

use std::net::IpAddr;
use std::path::Path;

use tokio::runtime::Builder;

use crate::failure::Failure;
use crate::interrupt::asked_to_end;
use crate::paths::{self, Route};
use args::DoctorArgs;
use facts::{Facts, Outcome, Peer};
use judge::{Finding, Severity};
use probe::Probed;

/// Examines what `args` name and reports.
///
/// # Errors
/// When something is wrong with the machine or the links, and when they cannot be examined.
pub fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let facts = runtime.block_on(async {
        tokio::select! {
            facts = examine(args) => facts,
            () = asked_to_end() => Err(Failure::interrupted("interrupted")),
        }
    })?;
    let findings = judge::judge(&facts);
    report::print(&facts, &findings, args.json)?;
    outcome(&facts, &findings)
}

async fn examine(args: &DoctorArgs) -> Result<Facts, Failure> {
    let (Some(to), Some(key)) = (&args.to, args.peer) else {
        let (machine, interfaces) = local::examine(None)?;
        return Ok(Facts { machine, interfaces, peer: None });
    };
    let route: Route = paths::to_host(to, &args.paths).await?;
    let peer: IpAddr = route.remote.ip();
    let (machine, interfaces) = local::examine(Some(peer))?;
    if let Some(directory) = &args.trace {
        trace::check(directory)?;
    }
    let mut probed = probe::examine(args, key, &route).await?;
    if let Some(directory) = &args.trace {
        keep(directory, to, &mut probed)?;
    }
    let paths = probed.paths.into_iter().map(|(path, _)| path).collect();
    let peer = Peer { name: to.clone(), refused: probed.refused, paths };
    Ok(Facts { machine, interfaces, peer: Some(peer) })
}

/// Writes the recordings into `directory`, and adds a summary of its recording to each link.
fn keep(directory: &Path, peer: &str, probed: &mut Probed) -> Result<(), Failure> {
    let recorded = probed.paths.iter().filter_map(|(path, it)| Some((path, it.as_ref()?)));
    let recorded: Vec<_> = recorded.collect();
    if recorded.is_empty() {
        return Ok(());
    }
    let scenario = trace::write(directory, peer, &recorded)?;
    for (path, recording) in &mut probed.paths {
        if let (Some(measured), Some(recording)) = (path.measured.as_mut(), recording) {
            measured.trace = Some(recording.summary(scenario.clone()));
        }
    }
    Ok(())
}

/// The failure if no link was answered or there is a problem.
fn outcome(facts: &Facts, findings: &[Finding]) -> Result<(), Failure> {
    let answered = |peer: &Peer| peer.paths.iter().any(|path| path.outcome == Outcome::Answered);
    if let Some(peer) = facts.peer.as_ref().filter(|peer| !answered(peer)) {
        return Err(Failure::unreached(format!("{} did not answer over any link", peer.name)));
    }
    match findings.iter().filter(|finding| finding.severity == Severity::Problem).count() {
        0 => Ok(()),
        1 => Err(Failure::failed("there is a problem")),
        count => Err(Failure::failed(format!("there are {count} problems"))),
    }
}
