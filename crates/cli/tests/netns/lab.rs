//! A client, a router and a server in namespaces of their own; several links between the client and
//! the router, one between the router and the server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::memory;

const PROGRAM: &str = env!("CARGO_BIN_EXE_anabranch");
/// Waiting is done in steps of this length.
const STEP: Duration = Duration::from_millis(20);
/// Longest wait for what has to happen sooner or later.
const PATIENCE: Duration = Duration::from_secs(60);

/// The namespaces and the links, removed when dropped.
pub struct Lab {
    name: String,
    mbit: u32,
    directory: tempfile::TempDir,
}

impl Lab {
    /// Where the server is.
    pub const SERVER: &str = "10.77.100.2";

    /// A lab with this many links of this many Mb/s. Where it cannot be built, prints why and returns `None`.
    pub fn new(name: &str, links: u8, mbit: u32) -> Option<Self> {
        if !nix::unistd::Uid::effective().is_root() {
            println!("skipped: network namespaces need root");
            return None;
        }
        if Command::new("ip").arg("-V").output().is_err() {
            println!("skipped: the `ip` command of iproute2 is not installed");
            return None;
        }
        let name = format!("ab{}{name}", std::process::id());
        let lab = Lab { name, mbit, directory: memory::directory() };
        for side in ["c", "r", "s"] {
            if !lab.try_ip(&["netns", "add", &lab.space(side)]).status.success() {
                println!("skipped: network namespaces cannot be made here");
                return None;
            }
            lab.ip(side, &["link", "set", "lo", "up"]);
        }
        for (side, key) in [("r", "net.ipv4.ip_forward=1"), ("r", "net.ipv4.conf.all.rp_filter=0")]
        {
            lab.within(side, "sysctl", &["-qw", key]);
        }
        lab.cable("r", "rs", "s", "sr");
        let shape = ["qdisc", "add", "dev", "rs", "root", "tbf", "rate", "1gbit"];
        let probe = [&shape[..], &["burst", "256k", "latency", "30ms"]].concat();
        if !lab.try_within("r", "tc", &probe).status.success() {
            println!("skipped: `tc` is not installed, or the kernel has no token bucket");
            return None;
        }
        lab.ip("r", &["addr", "add", "10.77.100.1/24", "dev", "rs"]);
        lab.ip("s", &["addr", "add", "10.77.100.2/24", "dev", "sr"]);
        lab.ip("s", &["route", "add", "default", "via", "10.77.100.1"]);
        for link in 1..=links {
            lab.plug(link);
        }
        Some(lab)
    }

    /// The namespace of a side.
    pub fn space(&self, side: &str) -> String {
        format!("{}{side}", self.name)
    }

    /// The client's interface on a link.
    pub fn interface(&self, link: u8) -> String {
        format!("c{link}")
    }

    fn cable(&self, a: &str, a_name: &str, b: &str, b_name: &str) {
        let (a_space, b_space) = (self.space(a), self.space(b));
        let ends =
            ["link", "add", a_name, "netns", &a_space, "type", "veth", "peer", "name", b_name];
        let output = self.try_ip(&[&ends[..], &["netns", &b_space]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.ip(a, &["link", "set", a_name, "up"]);
        self.ip(b, &["link", "set", b_name, "up"]);
    }

    /// Connects a link: an interface with address, shaped both ways, and a route to the server over
    /// it. Of all links' routes the first is preferred, as on a machine without source-address
    /// routing.
    pub fn plug(&self, link: u8) {
        let (client, router) = (format!("c{link}"), format!("r{link}"));
        self.cable("c", &client, "r", &router);
        let rate = format!("{}mbit", self.mbit);
        for (side, device) in [("c", &client), ("r", &router)] {
            let shape = ["qdisc", "add", "dev", device, "root", "tbf", "rate", &rate];
            self.within(side, "tc", &[&shape[..], &["burst", "64k", "latency", "30ms"]].concat());
        }
        self.ip("r", &["addr", "add", &format!("10.77.{link}.1/24"), "dev", &router]);
        self.address(link, 2);
    }

    fn address(&self, link: u8, host: u8) {
        let (device, metric) = (format!("c{link}"), format!("{}", 100 + link));
        self.ip("c", &["addr", "add", &format!("10.77.{link}.{host}/24"), "dev", &device]);
        let via = format!("10.77.{link}.1");
        let route = ["route", "add", "10.77.100.0/24", "via", &via, "dev", &device];
        self.ip("c", &[&route[..], &["metric", &metric]].concat());
    }

    /// Removes the interface, as when a modem is pulled out.
    pub fn unplug(&self, link: u8) {
        self.ip("c", &["link", "del", &format!("c{link}")]);
    }

    /// Gives the client's interface another address.
    pub fn readdress(&self, link: u8, host: u8) {
        self.ip("c", &["addr", "flush", "dev", &format!("c{link}")]);
        self.address(link, host);
    }

    /// Makes the router drop everything to and from a link. The interfaces stay up.
    pub fn silence(&self, link: u8) {
        self.ip("r", &["rule", "add", "pref", "10", "iif", &format!("r{link}"), "blackhole"]);
        let to = format!("10.77.{link}.0/24");
        self.ip("r", &["rule", "add", "pref", "10", "iif", "rs", "to", &to, "blackhole"]);
    }

    /// Undoes [`silence`](Self::silence).
    pub fn unsilence(&self, link: u8) {
        self.ip("r", &["rule", "del", "pref", "10", "iif", &format!("r{link}"), "blackhole"]);
        let to = format!("10.77.{link}.0/24");
        self.ip("r", &["rule", "del", "pref", "10", "iif", "rs", "to", &to, "blackhole"]);
    }

    /// Makes the router drop packets from a link that are longer than `mtu`, without an ICMP
    /// message. The client's interface keeps its own MTU.
    pub fn narrow(&self, link: u8, mtu: u16) {
        self.ip("r", &["link", "set", &format!("r{link}"), "mtu", &mtu.to_string()]);
    }

    /// Bytes that have left the client over a link since it was plugged in.
    pub fn moved(&self, link: u8) -> u64 {
        let file = format!("/sys/class/net/c{link}/statistics/tx_bytes");
        let output = self.try_within("c", "cat", &[&file]);
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0)
    }

    /// Waits until this many bytes have left over a link; returns how long that took, in steps.
    pub fn wait_until_moved(&self, link: u8, bytes: u64) -> Duration {
        let steps = (PATIENCE.as_millis() / STEP.as_millis()) as u32;
        let needed = (1..=steps).find(|_| {
            std::thread::sleep(STEP);
            self.moved(link) >= bytes
        });
        let moved = self.moved(link);
        STEP * needed.unwrap_or_else(|| panic!("link {link}: {moved} of {bytes} bytes in the end"))
    }

    /// Calls [`wait_until_moved`](Self::wait_until_moved) and prints how long it took beside the aim. The aim is
    /// not a bound here, since a busy machine may do other things for seconds.
    pub fn wait_until_moved_aiming_at(&self, link: u8, bytes: u64, aim: Duration) {
        let took = self.wait_until_moved(link, bytes);
        println!("link {link} carried again after {took:?}; the aim is {aim:?}");
    }

    /// Watches the files in a directory for `time`. Returns the longest time without growth, and the longest delay by
    /// which the machine kept this process from looking.
    #[expect(clippy::disallowed_methods, reason = "pauses are timed by the clock on the wall")]
    pub fn longest_pause_of_growth(&self, directory: &str, time: Duration) -> (Duration, Duration) {
        let bytes = || -> u64 {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
        };
        let (begin, mut grown, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
        let (mut last, mut stall) = (bytes(), Duration::ZERO);
        while begin.elapsed() < time {
            let asleep = Instant::now();
            std::thread::sleep(STEP);
            let now = bytes();
            stall = stall.max(asleep.elapsed().saturating_sub(STEP));
            longest = longest.max(grown.elapsed());
            if now > last {
                (last, grown) = (now, Instant::now());
            }
        }
        (longest, stall)
    }

    /// Lets time pass.
    pub fn pause(&self, millis: u64) {
        std::thread::sleep(Duration::from_millis(millis));
    }

    /// A file in the lab's directory.
    pub fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    /// A file of so many bytes that do not repeat.
    pub fn file(&self, name: &str, bytes: u64) -> String {
        let path = self.path(name);
        let words =
            (0..bytes / 8).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
        let content: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A key file and its public key.
    pub fn key(&self, name: &str) -> (String, String) {
        let path = self.path(&format!("{name}.key"));
        let output = Command::new(PROGRAM).args(["keygen", "--out", &path]).output().unwrap();
        assert!(output.status.success());
        (path, String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// Starts the program on one side.
    pub fn run(&self, side: &str, args: &[&str]) -> Running {
        let space = self.space(side);
        let child = Command::new("ip")
            .args(["netns", "exec", &space, PROGRAM])
            .args(args)
            .env("XDG_STATE_HOME", self.directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Running(Some(child))
    }

    /// Does something in a thread that lives in a side's namespace.
    pub fn inside<T: Send>(&self, side: &str, act: impl FnOnce(&Lab) -> T + Send) -> T {
        let space = format!("/run/netns/{}", self.space(side));
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let space = std::fs::File::open(space).unwrap();
                nix::sched::setns(space, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
                act(self)
            });
            thread.join().unwrap()
        })
    }

    /// A TCP server on one side that sends back all data as soon as it reads them.
    pub fn echo(&self, side: &str, port: u16) -> std::thread::JoinHandle<()> {
        let listener = self.inside(side, |_| TcpListener::bind(("127.0.0.1", port)).unwrap());
        std::thread::spawn(move || {
            let Ok((mut tcp, _)) = listener.accept() else { return };
            let mut part = vec![0; 1 << 16];
            while let Ok(count @ 1..) = tcp.read(&mut part) {
                if tcp.write_all(&part[..count]).is_err() {
                    return;
                }
            }
        })
    }

    /// Connects as soon as somebody listens.
    pub fn connect(&self, address: &str) -> TcpStream {
        let steps = PATIENCE.as_millis() / STEP.as_millis();
        let mut tries = (0..steps).map(|_| {
            std::thread::sleep(STEP);
            TcpStream::connect(address)
        });
        tries.find_map(Result::ok).expect("somebody listens")
    }

    /// Runs `ip` on one side; it must succeed.
    pub fn ip(&self, side: &str, args: &[&str]) {
        let space = self.space(side);
        let output = self.try_ip(&[&["-n", &space], args].concat());
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn try_ip(&self, args: &[&str]) -> Output {
        Command::new("ip").args(args).output().unwrap()
    }

    /// Runs a program on one side; it must succeed.
    pub fn within(&self, side: &str, program: &str, args: &[&str]) {
        let output = self.try_within(side, program, args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs a program on one side.
    pub fn try_within(&self, side: &str, program: &str, args: &[&str]) -> Output {
        let space = self.space(side);
        let full = [&["netns", "exec", &space, program], args].concat();
        Command::new("ip").args(full).output().unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for side in ["c", "r", "s"] {
            let _ = Command::new("ip").args(["netns", "del", &self.space(side)]).output();
        }
    }
}

/// A running command, ended when dropped.
pub struct Running(Option<Child>);

impl Running {
    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        let out = self.0.as_mut().unwrap().stdout.as_mut().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits until the program ends; returns what it printed, and how it ended.
    pub fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }

    /// Waits until the program ends, which must be a success.
    pub fn succeeded(self, what: &str) {
        let output = self.output();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{what}: {:?}: {text}", output.status.code());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
