//! Checks the rules that an endpoint must keep while it sends.

use crate::connection::ConnectionStats;
use crate::testing::End;

/// Most bytes sent beyond the window at one moment: the packet that fills it, two probes, reports and challenges.
const BEYOND: u64 = 4 * 1500;

/// Statistics of a connection before an endpoint sent: bytes in flight and windows.
#[derive(Debug)]
pub(super) struct Flight(Option<ConnectionStats>);

impl Flight {
    /// Statistics of the connection now.
    pub(super) fn of(end: &mut End) -> Self {
        Flight(end.connection().map(|connection| connection.stats()))
    }

    /// Checks that bytes in flight fit into the window, except for what was in flight before the window shrank.
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
