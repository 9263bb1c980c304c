//! Reads `[[event]]`, the changes of paths during a run.

use super::error::Flaw;
use super::plan::{EventPlan, FlowPlan};
use super::profiles::Protocol;
use super::reader::Section;
use super::topology::{Network, numbered};
use crate::endpoint::PathChange;

/// Reads every `[[event]]`. The events are sorted by time.
pub(super) fn read(file: &Section<'_>, network: &Network, flows: &[FlowPlan]) -> Vec<EventPlan> {
    let mut events = Vec::new();
    for section in file.tables("event") {
        for number in 1..=section.count("count").unwrap_or(1) {
            events.extend(event(&numbered(&section, number), network, flows));
        }
    }
    events.sort_by_key(|event| event.at);
    events
}

fn event(section: &Section<'_>, network: &Network, flows: &[FlowPlan]) -> Option<EventPlan> {
    let path = section.text("path")?;
    if !network.paths.iter().any(|known| known.name == path) {
        let known: Vec<&str> = network.paths.iter().map(|path| path.name.as_str()).collect();
        let (place, key) = (section.place_of("path"), section.path_of("path"));
        section.report(Flaw::unknown(place, key, "path", &path, &known));
        return None;
    }
    let change = match section.word("what")? {
        "down" => PathChange::Down,
        "up" => PathChange::Up,
        "backup" => PathChange::Backup,
        "regular" => PathChange::Regular,
        "move" => PathChange::Move,
        "strip-options" => PathChange::StripOptions,
        "pass-options" => PathChange::PassOptions,
        _ => PathChange::Rebind,
    };
    let uses = |flow: &&FlowPlan| flow.paths.iter().any(|known| known.name == path);
    let tcp = |flow: &&FlowPlan| matches!(flow.protocol, Protocol::Tcp(_));
    if matches!(change, PathChange::Move | PathChange::Rebind)
        && let Some(flow) = flows.iter().filter(uses).find(tcp)
    {
        let given = format!("'{}' is TCP, which is bound to its address", flow.group);
        section.complain("what", given, "down, up");
    }
    let alone =
        |flow: &&FlowPlan| matches!(&flow.protocol, Protocol::Tcp(tcp) if tcp.meta.is_none());
    if matches!(change, PathChange::Backup | PathChange::Regular)
        && let Some(flow) = flows.iter().filter(uses).find(alone)
    {
        let given = format!("'{}' has no stream over several paths", flow.group);
        section.complain("what", given, "down, up");
    }
    let over_several =
        |flow: &&FlowPlan| matches!(&flow.protocol, Protocol::Tcp(tcp) if tcp.meta.is_some());
    if matches!(change, PathChange::StripOptions | PathChange::PassOptions)
        && !flows.iter().filter(uses).any(|flow| over_several(&flow))
    {
        let given = format!("no flow over '{path}' is one stream of TCP over several paths");
        section.complain("what", given, "down, up, or a flow of tcp:mptcp and its like");
    }
    Some(EventPlan { at: section.time("at")?, path, change })
}
