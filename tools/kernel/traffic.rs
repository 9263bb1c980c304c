//! The kernel's side of the comparison: a sender and a receiver of TCP or MPTCP, each run in its namespace.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::cpu::cpu_seconds;

/// The traffic between the namespaces; both sides are given the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Whether to use MPTCP, over all paths.
    pub multipath: bool,
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// The path that the connection begins on, from 1.
    pub path: u8,
    /// Number of paths of the road, whichever the connection uses.
    pub paths: u8,
    pub warm_up: u64,
    pub seconds: u64,
}

pub const PORT: u16 = 5001;
/// The longest time that the sender goes on after the receiver has ended, that a write waits for room, and that a
/// refused connection is retried.
const PATIENCE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(10);
const PIECE: usize = 1 << 17;

impl Traffic {
    /// Arguments for [`send`] and [`receive`].
    pub fn arguments(&self) -> String {
        let Traffic { multipath, congestion, path, paths, warm_up, seconds } = self;
        let protocol = if *multipath { "mptcp" } else { "tcp" };
        format!("{protocol} {congestion} {path} {paths} {warm_up} {seconds}")
    }

    /// Reads what [`arguments`](Self::arguments) wrote.
    ///
    /// # Errors
    /// When a word is wrong.
    pub fn read(words: &[String]) -> Result<Self, String> {
        let [protocol, congestion, numbers @ ..] = words else {
            return Err("a protocol and a congestion control are needed".to_owned());
        };
        let numbers = numbers.iter().map(|word| word.parse::<u64>());
        let numbers = numbers.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let [path, paths, warm_up, seconds] = numbers[..] else {
            return Err("four numbers are needed".to_owned());
        };
        let small = |number: u64| u8::try_from(number).map_err(|error| error.to_string());
        Ok(Traffic {
            multipath: protocol == "mptcp",
            congestion: congestion.clone(),
            path: small(path)?,
            paths: small(paths)?,
            warm_up,
            seconds,
        })
    }

    /// How long the receiver waits for a connection, and then how long it receives.
    fn whole(&self) -> Duration {
        Duration::from_secs(self.warm_up + self.seconds)
    }

    /// Prepares this namespace: sets its default congestion control, which a subflow has until it joins its connection,
    /// and lets MPTCP open subflows.
    pub fn prepare(&self) -> Result<(), String> {
        let file = "/proc/sys/net/ipv4/tcp_congestion_control";
        // A namespace accepts only some as its default. Reno is always accepted, and does not
        // affect a subflow that gets another control afterwards; BBR would leave its pacing on.
        fs::write(file, &self.congestion)
            .or_else(|_| fs::write(file, "reno"))
            .map_err(|error| format!("{file}: {error}"))?;
        if self.multipath {
            ip(&["limits", "set", "subflow", "8", "add_addr_accepted", "8"])?;
        }
        Ok(())
    }

    /// Has MPTCP open a subflow over every further path; only the sender does.
    pub fn add_endpoints(&self) -> Result<(), String> {
        let further = (1..=self.paths).filter(|path| self.multipath && *path != self.path);
        for path in further {
            ip(&["endpoint", "add", &format!("10.77.{path}.1"), "subflow"])?;
        }
        Ok(())
    }

    /// A socket with the congestion control.
    pub fn socket(&self) -> Result<Socket, String> {
        let failed = |error: io::Error| format!("a socket: {error}");
        let protocol = if self.multipath { Protocol::MPTCP } else { Protocol::TCP };
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).map_err(failed)?;
        let asked = self.congestion.as_bytes();
        let set = socket.set_tcp_congestion(asked);
        set.map_err(|error| format!("congestion control {}: {error}", self.congestion))?;
        let got = socket.tcp_congestion().map_err(failed)?;
        let got = got.split(|byte| *byte == 0).next().unwrap_or_default();
        if got != asked {
            let got = String::from_utf8_lossy(got);
            return Err(format!("the socket has {got} and not {}", self.congestion));
        }
        Ok(socket)
    }
}

/// Runs `ip mptcp` with these words.
fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").arg("mptcp").args(words).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "`ip mptcp {}`: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Sends until the receiver has enough, and prints which congestion controls its subflows had.
///
/// # Errors
/// The reason in words, if the bytes cannot be sent.
pub fn send(words: &[String]) -> Result<(), String> {
    let traffic = Traffic::read(words)?;
    traffic.prepare()?;
    traffic.add_endpoints()?;
    let whole = traffic.whole();
    let Some(mut stream) = connect(&traffic)? else {
        println!("{}", json!({ "congestion": traffic.congestion, "subflows": [] }));
        return Ok(());
    };
    let looker = thread::spawn(move || {
        thread::sleep(whole.mul_f64(0.8));
        subflows()
    });
    stream.set_write_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
    let (start, piece) = (now(), vec![0x5a_u8; PIECE]);
    // The receiver may learn of the connection only when its own time is nearly over.
    while start.elapsed() < 2 * whole + PATIENCE {
        match stream.write(&piece) {
            Ok(_) => {}
            Err(error) if is_timeout(error.kind()) => {}
            // The receiver has enough and has closed the connection.
            Err(_) => break,
        }
    }
    let subflows = looker.join().map_err(|_| "the thread that looks at subflows panicked")?;
    let cpu = cpu_seconds();
    let congestion = traffic.congestion;
    println!("{}", json!({ "congestion": congestion, "subflows": subflows, "cpu_seconds": cpu }));
    Ok(())
}

/// Connects to the receiver, which may start later; `None` if an attempt times out: the links let nothing through.
fn connect(traffic: &Traffic) -> Result<Option<TcpStream>, String> {
    let receiver = SocketAddr::from((Ipv4Addr::new(10, 77, traffic.path, 2), PORT));
    let (start, most) = (now(), traffic.whole() + PATIENCE);
    loop {
        let socket = traffic.socket()?;
        match socket.connect_timeout(&receiver.into(), most) {
            Ok(()) => return Ok(Some(socket.into())),
            Err(error) if is_timeout(error.kind()) => return Ok(None),
            Err(error) if start.elapsed() > PATIENCE => return Err(format!("{receiver}: {error}")),
            Err(_) => thread::sleep(STEP),
        }
    }
}

/// The congestion controls of this namespace's connections to the receiver; none where `ss` does not tell.
fn subflows() -> Option<Vec<String>> {
    let filter = format!("dport = :{PORT}");
    let output = Command::new("ss").args(["-Htin", &filter]).output().ok()?;
    output.status.success().then(|| controls(&String::from_utf8_lossy(&output.stdout)))
}

/// The first words of the indented lines, where `ss -i` has the congestion control.
fn controls(listing: &str) -> Vec<String> {
    let details = listing.lines().filter(|line| line.starts_with(char::is_whitespace));
    details.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Receives, and prints the goodput after the warm-up; time counts from when the connection is
/// made.
///
/// # Errors
/// The reason in words, if the bytes cannot be received.
pub fn receive(words: &[String]) -> Result<(), String> {
    let traffic = Traffic::read(words)?;
    traffic.prepare()?;
    let failed = |error: io::Error| format!("cannot listen: {error}");
    let socket = traffic.socket()?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)).into()).map_err(failed)?;
    socket.listen(1).map_err(failed)?;
    // The kernel refuses further subflows once nobody listens.
    let listener = TcpListener::from(socket);
    let mut taken = Taken::default();
    if let Some(mut stream) = accept(&listener, traffic.whole()).map_err(failed)? {
        taken = take(&mut stream, &traffic)?;
        // Dropping the stream then resets it. Otherwise MPTCP would accept data for a while, and
        // nothing would tell the sender.
        let abrupt = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        abrupt.map_err(|error| format!("cannot end: {error}"))?;
    }
    let mbps = taken.counted as f64 * 8e-6 / traffic.seconds as f64;
    let cpu = cpu_seconds();
    println!("{}", json!({ "goodput_mbps": mbps, "all_bytes": taken.all, "cpu_seconds": cpu }));
    Ok(())
}

/// The first connection; none if nobody connects for this long.
fn accept(listener: &TcpListener, most: Duration) -> io::Result<Option<TcpStream>> {
    listener.set_nonblocking(true)?;
    let start = now();
    while start.elapsed() < most {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(Some(stream));
            }
            Err(error) if is_timeout(error.kind()) => thread::sleep(STEP),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Bytes that came: all, and those after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    all: u64,
    counted: u64,
}

/// Receives for the time of `traffic`.
fn take(stream: &mut TcpStream, traffic: &Traffic) -> Result<Taken, String> {
    let failed = |error: io::Error| format!("cannot receive: {error}");
    let mut buffer = vec![0; PIECE];
    let (start, from, until) = (now(), Duration::from_secs(traffic.warm_up), traffic.whole());
    let mut taken = Taken::default();
    loop {
        let left = until.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(taken);
        }
        stream.set_read_timeout(Some(left)).map_err(failed)?;
        match stream.read(&mut buffer) {
            Ok(0) => return Err("the sender ended too early".to_owned()),
            Ok(count) => {
                taken.all += count as u64;
                if (from..until).contains(&start.elapsed()) {
                    taken.counted += count as u64;
                }
            }
            Err(error) if is_timeout(error.kind()) => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

fn is_timeout(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[expect(clippy::disallowed_methods, reason = "the kernel's transports take real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(seconds: u64) -> Traffic {
        let congestion = "reno".to_owned();
        Traffic { multipath: true, congestion, path: 2, paths: 3, warm_up: 1, seconds }
    }

    #[test]
    fn both_sides_read_what_they_are_told() {
        let words: Vec<String> =
            traffic(7).arguments().split_whitespace().map(str::to_owned).collect();
        assert_eq!(Traffic::read(&words), Ok(traffic(7)));
        for wrong in [&words[..1], &words[..5], &[]] {
            assert!(Traffic::read(wrong).is_err());
        }
        assert!(Traffic::read(&["tcp", "reno", "1", "x", "1", "1"].map(str::to_owned)).is_err());
    }

    #[test]
    fn controls_are_the_first_words_of_details() {
        let listing = "ESTAB 0 1248728 10.77.1.1:50428 10.77.1.2:5001\n\t reno wscale:10,10 rto:264\n\
                       ESTAB 0 0 10.77.2.1%b:50781 10.77.1.2:5001\n\t cubic wscale:10,10\n";
        assert_eq!(controls(listing), ["reno", "cubic"]);
        assert!(controls("").is_empty());
    }

    #[test]
    fn only_what_comes_after_the_warm_up_counts() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let sender = thread::spawn(move || {
            let mut stream = TcpStream::connect(address).expect("listens");
            for pause in [0, 1_500, 1_200] {
                thread::sleep(Duration::from_millis(pause));
                stream.write_all(&[0; 1000]).expect("takes");
            }
        });
        let (mut stream, _) = listener.accept().expect("connects");
        let taken = take(&mut stream, &traffic(1)).expect("enough");
        assert_eq!((taken.all, taken.counted), (2000, 1000));
        drop(stream);
        sender.join().expect("sends");
    }

    #[test]
    fn nobody_is_waited_for_longer_than_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let wait = |millis| accept(&listener, Duration::from_millis(millis)).expect("listens");
        assert!(wait(30).is_none());
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("listens");
        assert!(wait(5_000).is_some());
        drop(stream);
    }

    #[test]
    fn a_sender_that_ends_early_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        drop(TcpStream::connect(listener.local_addr().expect("bound")));
        let (mut stream, _) = listener.accept().expect("connects");
        assert!(take(&mut stream, &traffic(1)).is_err());
    }
}
