//! Every type that the library returns can be named by those who depend on it alone.

use std::time::Duration;

use anabranch::observe::{Observation, Observer};
use anabranch::policy::view::{LossView, PathState, RttView};
use anabranch::types::{Bitrate, PeerText, Time};
use anabranch::{
    AddPathError, CloseReason, ConnectError, ConnectRefused, ConnectionError, ConnectionStats,
    Dropped, EcnStats, PathAddress, PathCounters, PathError, PathId, PathStats, SocketId,
    StreamLimits, Totals, TransportConfig,
};

/// Takes a value only if it is of this very type.
fn is<T>(_: T) {}

#[test]
fn statistics_can_be_named() {
    let _ = |stats: ConnectionStats| {
        is::<Vec<PathStats>>(stats.paths);
        is::<Totals>(stats.sent);
        is::<Dropped>(stats.dropped);
        is::<Time>(stats.started);
    };
    let _ = |path: PathStats| {
        is::<PathId>(path.id);
        is::<PathState>(path.state);
        is::<PathCounters>(path.counters);
        is::<EcnStats>(path.ecn);
        is::<RttView>(path.rtt);
        is::<LossView>(path.loss);
        is::<Bitrate>(path.pacing_rate);
        is::<PathAddress>(path.address);
        is::<SocketId>(path.address.socket);
    };
}

#[test]
fn settings_errors_and_observations_can_be_named() {
    let transport = TransportConfig::default();
    is::<StreamLimits>(transport.streams);
    is::<Option<Duration>>(transport.idle_timeout);
    let _ = |error: ConnectError| match error {
        ConnectError::Refused(reason) => is::<ConnectRefused>(reason),
        ConnectError::Connection(ConnectionError::Closed(reason)) => {
            is::<PeerText>(reason.reason);
        }
        _ => {}
    };
    let _ = |error: PathError| match error {
        PathError::Refused(reason) => is::<AddPathError>(reason),
        other => is::<PathError>(other),
    };
    let _ = |reason: CloseReason| is::<bool>(reason.by_peer);

    #[derive(Debug)]
    struct Quiet;
    impl Observer for Quiet {
        fn observe(&mut self, _: Time, _: &Observation) {}
    }
    is::<Box<dyn Observer>>(Box::new(Quiet));
}
