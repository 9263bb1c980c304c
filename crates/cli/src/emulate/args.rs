//! Options of `emulate`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anabranch_emulate::PathConfig;
use anabranch_types::parse_duration;
use clap::Args;

const HELP: &str = "\
A scenario is one of `anabranch sim`, or only the [[path]] and [[link]] tables of one: docs/scenarios.md
lists their keys. --path writes a path as `anabranch demo --help` explains.

Path number n, from 1, is 10.77.n.1 and fd77:0:0:n::1 at the client, 10.77.n.2 and fd77:0:0:n::2 at
the server; its interfaces have the name of the path. What a program sends from an address of the
client takes the path of that address. The namespaces have no other interfaces but loopback, and end
with the command.

Examples:
  anabranch emulate --path name=lte,rate=12mbit,delay=40ms,loss=1% -- ping -c 3 10.77.1.2
  anabranch emulate links.toml --server 'iperf3 -s -1' --client 'sleep 1; iperf3 -c 10.77.1.2'
  anabranch emulate links.toml --server 'python3 -m http.server' --shell
  anabranch emulate links.toml --set path.lte.loss=3% --pcap lte=lte.pcapng -- ./my-client 10.77.1.2

Exit codes:
  that of the client's command, or of the server's if there is no other, if it was run; otherwise
  1  the links could not be emulated: the reason is on standard error
  2  usage error: unknown option, a file that does not exist, a mistake in the scenario";

/// Options of `emulate`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct EmulateArgs {
    /// The scenario whose links are emulated
    #[arg(value_name = "SCENARIO", required_unless_present = "paths")]
    pub scenario: Option<PathBuf>,
    /// A path instead of a scenario; give it once for every path
    #[arg(long = "path", value_name = "SPEC", conflicts_with_all = ["scenario", "settings"])]
    pub paths: Vec<PathConfig>,
    /// Another value for a key of the scenario, such as path.lte.loss=3%
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Seed of the links' random draws
    #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_hyphen_values = true)]
    pub seed: u64,
    /// Run this at the client, by sh -c
    #[arg(long, value_name = "COMMAND", conflicts_with = "command")]
    pub client: Option<String>,
    /// Run this at the server, by sh -c; it is ended after the client
    #[arg(long, value_name = "COMMAND")]
    pub server: Option<String>,
    /// Open a shell at the client: $SHELL, or sh
    #[arg(long, conflicts_with_all = ["client", "command"])]
    pub shell: bool,
    /// Write what leaves this link into this file, for Wireshark; the way back of link a is a.reverse
    #[arg(long = "pcap", value_name = "LINK=FILE", value_parser = pcap)]
    pub captures: Vec<(String, PathBuf)>,
    /// Largest lateness: results are unusable if 1 % of packets were sent on later than this after they were due
    #[arg(long, value_name = "DURATION", default_value = "100us", value_parser = late)]
    pub late: Duration,
    /// Show no statistics of the links, so that the commands have the terminal to themselves
    #[arg(long, short)]
    pub quiet: bool,
    /// Report as JSON on standard output; what the commands print goes to standard error
    #[arg(long)]
    pub json: bool,
    /// Run this at the client
    #[arg(value_name = "COMMAND", last = true,
        required_unless_present_any = ["client", "server", "shell"])]
    pub command: Vec<OsString>,
}

fn late(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .map_err(|error| format!("write a time with a unit, such as {}", error.example))
}

fn pcap(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((link, file)) if !link.is_empty() && !file.is_empty() => {
            Ok((link.to_owned(), PathBuf::from(file)))
        }
        _ => Err("write LINK=FILE, such as lte=lte.pcapng".to_owned()),
    }
}

/// What `emulate` starts in a namespace.
#[derive(Args, Debug)]
pub struct InsideArgs {
    /// The command and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub command: Vec<OsString>,
}
