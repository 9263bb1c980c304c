//! Flows and loads: every connection and datagram source, one by one.

use core::time::Duration;

use anabranch_core::config::TransportConfig;

use super::plan::{FlowPlan, LoadPlan, PathPlan, TrafficPlan};
use super::profiles;
use super::reader::{Part, Section};
use super::topology::{Network, RECEIVER, SENDER, name, numbered};

/// Reads `[[flow]]`.
pub(super) fn flows(file: &Section<'_>, network: &Network) -> Vec<FlowPlan> {
    let mut flows = Vec::new();
    for section in file.tables("flow") {
        let Some(group) = name(&section, false) else { continue };
        let count = section.count("count").unwrap_or(1);
        let first = flows.len();
        for number in 1..=count {
            let section = numbered(&section, number);
            let Some(flow) = flow(&section, &group, network) else { continue };
            if section.flag("per-path").unwrap_or(false) {
                let alone =
                    |path: &PathPlan| FlowPlan { paths: vec![path.clone()], ..flow.clone() };
                flows.extend(flow.paths.iter().map(alone));
            } else {
                flows.push(flow);
            }
        }
        number_subjects(flows.get_mut(first..).unwrap_or_default(), |flow| &mut flow.subject);
    }
    flows
}

/// Reads `[[load]]`.
pub(super) fn loads(file: &Section<'_>, network: &Network) -> Vec<LoadPlan> {
    let mut loads = Vec::new();
    for section in file.tables("load") {
        let Some(group) = name(&section, false) else { continue };
        let count = section.count("count").unwrap_or(1);
        let first = loads.len();
        for number in 1..=count {
            let section = numbered(&section, number);
            for path in paths(&section, network) {
                loads.extend(load(&section, &group, path));
            }
        }
        number_subjects(loads.get_mut(first..).unwrap_or_default(), |load| &mut load.subject);
    }
    loads
}

/// A lone member of a group is called like the group, several have their numbers besides.
fn number_subjects<T>(members: &mut [T], subject: impl Fn(&mut T) -> &mut String) {
    if members.len() < 2 {
        return;
    }
    for (index, member) in members.iter_mut().enumerate() {
        let subject = subject(member);
        *subject = format!("{subject}.{}", index + 1);
    }
}

fn flow(section: &Section<'_>, group: &str, network: &Network) -> Option<FlowPlan> {
    let protocol = profiles::read(section);
    let transport = transport(section);
    let traffic = traffic(section);
    let paths = paths(section, network);
    Some(FlowPlan {
        group: group.to_owned(),
        subject: group.to_owned(),
        protocol: protocol?,
        transport,
        paths: Some(paths).filter(|paths| !paths.is_empty())?,
        start: section.time("start").unwrap_or_default(),
        start_jitter: section.time("start-jitter").unwrap_or_default(),
        traffic: traffic?,
    })
}

/// The paths a flow or load may use: those it names, the route between its ends, or all there are.
fn paths(section: &Section<'_>, network: &Network) -> Vec<PathPlan> {
    let ends = ["from", "to"].iter().any(|key| section.has(key));
    match section.names("paths") {
        Some(names) => {
            if ends {
                section.complain(
                    "paths",
                    "given beside from and to",
                    "either paths or from and to",
                );
            }
            if names.is_empty() {
                section.complain("paths", "an empty list", "at least one path");
            }
            network.select(section, &names)
        }
        None if !ends && !network.paths.is_empty() => network.paths.clone(),
        None => {
            let from = section.text("from").unwrap_or_else(|| SENDER.to_owned());
            let to = section.text("to").unwrap_or_else(|| RECEIVER.to_owned());
            let route = network.between(section, &from, &to);
            let named = |path: PathPlan| PathPlan { name: "route".to_owned(), ..path };
            route.map(named).into_iter().collect()
        }
    }
}

fn transport(section: &Section<'_>) -> TransportConfig {
    let mut config = TransportConfig::default();
    let Some(table) = section.table("transport").filter(|_| section.has("transport")) else {
        return config;
    };
    if let Some(packet) = table.count("packet") {
        config.max_datagram = u16::try_from(packet).unwrap_or(u16::MAX);
    }
    if let Some(bytes) = table.size("receive-buffer") {
        config.streams.max_data = bytes.as_bytes();
        config.streams.max_stream_data = bytes.as_bytes();
    }
    if let Some(bytes) = table.size("send-buffer") {
        config.streams.send_buffer = bytes.as_bytes();
    }
    if let Some(symbols) = table.count("receive-symbols") {
        config.receive_symbols = symbols;
    }
    if let Some(delay) = table.time("max-ack-delay") {
        config.max_ack_delay = delay;
    }
    if let Some(ecn) = table.flag("ecn") {
        config.ecn = ecn;
    }
    config
}

fn traffic(section: &Section<'_>) -> Option<TrafficPlan> {
    match section.part("traffic") {
        None => Some(TrafficPlan::Bulk),
        Some(Part::Text(text, place)) => {
            if text == "bulk" {
                return Some(TrafficPlan::Bulk);
            }
            let size = text.strip_prefix("size:").and_then(|size| size.parse().ok());
            match size {
                Some(size) => Some(TrafficPlan::Size { size, repeat: 1 }),
                None => {
                    let given = format!("'{text}' is not accepted");
                    section.refuse("traffic", place, &given);
                    None
                }
            }
        }
        Some(Part::Table(table)) => traffic_table(&table),
    }
}

fn traffic_table(table: &Section<'_>) -> Option<TrafficPlan> {
    let kind = table.word("kind")?;
    let (needed, also): (&[&str], &[&str]) = match kind {
        "size" => (&["size"], &["repeat"]),
        "poisson" => (&["size", "interval"], &[]),
        "on-off" => (&["on", "off"], &["rate"]),
        _ => (&[], &[]),
    };
    for key in needed.iter().filter(|key| !table.has(key)) {
        table.refuse(key, table.place, "missing");
    }
    for key in table.keys().filter(|key| *key != "kind") {
        if !needed.contains(&key) && !also.contains(&key) {
            let allowed = [needed, also].concat().join(", ");
            let allowed = if allowed.is_empty() { "kind alone".to_owned() } else { allowed };
            table.complain(key, format!("given for traffic of kind '{kind}'"), allowed);
        }
    }
    let positive = |key: &str| {
        let time = table.time(key)?;
        if time.is_zero() {
            table.refuse_value(key, "0s", "a duration above zero");
            return None;
        }
        Some(time)
    };
    let size = || table.size("size").filter(|size| size.as_bytes() > 0);
    Some(match kind {
        "size" => TrafficPlan::Size { size: size()?, repeat: table.count("repeat").unwrap_or(1) },
        "poisson" => TrafficPlan::Poisson { size: size()?, interval: positive("interval")? },
        "on-off" => TrafficPlan::OnOff {
            on: positive("on")?,
            off: positive("off")?,
            rate: table.rate("rate"),
        },
        _ => TrafficPlan::Bulk,
    })
}

fn load(section: &Section<'_>, group: &str, path: PathPlan) -> Option<LoadPlan> {
    let on_off = match (section.time("on"), section.time("off")) {
        (Some(on), Some(off)) if on > Duration::ZERO && off > Duration::ZERO => Some((on, off)),
        (None, None) => None,
        _ => {
            let key = if section.has("on") { "on" } else { "off" };
            section.complain(key, "not a pair of times", "on and off together, both above zero");
            return None;
        }
    };
    let (start, stop) = (section.time("start").unwrap_or_default(), section.time("stop"));
    if stop.is_some_and(|stop| stop <= start) {
        let given = section.text("stop").unwrap_or_default();
        section.refuse_value("stop", &given, "a time after the start");
    }
    Some(LoadPlan {
        group: group.to_owned(),
        subject: group.to_owned(),
        path,
        rate: section.rate("rate")?,
        packet: section.count("packet").map_or(1000, |bytes| bytes as u32),
        on_off,
        start,
        stop,
    })
}
