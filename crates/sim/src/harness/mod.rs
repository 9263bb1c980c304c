//! Two endpoints over N links in virtual time: a run is a list of links and a goal.
//!
//! Every run checks what must hold whatever the network does: what the application reads is what was
//! written, once and in order; time never goes back; and the run makes progress. The same [`Spec`] and
//! seed give the same [`Report`], to the last packet.

mod app;
mod mangle;
mod network;
mod report;
mod run;
mod spec;

pub use report::{FlowReport, LinkReport, ProbeReport, Report};
pub use run::{Failure, run};
pub use spec::{Flow, Goal, Mangle, PathChange, PathEvent, Probes, Spec};

#[cfg(test)]
mod tests;
