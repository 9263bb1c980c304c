//! What is said on standard output: tickets, where this side listens, and how a transfer ended.

use std::net::SocketAddr;
use std::time::Duration;

use anabranch::transfer::{Role, Ticket};
use anabranch::{Connection, PublicKey};
use serde::Serialize;

use super::progress::Counts;
use super::shares::{PathShare, line, shares};
use crate::failure::Failure;
use crate::format;
use crate::output;

/// Where reports go, and in what form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    /// JSON, an object a line.
    pub(super) json: bool,
    /// Standard output is taken by a file.
    pub(super) on_stderr: bool,
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
    Done {
        role: &'static str,
        peer: String,
        files: u64,
        bytes: u64,
        moved_bytes: u64,
        kept_bytes: u64,
        seconds: f64,
        mbps: f64,
        paths: &'a [PathShare],
    },
}

impl Report {
    /// The ticket, on a line of its own.
    pub(super) fn ticket(self, ticket: &Ticket, good: Duration) -> Result<(), Failure> {
        let text = ticket.to_text();
        let minutes = good.as_secs().div_ceil(60);
        let command = match ticket.role {
            Role::Takes => "send FILE",
            Role::Offers => "get",
        };
        if self.json {
            return self.print(&Event::Ticket {
                ticket: &text,
                addresses: &ticket.addresses,
                public_key: ticket.peer.to_string(),
                expires: ticket.expires,
            });
        }
        eprintln!(
            "On the other machine, within {}: anabranch {command} and this ticket, which is good for \
             one transfer",
            format::counted(minutes, "minute")
        );
        self.line(&text)
    }

    /// Where this side listens.
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

    /// A transfer is complete.
    pub(super) fn done(
        self,
        role: Role,
        connection: &Connection,
        counts: Counts,
        time: Duration,
    ) -> Result<(), Failure> {
        let paths = shares(connection, role);
        let seconds = time.as_secs_f64();
        let bytes = counts.kept + counts.moved;
        // What a lost connection brought was there before the next one, but not before this process.
        let moved = counts.moved + counts.moved_before;
        let kept = bytes.saturating_sub(moved);
        let mbps = if seconds > 0.0 { moved as f64 * 8e-6 / seconds } else { 0.0 };
        if self.json {
            return self.print(&Event::Done {
                role: match role {
                    Role::Offers => "sent",
                    Role::Takes => "received",
                },
                peer: connection.peer().to_string(),
                files: counts.stored,
                bytes,
                moved_bytes: moved,
                kept_bytes: kept,
                seconds,
                mbps,
                paths: &paths,
            });
        }
        let verb = match role {
            Role::Offers => "Sent",
            Role::Takes => "Received",
        };
        let mut text = format!(
            "{verb} {}, {}, in {seconds:.1} s at {} Mb/s; checksums hold",
            format::counted(counts.stored, "file"),
            format::bytes(bytes),
            format::mbps(mbps),
        );
        if kept > 0 {
            text.push_str(&format!("; {} were there before", format::bytes(kept)));
        }
        if !paths.is_empty() {
            text.push_str(&format!("\nPaths: {}", line(&paths)));
        }
        self.line(&text)
    }

    /// The same where there is no way back: the files are in place, whether somebody reads of it or not.
    pub(super) fn finished(
        self,
        role: Role,
        connection: &Connection,
        counts: Counts,
        time: Duration,
    ) {
        if let Err(failure) = self.done(role, connection, counts, time) {
            eprintln!("anabranch: {failure}");
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
