//! `send`, `recv` and `get` as real processes on loopback addresses. No test here checks speed,
//! since the machine may be busy.
#![cfg(target_os = "linux")]

mod asked;
mod bad_input;
mod consent;
mod contested;
mod hostile;
mod interrupted;
mod picked;
mod process;
mod strangers;
mod whole;

use std::fs;
use std::path::{Path, PathBuf};

use anabranch::Config;
use anabranch_transfer::Ticket;
use process::run;
use tempfile::TempDir;

/// Directories for the two sides.
struct Sides {
    dir: TempDir,
}

impl Sides {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for side in ["from", "to"] {
            fs::create_dir(dir.path().join(side)).unwrap();
        }
        Sides { dir }
    }

    fn from(&self, name: &str) -> PathBuf {
        self.dir.path().join("from").join(name)
    }

    fn to(&self) -> PathBuf {
        self.dir.path().join("to")
    }

    /// Makes a file to send.
    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.from(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Content of a file that has arrived under its final name.
    fn arrived(&self, name: &str) -> Vec<u8> {
        let path = self.to().join(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Names in the receiving directory, partial files included.
    fn names(&self) -> Vec<String> {
        let items = fs::read_dir(self.to()).unwrap();
        let mut names: Vec<String> =
            items.map(|item| item.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Makes a key; returns its file and its public key.
    fn key(&self, name: &str) -> (PathBuf, String) {
        let path = self.dir.path().join(name);
        let public = run("keygen --out", &[&path]).succeeded();
        (path, String::from_utf8(public).unwrap().trim().to_owned())
    }

    /// Makes a pre-shared key; returns its file.
    fn shared(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        run("genpsk --out", &[&path]).succeeded();
        path
    }
}

/// The configuration with which a holder of the ticket connects.
fn as_holder(ticket: &Ticket) -> Config {
    let mut config = Config::new(ticket.holder());
    config.preshared = [(ticket.peer, ticket.preshared())].into();
    config
}

/// Bytes that are not all alike.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
