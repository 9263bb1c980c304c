//! The side that connects, and reconnects when the connection is lost.

use std::sync::Arc;
use std::time::Duration;

use anabranch::{Connection, Endpoint, Profile, PublicKey};
use tokio::time::{Instant, sleep, timeout};

use super::args::CommonArgs;
use super::error::TransferError;
use super::progress::Progress;
use super::report::{End, Report};
use super::screen::{Screen, Shown};
use super::session::{self, Side};
use super::setup::{FLUSH, Secrets, endpoint_config};
use super::shares::Earlier;
use super::waiting::Waiting;
use crate::catalog::profile;
use crate::failure::Failure;
use crate::insight::Insight;
use crate::interrupt::asked_to_end;
use crate::machine;
use crate::paths::{Route, tell_missing};

/// Pause before connecting again after a short connection, and the duration below which one is
/// short.
const PAUSE: Duration = Duration::from_millis(100);
const SHORT: Duration = Duration::from_secs(1);

/// Whom to connect to, and how.
#[derive(Debug)]
pub(super) struct Connecting {
    pub(super) secrets: Secrets,
    pub(super) peer: PublicKey,
    pub(super) route: Route,
    /// How long to go on trying without a new byte.
    pub(super) patience: Duration,
}

/// Does a whole transfer, over as many connections as it takes.
pub(super) async fn run(
    connecting: Connecting,
    side: &Side,
    common: &CommonArgs,
    report: Report,
    insight: &Insight,
) -> Result<(), Failure> {
    tell_missing(&connecting.route);
    let mut transfer = Transfer {
        endpoint: None,
        profile: profile(&common.profile, &[])?,
        connecting: &connecting,
        side,
        common,
        report,
        insight,
        progress: Arc::new(Progress::telling(report)),
        earlier: Earlier::default(),
        started: Instant::now(),
        last_byte: Instant::now(),
        connected: false,
    };
    // `biased` polls for Ctrl-C first, so it is caught before the first message is printed.
    let result = tokio::select! {
        biased;
        () = asked_to_end() => Err(TransferError::Interrupted(side.can_go_on()).into()),
        result = transfer.run() => result,
    };
    if let Some(endpoint) = transfer.endpoint.as_ref().filter(|_| transfer.connected) {
        endpoint.close(0, "");
        // The peer is told that this side ends. If it does not learn of it, its idle timeout ends
        // the connection.
        let _ = timeout(FLUSH, endpoint.wait_idle()).await;
    }
    result
}

struct Transfer<'a> {
    /// The endpoint of the current connection.
    endpoint: Option<Endpoint>,
    profile: Profile,
    connecting: &'a Connecting,
    side: &'a Side,
    common: &'a CommonArgs,
    report: Report,
    insight: &'a Insight,
    progress: Arc<Progress>,
    earlier: Earlier,
    started: Instant,
    last_byte: Instant,
    connected: bool,
}

impl Transfer<'_> {
    async fn run(&mut self) -> Result<(), Failure> {
        loop {
            let begun = Instant::now();
            let error = match self.once().await {
                Ok(connection) => {
                    let counts = self.progress.counts();
                    let (role, time) = (self.side.role(), self.started.elapsed());
                    let paths = self.earlier.with(&connection, role);
                    let end = End { role, peer: connection.peer(), counts, time, paths: &paths };
                    return self.report.done(&end);
                }
                Err(error) => error,
            };
            let again = matches!(error, TransferError::Lost(_))
                && self.connected
                && self.side.can_go_on()
                && self.last_byte.elapsed() < self.connecting.patience;
            if !again {
                return Err(error.into());
            }
            eprintln!("anabranch: {error}; connecting again");
            self.report.lost(&error);
            if begun.elapsed() < SHORT {
                sleep(PAUSE).await;
            }
        }
    }

    /// One connection, from beginning to end.
    async fn once(&mut self) -> Result<Connection, TransferError> {
        let connection = self.dial().await?;
        self.insight.follow(&connection, "client");
        self.connected = true;
        self.progress.begin(0, 0);
        let role = self.side.role();
        self.report.connected(&connection.peer());
        let screen = Screen::open(Shown {
            connection: connection.clone(),
            role,
            progress: Arc::clone(&self.progress),
            quiet: self.common.quiet,
            report: self.report,
        });
        let side = self.side;
        let result = session::run(&connection, true, side, None, &self.progress).await;
        drop(screen);
        if result.is_err() {
            self.earlier.add(&connection, role);
        }
        if self.progress.counts().moved > 0 {
            self.last_byte = Instant::now();
        }
        result.map(|()| connection)
    }

    async fn dial(&mut self) -> Result<Connection, TransferError> {
        let Connecting { secrets, peer, route, .. } = self.connecting;
        let (secrets, profile) = (secrets.clone(), self.profile.clone());
        let config = endpoint_config(secrets, profile, self.common.timeout, self.insight);
        let endpoint = Endpoint::client(config)
            .map_err(|error| TransferError::lost(format!("cannot open sockets: {error}")))?;
        let endpoint = self.endpoint.insert(endpoint);
        self.report.connecting(&route.destinations());
        let to: Vec<String> = route.destinations().iter().map(ToString::to_string).collect();
        let what = format!("{} to answer", to.join(" or "));
        let _waiting = Waiting::open(what, self.common.quiet);
        let dialing = endpoint.connect(*peer, (route.remote, route.requests.clone()));
        match timeout(self.common.timeout, dialing).await {
            Ok(dialed) => Ok(dialed?),
            Err(_) => Err(self.nobody()),
        }
    }

    fn nobody(&self) -> TransferError {
        let list = machine::interfaces().unwrap_or_default();
        let missing = self.connecting.route.missing(&list);
        if missing.len() == self.connecting.route.requests.len() {
            let names: Vec<&str> = list.iter().map(|interface| interface.name.as_str()).collect();
            return TransferError::Lost(format!(
                "this machine has no {}; its interfaces are {}",
                missing.join(", "),
                names.join(", ")
            ));
        }
        if self.endpoint.as_ref().is_some_and(|endpoint| endpoint.times_busy() > 0) {
            return TransferError::lost(
                "the other side is busy with other transfers; try again later",
            );
        }
        anabranch::ConnectError::NoAnswer.into()
    }
}
