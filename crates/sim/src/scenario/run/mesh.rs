//! Builds a mesh: stations, and the flows between them.

use std::sync::Arc;

use anabranch_types::{Rng, Time};

use super::RunError;
use super::build::Live;
use super::flow::LiveFlow;
use crate::scenario::plan::{FlowPlan, MeshPlan, Movement, Plan};
use crate::scenario::profiles::Protocol;
use crate::wireless::mesh::{Mesh, MeshFlow, MeshTraffic};
use crate::wireless::{Fixed, Motion};

/// Builds the flows of `plan` over `mesh` with `seed`.
///
/// # Errors
/// When something of it cannot exist.
pub(super) fn build(plan: &Plan, mesh: &MeshPlan, seed: u64) -> Result<Live, RunError> {
    let mut config = mesh.config.clone();
    config.flows = plan.flows.iter().map(flow).collect::<Result<_, _>>()?;
    let draws = match mesh.run {
        1 => seed,
        run => Rng::substream(seed, &format!("mesh.run.{run}")).next_u64(),
    };
    let running = Mesh::new(&config, motion(&mesh.movement, seed)?, draws);
    let running = running.map_err(|error| RunError::Build(error.to_string()))?;
    let mut flows = Vec::new();
    for (index, flow) in plan.flows.iter().enumerate() {
        let ends = running.flow(index).ok_or_else(|| not_tcp(flow))?;
        flows.push(LiveFlow::new(Box::new(ends), Time::ZERO + flow.start, 0));
    }
    Ok(Live { engine: running.into_engine(), flows, loads: Vec::new(), links: Vec::new() })
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
    let traffic = MeshTraffic::Tcp(Arc::clone(protocol));
    Ok(MeshFlow { from, to, start: Time::ZERO + flow.start, traffic })
}

fn not_tcp(flow: &FlowPlan) -> RunError {
    RunError::Build(format!("flow '{}' is not TCP between two stations", flow.subject))
}
