//! SIGHUP: a request to read the settings again.

use std::future::pending;
use std::io::{IsTerminal, stderr};
use std::path::Path;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGHUP, by which services are asked to read their settings again. A process without a
/// configuration file, and one whose terminal is closed, ends on SIGHUP as is usual.
#[derive(Debug)]
pub(super) struct Hangups {
    signals: Option<Signal>,
    /// Standard error is a terminal.
    on_terminal: bool,
}

/// Meaning of a SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hangup {
    /// Read the settings again.
    Reload,
    /// The terminal is closed: end.
    End,
}

impl Hangups {
    /// Handles SIGHUP from now on, if there is a file to read again.
    pub(super) fn listen(config: Option<&Path>) -> Self {
        // Without a handler the signal ends the process.
        let signals = config.and_then(|_| signal(SignalKind::hangup()).ok());
        Hangups { signals, on_terminal: stderr().is_terminal() }
    }

    /// Waits for the next SIGHUP.
    pub(super) async fn next(&mut self) -> Hangup {
        let Some(signals) = &mut self.signals else { return pending().await };
        match signals.recv().await {
            Some(()) if self.on_terminal && !stderr().is_terminal() => Hangup::End,
            Some(()) => Hangup::Reload,
            None => pending().await,
        }
    }
}
