//! Runs the programs of the two sides.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use anabranch_emulate::{Emulator, Side};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::args::EmulateArgs;
use crate::failure::Failure;

/// Programs that run at the two sides.
pub(super) struct Commands {
    client: Option<Child>,
    server: Option<Child>,
}

/// Where the output of commands goes.
#[derive(Clone)]
pub(super) enum Output {
    /// To this process's own outputs; with JSON, all to standard error.
    Own {
        /// Whether there is JSON on standard output.
        json: bool,
    },
    /// To the screen, which draws a table on the terminal: all output that would go to the terminal.
    Lines(Sender<Line>),
}

/// A line that a command has printed, or a part of one that is very long.
pub(super) struct Line {
    text: Vec<u8>,
    is_error: bool,
}

/// How long a side may take to end by itself after the other has ended, and again after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(10);
/// Longest part of a line that is passed on at once, bytes; longer lines come in parts.
const LONGEST_LINE: u64 = 1 << 16;

impl Commands {
    /// Starts the server's program, then the client's.
    pub(super) fn start(
        emulator: &Emulator,
        args: &EmulateArgs,
        output: &Output,
    ) -> Result<Self, Failure> {
        let shell = |line: &str| ["sh", "-c", line].map(OsString::from).to_vec();
        let server = args.server.as_deref().map(shell);
        let client = if args.shell {
            Some(vec![std::env::var_os("SHELL").unwrap_or_else(|| "sh".into())])
        } else {
            let given = Some(args.command.clone()).filter(|command| !command.is_empty());
            given.or_else(|| args.client.as_deref().map(shell))
        };
        let start = |side, command: Option<Vec<OsString>>, stdin| {
            command.map(|command| spawn(emulator, side, &command, stdin, output)).transpose()
        };
        // If there is a client, only the client reads from the terminal.
        let alone = client.is_none();
        let server = start(Side::Server, server, alone)?;
        Ok(Commands { client: start(Side::Client, client, true)?, server })
    }

    /// The exit status of the program that decides, the client's if there is one; `None` while it runs or if there
    /// is no program.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        let Commands { client, server } = self;
        let Some(decides) = client.as_mut().or(server.as_mut()) else { return Ok(None) };
        decides.try_wait().map_err(|error| Failure::failed(format!("cannot wait: {error}")))
    }

    /// Ends what still runs: waits for a while, then sends SIGTERM, then SIGKILL.
    pub(super) fn finish(&mut self) -> Option<ExitStatus> {
        let both = [self.client.as_mut(), self.server.as_mut()];
        let mut left: Vec<&mut Child> = both.into_iter().flatten().collect();
        for signal in [None, Some(Signal::SIGTERM), Some(Signal::SIGKILL)] {
            for child in &left {
                if let (Some(signal), Ok(pid)) = (signal, i32::try_from(child.id())) {
                    let _ = kill(Pid::from_raw(pid), signal);
                }
            }
            let end = now() + PATIENCE;
            loop {
                left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
                if left.is_empty() || now() > end {
                    break;
                }
                thread::sleep(STEP);
            }
        }
        self.ended().ok().flatten()
    }
}

#[allow(clippy::disallowed_methods, reason = "real processes take real time")]
fn now() -> Instant {
    Instant::now()
}

fn spawn(
    emulator: &Emulator,
    side: Side,
    words: &[OsString],
    stdin: bool,
    output: &Output,
) -> Result<Child, Failure> {
    let failed = |error: io::Error| {
        let name = words.first().map_or(OsStr::new(""), OsString::as_os_str);
        Failure::failed(format!("cannot run {}: {error}", name.display()))
    };
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("emulated").arg("--").args(words);
    if !stdin {
        command.stdin(Stdio::null());
    }
    match output {
        Output::Own { json: true } => drop(command.stdout(io::stderr())),
        Output::Own { json: false } => {}
        Output::Lines(_) => {
            if io::stdout().is_terminal() {
                command.stdout(Stdio::piped());
            }
            command.stderr(Stdio::piped());
        }
    }
    let mut child = emulator.spawn(side, command).map_err(failed)?;
    if let Output::Lines(lines) = output {
        follow(child.stdout.take(), false, lines).map_err(failed)?;
        follow(child.stderr.take(), true, lines).map_err(failed)?;
    }
    Ok(child)
}

/// Passes on what comes out of `pipe`, line by line, until it is closed.
fn follow(
    pipe: Option<impl Read + Send + 'static>,
    is_error: bool,
    lines: &Sender<Line>,
) -> io::Result<()> {
    let Some(pipe) = pipe else { return Ok(()) };
    let lines = lines.clone();
    let pass = move || {
        let mut pipe = BufReader::new(pipe);
        loop {
            let mut text = Vec::new();
            match pipe.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut text) {
                Ok(1..) if lines.send(Line { text, is_error }).is_ok() => {}
                _ => return,
            }
        }
    };
    thread::Builder::new().name("anabranch-output".to_owned()).spawn(pass).map(drop)
}

impl Line {
    /// Prints the line to the output that the command meant. Errors are ignored: the terminal may
    /// be gone.
    pub(super) fn print(&self) {
        let _ = if self.is_error {
            io::stderr().write_all(&self.text)
        } else {
            io::stdout().write_all(&self.text).and_then(|()| io::stdout().flush())
        };
    }
}
