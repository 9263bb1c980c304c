//! The command line of `serve` and `connect`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anabranch::PublicKey;
use anabranch_forward::{Dynamic, Forward, Permit, Place, Target, UdpForward};
use clap::Args;

use crate::insight::InsightArgs;
use crate::paths::PathArg;
use crate::values::{Listening, Memory, Reached, public_key};

const EXIT_CODES: &str = "
Exit codes: 0 ended on request, 1 failed, 2 usage error, such as a file that does not exist, 3
nobody answered or the connection was lost";

const SERVE_HELP: &str = "\
Peers may reach this machine's loopback addresses by TCP unless --permit says otherwise. They may have it
listen, and send UDP datagrams, only where --permit-listen and --permit-udp say. The file given with
--config can hold most of these settings; options override it, except for a peer's own permits.

Examples:
  anabranch keygen --out server.key
  anabranch serve --listen 0.0.0.0:4433 --key server.key --allow 0gVqE…Yw0=
  anabranch serve --config /etc/anabranch/serve.toml
  anabranch serve … --permit db.internal:5432 --permit loopback --metrics 127.0.0.1:9469
  anabranch serve … --permit-udp localhost:53
  anabranch serve … --listen 0.0.0.0 --announce 203.0.113.9 --announce 198.51.100.7     # two uplinks
  anabranch serve … --permit /run/postgresql/.s.PGSQL.5432 --permit '/run/app/*'

The file:
  [interface]
  private-key-file = \"server.key\"
  listen = [\"0.0.0.0:4433\"]
  metrics = \"127.0.0.1:9469\"
  max-forwarded = 1000
  [[peer]]
  public-key = \"0gVqE…Yw0=\"
  preshared-key-file = \"laptop.psk\"
  permit = [\"loopback\", \"db.internal:5432\", \"/run/app.sock\"]
  permit-listen = [\"127.0.0.1:2222\"]
  permit-udp = [\"localhost:53\"]
";

const CONNECT_HELP: &str = "\
A path is an interface or an address of this machine, whether or not it is there yet; @HOST:PORT
gives it a destination of its own. Without --path every interface is used that leads to the peer.
`backup` and `metered` paths take over when the others fail; `metered` ones send nothing before.

Examples:
  anabranch connect home.example:4433 --peer hSDwCY…qTbmo= --key laptop.key -L 5432:db:5432
  anabranch connect … --path wlan0 --path wwan0,metered -L 8080:localhost:80 -R 2222:localhost:22
  anabranch connect … -D 1080     # and then: curl --socks5-hostname localhost:1080 http://intranet/
  anabranch connect … -L 8080:/run/app.sock -L ./db.sock:db:5432     # Unix sockets
  anabranch connect … -U 5353:localhost:53     # and then: dig -p 5353 @127.0.0.1 intranet
  anabranch connect … -U 5060:pbx.example:5060,class=interactive     # calls go first
  ssh -o ProxyCommand='anabranch connect HOST:4433 --peer … --key … --stdio localhost:22' home
  anabranch connect --config /etc/anabranch/home.toml

The file:
  [interface]
  private-key-file = \"laptop.key\"
  [[peer]]
  public-key = \"hSDwCY…qTbmo=\"
  preshared-key-file = \"laptop.psk\"
  endpoint = \"home.example:4433\"
  persistent-keepalive = 15
  local-forward = [\"5432:db:5432\"]
  dynamic-forward = [\"1080\"]
  udp-forward = [\"5353:localhost:53\"]
  [[path]]
  local = \"wwan0\"
  usage = \"metered\"
  congestion = \"bbr\"
";

fn help(text: &str) -> String {
    format!("{text}{EXIT_CODES}")
}

/// Options of `serve`.
#[derive(Args, Clone, Debug)]
#[command(after_help = help(SERVE_HELP))]
pub struct ServeArgs {
    /// Listen on this address and port, 4433 unless named; once for each
    #[arg(long, value_name = "ADDR[:PORT]")]
    pub listen: Vec<Listening>,
    /// Tell clients that this server is reached at this address, too, port 4433 unless named; once for each, 16 at most.
    /// They look for it there when the address that they know falls silent
    #[arg(long, value_name = "ADDR[:PORT]")]
    pub announce: Vec<Reached>,
    /// Public key of a peer that may connect; once for each
    #[arg(long, value_name = "PUBKEY", value_parser = public_key)]
    pub allow: Vec<PublicKey>,
    /// Where peers' forwards (-L, -D) may lead: loopback, any, none, HOST:PORT, HOST:*, or the path of a Unix socket
    /// or DIRECTORY/*, which loopback and any do not cover [default: loopback]
    #[arg(long, value_name = "WHERE")]
    pub permit: Vec<Permit>,
    /// Where peers may have this side listen (-R): the same, loopback without ports below 1024 [default: none]
    #[arg(long, value_name = "WHERE")]
    pub permit_listen: Vec<Permit>,
    /// Where peers' UDP datagrams (-U, -D) may be sent: loopback, any, none, HOST:PORT or HOST:* [default: none]
    #[arg(long, value_name = "WHERE")]
    pub permit_udp: Vec<Permit>,
    /// Once the sockets are bound, become this user (only if started as root; else it is an error)
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Options of `connect`.
#[derive(Args, Clone, Debug)]
#[command(after_help = help(CONNECT_HELP))]
pub struct ConnectArgs {
    /// The peer's address and port
    #[arg(value_name = "HOST:PORT")]
    pub to: Option<Target>,
    /// The peer's public key
    #[arg(long, value_name = "PUBKEY", value_parser = public_key)]
    pub peer: Option<PublicKey>,
    /// An interface or address to use, once for each path
    #[arg(long = "path", value_name = "LOCAL[@REMOTE][,name=NAME][,backup|,metered][,cc=POLICY]")]
    pub paths: Vec<PathArg>,
    /// Accept TCP connections here and carry them to a host and port beyond the peer. On either side a Unix socket may
    /// stand instead: a path with a / or ending in .sock
    #[arg(short = 'L', value_name = "[BIND:]PORT:HOST:PORT")]
    pub local: Vec<Forward>,
    /// Have the peer accept TCP connections, and carry them to a host and port from here; Unix sockets as for -L
    #[arg(short = 'R', value_name = "[BIND:]PORT:HOST:PORT")]
    pub remote: Vec<Forward>,
    /// Accept SOCKS5 clients here, and carry each connection, or each datagram (UDP ASSOCIATE), to the host and port
    /// beyond the peer that its client asks for; names are resolved there
    #[arg(short = 'D', value_name = "[BIND:]PORT")]
    pub dynamic: Vec<Dynamic>,
    /// Accept UDP datagrams here and carry them to a host and port beyond the peer, and its answers back. Of the class
    /// `interactive` or `live` they go before the other traffic, and repairs are sent along where packets are lost
    #[arg(short = 'U', value_name = "[BIND:]PORT:HOST:PORT[,class=CLASS]")]
    pub udp: Vec<UdpForward>,
    /// Carry standard input and output to a host and port, or a Unix socket, beyond the peer, then end
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["local", "remote", "dynamic", "udp"])]
    pub stdio: Option<Place>,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Options of both.
#[derive(Args, Clone, Debug)]
pub struct CommonArgs {
    /// File with this machine's secret key, as `anabranch keygen --out FILE` makes it
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// File with a secret that is shared with the peer beside the keys, as `anabranch genpsk --out FILE` and `wg
    /// genpsk` make it; with `serve`, by all peers that --allow names
    #[arg(long, value_name = "FILE")]
    pub preshared_key: Option<PathBuf>,
    /// Read the file's settings first, and again on SIGHUP (`kill -HUP`, `systemctl reload`)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Interval of keepalives on an idle path, so that NATs keep its mapping; 0 for none [default: 15]
    #[arg(long, value_name = "SECONDS")]
    pub persistent_keepalive: Option<u16>,
    /// Most TCP connections that each peer may have open through this side at a time; more have to wait. Each
    /// takes memory where it is slow, 0.8 MB at most [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_forwarded: Option<u16>,
    /// Most memory of all connections with peers together, half of it for those with a single one [default: 1GB]
    #[arg(long, value_name = "SIZE")]
    pub max_memory: Option<Memory>,
    /// Serve metrics for Prometheus on this address, under /metrics
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<SocketAddr>,
    /// The protocol: see `anabranch profiles`
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    #[command(flatten)]
    pub insight: InsightArgs,
    /// Write events as JSON lines on standard output
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}
