//! The command line of `doctor`.

use std::path::PathBuf;

use anabranch::PublicKey;
use clap::Args;

use crate::paths::PathArg;
use crate::values::public_key;

const HELP: &str = "\
Without a peer it looks at this machine only. With one it connects over every usable link, each by
itself, sends some small packets and reports their fate. The peer only has to allow the key:
`anabranch serve`, `recv` with --allow, or `bench server`; but none with --once, as the first
connection would be this one.

Examples:
  anabranch doctor
  anabranch doctor home.example:4433 --peer hSDwCY…qTbmo= --key laptop.key
  anabranch doctor home.example:4433 --peer hSDwCY…qTbmo= --key laptop.key --path wwan0 --load
  anabranch doctor home.example:4433 --peer hSDwCY…qTbmo= --load --trace recorded --time 60
  anabranch doctor --json | jq '.findings[] | select(.severity == \"problem\")'

Exit codes:
  0  nothing is wrong; there may be notes
  1  there is a problem, or the examination failed
  2  usage error: unknown option, name or value
  3  the peer did not answer over any link";

/// Options of `doctor`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct DoctorArgs {
    /// A peer to examine the links to
    #[arg(value_name = "HOST:PORT", requires = "peer")]
    pub to: Option<String>,
    /// The peer's public key
    #[arg(long, value_name = "PUBKEY", value_parser = public_key, requires = "to")]
    pub peer: Option<PublicKey>,
    /// File with this machine's secret key; a new one for this run if left out
    #[arg(long, value_name = "FILE", requires = "to")]
    pub key: Option<PathBuf>,
    /// An interface or address to examine, once for each; @HOST:PORT for its own destination
    #[arg(long = "path", value_name = "LOCAL[@REMOTE]", requires = "to")]
    pub paths: Vec<PathArg>,
    /// Packets to send over each link
    #[arg(long, value_name = "COUNT", default_value_t = 200, requires = "to",
        value_parser = clap::value_parser!(u16).range(20..=10_000))]
    pub pings: u16,
    /// Then fill each link in turn for three seconds; this uses as much data as the link carries
    #[arg(long, requires = "to")]
    pub load: bool,
    /// Then fill all links at once, and write what each carried, how long packets took and how many
    /// were lost, over time, into this directory, as a scenario
    #[arg(long, value_name = "DIR", requires = "load")]
    pub trace: Option<PathBuf>,
    /// Record for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "trace",
        value_parser = clap::value_parser!(u64).range(10..=3_600))]
    pub time: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
