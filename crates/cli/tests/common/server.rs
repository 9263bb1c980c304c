//! `bench server` on loopback, for tests that need a peer.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

/// A server on a port that the system chose, with its address and its key.
pub struct Server {
    child: Child,
    said: BufReader<ChildStderr>,
    pub address: String,
    pub key: String,
}

impl Server {
    /// Starts a server with further options and `RUST_LOG`. It allows anyone unless the options say whom.
    pub fn start(options: &[&str], log: &str) -> Server {
        let anyone = if options.contains(&"--allow") { None } else { Some("--anyone") };
        let mut child = Command::new(env!("CARGO_BIN_EXE_anabranch"))
            .args(["bench", "server", "--listen", "127.0.0.1:0"])
            .args(anyone)
            .args(options)
            .env("RUST_LOG", log)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut after = |words: &str| {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            let rest = line.trim_end().strip_prefix(words);
            rest.unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let (address, key) = (after("listening on "), after("public key "));
        Server { child, said, address, key }
    }

    /// Waits until the server ends successfully; returns what the server printed meanwhile.
    pub fn ended(mut self) -> String {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        rest
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server has ended already where a test waited for that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
