//! The systems that are measured, and the result of one run.

use core::fmt;
use core::time::Duration;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use serde::Serialize;

use crate::Failure;
use crate::report::Series;
use crate::{ours, roofline, theirs};

/// Bytes written and read at a time.
pub const PIECE: usize = 128 << 10;

/// Application bytes per second of the rows that are paced: 50 Mb/s.
const PACED: u64 = 50_000_000 / 8;
/// About how many seconds the paced rows last.
const PACED_SECONDS: u64 = 3;
/// Bytes that the application of the paced rows writes at a time: the data of 2 ms.
const PACED_PIECE: usize = (PACED / 500) as usize;
/// UDP payload of the rows with large packets, bytes: Ethernet's jumbo frames over IPv6.
const JUMBO: u16 = 8952;

/// Options of the command line.
#[derive(Debug)]
pub struct Options {
    /// Bytes of each transfer.
    pub bytes: u64,
    /// Transfers through each subject.
    pub rounds: usize,
    /// Largest UDP payload, bytes.
    pub payload: u16,
    /// Print JSON.
    pub json: bool,
    /// Measure the cipher too.
    pub aead: bool,
    /// Measure many connections at once too.
    pub crowd: bool,
    only: Option<String>,
}

/// An implementation that moves bytes.
#[derive(Clone, Debug)]
pub enum Stack {
    /// This project, with a profile and settings.
    Ours { name: &'static str, settings: Vec<(String, String)> },
    /// quinn.
    Quinn,
    /// The fork of quinn that iroh maintains.
    Noq,
    /// The least work of any such transport, with repairs or without.
    Roofline { coded: bool },
}

/// How the bytes are moved. Rows are compared within one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Full speed of the stack.
    Bulk,
    /// Full speed of the stack, in packets of [`JUMBO`] bytes.
    Jumbo,
    /// An application that writes at a fixed rate.
    Paced,
}

/// Stack and load that one row measures.
#[derive(Clone, Debug)]
pub struct Subject {
    pub stack: Stack,
    pub load: Load,
}

/// One transfer to make.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Application bytes.
    pub bytes: u64,
    /// Largest UDP payload, bytes.
    pub payload: u16,
    /// Bytes that the application reads, and writes, at a time.
    pub piece: usize,
    /// Bytes per second that the application writes; `None`: as fast as it can.
    rate: Option<u64>,
}

/// One transfer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Application bytes moved.
    pub bytes: u64,
    /// Largest UDP payload, bytes.
    pub payload: u16,
    /// Seconds from the first write to the last read.
    pub seconds: f64,
    /// CPU seconds of the sending thread.
    pub sender_cpu: f64,
    /// CPU seconds of the receiving thread.
    pub receiver_cpu: f64,
    /// Shares of the time that the threads had nothing to do: neither running nor waiting for a core.
    pub sender_asleep: f64,
    pub receiver_asleep: f64,
}

/// One side's part of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    started: Instant,
    ended: Instant,
    spent: Spent,
}

/// Seconds of a thread so far.
#[derive(Clone, Copy, Debug)]
struct Spent {
    /// Running.
    cpu: f64,
    /// Time ready to run while others had the core.
    queued: f64,
}

/// A side's clock, running.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    started: Instant,
    spent: Spent,
}

const HELP: &str = "\
Usage: cargo xtask perf net [--bytes MIB] [--rounds N] [--payload BYTES] [--only WORD] [--json]

  --bytes MIB       size of each transfer (default 512)
  --rounds N        transfers through each stack, alternately (default 5)
  --payload BYTES   largest UDP payload of the rows that do not say theirs (default 1452)
  --only WORD       only the rows whose name contains WORD
  --json            figures as JSON
";

impl Options {
    /// Reads the command line.
    pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Options {
            bytes: 512 << 20,
            rounds: 5,
            payload: 1452,
            json: false,
            aead: true,
            crowd: true,
            only: None,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value\n\n{HELP}"));
            match arg.as_str() {
                "--bytes" => options.bytes = value()?.parse::<u64>()? << 20,
                "--rounds" => options.rounds = value()?.parse()?,
                "--payload" => options.payload = value()?.parse()?,
                "--only" => options.only = Some(value()?),
                "--json" => options.json = true,
                "--help" | "-h" => return Err(HELP.into()),
                other => return Err(format!("unknown option `{other}`\n\n{HELP}").into()),
            }
        }
        if let Some(only) = &options.only {
            options.aead = "aead".contains(only.as_str());
            options.crowd = "100 connections".contains(only.as_str());
        }
        Ok(options)
    }

    /// The rows asked for, without samples.
    pub fn series(&self) -> Result<Vec<Series>, Failure> {
        let ours = |name, settings: &[(&str, &str)]| Stack::Ours {
            name,
            settings: settings.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        };
        let plain = ours("anabranch", &[]);
        let coded = ours("anabranch, 5 % repairs", &[("redundancy", "fixed:share=0.05")]);
        let others = [Stack::Quinn, Stack::Noq];
        let least = [Stack::Roofline { coded: false }, Stack::Roofline { coded: true }];
        let all = [Load::Bulk, Load::Jumbo, Load::Paced].into_iter().flat_map(|load| {
            let ends = [&plain, &coded].into_iter().chain(&others);
            // At a fixed rate, timers rather than the least work would decide the result.
            let least = least.iter().filter(move |_| load != Load::Paced);
            ends.chain(least).map(move |stack| Subject { stack: stack.clone(), load })
        });
        let wanted = |subject: &Subject| {
            self.only.as_ref().is_none_or(|word| subject.name().contains(word.as_str()))
        };
        Ok(all.filter(wanted).map(Series::new).collect())
    }
}

impl Subject {
    /// Name of the row.
    pub fn name(&self) -> String {
        let stack = match &self.stack {
            Stack::Ours { name, .. } => name,
            Stack::Quinn => "quinn",
            Stack::Noq => "noq",
            Stack::Roofline { coded: false } => "roofline",
            Stack::Roofline { coded: true } => "roofline, 5 % repairs",
        };
        match self.load {
            Load::Bulk => stack.to_owned(),
            Load::Jumbo => format!("{stack}, {JUMBO} B"),
            Load::Paced => format!("{stack}, 50 Mb/s"),
        }
    }

    /// Moves the bytes once.
    pub fn run(&self, options: &Options) -> Result<Sample, Failure> {
        let Options { bytes, payload, .. } = *options;
        let bulk = Task::bulk(bytes, payload);
        let task = match self.load {
            Load::Bulk => bulk,
            Load::Jumbo => Task { payload: JUMBO, ..bulk },
            Load::Paced => {
                let bytes = PACED * PACED_SECONDS;
                Task { bytes, piece: PACED_PIECE, rate: Some(PACED), ..bulk }
            }
        };
        match &self.stack {
            Stack::Ours { settings, .. } => ours::transfer(task, settings),
            Stack::Quinn => theirs::quinn::transfer(task),
            Stack::Noq => theirs::noq::transfer(task),
            Stack::Roofline { coded } => roofline::transfer(task, *coded),
        }
    }
}

impl Task {
    /// A task to move this many bytes as fast as possible.
    pub fn bulk(bytes: u64, payload: u16) -> Self {
        Task { bytes, payload, piece: PIECE, rate: None }
    }

    /// Waits until an application that has written `written` bytes since `start` has more to write.
    pub async fn wait(&self, start: Instant, written: u64) {
        if let Some(rate) = self.rate {
            let due = start + Duration::from_secs_f64(written as f64 / rate as f64);
            tokio::time::sleep_until(due.into()).await;
        }
    }
}

impl Sample {
    /// The sample from the two sides' figures.
    pub fn new(task: Task, sender: Side, receiver: Side) -> Self {
        let Task { bytes, payload, .. } = task;
        let span: Duration = receiver.ended.max(sender.ended).duration_since(sender.started);
        let seconds = span.as_secs_f64();
        Sample {
            bytes,
            payload,
            seconds,
            sender_cpu: sender.spent.cpu,
            receiver_cpu: receiver.spent.cpu,
            sender_asleep: sender.asleep(),
            receiver_asleep: receiver.asleep(),
        }
    }

    /// Gigabits per second.
    pub fn gbps(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.seconds
    }

    /// CPU microseconds of both sides for as many bytes as the UDP payload of a full packet.
    pub fn cpu_per_packet(&self) -> f64 {
        self.cpu_per_gb() * f64::from(self.payload) * 1e-3
    }

    /// CPU seconds per gigabyte, both sides.
    pub fn cpu_per_gb(&self) -> f64 {
        (self.sender_cpu + self.receiver_cpu) / (self.bytes as f64 * 1e-9)
    }
}

impl Running {
    /// Starts this thread's clock.
    pub fn start() -> Result<Self, Failure> {
        Ok(Running { started: Instant::now(), spent: Spent::so_far()? })
    }

    /// Stops the clock: the time and the CPU time since its start.
    pub fn stop(self) -> Result<Side, Failure> {
        let (ended, now) = (Instant::now(), Spent::so_far()?);
        let (cpu, queued) = (now.cpu - self.spent.cpu, now.queued - self.spent.queued);
        Ok(Side { started: self.started, ended, spent: Spent { cpu, queued } })
    }
}

impl Side {
    fn asleep(&self) -> f64 {
        let total = self.ended.duration_since(self.started).as_secs_f64();
        (1.0 - (self.spent.cpu + self.spent.queued) / total).max(0.0)
    }
}

impl Spent {
    /// Reads the kernel's scheduler statistics of this thread: nanoseconds run and queued.
    fn so_far() -> Result<Self, Failure> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
        let mut fields = text.split_whitespace().map(|field| field.parse::<u64>());
        let mut seconds = || -> Result<f64, Failure> {
            Ok(fields.next().ok_or("schedstat is too short")?? as f64 * 1e-9)
        };
        Ok(Spent { cpu: seconds()?, queued: seconds()? })
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gigabytes = self.bytes as f64 * 1e-9;
        write!(
            f,
            "{:6.2} Gb/s   CPU s/GB: {:.3} sending + {:.3} receiving   asleep: {:.0} %, {:.0} %",
            self.gbps(),
            self.sender_cpu / gigabytes,
            self.receiver_cpu / gigabytes,
            self.sender_asleep * 100.0,
            self.receiver_asleep * 100.0
        )
    }
}

/// A side of a transfer under way.
pub type Working<T> = JoinHandle<Result<T, Failure>>;

/// Runs `work` on a thread with a runtime of its own; profilers see its `name`.
pub fn on_thread<T, F>(
    name: &str,
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<Working<T>, Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>>,
{
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(work())
    };
    Ok(thread::Builder::new().name(name.to_owned()).spawn(run)?)
}

/// Waits for a side.
pub fn join<T>(working: Working<T>) -> Result<T, Failure> {
    working.join().map_err(|_| "a side of the transfer panicked")?
}
