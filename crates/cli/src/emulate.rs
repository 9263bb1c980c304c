//! `emulate`: any program over emulated links, between network namespaces.

pub mod args;
mod capture;
mod commands;
mod inside;
mod report;
mod table;

use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anabranch_emulate::{Emulator, EmulatorError, PathConfig};
use anabranch_sim::scenario::NetworkPlan;

use crate::failure::Failure;
use crate::rows::Rows;
use crate::sim::load::load_network;
use crate::{interrupt, links, output};
use args::EmulateArgs;
use capture::Capturing;
use commands::{Commands, Line, Output};
use report::{Report, Run};
use table::{Watch, plain};

pub use inside::run as run_inside;

/// Intervals at which to check whether a command has ended, to draw the table, and to print a line.
const LOOK: Duration = Duration::from_millis(10);
const DRAW: Duration = Duration::from_millis(150);
const PRINT: Duration = Duration::from_secs(1);

/// Emulates links while commands run, and returns the exit code of the command that decides.
///
/// # Errors
/// When the links cannot be emulated, or a file fails.
pub fn run(args: &EmulateArgs) -> Result<ExitCode, Failure> {
    let plan = network(args)?;
    let links: Vec<String> = plan.links.iter().map(|link| link.name.clone()).collect();
    for (link, _) in &args.captures {
        if !links.contains(link) {
            let known = links.join(", ");
            return Err(Failure::usage(format!(
                "--pcap: there is no link '{link}'; allowed: {known}"
            )));
        }
    }
    Emulator::check(&plan).map_err(failure)?;
    // This must run before any thread is started.
    Emulator::prepare().map_err(failure)?;
    let title =
        format!("anabranch emulate {}, seed {}", scenario(args).unwrap_or_default(), args.seed);
    let mut captures = Vec::with_capacity(args.captures.len());
    let mut taps = Vec::with_capacity(args.captures.len());
    for (link, file) in &args.captures {
        let (capturing, tap) = Capturing::begin(link, file, &title)?;
        captures.push(capturing);
        taps.extend(links.iter().position(|name| name == link).map(|index| (index, tap)));
    }
    let emulator = Emulator::start(&plan, args.seed, taps).map_err(failure)?;
    let watch = Watch::new(&links);
    let status = attend(args, &emulator, &watch)?;
    let exit_code = status.and_then(|status| status.code());
    report(args, &emulator, &watch, exit_code)?;
    drop(emulator);
    captures.into_iter().try_for_each(Capturing::finish)?;
    Ok(code(status))
}

/// The network to emulate: links, paths and events.
fn network(args: &EmulateArgs) -> Result<NetworkPlan, Failure> {
    if let Some(file) = &args.scenario {
        return load_network(file, &args.settings);
    }
    let mut paths = args.paths.clone();
    links::name(&mut paths)?;
    let links = |path: PathConfig| (path.forward.name.clone(), [path.forward, path.reverse]);
    Ok(NetworkPlan::parallel(paths.into_iter().map(links)))
}

fn scenario(args: &EmulateArgs) -> Option<String> {
    args.scenario.as_ref().map(|file| file.display().to_string())
}

/// Runs the commands until the one that decides has ended, the user interrupts, or the emulator stops.
fn attend(
    args: &EmulateArgs,
    emulator: &Emulator,
    watch: &Watch,
) -> Result<Option<ExitStatus>, Failure> {
    let interrupted = interrupt::flag();
    if !args.quiet {
        introduce(emulator);
    }
    let table = !args.quiet && !args.shell && io::stderr().is_terminal();
    let (lines, printed) = channel();
    let output = if table { Output::Lines(lines) } else { Output::Own { json: args.json } };
    let mut screen = Screen::open(args, table, watch, printed);
    let mut commands = Commands::start(emulator, args, &output)?;
    drop(output);
    let mut status = None;
    while status.is_none() && !interrupted.load(Ordering::Relaxed) && emulator.is_running() {
        screen.wait(emulator);
        status = commands.ended()?;
    }
    let last = commands.finish();
    screen.close();
    Ok(status.or(last))
}

/// Prints the addresses of both sides.
fn introduce(emulator: &Emulator) {
    for path in emulator.paths() {
        eprintln!("{}: client {}, server {}", path.name, path.client, path.server);
    }
}

/// Prints what the links did, with a note where the results are unusable.
fn report(
    args: &EmulateArgs,
    emulator: &Emulator,
    watch: &Watch,
    exit_code: Option<i32>,
) -> Result<(), Failure> {
    let (scenario, seed) = (scenario(args), args.seed);
    let run = Run { scenario, seed, exit_code, most_late: args.late, emulator };
    let (report, now, links) = Report::new(run)?;
    if !args.quiet {
        eprint!("{}", report.text(watch, now, &links));
    }
    if let Some(why) = report.warning() {
        eprintln!("anabranch: note: these results are unusable: {why}");
    }
    if args.json { output::print_json(&report) } else { Ok(()) }
}

/// The exit code that a shell would give.
fn code(status: Option<ExitStatus>) -> ExitCode {
    let code =
        status.and_then(|status| status.code().or(status.signal().map(|signal| 128 + signal)));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Exit code 1 for what this system does not allow, 2 for wrong usage.
fn failure(error: EmulatorError) -> Failure {
    match error {
        EmulatorError::Namespace(_) | EmulatorError::Device { .. } | EmulatorError::Io(_) => {
            Failure::failed(error)
        }
        _ => Failure::usage(error),
    }
}

/// Shows the links while the commands run.
struct Screen {
    watch: Watch,
    rows: Option<Rows>,
    /// Whether lines are printed where there is no table.
    lines: bool,
    printed: Receiver<Line>,
    shown: Duration,
}

impl Screen {
    fn open(args: &EmulateArgs, table: bool, watch: &Watch, printed: Receiver<Line>) -> Self {
        let rows = table.then(|| Rows::open(&watch.headings(), watch.len()));
        let lines = !args.quiet && !args.shell;
        Screen { watch: watch.clone(), rows, lines, printed, shown: Duration::ZERO }
    }

    /// Waits for output for [`LOOK`] at most, and shows it and the figures.
    fn wait(&mut self, emulator: &Emulator) {
        match self.printed.recv_timeout(LOOK) {
            Ok(line) => self.print(&line),
            Err(RecvTimeoutError::Timeout) => {}
            // The commands print to this process's outputs themselves.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
        }
        let now = emulator.now();
        let elapsed = now.since(anabranch_types::Time::ZERO);
        let interval = if self.rows.is_some() { DRAW } else { PRINT };
        if !self.lines || elapsed < self.shown + interval {
            return;
        }
        self.shown = elapsed;
        let rows = self.watch.latest(now, &emulator.links());
        match &self.rows {
            Some(table) => table.show(rows.iter().map(|row| self.watch.line(row))),
            None => eprintln!("{}", plain(now, &rows)),
        }
    }

    fn print(&self, line: &Line) {
        match &self.rows {
            Some(table) => table.above(|| line.print()),
            None => line.print(),
        }
    }

    /// Prints the rest of the output, and removes the table.
    fn close(&self) {
        // The commands have ended, and the rest of their output arrives soon.
        while let Ok(line) = self.printed.recv_timeout(LOOK) {
            self.print(&line);
        }
        if let Some(table) = &self.rows {
            table.clear();
        }
    }
}
