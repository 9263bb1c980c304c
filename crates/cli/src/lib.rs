//! The `anabranch` command, as a library for its program and its fuzz target.
//!
//! Every command reports on standard output, shows progress on standard error and exits with 0 if it did what was
//! asked, 1 if it failed and 2 on wrong usage; an error is one line.

mod args;
mod arrivals;
mod bench;
mod catalog;
mod clock;
mod confine;
mod demo;
mod doctor;
#[cfg(target_os = "linux")]
mod emulate;
mod failure;
mod format;
mod help;
mod insight;
mod interrupt;
mod keys;
mod limit;
mod limited;
mod links;
mod log;
mod machine;
mod open_files;
mod output;
mod paths;
mod qlog;
mod record;
mod repro;
mod rows;
mod sim;
mod status;
mod transfer;
mod tunnel;
mod values;
mod watched;
mod why;

#[cfg(any(test, feature = "testing"))]
pub use transfer::keep_and_take_up;
#[cfg(any(test, feature = "testing"))]
pub use tunnel::fuzzing;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use args::{Cli, Command};
use failure::Failure;

/// Does what the command line asks.
pub fn main() -> ExitCode {
    let cli = match parse() {
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprint!("{}", error.render());
            return ExitCode::from(2);
        }
        parsed => parsed,
    };
    match run(cli) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("anabranch: {failure}");
            failure.exit_code()
        }
    }
}

fn parse() -> Result<Cli, clap::Error> {
    let mut command = help::flowing(Cli::command());
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn run(parsed: Result<Cli, clap::Error>) -> Result<ExitCode, Failure> {
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => return Err(Failure::from_clap(&error)),
        Err(help) => {
            output::print(&help.render().to_string())?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    log::start()?;
    let done = match cli.command {
        // `emulate` exits with the code of the command that it runs.
        #[cfg(target_os = "linux")]
        Command::Emulate(args) => return emulate::run(&args),
        #[cfg(target_os = "linux")]
        Command::Emulated(args) => return emulate::run_inside(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Connect(args) => tunnel::connect(&args),
        Command::Serve(args) => tunnel::serve(&args),
        Command::Status(args) => status::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Send(args) => transfer::send(&args),
        Command::Recv(args) => transfer::recv(&args),
        Command::Get(args) => transfer::get(&args),
        Command::Keygen(args) => keys::keygen(&args),
        Command::Genpsk(args) => keys::genpsk(&args),
        Command::Pubkey(args) => keys::pubkey(&args),
        Command::Profiles(args) => catalog::profiles(&args),
        Command::Policies(args) => catalog::policies(&args),
        Command::Repro(args) => repro::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Completions(args) => completions(&args),
        Command::Man(args) => man(&args),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn completions(args: &args::CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "anabranch", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

fn man(args: &args::ManArgs) -> Result<(), Failure> {
    let directory = &args.directory;
    let cannot =
        |error| Failure::failed(format!("cannot write into {}: {error}", directory.display()));
    if !directory.is_dir() {
        std::fs::create_dir(directory).map_err(cannot)?;
    }
    // The command `help` gets no page: it says no more than the `--help` of each command.
    let command = help::flowing(Cli::command()).disable_help_subcommand(true);
    clap_mangen::generate_to(command, directory).map_err(cannot)?;
    let page = directory.join("anabranch.1");
    output::print(&format!("Read them with: man {}\n", page.display()))
}
