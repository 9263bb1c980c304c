//! `status`: shows the state of this user's running `serve` and `connect`, as `wg show` does for
//! tunnels.

pub mod args;
mod ask;
mod show;
mod state;
mod tell;

use std::path::PathBuf;

use crate::failure::Failure;
use crate::{confine, output};
use args::StatusArgs;
pub use state::{Forwards, Path, Peer, State};
pub use tell::Telling;

/// Directory of the sockets of system services, and of root's where root has no runtime directory.
const SYSTEM: &str = "/run/anabranch";

/// Where this user's commands have their sockets.
fn of_user() -> Option<PathBuf> {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) => Some(PathBuf::from(directory).join("anabranch")),
        None => confine::is_root().then(|| SYSTEM.into()),
    }
}

/// Where a running command makes its socket. systemd tells services their directory.
fn of_command() -> Option<PathBuf> {
    std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from).or_else(of_user)
}

/// Where `status` looks: root sees the system's services too.
fn places() -> Vec<PathBuf> {
    let mut directories = Vec::from_iter(of_user());
    if confine::is_root() && !directories.iter().any(|directory| directory.as_os_str() == SYSTEM) {
        directories.push(SYSTEM.into());
    }
    directories
}

/// Shows the commands that run.
///
/// # Errors
/// When no running command answers, sockets cannot be listed, or standard output cannot be written.
pub fn run(args: &StatusArgs) -> Result<(), Failure> {
    let directories = places();
    if directories.is_empty() {
        return Err(Failure::failed(
            "XDG_RUNTIME_DIR is not set, so that running commands cannot be found",
        ));
    }
    loop {
        let before = ask::all(&directories)?;
        if before.is_empty() {
            let places: Vec<_> =
                directories.iter().map(|place| place.display().to_string()).collect();
            return Err(Failure::failed(format!(
                "nothing runs: no `anabranch serve` or `connect` of this user has a socket in {}",
                places.join(" or ")
            )));
        }
        // Rates are differences of two answers this far apart.
        std::thread::sleep(args.interval());
        let now = ask::all(&directories)?;
        if args.watch && !args.json {
            // Clears the screen and what has scrolled away.
            output::print("\u{1b}[2J\u{1b}[3J\u{1b}[H")?;
        }
        match args.json {
            true => now.iter().try_for_each(output::print_json_line)?,
            false => output::print(&show::text(&before, &now, args.interval().as_secs_f64()))?,
        }
        if !args.watch {
            return Ok(());
        }
    }
}
