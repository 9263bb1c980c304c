//! SIGHUP makes `serve` and `connect` read their settings again; the service manager is notified of each step.
#![allow(clippy::disallowed_methods, reason = "tests wait for real time")]

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "../common/echo.rs"]
mod echo;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "../common/tunnel.rs"]
mod processes;

mod connect;
mod manager;
mod serve;
mod terminal;

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use processes::{Running, key};
use tempfile::TempDir;

/// A server with a file of settings, and keys of clients.
struct Served {
    home: TempDir,
    /// Address at which the server listens.
    address: String,
    public: String,
    /// Files and public keys of clients.
    clients: Vec<(String, String)>,
}

impl Served {
    /// Keys for this many clients.
    fn new(clients: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (_, public) = key(home.path(), "server.key");
        let clients = (0..clients).map(|n| key(home.path(), &format!("{n}.key"))).collect();
        // The server keeps its port, so that a client finds it again after a restart.
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        Served { home, address, public, clients }
    }

    fn file(&self) -> PathBuf {
        self.home.path().join("serve.toml")
    }

    /// The settings with these `[[peer]]`s: a client's number and further lines.
    fn settings(&self, peers: &[(usize, &str)]) -> String {
        let interface = format!(
            "[interface]\nprivate-key-file = \"server.key\"\nlisten = [\"{}\"]\n",
            self.address
        );
        let peer = |(client, rest): &(usize, &str)| {
            format!("[[peer]]\npublic-key = \"{}\"\n{rest}\n", self.clients[*client].1)
        };
        interface + &peers.iter().map(peer).collect::<String>()
    }

    fn write(&self, peers: &[(usize, &str)]) {
        replace(&self.file(), &self.settings(peers));
    }

    fn serve(&self, environment: &[(&str, &str)]) -> Running {
        let file = self.file();
        let args = ["serve", "--config", file.to_str().unwrap(), "--json"];
        let running = Running::start_with(&args, environment);
        running.wait_for("serving", "addresses");
        running
    }

    /// A client with a `-L` to each of `ports` of this machine, and where they listen.
    fn connect(&self, client: usize, ports: &[u16]) -> (Running, Vec<String>) {
        let mut args = vec!["connect", &self.address, "--peer", &self.public, "--json"];
        args.extend(["--key", &self.clients[client].0]);
        let forwards: Vec<_> = ports.iter().map(|port| format!("0:127.0.0.1:{port}")).collect();
        args.extend(forwards.iter().flat_map(|forward| ["-L", forward]));
        let running = Running::start(&args);
        let near = ports.iter().map(|_| running.wait_for("listening", "address"));
        let near = near.map(|near| near.as_str().unwrap().to_owned()).collect();
        (running, near)
    }
}

/// Writes a file as editors do, by renaming a new one to its name.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

/// Has the settings read again; returns what has changed and what has not, in words.
fn reloaded(running: &Running) -> (Vec<String>, Vec<String>) {
    running.signal(Signal::SIGHUP);
    let event = running.event("reloaded");
    let list = |key: &str| serde_json::from_value(event[key].clone()).unwrap();
    (list("changes"), list("kept"))
}

/// Has settings with a mistake read again; returns what is reported about it.
fn refused(running: &Running) -> String {
    running.signal(Signal::SIGHUP);
    running.event("reload-failed")["reason"].as_str().unwrap().to_owned()
}
