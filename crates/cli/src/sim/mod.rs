//! `sim`: scenarios are checked, run and drawn.

pub mod args;

mod check;
mod figures;
pub mod load;
mod plot;
mod pool;
mod progress;
mod results;
mod run;
mod table;
mod traces;

use crate::failure::Failure;
use args::{SimArgs, SimCommand};

/// Does what `args` say.
///
/// # Errors
/// A mistake in a scenario or a directory of other results is asked wrongly; what cannot be read,
/// run or written fails; an interruption is neither.
pub fn run(args: &SimArgs) -> Result<(), Failure> {
    match &args.command {
        SimCommand::Run(args) => run::run(args),
        SimCommand::Check(args) => check::check(args),
        SimCommand::Plot(args) => plot::plot(args),
    }
}
