//! `--qlog` and `--key-log`: what a command records about its connections, for those who analyse them.

use std::path::{Path, PathBuf};

use anabranch::{Connection, KeyError, KeyLog};
use clap::Args;

use crate::failure::Failure;
use crate::qlog::Qlogs;

/// What is to be written down.
#[derive(Args, Clone, Debug)]
pub struct InsightArgs {
    /// Write what each connection decides and why into this directory, as qlog
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
    /// Append the keys of each connection to this file, so that Wireshark can decrypt captures of it; whoever reads the
    /// file can read the connection
    #[arg(long, value_name = "FILE")]
    pub key_log: Option<PathBuf>,
}

/// Where a command records its connections.
#[derive(Clone, Debug)]
pub struct Insight {
    qlogs: Qlogs,
    /// Gets the keys of an endpoint's connections, if they are wanted.
    pub key_log: Option<KeyLog>,
}

impl Insight {
    /// Makes the directory of recordings and opens the file of keys, before the command gives up the right to do so.
    /// `command` is what recordings are named after.
    ///
    /// # Errors
    /// When the directory cannot be made or the file not be opened.
    pub fn open(args: &InsightArgs, command: &str) -> Result<Self, Failure> {
        let qlogs = Qlogs::new(args.qlog.as_deref(), command)?;
        let key_log = args.key_log.as_deref().map(key_log).transpose()?;
        Ok(Insight { qlogs, key_log })
    }

    /// The directory that recordings are written to, if they are wanted.
    pub fn directory(&self) -> Option<&Path> {
        self.qlogs.directory()
    }

    /// Records what `connection` decides from now on, as `side` sees it, "client" or "server".
    pub fn follow(&self, connection: &Connection, side: &'static str) {
        self.qlogs.follow(connection, side);
    }

    /// Completes the recordings.
    pub fn finish(&self) {
        self.qlogs.finish();
    }
}

fn key_log(path: &Path) -> Result<KeyLog, Failure> {
    KeyLog::append(path).map_err(|error| {
        let text = format!("--key-log {}: {error}", path.display());
        match error {
            KeyError::Exposed(_) => Failure::failed(text),
            _ => Failure::usage(format!("{text}; name a file that can be written")),
        }
    })
}
