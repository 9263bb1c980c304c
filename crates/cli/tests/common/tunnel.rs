//! Runs `serve` and `connect` as processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_anabranch");
pub const PATIENCE: Duration = Duration::from_secs(40);

pub fn run(args: &[&str]) -> Output {
    Command::new(PROGRAM).args(args).output().unwrap()
}

/// Makes a key file; returns its path and public key.
pub fn key(directory: &Path, name: &str) -> (String, String) {
    let file = directory.join(name).to_str().unwrap().to_owned();
    let output = run(&["keygen", "--out", &file]);
    assert!(output.status.success());
    (file, String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// A running command, ended when dropped, and the lines of its standard output.
pub struct Running {
    pub child: Child,
    lines: mpsc::Receiver<String>,
}

impl Running {
    pub fn start(args: &[&str]) -> Self {
        Running::start_with(args, &[])
    }

    /// Starts the program with these environment variables.
    pub fn start_with(args: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(args).envs(environment.iter().copied()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (send, lines) = mpsc::channel();
        let out: ChildStdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        Running { child, lines }
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// The value of `key` in the next event of this kind.
    pub fn wait_for(&self, event: &str, key: &str) -> serde_json::Value {
        self.event(event)[key].clone()
    }

    /// All further events, until it has ended.
    pub fn rest(&self) -> Vec<serde_json::Value> {
        self.lines.iter().map(|line| serde_json::from_str(&line).unwrap()).collect()
    }

    /// The next event of this kind.
    pub fn event(&self, event: &str) -> serde_json::Value {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            if value["event"] == event {
                return value;
            }
        }
        panic!("no event {event}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server and its address and key, and a client's key file.
pub fn serving(directory: &Path, extra: &[&str]) -> (Running, String, String, String) {
    let (server_key, server) = key(directory, "server.key");
    let (client_key, client) = key(directory, "client.key");
    let mut args =
        vec!["serve", "--listen", "127.0.0.1:0", "--key", &server_key, "--allow", &client];
    args.extend_from_slice(extra);
    args.push("--json");
    let running = Running::start(&args);
    let addresses = running.wait_for("serving", "addresses");
    (running, addresses[0].as_str().unwrap().to_owned(), server, client_key)
}

pub fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

pub fn get(address: &str, path: &str) -> Vec<u8> {
    let mut tcp = TcpStream::connect(address).unwrap();
    write!(tcp, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    tcp.read_to_end(&mut answer).unwrap();
    answer
}
