//! The command line of `send`, `recv` and `get`.

use std::path::PathBuf;
use std::time::Duration;

use anabranch::PublicKey;
use anabranch_types::{Bitrate, parse_duration};
use clap::Args;

use super::pick::glob;
use crate::insight::InsightArgs;
use crate::paths::PathArg;
use crate::values::{public_key, rate};

const EXIT_CODES: &str = "
Exit codes:
  0  every file is in its place, its checksum verified
  1  failed, or something was not sent: the reason is on standard error
  2  usage error: unknown option, name or value
  3  nobody answered, or the connection was lost: the same command again continues
     where this one stopped
  130  interrupted: the same command again continues where this one stopped";

const SEND_HELP: &str = "\
With a ticket that `anabranch recv` printed on the other machine, nothing else is needed. Without
one, --to, --peer and --key name the other machine; or, with neither, this side waits to be asked
and prints a ticket for `anabranch get`.

A path is an interface or an address of this machine; @HOST:PORT gives it a destination of its own.
Without --path every usable interface is used that has a route to the peer. `backup` and `metered`
paths are used when the others do not carry the load; `cc=POLICY` at the end gives a path a
congestion control of its own, one of `anabranch policies congestion`.

--exclude takes patterns as lines of a .gitignore beside what is named: `*.tmp` leaves out such names
at any depth, `cache/` directories of that name, `/photos/raw` and `photos/raw` that one alone, and
`!keep.tmp` includes again what an earlier one excluded. What is excluded is neither read nor
reported.

A symbolic link that is named on the command line is followed. Others are sent with --links, as links,
if what they lead to is sent too. What is not sent otherwise (a link, a device, a pipe) is told on
standard error, and the exit code is 1 when all else has arrived.

Examples:
  anabranch send photos/ film.mp4 anabranch1Af…     to whoever made the ticket
  anabranch send film.mp4                           prints a ticket for `anabranch get`
  tar c src | anabranch send - --name src.tar anabranch1Af…
  anabranch send film.mp4 --to nas.example:4433 --peer hSDwCY…qTbmo= --key ~/.anabranch/key
  anabranch send site/ --links --exclude '*.tmp' --exclude /site/cache --dry-run
  anabranch send site/ --links --bwlimit 20mbit anabranch1Af…
  anabranch send film.mp4 … --path wlan0 --path wwan0,metered --path 10.0.0.7@10.0.0.1:4433
  anabranch send shared/ --listen 0.0.0.0:4433 --key key --allow 0gVqE…Yw0=
";

const RECV_HELP: &str = "\
Without arguments: listens on every usable address and prints a ticket, good for one transfer with
`anabranch send FILE TICKET` on another machine. With --key and --allow: receives from those peers
until interrupted, or once with --once.

On a terminal it shows what is offered, and asks. Elsewhere, or with --yes, it takes plain files
without a question. Names that begin with a dot need --allow-hidden, replacing needs --overwrite,
and without --yes no file is executable.

A file gets its name when it is complete and its checksum holds; until then it is in a file
`.anabranch-….part` beside, from which the same command later continues.

Examples:
  anabranch recv
  anabranch recv --out incoming --expires 10m
  anabranch recv --out - | tar x
  anabranch recv --listen 0.0.0.0:4433 --key key --allow 0gVqE…Yw0= --out incoming --yes
";

const GET_HELP: &str = "\
Names are those that the other side offers; without any, all of it is fetched. On a terminal it
asks first, unless plain files were named or --yes is given; `anabranch recv --help` has the rules.

Examples:
  anabranch get anabranch1AP…
  anabranch get --from nas.example:4433 --peer hSDwCY…qTbmo= --key key --path wlan0 --path wwan0
  anabranch get --from nas.example:4433 --peer hSDwCY…qTbmo= --key key shared/film.mp4 --out -
";

fn help(text: &str) -> String {
    format!("{text}{EXIT_CODES}")
}

/// Options of `send`.
#[derive(Args, Debug)]
#[command(after_help = help(SEND_HELP))]
pub struct SendArgs {
    /// Files and directories to send, `-` for standard input, and at the end a ticket if there is one
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<String>,
    /// Send to this machine
    #[arg(long, value_name = "HOST:PORT", requires_all = ["peer", "key"], conflicts_with = "listen")]
    pub to: Option<String>,
    /// Name of standard input at the other end
    #[arg(long, value_name = "NAME", default_value = "stdin")]
    pub name: String,
    /// Leave out what matches this pattern, as .gitignore has them; once for each
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    pub exclude: Vec<String>,
    /// Send symbolic links as such, if what they lead to is sent too
    #[arg(long, short)]
    pub links: bool,
    /// Highest rate of the files' bytes, such as 20mbit; headers and repairs come on top
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub bwlimit: Option<Bitrate>,
    /// Only list what would be sent
    #[arg(long, short = 'n')]
    pub dry_run: bool,
    /// How to connect.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// How to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// What all of them have.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Options of `recv`.
#[derive(Args, Debug)]
#[command(after_help = help(RECV_HELP))]
pub struct RecvArgs {
    /// How to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Where files are put.
    #[command(flatten)]
    pub store: StoreArgs,
    /// What all of them have.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Options of `get`.
#[derive(Args, Debug)]
#[command(after_help = help(GET_HELP))]
pub struct GetArgs {
    /// A ticket, if there is one, and what to fetch
    #[arg(value_name = "TICKET|NAME")]
    pub names: Vec<String>,
    /// Fetch from this machine
    #[arg(long, value_name = "HOST:PORT", requires_all = ["peer", "key"])]
    pub from: Option<String>,
    /// How to connect.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// File with this machine's secret key
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Where files are put.
    #[command(flatten)]
    pub store: StoreArgs,
    /// What all of them have.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Options of the side that connects.
#[derive(Args, Clone, Debug)]
pub struct ConnectArgs {
    /// The other machine's public key
    #[arg(long, value_name = "PUBKEY", value_parser = public_key)]
    pub peer: Option<PublicKey>,
    /// An interface or address to use, once for each path; @HOST:PORT for its own destination
    #[arg(long = "path", value_name = "LOCAL[@REMOTE][,name=NAME][,backup|,metered][,cc=POLICY]")]
    pub paths: Vec<PathArg>,
    /// How long to keep reconnecting without a new byte after the connection is lost [default: 5m, and
    /// with a ticket until it expires]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub patience: Option<Duration>,
}

/// Options of the side that listens.
#[derive(Args, Clone, Debug)]
pub struct ListenArgs {
    /// Listen on this address or interface, with or without a port; once for each
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// File with this machine's secret key, as `anabranch keygen --out FILE` makes it
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Public key of a peer that may connect; once for each
    #[arg(long, value_name = "PUBKEY", value_parser = public_key, requires = "key")]
    pub allow: Vec<PublicKey>,
    /// End after one transfer, as with a ticket
    #[arg(long, requires = "allow")]
    pub once: bool,
    /// Make a new ticket even if one that the same command made before is still valid
    #[arg(long, conflicts_with = "allow")]
    pub new_ticket: bool,
    /// How long a ticket is valid
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1h")]
    pub expires: Duration,
}

/// Options of the side that stores.
#[derive(Args, Clone, Debug)]
pub struct StoreArgs {
    /// Put what arrives into this directory; `-` writes a single file to standard output
    /// [default: anabranch-received in the present directory]
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Do not ask: accept what is offered and keep execute permissions; the options below are still needed for what
    /// they allow
    #[arg(long, short)]
    pub yes: bool,
    /// Take names that begin with a dot
    #[arg(long)]
    pub allow_hidden: bool,
    /// Replace files that exist and differ
    #[arg(long)]
    pub overwrite: bool,
}

/// Options of all three.
#[derive(Args, Clone, Debug)]
pub struct CommonArgs {
    /// File with a secret that is shared with the peers of --peer or --allow beside the keys, as `anabranch genpsk
    /// --out FILE` and `wg genpsk` make it
    #[arg(long, value_name = "FILE")]
    pub preshared_key: Option<PathBuf>,
    /// The protocol: see `anabranch profiles`
    #[arg(long, value_name = "NAME", default_value = "anabranch")]
    pub profile: String,
    /// Idle timeout: silence after which the connection is lost, or the other side does not answer
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    pub timeout: Duration,
    #[command(flatten)]
    pub insight: InsightArgs,
    /// Write events and progress as JSON lines on standard output; progress stays on standard error too
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Longest time that can be given: a week.
const MAX_TIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Shortest time that can be given.
const MIN_TIME: Duration = Duration::from_secs(1);

/// Seconds without a unit, or a duration with one.
fn time(text: &str) -> Result<Duration, String> {
    let bare = text.parse::<u64>().ok().map(Duration::from_secs);
    bare.or_else(|| parse_duration(text).ok())
        .filter(|time| (MIN_TIME..=MAX_TIME).contains(time))
        .ok_or_else(|| "write a time from 1s to 168h, such as 90s, 10m or 2h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_bounds() {
        assert_eq!(time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(time("168h"), Ok(MAX_TIME));
        for bad in ["", "0", "-1", "500ms", "169h", "1 year", "NaN", "99999999999999999999"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
