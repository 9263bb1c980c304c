//! Reads `[mesh]`: stations with radios, between which flows run.

mod radio;
mod routing;

use core::time::Duration;

use super::plan::{FlowPlan, MeshPlan, Movement, PathPlan};
use super::profiles::Protocol;
use super::reader::Section;
use crate::traffic::Traffic;
use crate::wireless::mesh::{MeshConfig, RouteUse};
use crate::wireless::{Motion, RandomWaypoint, RandomWaypointError, Waypoints};

/// Reads `[mesh]`, if there is one.
pub(super) fn read(file: &Section<'_>) -> Option<MeshPlan> {
    let section = file.has("mesh").then(|| file.table("mesh")).flatten()?;
    for key in ["link", "path", "correlation", "event"].iter().filter(|key| file.has(key)) {
        file.complain(key, "given beside [mesh]", "[[flow]]s between its stations");
    }
    let config = MeshConfig {
        air: radio::read(&section),
        routing: routing::read(&section),
        loss_spares_routing: section.flag("spare-routing").unwrap_or(false),
        flows: Vec::new(),
    };
    let movement = movement(&section, file.time("duration").unwrap_or_default())?;
    let run = section.count("run").unwrap_or(1);
    Some(MeshPlan { config, movement, run })
}

/// The keys of the random waypoint model.
const RANDOM: [&str; 8] =
    ["width", "height", "least-speed", "most-speed", "pause", "moving-for", "movement", "apart"];

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
        apart: section.real("apart"),
    };
    if let Err(error) = model.draw(0) {
        let (key, allowed) = match error {
            RandomWaypointError::Apart => ("apart", "metres up to the width"),
            _ => ("most-speed", "speeds with the least first"),
        };
        section.complain(key, error.to_string(), allowed);
        // The rest of the scenario is checked with movements that can be drawn.
        let model = RandomWaypoint { stations, ..RandomWaypoint::default() };
        return Some(Movement::Random { model, seed: None });
    }
    Some(Movement::Random { model, seed: seed.map(|seed| seed as u64) })
}

impl MeshPlan {
    /// Number of stations.
    pub fn stations(&self) -> usize {
        match &self.movement {
            Movement::Ring { stations, .. } => *stations,
            Movement::File(waypoints) => waypoints.stations(),
            Movement::Random { model, .. } => model.stations,
        }
    }

    /// A path between the stations that a flow names. It has no links, since the mesh routes the
    /// packets.
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

    /// Reports settings of a flow that are not supported over a mesh.
    pub(super) fn check(&self, section: &Section<'_>, flow: &FlowPlan) {
        let counts = matches!(self.config.routing.routes, RouteUse::CopiesIfLossy { .. });
        match &flow.protocol {
            Protocol::Tcp(protocol) if counts && protocol.config.delayed_ack.every > 1 => {
                let given = "acknowledgements of several segments";
                section.complain(
                    "tcp",
                    given,
                    "delayed-ack = 1 beside copies-if-lossy, which counts them",
                );
            }
            Protocol::Tcp(protocol) if !protocol.is_over_several() => {}
            _ => section.complain("profile", "not TCP over one path", "tcp:sack and the like"),
        }
        if matches!(flow.traffic, Traffic::Messages(_) | Traffic::Silent) {
            section.complain("traffic", "messages, or nothing", "bulk, size, poisson or on-off");
        }
        for key in ["start-jitter", "stop", "per-path"].iter().filter(|key| section.has(key)) {
            section.complain(key, "given for a flow between stations", "start");
        }
    }
}
