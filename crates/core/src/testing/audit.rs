//! Checks that an endpoint respects its congestion windows while it sends.

use crate::connection::ConnectionStats;
use crate::testing::End;

/// Most bytes sent beyond the window at one time: the packet that fills the window, two probes,
/// reports and challenges.
const BEYOND: u64 = 4 * 1500;

/// Statistics of a connection (bytes in flight and windows) before an endpoint sends.
#[derive(Debug)]
pub(super) struct Flight(Option<ConnectionStats>);

impl Flight {
    /// Records the statistics of the connection now.
    pub(super) fn of(end: &mut End) -> Self {
        Flight(end.connection().map(|connection| connection.stats()))
    }

    /// Checks that the bytes in flight of each path fit into the window, unless they were in flight
    /// before the window shrank.
    pub(super) fn check(&self, end: &mut End) {
        let (Some(before), Some(connection)) = (&self.0, end.connection()) else { return };
        let after = connection.stats();
        for path in &after.paths {
            let earlier = before.paths.iter().find(|earlier| earlier.id == path.id);
            let (flying, cwnd) =
                earlier.map_or((0, 0), |earlier| (earlier.bytes_in_flight, earlier.cwnd));
            let allowed = flying.max(cwnd).max(path.cwnd) + BEYOND;
            assert!(path.bytes_in_flight <= allowed, "{flying} before, then {path:?}");
        }
    }
}
