//! The receiver: a process of its own, so that its memory is nobody else's.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch::{
    Config, Endpoint, Permitted, Profile, PublicKey, SecretKey, format_public_key, parse_public_key,
};
use tokio::io::AsyncReadExt;

use crate::Failure;

/// The argument that makes this program a receiver; the next one is the sender's key.
pub const ROLE: &str = "--receiver";

/// Bytes read at a time.
const PIECE: usize = 128 << 10;

/// A receiver that runs.
pub struct Receiver {
    /// Its public key.
    pub key: PublicKey,
    /// Where it listens.
    pub address: SocketAddr,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// What a receiver says of itself.
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
    /// Starts one that serves the holder of `sender`.
    pub fn start(sender: &PublicKey) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([ROLE, &format_public_key(sender)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("the receiver has no input")?;
        let output = child.stdout.take().ok_or("the receiver has no output")?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let (address, key) = line.trim().split_once(' ').ok_or("the receiver did not start")?;
        let (address, key) = (address.parse()?, parse_public_key(key)?);
        Ok(Receiver { key, address, child, input, output })
    }

    /// How it is.
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
        // It may have ended already.
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

/// The receiver's process.
pub fn serve(sender: Option<String>) -> Result<(), Failure> {
    let sender = parse_public_key(&sender.ok_or("no key of the sender")?)?;
    let counts: Arc<[AtomicU64; 2]> = Arc::default();
    let shown = Arc::clone(&counts);
    std::thread::spawn(move || {
        for _ in std::io::stdin().lines() {
            let [read, accepted] = [0, 1].map(|index: usize| shown[index].load(Ordering::Relaxed));
            println!("{read} {accepted}");
        }
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(receive(sender, counts))
}

async fn receive(sender: PublicKey, counts: Arc<[AtomicU64; 2]>) -> Result<(), Failure> {
    let profile = Profile::named("anabranch").ok_or("the default profile is missing")?;
    let mut config = Config::new(SecretKey::generate()?, profile);
    config.permitted = Permitted::Only([sender].into());
    let endpoint = Endpoint::bind(config, [SocketAddr::from((Ipv4Addr::LOCALHOST, 0))])?;
    let address = *endpoint.local_addrs().first().ok_or("no socket")?;
    println!("{address} {}", format_public_key(&endpoint.public_key()));
    let connection = endpoint.accept().await.ok_or("the endpoint ended")?;
    counts[1].fetch_add(1, Ordering::Relaxed);
    let others = Arc::clone(&counts);
    tokio::spawn(async move {
        while endpoint.accept().await.is_some() {
            others[1].fetch_add(1, Ordering::Relaxed);
        }
    });
    let (_back, mut stream) = connection.accept_stream().await?;
    let mut piece = vec![0; PIECE];
    loop {
        match stream.read(&mut piece).await? {
            0 => return Ok(()),
            count => counts[0].fetch_add(count as u64, Ordering::Relaxed),
        };
    }
}
