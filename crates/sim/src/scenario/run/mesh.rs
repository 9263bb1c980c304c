//! Builds the engine of a mesh: stations and flows between them.

use std::sync::Arc;

use anabranch_types::{Rng, Time};

use super::RunError;
use super::build::{Live, LiveLoad, udp};
use super::flow::LiveFlow;
use crate::scenario::plan::{FlowPlan, LoadPlan, MeshPlan, Movement, Plan};
use crate::scenario::profiles::Protocol;
use crate::traffic::Traffic;
use crate::wireless::mesh::{Mesh, MeshCounters, MeshFlow, MeshTraffic};
use crate::wireless::{Fixed, Motion};

/// Builds the flows of `plan` over `mesh` with `seed`.
///
/// # Errors
/// When a flow, load or protocol cannot be built.
pub(super) fn build(plan: &Plan, mesh: &MeshPlan, seed: u64) -> Result<Live, RunError> {
    let mut config = mesh.config.clone();
    let flows = plan.flows.iter().map(flow);
    config.flows = flows.chain(plan.loads.iter().map(load)).collect::<Result<_, _>>()?;
    let draws = match mesh.run {
        1 => seed,
        run => Rng::substream(seed, &format!("mesh.run.{run}")).next_u64(),
    };
    let running = Mesh::new(&config, motion(&mesh.movement, seed)?, draws);
    let running = running.map_err(|error| RunError::Build(error.to_string()))?;
    let mut flows = Vec::new();
    for (index, flow) in plan.flows.iter().enumerate() {
        let ends = running.flow(index).ok_or_else(|| not_tcp(flow))?;
        let transfers = match &flow.traffic {
            Traffic::Transfers { repeat, .. } => *repeat,
            _ => 0,
        };
        flows.push(LiveFlow::new(Box::new(ends), Time::ZERO + flow.start, transfers));
    }
    let mut loads = Vec::new();
    for (index, load) in plan.loads.iter().enumerate() {
        let sink = running.receiver(plan.flows.len() + index).ok_or_else(|| nowhere(load))?;
        let stop = load.stop.map(|stop| Time::ZERO + stop);
        loads.push(LiveLoad { sink, remembered: 0, start: Time::ZERO + load.start, stop });
    }
    let (engine, stations) = running.into_engine();
    let mesh = Some((stations, MeshCounters::default()));
    Ok(Live { engine, flows, loads, links: Vec::new(), mesh })
}

fn motion(movement: &Movement, seed: u64) -> Result<Box<dyn Motion>, RunError> {
    Ok(match movement {
        Movement::Ring { stations, radius } => Box::new(Fixed::circle(*stations, *radius)),
        Movement::File(waypoints) => Box::new(waypoints.clone()),
        Movement::Random { model, seed: own } => {
            let drawn = model.draw(own.unwrap_or(seed));
            Box::new(drawn.map_err(|error| RunError::Build(error.to_string()))?)
        }
    })
}

fn flow(flow: &FlowPlan) -> Result<MeshFlow, RunError> {
    let (Protocol::Tcp(protocol), Some((from, to))) = (&flow.protocol, flow.stations) else {
        return Err(not_tcp(flow));
    };
    let traffic = MeshTraffic::Tcp(Arc::clone(protocol), flow.traffic.clone());
    Ok(MeshFlow { from, to, start: Time::ZERO + flow.start, traffic })
}

fn load(load: &LoadPlan) -> Result<MeshFlow, RunError> {
    let (from, to) = load.stations.ok_or_else(|| nowhere(load))?;
    let traffic = MeshTraffic::Udp(udp(load));
    Ok(MeshFlow { from, to, start: Time::ZERO + load.start, traffic })
}

fn nowhere(load: &LoadPlan) -> RunError {
    RunError::Build(format!("load '{}' is not between two stations", load.subject))
}

fn not_tcp(flow: &FlowPlan) -> RunError {
    RunError::Build(format!("flow '{}' is not TCP between two stations", flow.subject))
}
