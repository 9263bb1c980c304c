//! Limits of a peer with a permitted key: lines that `serve`, `recv` and `bench server` print about it, connections.

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/tunnel.rs"]
mod processes;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anabranch::{Config, Connection, Endpoint, PathSpec, SecretKey, TrafficClass};
use anabranch_forward::Link;
use processes::{PROGRAM, key};
use tempfile::TempDir;
use tokio::time::timeout;

/// Time within which anything that is not refused would happen.
const WAIT: Duration = Duration::from_secs(2);

/// A `serve`, `recv` or `bench server` whose log is read, ended when dropped.
struct Serving {
    child: Child,
    lines: Receiver<String>,
    address: SocketAddr,
    key: String,
    _directory: TempDir,
}

impl Serving {
    /// Runs `command`, and makes an endpoint of the only peer that it allows.
    fn start(command: &str) -> (Self, Endpoint) {
        let directory = tempfile::tempdir().unwrap();
        let secret = SecretKey::generate().unwrap();
        let client = secret.public_key().to_string();
        let (file, key) = key(directory.path(), "server");
        let mut child = Command::new(PROGRAM)
            .args(command.split(' '))
            .args(["--listen", "127.0.0.1:0", "--key", &file, "--allow", &client])
            .current_dir(directory.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let first: String = lines.recv().unwrap();
        let after = first.split_once(" on ").unwrap().1;
        let address = after.split([' ', ';']).next().unwrap().parse().unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let endpoint = Endpoint::bind(Config::new(secret), [any]).unwrap();
        (Serving { child, lines, address, key, _directory: directory }, endpoint)
    }

    fn connect(&self, endpoint: &Endpoint) -> impl Future<Output = Connection> {
        let local = endpoint.local_addrs()[0];
        let path = PathSpec { local, remote: self.address };
        let connecting = endpoint.connect(self.key.parse().unwrap(), [path]);
        async { connecting.await.unwrap() }
    }

    /// Lines printed until the program has printed nothing for a second.
    fn said(&self) -> Vec<String> {
        std::iter::from_fn(|| self.lines.recv_timeout(Duration::from_secs(1)).ok()).collect()
    }

    /// Checks that it prints as many lines as it may about a peer, and once that others were left out.
    fn has_said_60_lines(&self) {
        let said = tokio::task::block_in_place(|| self.said());
        assert!((55..=70).contains(&said.len()), "{} lines: {said:#?}", said.len());
        let told = said.iter().filter(|line| line.contains("left out")).count();
        assert_eq!(told, 1, "{said:#?}");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// However many requests a peer makes that are refused, and however often it connects, the log has 60 lines a minute about
/// it, and says that others were left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_has_60_lines_a_minute() {
    let (serving, endpoint) = Serving::start("serve");
    for _ in 0..40 {
        let link = Link::new(std::sync::Arc::new(|_| {}));
        let connection = serving.connect(&endpoint).await;
        let (carrying, over) = (link.clone(), connection.clone());
        tokio::spawn(async move { carrying.carry(over).await });
        for port in 1..10 {
            let target = format!("192.0.2.1:{port}").parse().unwrap();
            assert!(link.open(&target).await.is_err());
        }
        connection.close(0, "");
    }
    serving.has_said_60_lines();
}

/// The receiver's limit of lines. Each connection here ends without a transfer, and a line reports
/// that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_has_60_lines_a_minute() {
    let (receiver, endpoint) = Serving::start("recv");
    for _ in 0..100 {
        let connection = receiver.connect(&endpoint).await;
        let (mut send, _receive) = connection.open_bi(TrafficClass::Bulk).await.unwrap();
        send.write_all(b"no transfer").await.unwrap();
        connection.closed().await;
    }
    receiver.has_said_60_lines();
}

/// The limit of lines of `bench server`. Its clients send something that is not a request of
/// `bench`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_measurement_have_60_lines_a_minute() {
    let (server, endpoint) = Serving::start("bench server");
    for _ in 0..100 {
        let connection = server.connect(&endpoint).await;
        let (mut send, _receive) = connection.open_bi(TrafficClass::Bulk).await.unwrap();
        send.write_all(b"no request").await.unwrap();
        connection.closed().await;
    }
    server.has_said_60_lines();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_of_serve_has_32_connections() {
    let (server, endpoint) = Serving::start("serve");
    let mut open = Vec::new();
    for _ in 0..32 {
        open.push(server.connect(&endpoint).await);
    }
    assert!(timeout(WAIT, server.connect(&endpoint)).await.is_err());
    open.pop().unwrap().close(0, "");
    server.connect(&endpoint).await;
}

/// Further connections are accepted only to tell the peer the reason, and are then closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_has_16_transfers_at_a_time() {
    let (receiver, endpoint) = Serving::start("recv");
    let mut open = Vec::new();
    for _ in 0..40 {
        open.push(receiver.connect(&endpoint).await);
    }
    tokio::time::sleep(WAIT).await;
    let mut closed = 0;
    for connection in &open {
        closed += usize::from(timeout(Duration::ZERO, connection.closed()).await.is_ok());
    }
    assert_eq!(closed, 24);
}
