//! The command line of `status`.

use std::time::Duration;

use clap::Args;

const HELP: &str = "\
It asks the commands of the same user through sockets in $XDG_RUNTIME_DIR/anabranch. Root also sees
the system's services in /run/anabranch, where its own commands are if that variable is not set.

Examples:
  anabranch status
  anabranch status --watch
  anabranch status --json | jq '.peers[].paths[] | select(.state == \"down\") | .name'

Exit codes: 0 done, 1 nothing runs or failed, 2 usage error";

/// Options of `status`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct StatusArgs {
    /// Show it again every second, until interrupted
    #[arg(long, short)]
    pub watch: bool,
    /// Print JSON, a line for each command that runs
    #[arg(long)]
    pub json: bool,
}

impl StatusArgs {
    /// Time between the two answers from which rates are computed.
    pub(super) fn interval(&self) -> Duration {
        match (self.watch, self.json) {
            (true, _) => Duration::from_secs(1),
            (false, true) => Duration::ZERO,
            (false, false) => Duration::from_millis(500),
        }
    }
}
