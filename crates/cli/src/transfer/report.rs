//! Prints to standard output: tickets, the addresses listened on, and the outcome of a transfer.

use std::net::SocketAddr;
use std::time::Duration;

use anabranch::PublicKey;
use anabranch::paths::PathStatus;
use anabranch_transfer::{Entry, Kind, Role, Ticket};
use serde::Serialize;

use super::error::TransferError;
use super::listing::Amounts;
use super::progress::Counts;
use super::screen::seconds_left;
use super::shares::{PathShare, line};
use super::source::Skipped;
use crate::failure::Failure;
use crate::format;
use crate::output;
use crate::watched::Watched;

/// Where reports go, and in what form.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    /// Reports are JSON, one object per line.
    pub(super) json: bool,
    /// Standard output carries a file, so reports go to standard error.
    pub(super) on_stderr: bool,
}

/// How a transfer ended.
#[derive(Debug)]
pub(super) struct End<'a> {
    pub(super) role: Role,
    pub(super) peer: PublicKey,
    pub(super) counts: Counts,
    pub(super) time: Duration,
    pub(super) paths: &'a [PathShare],
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Event<'a> {
    Ticket {
        ticket: &'a str,
        addresses: &'a [SocketAddr],
        public_key: String,
        /// Seconds since 1970.
        expires: u64,
    },
    Listening {
        addresses: &'a [SocketAddr],
        public_key: String,
    },
    Connecting {
        addresses: &'a [SocketAddr],
    },
    Connected {
        peer: String,
    },
    /// The connection was lost, and is to be made again.
    Lost {
        reason: String,
    },
    Path {
        name: &'a str,
        state: &'static str,
    },
    File {
        name: String,
        bytes: u64,
    },
    /// Something is not sent, although nobody excluded it.
    Skipped {
        name: String,
        reason: String,
    },
    /// `--dry-run`: an entry.
    WouldSend {
        name: String,
        kind: &'static str,
        bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    },
    /// `--dry-run`: the totals.
    DryRun {
        files: u64,
        links: u64,
        directories: u64,
        bytes: u64,
    },
    Progress {
        bytes: u64,
        total_bytes: u64,
        files: u64,
        total_files: u64,
        #[serde(serialize_with = "format::three_decimals")]
        mbps: f64,
        #[serde(serialize_with = "format::maybe_three_decimals")]
        seconds_left: Option<f64>,
        paths: &'a [Watched],
    },
    Done {
        role: &'static str,
        peer: String,
        files: u64,
        bytes: u64,
        moved_bytes: u64,
        kept_bytes: u64,
        #[serde(serialize_with = "format::three_decimals")]
        seconds: f64,
        #[serde(serialize_with = "format::three_decimals")]
        mbps: f64,
        paths: &'a [PathShare],
    },
}

impl Report {
    /// Prints the ticket, on a line of its own.
    pub(super) fn ticket(self, ticket: &Ticket, good: Duration) -> Result<(), Failure> {
        let text = ticket.to_text();
        if self.json {
            return self.print(&Event::Ticket {
                ticket: &text,
                addresses: &ticket.addresses,
                public_key: ticket.peer.to_string(),
                expires: ticket.expires,
            });
        }
        let command = match ticket.role {
            Role::Takes => "send FILE",
            Role::Offers => "get",
        };
        let good = format::counted(good.as_secs().div_ceil(60), "minute");
        eprintln!(
            "Run on the other machine: anabranch {command} TICKET (one use, expires in {good})"
        );
        self.line(&text)
    }

    /// Reports where this side listens.
    pub(super) fn listening(
        self,
        addresses: &[SocketAddr],
        key: &PublicKey,
    ) -> Result<(), Failure> {
        let public_key = key.to_string();
        if self.json {
            return self.print(&Event::Listening { addresses, public_key });
        }
        let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        eprintln!("Listening on {}; the public key is {public_key}", texts.join(", "));
        Ok(())
    }

    /// Reports that this side connects to one of `addresses`.
    pub(super) fn connecting(self, addresses: &[SocketAddr]) {
        self.event(&Event::Connecting { addresses });
    }

    /// Reports that a connection to `peer` has been made.
    pub(super) fn connected(self, peer: &PublicKey) {
        self.event(&Event::Connected { peer: peer.to_string() });
    }

    /// Reports that the connection was lost.
    pub(super) fn lost(self, reason: &TransferError) {
        self.event(&Event::Lost { reason: reason.to_string() });
    }

    /// The state of a path has changed.
    pub(super) fn path(self, name: &str, state: PathStatus) {
        self.event(&Event::Path { name, state: state.name() });
    }

    /// A file, or a directory, is in its place.
    pub(super) fn file(self, entry: &Entry) {
        if entry.kind == Kind::File {
            self.event(&Event::File { name: entry.name.to_string(), bytes: entry.size });
        }
    }

    /// Something is not sent.
    pub(super) fn skipped(self, skipped: &Skipped) {
        let (name, reason) = (skipped.path.display().to_string(), skipped.why.to_string());
        self.event(&Event::Skipped { name, reason });
    }

    /// An entry would be sent.
    pub(super) fn would_send(self, entry: &Entry) -> Result<(), Failure> {
        self.print(&Event::WouldSend {
            name: entry.name.as_str().to_owned(),
            kind: match entry.kind {
                Kind::File => "file",
                Kind::Directory => "directory",
                Kind::Stream => "stream",
                Kind::Link => "link",
            },
            bytes: entry.size,
            target: entry.target.as_ref().map(|target| target.as_str().to_owned()),
        })
    }

    /// Everything that would be sent has been listed.
    pub(super) fn dry_run(self, amounts: Amounts) -> Result<(), Failure> {
        let Amounts { files, links, directories, bytes, .. } = amounts;
        self.print(&Event::DryRun { files, links, directories, bytes })
    }

    /// The progress so far.
    pub(super) fn progress(self, counts: Counts, bytes_per_second: f64, paths: &[Watched]) {
        self.event(&Event::Progress {
            bytes: counts.there(),
            total_bytes: counts.total,
            files: counts.stored,
            total_files: counts.files,
            mbps: bytes_per_second * 8e-6,
            seconds_left: seconds_left(counts, bytes_per_second),
            paths,
        });
    }

    /// A transfer is complete.
    pub(super) fn done(self, end: &End<'_>) -> Result<(), Failure> {
        let End { role, peer, counts, time, paths } = *end;
        let seconds = time.as_secs_f64();
        let bytes = counts.there();
        // Bytes of lost connections were moved by this process, so they do not count as kept from
        // before.
        let moved = counts.moved + counts.moved_before;
        let kept = bytes.saturating_sub(moved);
        let mbps = if seconds > 0.0 { moved as f64 * 8e-6 / seconds } else { 0.0 };
        if self.json {
            return self.print(&Event::Done {
                role: match role {
                    Role::Offers => "sent",
                    Role::Takes => "received",
                },
                peer: peer.to_string(),
                files: counts.stored,
                bytes,
                moved_bytes: moved,
                kept_bytes: kept,
                seconds,
                mbps,
                paths,
            });
        }
        let verb = match role {
            Role::Offers => "Sent",
            Role::Takes => "Received",
        };
        let mut text = format!(
            "{verb} {}, {}, in {seconds:.1} s at {} Mb/s; verified",
            format::counted(counts.stored, "file"),
            format::bytes(bytes),
            format::mbps(mbps),
        );
        if kept > 0 {
            text.push_str(&format!("; resumed at {}", format::bytes(kept)));
        }
        if !paths.is_empty() {
            text.push_str(&format!("\nPaths: {}", line(paths)));
        }
        self.line(&text)
    }

    /// Calls [`done`](Self::done). If it fails, this only prints a message, because the files are
    /// in place.
    pub(super) fn finished(self, end: &End<'_>) {
        if let Err(failure) = self.done(end) {
            eprintln!("anabranch: {failure}");
        }
    }

    /// Prints an event as JSON. If that fails, the transfer goes on.
    fn event(self, event: &Event<'_>) {
        if self.json {
            let _ = self.print(event);
        }
    }

    fn print(self, event: &Event<'_>) -> Result<(), Failure> {
        self.line(&serde_json::to_string(event).map_err(Failure::failed)?)
    }

    fn line(self, text: &str) -> Result<(), Failure> {
        if self.on_stderr {
            eprintln!("{text}");
            return Ok(());
        }
        output::print(&format!("{text}\n"))
    }
}
