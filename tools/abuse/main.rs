//! `cargo xtask abuse`: what floods of forged first messages, and what a hostile peer with a permitted key, cost a
//! running transfer.
//!
//! A receiver in a process of its own, a sender and an attacker run on loopback. The attacker
//! floods the receiver and, alternately, a socket that nobody reads. Making and sending datagrams
//! costs the machine the same both times, so the difference in goodput is the receiver's cost.

mod asking;
mod attacker;
mod attacks;
mod forge;
#[path = "../frames.rs"]
mod frames;
mod hostile;
mod newcomer;
mod peers;
mod receiver;
mod report;
mod sender;
mod stretch;

use std::process::ExitCode;
use std::time::Duration;

use attacker::Attacker;
use attacks::ATTACKS;
use forge::Kind;
use receiver::Receiver;
use report::{Outcome, Slot};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const HELP: &str = "\
Usage: cargo xtask abuse [--messages N] [--rate N] [--rounds N]
       cargo xtask abuse --peers SECONDS [--only TEXT] [--rate N] [--pace MB] [--least RATIO]

  --messages N   forged messages to the receiver, all kinds together (default 1000000)
  --rate N       forged messages a second (default 20000)
  --rounds N     rounds, each with every kind of flood (default 5)
  --peers S      a hostile peer with a permitted key instead, each attack for S seconds, 60 for a verdict;
                 --rate is its packets a second then (default 1000)
  --only TEXT    attacks with this in their names alone, as `offers`; given several times, with any of them
  --pace MB      the well-behaved peer sends so many megabytes a second, and not as fast as it can
  --least RATIO  fail where the well-behaved peer keeps less of its goodput (default 0.9); with 0, memory and the
                 time that a newcomer takes are judged alone, which other programs on the machine disturb less
";

/// Options of the command line.
#[derive(Clone, Debug)]
struct Options {
    messages: u64,
    rate: u64,
    rounds: u64,
    peers: Option<u64>,
    pace: Option<u64>,
    least: f64,
    /// Parts of the names of attacks to run; all attacks if there are none.
    only: Vec<String>,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let outcome = match args.peek().map(String::as_str) {
        Some(receiver::ROLE) => receiver::serve(args.skip(1)),
        Some("--help" | "-h") => {
            print!("{HELP}");
            Ok(())
        }
        _ => Options::parse(args).and_then(run),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("abuse: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Options {
            messages: 1_000_000,
            rate: 0,
            rounds: 5,
            peers: None,
            pace: None,
            least: 0.9,
            only: Vec::new(),
        };
        while let Some(name) = args.next() {
            let (mut seconds, mut pace) = (0, 0);
            let value = match name.as_str() {
                "--least" => {
                    options.least = share(args.next())?;
                    continue;
                }
                "--only" => {
                    let text = args.next().ok_or("--only needs a part of an attack's name")?;
                    options.only.push(attack(&text)?);
                    continue;
                }
                "--peers" => &mut seconds,
                "--pace" => &mut pace,
                "--messages" => &mut options.messages,
                "--rate" => &mut options.rate,
                "--rounds" => &mut options.rounds,
                _ => return Err(format!("unknown option `{name}`\n\n{HELP}").into()),
            };
            let text = args.next().unwrap_or_default();
            *value = text
                .parse()
                .ok()
                .filter(|number| *number > 0)
                .ok_or_else(|| format!("{name} needs a number from 1 on"))?;
            options.peers = Some(seconds).filter(|seconds| *seconds > 0).or(options.peers);
            options.pace = Some(pace).filter(|pace| *pace > 0).or(options.pace);
        }
        if options.rate == 0 {
            options.rate = if options.peers.is_some() { 1000 } else { 20_000 };
        }
        Ok(options)
    }

    /// How long each flood lasts.
    fn slot(&self) -> Duration {
        let slots = self.rounds * Kind::ALL.len() as u64;
        Duration::from_secs_f64(self.messages as f64 / slots as f64 / self.rate as f64)
    }
}

/// Checks that some attack has `text` in its name.
fn attack(text: &str) -> Result<String, Failure> {
    let names = || ATTACKS.iter().map(|attack| attack.name);
    if names().any(|name| name.contains(text)) {
        return Ok(text.to_owned());
    }
    let names: Vec<&str> = names().collect();
    Err(format!("no attack has `{text}` in its name; there are:\n  {}", names.join("\n  ")).into())
}

/// A number from 0 to 1.
fn share(text: Option<String>) -> Result<f64, Failure> {
    let number = text.and_then(|text| text.parse().ok());
    let number = number.filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "--least needs a number from 0 to 1".into())
}

fn run(options: Options) -> Result<(), Failure> {
    if let Some(seconds) = options.peers {
        let (time, pace) =
            (Duration::from_secs(seconds), options.pace.map(|mega| mega * 1_000_000));
        let Options { rate, least, only, .. } = options;
        return peers::run(&peers::Plan { time, rate, pace, least, only });
    }
    let secret = anabranch::SecretKey::generate()?;
    let mut receiver = Receiver::start(&[secret.public_key()])?;
    let sender = sender::start(secret.clone(), receiver.key, receiver.address, None)?;
    let attacker = Attacker::new(receiver.address, options.rate)?;
    let slot = options.slot();
    // Wait until the transfer has allocated its buffers, so that they do not count as the attack's memory.
    std::thread::sleep(Duration::from_secs(2));
    let before = receiver.ask()?;
    let mut outcomes: Vec<Outcome> = Kind::ALL.map(Outcome::new).into();
    for round in 1..=options.rounds {
        for outcome in &mut outcomes {
            eprintln!("round {round} of {}: {}", options.rounds, outcome.kind.name());
            let messages = forge::messages(outcome.kind, &receiver.key, &secret)?;
            if outcome.kind == Kind::Replays {
                // The captured message arrives once before the flood, so that every message of the flood is a replay.
                attacker.send_one(&messages)?;
            }
            let decoy = Slot::measure(&mut receiver, || attacker.flood_decoy(&messages, slot))?;
            let attack = Slot::measure(&mut receiver, || {
                attacker.flood(outcome.kind.sources(), &messages, slot)
            })?;
            outcome.add(decoy, attack);
        }
    }
    let after = receiver.ask()?;
    report::print(&outcomes, before, after);
    drop(sender);
    Ok(())
}
