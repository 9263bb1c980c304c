//! `[mesh]`: stations with radios, which flows run between.

use core::time::Duration;

use anabranch_types::Bitrate;

use super::plan::{FlowPlan, MeshPlan, Movement, PathPlan};
use super::profiles::Protocol;
use super::reader::Section;
use crate::traffic::Traffic;
use crate::wireless::mesh::{AckRoute, Forwarding, MeshConfig, RouteUse, RoutingConfig};
use crate::wireless::{FrameLoss, Motion, RandomWaypoint, Waypoints};

/// Reads `[mesh]`, if there is one.
pub(super) fn read(file: &Section<'_>) -> Option<MeshPlan> {
    let section = file.has("mesh").then(|| file.table("mesh")).flatten()?;
    for key in ["link", "path", "correlation", "load", "event"].iter().filter(|key| file.has(key)) {
        file.complain(key, "given beside [mesh]", "[[flow]]s between its stations");
    }
    let mut config = MeshConfig { routing: routing(&section), ..MeshConfig::default() };
    config.air.mac.data_rate = section.rate("rate").unwrap_or(Bitrate::from_mbps(2.0));
    config.air.mac.basic_rate = section.rate("basic-rate").unwrap_or(Bitrate::from_mbps(1.0));
    let share = |key| section.share(key).unwrap_or_default();
    config.air.loss = FrameLoss { above: share("loss"), below: share("frame-loss") };
    config.loss_spares_routing = section.flag("spare-routing").unwrap_or(false);
    let movement = movement(&section, file.time("duration").unwrap_or_default())?;
    Some(MeshPlan { config, movement })
}

fn routing(section: &Section<'_>) -> RoutingConfig {
    let mut routing = match section.word("routing") {
        Some("mtcp") => RoutingConfig::mtcp(),
        Some("smr") => RoutingConfig::smr(),
        _ => RoutingConfig::dsr(),
    };
    let jitter = section.time("jitter").unwrap_or(Duration::from_millis(10));
    let copies = RouteUse::Copies { jitter };
    routing.routes = match section.word("routes") {
        Some("shortest") => RouteUse::Shortest,
        Some("copies") => copies,
        Some("scatter") => RouteUse::Scatter,
        Some("backup") => RouteUse::Backup,
        _ if matches!(routing.routes, RouteUse::Copies { .. }) => copies,
        _ => routing.routes,
    };
    routing.forwarding = match section.word("forwarding") {
        Some("first") => Forwarding::First,
        Some("fewer-hops") => Forwarding::FewerHops,
        Some("other-link") => Forwarding::OtherLink,
        _ => routing.forwarding,
    };
    routing.acknowledgements = match section.word("acknowledgements") {
        Some("shortest") => AckRoute::Shortest,
        Some("arrival") => AckRoute::Arrival,
        Some("like-data") => AckRoute::LikeData,
        _ => routing.acknowledgements,
    };
    routing.drop_copies = section.flag("drop-copies").unwrap_or(routing.drop_copies);
    routing
}

/// Keys of random waypoint.
const RANDOM: [&str; 7] =
    ["width", "height", "least-speed", "most-speed", "pause", "moving-for", "movement"];

fn movement(section: &Section<'_>, duration: Duration) -> Option<Movement> {
    let stations = section.count("stations").unwrap_or(50) as usize;
    for (given, other) in [("ring", "file"), ("file", "stations")] {
        if section.has(given) {
            for key in RANDOM.into_iter().chain([other]).filter(|key| section.has(key)) {
                section.complain(key, format!("given beside {given}"), "one of them");
            }
            break;
        }
    }
    if let Some(radius) = section.real("ring") {
        return Some(Movement::Ring { stations, radius });
    }
    if let Some(name) = section.text("file") {
        let text = section.content("file", &name)?;
        return match text.parse::<Waypoints>() {
            Ok(waypoints) if waypoints.stations() > 0 => Some(Movement::File(waypoints)),
            Ok(_) => {
                section.complain("file", format!("'{name}' has no stations"), "a movement file");
                None
            }
            Err(error) => {
                section.complain("file", format!("'{name}', {error}"), "a movement file of ns-2");
                None
            }
        };
    }
    let real = |key, default| section.real(key).unwrap_or(default);
    let seed = section.real("movement");
    if seed.is_some_and(|seed| seed.fract() != 0.0 || seed > 1e15) {
        let given = section.text("movement").unwrap_or_default();
        section.refuse_value("movement", &given, "a whole number from 0 to 1e15");
    }
    let model = RandomWaypoint {
        stations,
        width: real("width", 3000.0),
        height: real("height", 500.0),
        min_speed: real("least-speed", 1.0),
        max_speed: real("most-speed", 10.0),
        pause: section.time("pause").unwrap_or_default(),
        warm_up: section.time("moving-for").unwrap_or_default(),
        duration,
    };
    if let Err(error) = model.draw(0) {
        section.complain("most-speed", error.to_string(), "speeds with the least first");
        return None;
    }
    Some(Movement::Random { model, seed: seed.map(|seed| seed as u64) })
}

impl MeshPlan {
    /// How many stations there are.
    pub fn stations(&self) -> usize {
        match &self.movement {
            Movement::Ring { stations, .. } => *stations,
            Movement::File(waypoints) => waypoints.stations(),
            Movement::Random { model, .. } => model.stations,
        }
    }

    /// The way between the stations that a flow names: the mesh finds it.
    pub(super) fn between(&self, section: &Section<'_>) -> Option<(PathPlan, (u32, u32))> {
        let station = |key: &str| {
            let text = section.text(key);
            let number = text.as_deref().and_then(|text| text.parse().ok());
            let known = number.filter(|number: &u32| (*number as usize) < self.stations());
            if known.is_none() {
                let given =
                    text.map_or("missing".to_owned(), |text| format!("no station '{text}'"));
                let most = self.stations() - 1;
                section.complain(key, given, format!("a station of the mesh, from 0 to {most}"));
            }
            known
        };
        let (from, to) = (station("from")?, station("to")?);
        if from == to {
            section.complain("to", format!("'{to}' is also where it begins"), "another station");
            return None;
        }
        let path = PathPlan {
            name: "route".to_owned(),
            group: "route".to_owned(),
            forward: Vec::new(),
            back: Vec::new(),
            congestion: None,
        };
        Some((path, (from, to)))
    }

    /// Reports what flows over radio cannot do.
    pub(super) fn check(section: &Section<'_>, flow: &FlowPlan) {
        match &flow.protocol {
            Protocol::Tcp(protocol) if !protocol.is_over_several() => {}
            _ => section.complain("profile", "not TCP over one path", "tcp:sack and the like"),
        }
        if flow.traffic != Traffic::Bulk {
            section.complain("traffic", "not without end", "bulk");
        }
        for key in ["start-jitter", "stop", "per-path"].iter().filter(|key| section.has(key)) {
            section.complain(key, "given for a flow between stations", "start");
        }
    }
}
