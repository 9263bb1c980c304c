//! The program's command line: commands, options and their help.

use std::path::PathBuf;
use std::time::Duration;

use anabranch_policy::Axis;
use anabranch_sim::link::LinkConfig;
use anabranch_sim::loss::LossConfig;
use anabranch_types::{DataSize, Probability};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::demo::path::DemoPath;
use crate::values::{Setting, setting, time};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed: the reason is on standard error
  2  usage error: unknown option, name or value, or a file that does not exist";

const MAIN_HELP: &str = "\
Examples:
  anabranch demo                        20 seconds over three lossy links
  anabranch demo --profile mplot --time 5 --record run.jsonl
  anabranch why run.jsonl               why that run went as it did
  anabranch keygen --out key && anabranch pubkey key
  anabranch emulate links.toml -- ping 10.77.1.2        any program over links of yours
  anabranch doctor                      what keeps this machine's links from being used well
  anabranch recv                        prints a ticket; on the other machine:
  anabranch send film.mp4 TICKET

Environment:
  RUST_LOG=anabranch=info               logs on standard error what connections do

Exit codes:
  0  done
  1  failed: the reason is on standard error
  2  usage error: unknown option, name or value, or a file that does not exist
  3  nobody answered, or the connection was lost";

/// One connection over several lossy, unequal paths at once.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, after_help = MAIN_HELP, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the throughput of a connection, as iperf3 does
    Bench(crate::bench::args::BenchArgs),
    /// Keep a connection to a peer and carry TCP connections over it, as ssh -L, -R and -D do
    Connect(crate::tunnel::args::ConnectArgs),
    /// Wait for peers and carry their TCP connections
    Serve(crate::tunnel::args::ServeArgs),
    /// Show what the running serve and connect do, as wg show does
    Status(crate::status::args::StatusArgs),
    /// Send data over emulated lossy links on real UDP sockets, watch it, and get a verdict
    Demo(DemoArgs),
    /// Run any program over emulated links, between network namespaces (Linux)
    #[cfg(target_os = "linux")]
    Emulate(crate::emulate::args::EmulateArgs),
    /// What `emulate` starts in a namespace
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Emulated(crate::emulate::args::InsideArgs),
    /// Find out what is wrong with this machine's links, and what to do about it
    Doctor(crate::doctor::args::DoctorArgs),
    /// Send files and directories over every link there is
    Send(crate::transfer::args::SendArgs),
    /// Receive what another machine sends
    Recv(crate::transfer::args::RecvArgs),
    /// Fetch what another machine offers
    Get(crate::transfer::args::GetArgs),
    /// Make a secret key
    Keygen(KeygenArgs),
    /// Print the public key of a secret key
    Pubkey(PubkeyArgs),
    /// Make a secret that two peers share beside their keys
    Genpsk(GenpskArgs),
    /// List the profiles: named protocols, each a choice on every policy axis
    Profiles(ProfilesArgs),
    /// List the policies that --set accepts, axis by axis
    Policies(PoliciesArgs),
    /// Reproduce the papers' figures and tables, with a verdict for each
    Repro(crate::repro::args::ReproArgs),
    /// Run simulated experiments, check them, and draw their results
    Sim(crate::sim::args::SimArgs),
    /// Explain a recorded connection: what was sent where, and why
    Why(WhyArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write manual pages, one for each command, for `man` to show
    Man(ManArgs),
}

const DEMO_HELP: &str = "\
A path is written as key=value pairs and flags, separated by commas:
  name=lte       what the table calls it
  rate=12mbit    1kbit to 1000gbit; 12mbit/3mbit@10s changes after 10 s
  delay=40ms     one way, and back too; acknowledgements come back over the fastest path, so
                 that the RTT shown can be less than twice that
  loss=5%        also 5%/20%@10s for a change after 10 s, markov:5%/35%@250ms for states
                 with a mean dwell, ge:1%/20% for the chances of entering and leaving outages
  ecn            RED that marks at BDP/6 to BDP/2, instead of a drop-tail queue of one BDP
  jitter=10ms    0 to 10 ms more for each packet; with jitter-law=normal, gamma or log-normal the
                 standard deviation around the delay; with jitter-correlation=100ms in the same
                 way for packets close in time; with the word reorder out of order
  clumps=2ms-8ms packets wait at the end, and every 2 to 8 ms all are released: WiFi
  delay-steps=15s/10ms-60ms  every 15 s another extra delay: satellites
  policer=20mbit/64KiB       what is faster than a token bucket's rate and burst is dropped
  rate=trace:FILE, delay=trace:FILE  recorded: see docs/link-models.md for the formats
  red, buffer=64KiB (or 100p), blackout=10s-15s, mtu=1400B
  reverse.loss=1%  any of these, for the way back alone
  cc=bbr         its own congestion control, last of all: see `anabranch policies congestion`

Without --path: name=sat,rate=20mbit,delay=30ms,loss=2%
                name=lte,rate=12mbit,delay=40ms,loss=5%
                name=wifi,rate=30mbit,delay=5ms,loss=markov:5%/35%@250ms
                each with ecn for profiles that slow down for marks alone, as mplot does

Examples:
  anabranch demo
  anabranch demo --time 5 --json
  anabranch demo --path name=a,rate=10mbit,delay=20ms,loss=30% --path rate=5mbit,delay=80ms,ecn
  anabranch demo --file photo.jpg --profile mplot --ack-loss 5%
  anabranch demo --set scheduler=min-rtt --set congestion=cubic
  anabranch demo --path rate=20mbit,delay=30ms,loss=2%,cc=bbr --path rate=9mbit,delay=5ms
  anabranch demo --record run.jsonl && anabranch why run.jsonl

Exit codes:
  0  every byte arrived intact
  1  not every byte arrived, or a file or socket failed: the reason is on standard error
  2  usage error: unknown option, name or value, or a file that does not exist
  130  interrupted";

/// Options of `demo`.
#[derive(Args, Debug)]
#[command(after_help = DEMO_HELP)]
pub struct DemoArgs {
    /// A path with its emulated link; give it once for every path
    #[arg(long = "path", value_name = "SPEC")]
    pub paths: Vec<DemoPath>,
    /// Send random bytes for this long (default 20 s); with --size or --file, give up after this long
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_hyphen_values = true)]
    pub time: Option<Duration>,
    /// Send this many random bytes, such as 50MB
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true,
        conflicts_with = "file")]
    pub size: Option<DataSize>,
    /// Send this file; what arrives is checked, not stored
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The protocol: see `anabranch profiles`
    #[arg(long, value_name = "NAME", default_value = "anabranch")]
    pub profile: String,
    /// Another policy on one axis of the profile: see `anabranch policies`
    #[arg(long = "set", value_name = "AXIS=POLICY", value_parser = setting)]
    pub settings: Vec<Setting>,
    /// Largest share of unneeded repairs, relative to the data (profiles with a budget)
    #[arg(long, value_name = "PERCENT", value_parser = overhead, allow_hyphen_values = true)]
    pub max_overhead: Option<f64>,
    /// Seed of everything random: links and data
    #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_hyphen_values = true)]
    pub seed: u64,
    /// Loss on the way back, written as for a path
    #[arg(long, value_name = "LOSS", value_parser = loss, allow_hyphen_values = true)]
    pub ack_loss: Option<LossConfig>,
    /// Record the sender's decisions for `anabranch why`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Report as JSON on standard output; progress stays on standard error
    #[arg(long)]
    pub json: bool,
}

const KEYGEN_HELP: &str = "\
Examples:
  anabranch keygen > key && chmod 600 key
  anabranch keygen --out key            only the owner may read it; prints the public key

Exit codes: 0 done, 1 failed, 2 usage error, such as a file that does not exist";

/// Options of `keygen`.
#[derive(Args, Debug)]
#[command(after_help = KEYGEN_HELP)]
pub struct KeygenArgs {
    /// Save the secret key in this file and print the public key
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const GENPSK_HELP: &str = "\
Both machines need the same file: `--preshared-key FILE`, or `preshared-key-file` in a
configuration. It protects traffic recorded today in case the key exchange is broken one day. `wg
genpsk` makes the same.

Examples:
  anabranch genpsk --out laptop.psk     only the owner may read it
  anabranch genpsk | ssh home 'umask 077 && cat > laptop.psk'

Exit codes: 0 done, 1 failed, 2 usage error, such as a file that does not exist";

/// Options of `genpsk`.
#[derive(Args, Debug)]
#[command(after_help = GENPSK_HELP)]
pub struct GenpskArgs {
    /// Save the secret in this file and print nothing
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "out")]
    pub json: bool,
}

const PUBKEY_HELP: &str = "\
Examples:
  anabranch pubkey key
  anabranch keygen | anabranch pubkey

Exit codes: 0 done, 1 failed, 2 usage error, such as a file that does not exist";

/// Options of `pubkey`.
#[derive(Args, Debug)]
#[command(after_help = PUBKEY_HELP)]
pub struct PubkeyArgs {
    /// File with the secret key; standard input if left out or `-`
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const PROFILES_HELP: &str = "\
Examples:
  anabranch profiles
  anabranch profiles --json

Exit codes: 0 done, 1 failed, 2 usage error, such as a file that does not exist";

/// Options of `profiles`.
#[derive(Args, Debug)]
#[command(after_help = PROFILES_HELP)]
pub struct ProfilesArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const POLICIES_HELP: &str = "\
Examples:
  anabranch policies
  anabranch policies scheduler --options
  anabranch demo --set redundancy=mean-sigma:kappa1=1

Exit codes: 0 done, 1 failed, 2 usage error, such as a file that does not exist";

/// Options of `policies`.
#[derive(Args, Debug)]
#[command(after_help = POLICIES_HELP)]
pub struct PoliciesArgs {
    /// Only this axis
    #[arg(value_name = "AXIS", value_parser = Axis::ALL.map(Axis::name))]
    pub axis: Option<String>,
    /// Show each policy's options and source
    #[arg(long)]
    pub options: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const WHY_HELP: &str = "\
Examples:
  anabranch send film.mp4 TICKET --qlog log && anabranch why log/send-*.sqlog
  anabranch demo --record run.jsonl && anabranch why run.jsonl
  anabranch why run.jsonl --events | less

Exit codes: 0 done, 1 failed, 2 usage error, such as a file that does not exist";

/// Options of `why`.
#[derive(Args, Debug)]
#[command(after_help = WHY_HELP)]
pub struct WhyArgs {
    /// A recording made with `demo --record`, or one of the files that --qlog writes
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print every event, one a line, instead of the summary
    #[arg(long)]
    pub events: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `completions`.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct CompletionsArgs {
    /// Which shell
    pub shell: Shell,
}

/// Options of `man`.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub struct ManArgs {
    /// The directory to write them into
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,
}

/// Most bytes that a demo sends.
const MAX_SIZE: u64 = 100_000_000_000;

fn size(text: &str) -> Result<DataSize, String> {
    let size: DataSize = text.parse().map_err(|error: anabranch_types::ParseUnitError| {
        format!("write a number with a unit, such as {}", error.example)
    })?;
    if (1..=MAX_SIZE).contains(&size.as_bytes()) {
        Ok(size)
    } else {
        Err("from 1B to 100GB can be sent".to_owned())
    }
}

/// A share above zero and at most one, in per cent.
fn overhead(text: &str) -> Result<f64, String> {
    let percent = text.trim().ends_with('%');
    let share = percent.then(|| text.parse::<Probability>().ok()).flatten();
    share
        .map(Probability::get)
        .filter(|share| *share > 0.0)
        .ok_or_else(|| "write a percentage above 0% and up to 100%, such as 20%".to_owned())
}

/// A loss as a path spells it.
fn loss(text: &str) -> Result<LossConfig, String> {
    if text.contains(',') {
        return Err("write one loss, such as 5%".to_owned());
    }
    let link: Result<LinkConfig, _> = format!("rate=1mbit,delay=0ms,loss={text}").parse();
    link.map(|link| link.loss).map_err(|error| format!("write {}", error.allowed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_need_a_unit_and_have_bounds() {
        assert_eq!(size("50MB"), Ok(DataSize::from_bytes(50_000_000)));
        for bad in ["", "50", "-1MB", "0B", "101GB", "MB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_and_losses_have_bounds() {
        assert_eq!(overhead("20%"), Ok(0.2));
        for bad in ["20", "0%", "101%", "-1%", "%"] {
            assert!(overhead(bad).is_err(), "{bad}");
        }
        assert!(matches!(loss("5%"), Ok(LossConfig::Bernoulli(_))));
        assert!(matches!(loss("markov:5%/35%@250ms"), Ok(LossConfig::Markov(_))));
        for bad in ["5", "101%", "-1%", "5%,ecn", ""] {
            assert!(loss(bad).is_err(), "{bad}");
        }
    }
}
