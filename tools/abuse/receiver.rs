//! The receiver: a process of its own, so that its memory can be measured alone.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch::{
    Config, Endpoint, Permitted, Profile, PublicKey, RecvStream, SecretKey, SendStream,
    TransportConfig,
};
use anabranch_transfer::{Frame, Header, Manifest, Preface};

use crate::Failure;

/// The argument that makes this program a receiver. The next ones are the keys that it permits; the first belongs to
/// the sender whose bytes are counted.
pub const ROLE: &str = "--receiver";

/// Bytes read at a time.
const PIECE: usize = 128 << 10;
/// The first byte of a stream that asks for a download, and the length of the download in bytes.
pub const DOWNLOAD: u8 = b'd';
const DOWNLOADED: usize = 256 << 10;

/// A receiver that runs.
pub struct Receiver {
    /// Public key of the receiver.
    pub key: PublicKey,
    /// Where the receiver listens.
    pub address: SocketAddr,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// The state of a receiver's process.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// Application bytes read so far.
    pub read: u64,
    /// Connections that were opened and accepted so far.
    pub accepted: u64,
    /// Memory in RAM, kB.
    pub resident: u64,
    /// Processor time, seconds.
    pub processor: f64,
}

impl Receiver {
    /// Starts one that serves the holders of these keys.
    pub fn start(permitted: &[PublicKey]) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(ROLE)
            .args(permitted.iter().map(PublicKey::to_string))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("the receiver has no input")?;
        let output = child.stdout.take().ok_or("the receiver has no output")?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let (address, key) = line.trim().split_once(' ').ok_or("the receiver did not start")?;
        let (address, key) = (address.parse()?, key.parse::<PublicKey>()?);
        Ok(Receiver { key, address, child, input, output })
    }

    /// Asks the process for its state.
    pub fn ask(&mut self) -> Result<State, Failure> {
        writeln!(self.input)?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let (read, accepted) = line.trim().split_once(' ').ok_or("the receiver has ended")?;
        let (resident, processor) = of_process(self.child.id())?;
        Ok(State { read: read.parse()?, accepted: accepted.parse()?, resident, processor })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Memory in RAM (kB) and processor time (s) of a process, as Linux tells.
fn of_process(id: u32) -> Result<(u64, f64), Failure> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("no VmRSS")?;
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    // Fields 14 and 15, in hundredths of a second; the name in field 2 may hold blanks.
    let fields = stat.rsplit_once(')').ok_or("no name")?.1;
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>).sum();
    Ok((resident.trim().parse()?, ticks as f64 / 100.0))
}

/// Limits of the receiver's connections: what a server can spare for each of many peers.
fn limits() -> TransportConfig {
    let mut limits =
        TransportConfig { receive_symbols: 2048, send_symbols: 2048, ..TransportConfig::default() };
    limits.streams.max_data = 4 << 20;
    limits.streams.max_stream_data = 2 << 20;
    limits
}

/// The most memory, in bytes, that the connections of one peer take; one peer may have half of all connections.
pub fn most_memory() -> u64 {
    limits().most_memory(0) * (CONNECTIONS as u64 / 2)
}

/// Most connections at a time.
const CONNECTIONS: usize = 64;

/// The receiver's process.
pub fn serve(permitted: impl Iterator<Item = String>) -> Result<(), Failure> {
    let permitted: Result<Vec<PublicKey>, _> =
        permitted.map(|text| text.parse::<PublicKey>()).collect();
    let counts: Arc<[AtomicU64; 2]> = Arc::default();
    let shown = Arc::clone(&counts);
    std::thread::spawn(move || {
        for _ in std::io::stdin().lines() {
            let [read, accepted] = [0, 1].map(|index: usize| shown[index].load(Ordering::Relaxed));
            println!("{read} {accepted}");
        }
        std::process::exit(0);
    });
    // `anabranch serve` has as many threads.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(receive(permitted?, counts))
}

async fn receive(permitted: Vec<PublicKey>, counts: Arc<[AtomicU64; 2]>) -> Result<(), Failure> {
    let sender = *permitted.first().ok_or("no key of the sender")?;
    let profile = Profile::named("anabranch").ok_or("the default profile is missing")?;
    let mut config = Config::new(SecretKey::generate()?);
    config.profile = profile;
    config.permitted = Permitted::Only(permitted.into_iter().collect());
    config.transport = limits();
    config.max_connections = CONNECTIONS;
    let endpoint = Endpoint::bind(config, [SocketAddr::from((Ipv4Addr::LOCALHOST, 0))])?;
    let address = *endpoint.local_addrs().first().ok_or("no socket")?;
    println!("{address} {}", endpoint.public_key());
    while let Some(incoming) = endpoint.accept().await {
        let counts = Arc::clone(&counts);
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            counts[1].fetch_add(1, Ordering::Relaxed);
            let counts = (connection.peer() == sender).then_some(counts);
            while let Ok((back, stream)) = connection.accept_bi().await {
                match counts.clone() {
                    Some(counts) => tokio::spawn(count(stream, counts)),
                    None => tokio::spawn(serve_stream(stream, back)),
                };
            }
        });
    }
    Ok(())
}

async fn count(mut stream: RecvStream, counts: Arc<[AtomicU64; 2]>) {
    let mut piece = vec![0; PIECE];
    while let Ok(Some(count)) = stream.read(&mut piece).await {
        counts[0].fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// Serves a stream of another peer: an offer of files, read as `recv` does, a request for a download, or bytes that are
/// discarded.
async fn serve_stream(mut stream: RecvStream, mut back: SendStream) {
    let (mut piece, mut offer) = (vec![0; PIECE], Some(Offer::default()));
    let mut is_first = true;
    while let Ok(Some(count)) = stream.read(&mut piece).await {
        let read = &piece[..count];
        if core::mem::take(&mut is_first) && read.first() == Some(&DOWNLOAD) {
            // The download ends when the peer goes.
            let _ = back.write_all(&[7; DOWNLOADED]).await;
        }
        offer = offer.and_then(|offer| offer.with(read));
    }
}

/// The part of an offer read so far.
#[derive(Default)]
struct Offer {
    begun: bool,
    unread: Vec<u8>,
    manifest: Manifest,
}

impl Offer {
    /// The offer with further bytes; `None` if the bytes are no offer, or the offer is complete.
    fn with(mut self, bytes: &[u8]) -> Option<Self> {
        self.unread.extend_from_slice(bytes);
        let mut rest = &self.unread[..];
        if !self.begun {
            let Some((preface, after)) = rest.split_first_chunk() else { return Some(self) };
            Preface::decode(*preface).ok()?;
            (self.begun, rest) = (true, after);
        }
        while let Some((header, after)) = rest.split_first_chunk()
            && let Header::Frame(kind, length) = Header::decode(*header).ok()?
            && let Some((payload, after)) = after.split_at_checked(length)
        {
            rest = after;
            match Frame::decode(kind, payload).ok()? {
                Frame::Entry(entry) => self.manifest.push(&entry).ok()?,
                // The offer is complete: it is read no further, whether refused or not.
                Frame::OfferEnd { .. } => {
                    let _ = self.manifest.check();
                    return None;
                }
                _ => return None,
            }
        }
        let read = self.unread.len() - rest.len();
        self.unread.drain(..read);
        Some(self)
    }
}
