//! `sim`: checks, runs and draws scenarios, on several machines if need be.

pub mod args;

mod check;
mod drawing;
mod index;
pub mod load;
mod merge;
mod plan;
mod plot;
mod pool;
mod progress;
mod run;
mod seeds;
mod selection;
mod table;
mod traces;

pub use plan::outlook;

use crate::failure::Failure;
use args::{SimArgs, SimCommand};

/// Does what `args` say.
///
/// # Errors
/// [`Failure::Usage`] for a mistake in a scenario or a directory with other results,
/// [`Failure::Interrupted`] if the user interrupts, and else [`Failure::Failed`].
pub fn run(args: &SimArgs) -> Result<(), Failure> {
    match &args.command {
        SimCommand::Run(args) => run::run(args),
        SimCommand::Check(args) => check::check(args),
        SimCommand::Plan(args) => plan::plan(args),
        SimCommand::Merge(args) => merge::merge(args),
        SimCommand::Plot(args) => plot::plot(args),
    }
}
