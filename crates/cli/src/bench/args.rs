//! The command line of `bench`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anabranch::PublicKey;
use anabranch_types::{Bitrate, DataSize};
use clap::{Args, Subcommand};

use super::codes::args::CodesArgs;
use super::protocol::{MAX_OMIT, MAX_STREAMS};
use crate::insight::InsightArgs;
use crate::paths::PathArg;
use crate::values::{MAX_TIME, MIN_TIME, Setting, duration, public_key, rate, setting, time};

/// Measure the throughput of a connection, as iperf3 does, or the erasure codes
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Which side.
    #[command(subcommand)]
    pub side: Side,
}

/// The sides of a measurement, and what needs none.
#[derive(Debug, Subcommand)]
pub enum Side {
    /// Wait for clients and do what they ask
    Server(ServerArgs),
    /// Ask a server for a measurement, or run both sides here with --loopback
    Client(ClientArgs),
    /// Measure the erasure codes: speed, symbols needed, delay and memory
    Codes(CodesArgs),
}

const SERVER_HELP: &str = "\
Examples:
  anabranch bench server --anyone
  anabranch bench server --listen 0.0.0.0:4433 --key key --allow 0gVqE…Yw0=

The public key that clients need for --peer is printed on standard error.

Exit codes: 0 done, 1 failed, 2 usage error";

/// Options of `bench server`.
#[derive(Args, Debug)]
#[command(after_help = SERVER_HELP)]
pub struct ServerArgs {
    /// Address to listen on; give it once for every address
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:4433", value_parser = address)]
    pub listen: Vec<SocketAddr>,
    /// File with the secret key; a new one for this run if left out
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Public key of a client that may connect; give it once for every client
    #[arg(long, value_name = "PUBKEY", value_parser = public_key)]
    pub allow: Vec<PublicKey>,
    /// File with a secret that is shared with the clients of --allow beside the keys, as `anabranch genpsk --out FILE` and `wg
    /// genpsk` make it
    #[arg(long, value_name = "FILE", conflicts_with = "anyone")]
    pub preshared_key: Option<PathBuf>,
    /// Let anyone connect who knows the public key
    #[arg(long, conflicts_with = "allow")]
    pub anyone: bool,
    /// End after one measurement
    #[arg(long)]
    pub once: bool,
    /// The protocol of what this side sends: `anabranch profiles`
    #[arg(long, value_name = "NAME", default_value = "anabranch")]
    pub profile: String,
    /// Another policy on one axis of the profile: see `anabranch policies`
    #[arg(long = "set", value_name = "AXIS=POLICY", value_parser = setting)]
    pub settings: Vec<Setting>,
    #[command(flatten)]
    pub insight: InsightArgs,
    /// Largest UDP payload, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1452,
        value_parser = clap::value_parser!(u16).range(1200..=65_507))]
    pub payload: u16,
}

const CLIENT_HELP: &str = "\
With --udp the data are datagrams, delivered at most once and in no order. They are coded and held to
what the paths carry, unlike those of iperf3: what is lost is what no repair brought back.

With --latency, messages of 64 bytes go there and back ten times a second, on a stream of the class
`interactive`, for a second before the data and while they flow. Round trips per minute are 60 s over
the mean of all but the slowest 5 %, as in draft-ietf-ippm-responsiveness; these correspond
to its probes on the load-generating connection.

Examples:
  anabranch bench client --loopback
  anabranch bench client --loopback --set redundancy=fixed:share=0.05 --bytes 2GB
  anabranch bench client nas.example:4433 --peer hSDwCY…qTbmo= --path wlan0 --path wwan0 --time 20
  anabranch bench client 192.0.2.1:4433 --peer hSDwCY…qTbmo= --reverse --json
  anabranch bench client 192.0.2.1:4433 --peer hSDwCY…qTbmo= --omit 2 --latency
  anabranch bench client 192.0.2.1:4433 --peer hSDwCY…qTbmo= --udp --bitrate 5mbit

Exit codes: 0 done, 1 failed, 2 usage error, 3 the server does not answer or has no time";

/// Options of `bench client`.
#[derive(Args, Debug)]
#[command(after_help = CLIENT_HELP)]
pub struct ClientArgs {
    /// Where the server listens
    #[arg(value_name = "HOST:PORT", required_unless_present = "loopback")]
    pub to: Option<String>,
    /// The server's public key
    #[arg(long, value_name = "PUBKEY", value_parser = public_key, required_unless_present = "loopback")]
    pub peer: Option<PublicKey>,
    /// File with the secret key; a new one for this run if left out
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// File with a secret that is shared with the server beside the keys, as `anabranch genpsk --out FILE` and `wg
    /// genpsk` make it
    #[arg(long, value_name = "FILE", requires = "peer")]
    pub preshared_key: Option<PathBuf>,
    /// An interface or address to use, once for each path; @HOST:PORT for its own destination
    #[arg(long = "path", value_name = "LOCAL[@REMOTE][,name=NAME][,backup|,metered][,cc=POLICY]")]
    pub paths: Vec<PathArg>,
    /// Both sides in this process, over the loopback interface
    #[arg(long, conflicts_with_all = ["to", "peer", "key", "paths", "preshared_key"])]
    pub loopback: bool,
    /// Send for this long (default 10 s)
    #[arg(long, short = 't', value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    pub time: Option<Duration>,
    /// Send this many bytes in each direction instead, such as 500MB
    #[arg(long, short = 'n', value_name = "SIZE", conflicts_with = "time")]
    pub bytes: Option<DataSize>,
    /// The server sends
    #[arg(long, short = 'R', conflicts_with = "bidir")]
    pub reverse: bool,
    /// Both sides send
    #[arg(long)]
    pub bidir: bool,
    /// Highest rate in each direction, such as 20mbit
    #[arg(long, short, value_name = "RATE", value_parser = rate)]
    pub bitrate: Option<Bitrate>,
    /// Send datagrams, as `iperf3 -u` does: tells how many are lost or late, and the jitter
    #[arg(long, short)]
    pub udp: bool,
    /// Leave the first seconds, in which the connection finds its rate, out of the results; sending lasts this much longer
    #[arg(long, short = 'O', value_name = "SECONDS", value_parser = omit, conflicts_with = "bytes",
        allow_negative_numbers = true)]
    pub omit: Option<Duration>,
    /// Measure how long small messages take, before and while data is sent
    #[arg(long)]
    pub latency: bool,
    /// Streams of the connection
    #[arg(long, short = 'P', value_name = "STREAMS", default_value_t = 1, conflicts_with = "udp",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_STREAMS)))]
    pub parallel: u16,
    /// Time between reports; 0 reports at the end only
    #[arg(long, short = 'i', value_name = "SECONDS", default_value = "1", value_parser = interval,
        allow_negative_numbers = true)]
    pub interval: Duration,
    /// The protocol of what this side sends, and with --loopback of the other: `anabranch profiles`
    #[arg(long, value_name = "NAME", default_value = "anabranch")]
    pub profile: String,
    /// Another policy on one axis of the profile: see `anabranch policies`
    #[arg(long = "set", value_name = "AXIS=POLICY", value_parser = setting)]
    pub settings: Vec<Setting>,
    #[command(flatten)]
    pub insight: InsightArgs,
    /// Largest UDP payload, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1452,
        value_parser = clap::value_parser!(u16).range(1200..=65_507))]
    pub payload: u16,
    /// Print JSON, arranged as iperf3's
    #[arg(long, short = 'J')]
    pub json: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write ADDRESS:PORT, such as 0.0.0.0:4433 or [::]:4433".to_owned())
}

fn omit(text: &str) -> Result<Duration, String> {
    let most = MAX_OMIT.as_secs();
    duration(text)
        .filter(|time| *time <= MAX_OMIT)
        .ok_or_else(|| format!("write seconds from 0 to {most}, such as 2 or 500ms"))
}

fn interval(text: &str) -> Result<Duration, String> {
    duration(text)
        .filter(|time| time.is_zero() || (MIN_TIME..=MAX_TIME).contains(time))
        .ok_or_else(|| "write 0, or seconds from 0.1 to 3600, such as 1 or 500ms".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_bounds() {
        assert_eq!(time("20"), Ok(Duration::from_secs(20)));
        assert_eq!(interval("0"), Ok(Duration::ZERO));
        assert_eq!(interval("500ms"), Ok(Duration::from_millis(500)));
        for bad in ["", "0", "-1", "3601", "NaN", "soon"] {
            assert!(time(bad).is_err(), "{bad}");
        }
        assert!(interval("0.001").is_err());
        assert_eq!((omit("0"), omit("2.5")), (Ok(Duration::ZERO), Ok(Duration::from_millis(2500))));
        for bad in ["", "-1", "61", "NaN"] {
            assert!(omit(bad).is_err(), "{bad}");
        }
    }
}
