//! `status`: what the running `serve` and `connect` of this user do, as `wg show` tells of tunnels.

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

/// Where the sockets of running commands are.
fn directory() -> Option<PathBuf> {
    let run = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) => PathBuf::from(directory),
        None if confine::is_root() => PathBuf::from("/run"),
        None => return None,
    };
    run.is_dir().then(|| run.join("anabranch"))
}

/// Shows what runs.
///
/// # Errors
/// When nothing does, or it does not answer.
pub fn run(args: &StatusArgs) -> Result<(), Failure> {
    let Some(directory) = directory() else {
        return Err(Failure::failed("XDG_RUNTIME_DIR names no directory: nothing can be asked"));
    };
    loop {
        let before = ask::all(&directory)?;
        if before.is_empty() {
            return Err(Failure::failed(format!(
                "nothing runs: no `anabranch serve` or `connect` of this user has a socket in {}",
                directory.display()
            )));
        }
        // Rates are differences of two answers this far apart.
        std::thread::sleep(args.interval());
        let now = ask::all(&directory)?;
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
