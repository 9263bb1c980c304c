//! A thousand TCP connections through one tunnel at once, by programs that start with a low limit on open files.

#![allow(clippy::disallowed_methods, reason = "tests wait for real time")]

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/tunnel.rs"]
mod processes;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use processes::{PATIENCE, PROGRAM, free_port, get, key};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const CONNECTIONS: usize = 1000;

/// A server that sends every byte back to its client.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            let serve = move || {
                let mut byte = [0];
                while tcp.read_exact(&mut byte).and_then(|()| tcp.write_all(&byte)).is_ok() {}
            };
            thread::Builder::new().stack_size(1 << 16).spawn(serve).unwrap();
        }
    });
    address
}

/// A command with 256 files allowed until it asks for more, ended when dropped, and the `key` of its first event of a kind.
struct Limited(Child);

impl Limited {
    fn start(args: &[&str], event: &str, key: &str) -> (Self, serde_json::Value) {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -Sn 256; exec \"$0\" \"$@\"", PROGRAM]).args(args);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let found = loop {
            let line = lines.next().unwrap().unwrap();
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            if value["event"] == event {
                break value[key].clone();
            }
        };
        // Reads the rest of its output, so that the pipe does not fill and block it.
        thread::spawn(move || lines.count());
        (Limited(child), found)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_thousand_connections_are_open_at_once_and_none_waits() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if maximum.is_some_and(|maximum| maximum < 4096) {
        eprintln!("skipped: this system allows {maximum:?} files");
        return;
    }
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (server_key, server) = key(directory.path(), "server.key");
    let (client_key, client) = key(directory.path(), "client.key");
    let args = ["serve", "--listen", "127.0.0.1:0", "--key", &server_key, "--allow", &client];
    let further = ["--max-forwarded", "1100", "--json"];
    let (_server, addresses) =
        Limited::start(&[&args[..], &further].concat(), "serving", "addresses");
    let (address, metrics) = (addresses[0].as_str().unwrap(), free_port());
    let forward = format!("0:127.0.0.1:{}", echo().port());
    let args = ["connect", address, "--peer", &server, "--key", &client_key, "-L", &forward];
    let further = ["--metrics", &metrics, "--json"];
    let (_client, near) = Limited::start(&[&args[..], &further].concat(), "listening", "address");
    let near = near.as_str().unwrap();
    let mut open = Vec::new();
    let works = |tcp: &mut TcpStream, byte: u8| {
        let begun = Instant::now();
        tcp.write_all(&[byte]).unwrap();
        let mut back = [0];
        tcp.read_exact(&mut back).unwrap();
        assert_eq!(back, [byte]);
        begun.elapsed()
    };
    let mut longest = Duration::ZERO;
    for number in 0..CONNECTIONS {
        let mut tcp = TcpStream::connect(near).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        let took = works(&mut tcp, number as u8);
        // The first connection waits for the peers to connect.
        longest = longest.max(if number == 0 { Duration::ZERO } else { took });
        open.push(tcp);
    }
    for (number, tcp) in open.iter_mut().enumerate() {
        works(tcp, number as u8 ^ 0xff);
    }
    let figures = String::from_utf8(get(&metrics, "/metrics")).unwrap();
    let value = |name: &str| {
        let line = figures.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(value("anabranch_stream_waits_total{"), "0");
    assert_eq!(value("anabranch_forwards_opened_total "), CONNECTIONS.to_string());
    println!("the longest of {CONNECTIONS} waited {longest:?} for its first byte");
}
