//! Reads flows (transport connections) and loads (datagram sources).

use core::time::Duration;

use anabranch_core::config::TransportConfig;
use anabranch_core::path::UDP_OVERHEAD;
use anabranch_policy::view::{MAX_PATHS, TrafficClass};
use anabranch_types::DataSize;

use super::plan::{FlowPlan, LoadPlan, MeshPlan, PathPlan};
use super::profiles::{self, Protocol};
use super::reader::{Part, Section};
use super::topology::{Network, RECEIVER, SENDER, name, numbered};
use super::variant;
use crate::endpoint::Stripe;
use crate::traffic::{Messages, Traffic};

/// Reads every `[[flow]]`.
pub(super) fn flows(
    file: &Section<'_>,
    network: &Network,
    mesh: Option<&MeshPlan>,
) -> Vec<FlowPlan> {
    let mut flows: Vec<FlowPlan> = Vec::new();
    let mut names = vec!["all".to_owned()];
    for section in file.tables("flow") {
        let Some(group) = own_name(&section, &mut names) else { continue };
        if !variant::has(file, &section) {
            continue;
        }
        let count = section.count("count").unwrap_or(1);
        let first = flows.len();
        for number in 1..=count {
            let section = numbered(&section, number);
            let Some(flow) = flow(&section, &group, network, mesh) else { continue };
            let alone = |path: &PathPlan| FlowPlan { paths: vec![path.clone()], ..flow.clone() };
            let repeated = match (section.flag("per-path"), stripe_buffer(&section, &flow)) {
                (Some(true), Some(buffer)) => striped(&flow, number, buffer),
                (Some(true), None) => flow.paths.iter().map(alone).collect(),
                _ => vec![flow],
            };
            for flow in repeated {
                check_host(&section, &flow, &flows);
                flows.push(flow);
            }
        }
        number_subjects(flows.get_mut(first..).unwrap_or_default(), |flow| &mut flow.subject);
    }
    flows
}

/// Reads every `[[load]]`.
pub(super) fn loads(
    file: &Section<'_>,
    (network, mesh): (&Network, Option<&MeshPlan>),
    flows: &[FlowPlan],
) -> Vec<LoadPlan> {
    let mut loads: Vec<LoadPlan> = Vec::new();
    let mut names = vec!["all".to_owned()];
    names.extend(flows.iter().map(|flow| flow.group.clone()));
    for section in file.tables("load") {
        let Some(group) = own_name(&section, &mut names) else { continue };
        if !variant::has(file, &section) {
            continue;
        }
        let count = section.count("count").unwrap_or(1);
        let first = loads.len();
        for number in 1..=count {
            let section = numbered(&section, number);
            let (paths, stations) = ends(&section, network, mesh);
            for path in paths {
                loads.extend(load(&section, &group, (path, stations)));
            }
        }
        number_subjects(loads.get_mut(first..).unwrap_or_default(), |load| &mut load.subject);
    }
    loads
}

/// Reads the name of a group and adds it to `names`. A name that is already in `names` is refused.
fn own_name(section: &Section<'_>, names: &mut Vec<String>) -> Option<String> {
    let name = name(section, false)?;
    if names.contains(&name) {
        section.refuse_value("name", &name, "a name that no other flow or load has, and not 'all'");
        return None;
    }
    names.push(name.clone());
    Some(name)
}

/// Numbers the members of a group if there are several. A single member keeps the group's name.
fn number_subjects<T>(members: &mut [T], subject: impl Fn(&mut T) -> &mut String) {
    if members.len() < 2 {
        return;
    }
    for (index, member) in members.iter_mut().enumerate() {
        let subject = subject(member);
        *subject = format!("{subject}.{}", index + 1);
    }
}

fn flow(
    section: &Section<'_>,
    group: &str,
    network: &Network,
    mesh: Option<&MeshPlan>,
) -> Option<FlowPlan> {
    let (transport, overhead, key_limit) = transport(section);
    let traffic = traffic(section);
    let messages = section.has("messages").then(|| section.table("messages")).flatten();
    let (paths, stations) = ends(section, network, mesh);
    let protocol = profiles::read(section, &paths);
    let start = section.time("start").unwrap_or_default();
    let stop = section.time("stop");
    if stop.is_some_and(|stop| stop <= start) {
        let given = section.text("stop").unwrap_or_default();
        section.refuse_value("stop", &given, "a time after the start");
    }
    let flow = FlowPlan {
        group: group.to_owned(),
        subject: group.to_owned(),
        protocol: protocol?,
        transport,
        overhead,
        paths: Some(paths).filter(|paths| !paths.is_empty())?,
        stations,
        start,
        start_jitter: section.time("start-jitter").unwrap_or_default(),
        traffic: traffic?,
        messages: messages.and_then(|table| self::messages(&table)),
        class: class(section).unwrap_or(TrafficClass::Bulk),
        stop,
        key_limit,
        host: section.text("host"),
        stripe: None,
    };
    if let Some(mesh) = mesh {
        mesh.check(section, &flow);
    }
    Some(flow)
}

/// The paths that a flow or load may use, and its two stations in a mesh.
fn ends(
    section: &Section<'_>,
    network: &Network,
    mesh: Option<&MeshPlan>,
) -> (Vec<PathPlan>, Option<(u32, u32)>) {
    let Some(mesh) = mesh else { return (paths(section, network), None) };
    if section.has("paths") {
        section.complain("paths", "given for a flow between stations", "from and to");
    }
    mesh.between(section).map_or((Vec::new(), None), |(path, ends)| (vec![path], Some(ends)))
}

/// Reads `resequencing-buffer`, the size of the buffer in which one stream that was sent over a
/// flow for each path is put back into order, bytes.
fn stripe_buffer(section: &Section<'_>, flow: &FlowPlan) -> Option<u64> {
    let key = "resequencing-buffer";
    let buffer = section.size(key)?;
    let core = matches!(flow.protocol, Protocol::Core(_));
    let plain = flow.host.is_none() && flow.stop.is_none() && flow.messages.is_none();
    if section.flag("per-path") != Some(true) || !core {
        section.complain(
            key,
            "given without per-path or to a flow over TCP",
            "a core profile and per-path = true",
        );
    } else if !matches!(flow.traffic, Traffic::Bulk) || !plain {
        section.complain(
            key,
            "given for a flow with other traffic, or with host, stop or messages",
            "bulk traffic without host, stop and messages",
        );
    } else if buffer.as_bytes() < Stripe::LEAST_BUFFER {
        let given = section.text(key).unwrap_or_default();
        section.refuse_value(key, &given, "4KiB or more, the size of a chunk");
    }
    Some(buffer.as_bytes())
}

/// The flows that together carry one stream: one for each path of `flow`.
fn striped(flow: &FlowPlan, number: u64, buffer: u64) -> Vec<FlowPlan> {
    // Hosts in scenarios cannot have this name.
    let host = Some(format!("{}/{number}", flow.group));
    let stripes = (0..flow.paths.len()).map(|path| Stripe { path, buffer });
    stripes
        .map(|stripe| FlowPlan { host: host.clone(), stripe: Some(stripe), ..flow.clone() })
        .collect()
}

/// Reports a flow that cannot share the endpoints of its host with the flows before it.
fn check_host(section: &Section<'_>, flow: &FlowPlan, before: &[FlowPlan]) {
    let Some(host) = &flow.host else { return };
    if !matches!(flow.protocol, Protocol::Core(_)) {
        section.complain("host", "given to a flow over TCP", "a core profile, or no host");
    }
    let same = |other: &&FlowPlan| other.host.as_ref() == Some(host);
    if before.iter().find(same).is_some_and(|other| other.paths != flow.paths) {
        let what = format!("'{host}', whose first flow has other paths");
        section.complain("host", what, "the same paths for all flows of a host");
    }
}

/// The paths that a flow or load may use: those that it names, the route between its ends, or all
/// paths.
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

/// Reads `transport`: the limits of core endpoints, the bytes on the wire in addition to the UDP
/// payload, and the number of packets per key.
fn transport(section: &Section<'_>) -> (TransportConfig, i32, Option<u64>) {
    // By default, path MTU discovery is off and packets have one size, so that figures can be
    // compared.
    let mut config = TransportConfig {
        max_paths: MAX_PATHS as u8,
        mtu_limit: None,
        ..TransportConfig::default()
    };
    let mut overhead = UDP_OVERHEAD as i32;
    let table = if section.has("transport") { section.table("transport") } else { None };
    let Some(table) = table else { return (config, overhead, None) };
    if let Some(bytes) = table.real("overhead") {
        overhead = bytes as i32;
    }
    if let Some(time) = table.time("idle-timeout") {
        config.idle_timeout = (!time.is_zero()).then_some(time);
    }
    if let Some(packet) = table.count("packet") {
        config.max_datagram = u16::try_from(packet).unwrap_or(u16::MAX);
    }
    config.mtu_limit = table.count("mtu-limit").and_then(|limit| u16::try_from(limit).ok());
    if let Some(bytes) = table.size("receive-buffer") {
        config.streams.max_data = bytes.as_bytes();
        config.streams.max_stream_data = bytes.as_bytes();
        config.streams.growth = 1;
    }
    if let Some(bytes) = table.size("send-buffer") {
        config.streams.send_buffer = bytes.as_bytes();
    }
    if let Some(symbols) = table.count("receive-symbols") {
        config.receive_symbols = symbols;
        config.streams.growth = 1;
    }
    if let Some(delay) = table.time("max-ack-delay") {
        config.max_ack_delay = delay;
    }
    if let Some(whole) = table.flag("whole-blocks") {
        config.whole_blocks = whole;
    }
    if let Some(ecn) = table.flag("ecn") {
        config.ecn = ecn;
    }
    (config, overhead, table.count("key-limit"))
}

fn class(section: &Section<'_>) -> Option<TrafficClass> {
    TrafficClass::named(section.word("class")?)
}

/// Reads [`Messages`] from a table whose keys are the names of its fields.
fn messages(table: &Section<'_>) -> Option<Messages> {
    let interval = table.time("interval")?;
    if interval.is_zero() {
        table.refuse_value("interval", "0s", "a duration above zero");
        return None;
    }
    let size = table.size("size")?.as_bytes();
    let size = u32::try_from(size).ok().filter(|size| (Messages::LEAST..=1000).contains(size));
    if size.is_none() {
        let given = table.text("size").unwrap_or_default();
        table.refuse_value("size", &given, "16B to 1000B");
    }
    let class = class(table).unwrap_or(TrafficClass::Interactive);
    Some(Messages {
        interval,
        size: size?,
        count: table.count("count").unwrap_or(1_000_000),
        class,
    })
}

fn traffic(section: &Section<'_>) -> Option<Traffic> {
    match section.part("traffic") {
        None => Some(Traffic::Bulk),
        Some(Part::Text(text, place)) => {
            if text == "bulk" {
                return Some(Traffic::Bulk);
            }
            let size = text.strip_prefix("size:").and_then(|size| size.parse::<DataSize>().ok());
            match size.map(DataSize::as_bytes).filter(|size| *size > 0) {
                Some(size) => Some(Traffic::Transfers { size, repeat: 1 }),
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

fn traffic_table(table: &Section<'_>) -> Option<Traffic> {
    let kind = table.word("kind")?;
    let (needed, also): (&[&str], &[&str]) = match kind {
        "size" => (&["size"], &["repeat"]),
        "poisson" => (&["size", "interval"], &[]),
        "on-off" => (&["on", "off"], &["rate"]),
        "messages" => (&["size", "interval"], &["count", "class"]),
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
    let size = || {
        let size = table.size("size")?.as_bytes();
        if size == 0 {
            table.refuse_value("size", "0B", "a size above zero");
            return None;
        }
        Some(size)
    };
    Some(match kind {
        "size" => Traffic::Transfers { size: size()?, repeat: table.count("repeat").unwrap_or(1) },
        "poisson" => Traffic::Poisson { size: size()?, interval: positive("interval")? },
        "on-off" => {
            Traffic::OnOff { on: positive("on")?, off: positive("off")?, rate: table.rate("rate") }
        }
        "messages" => Traffic::Messages(messages(table)?),
        "none" => Traffic::Silent,
        _ => Traffic::Bulk,
    })
}

fn load(
    section: &Section<'_>,
    group: &str,
    (path, stations): (PathPlan, Option<(u32, u32)>),
) -> Option<LoadPlan> {
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
        stations,
        rate: section.rate("rate")?,
        packet: section.count("packet").map_or(1000, |bytes| bytes as u32),
        on_off,
        start,
        stop,
    })
}
