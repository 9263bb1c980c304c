//! Where `connect` looks for its server.

use std::net::SocketAddr;
use std::time::Duration;

/// Time for an answer if only one address is known, and the longest time otherwise.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time for an answer in the first round if several addresses are known: some round trips of a slow network. It doubles
/// with each round, in case the network is slower than that.
const FIRST_ROUND: Duration = Duration::from_secs(2);

/// The address in the settings, and those that the server announced in the last connection, tried in turn.
#[derive(Debug, Default)]
pub(super) struct Remotes {
    announced: Vec<SocketAddr>,
    tries: usize,
}

impl Remotes {
    /// A connection has ended in which the server announced these addresses. The next try is at the address in the settings.
    /// A connection that was `short` may have ended before the server could announce any: then the earlier ones stay.
    pub(super) fn connected(&mut self, announced: Vec<SocketAddr>, short: bool) {
        if !announced.is_empty() || !short {
            self.announced = announced;
        }
        self.tries = 0;
    }

    /// Address to try next, `None` for the one in the settings, and how long an answer may take.
    pub(super) fn next(&mut self) -> (Option<SocketAddr>, Duration) {
        let places = 1 + self.announced.len();
        let (round, place) = (self.tries / places, self.tries % places);
        self.tries += 1;
        let doubled = FIRST_ROUND * 2_u32.pow(round.min(4) as u32);
        let patience = if places == 1 { PATIENCE } else { doubled.min(PATIENCE) };
        (place.checked_sub(1).and_then(|nth| self.announced.get(nth).copied()), patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_tried_in_turn_and_longer_in_each_round() {
        let [a, b]: [SocketAddr; 2] =
            ["192.0.2.1:1", "192.0.2.2:2"].map(|text| text.parse().unwrap());
        let mut remotes = Remotes::default();
        assert_eq!([remotes.next(), remotes.next()], [(None, PATIENCE); 2]);
        remotes.connected(vec![a, b], false);
        for seconds in [2, 4, 8, 16, 30, 30, 30] {
            let patience = Duration::from_secs(seconds);
            let round = [remotes.next(), remotes.next(), remotes.next()];
            assert_eq!(round, [None, Some(a), Some(b)].map(|remote| (remote, patience)));
        }
        remotes.next();
        // A connection that was lost at once: the settings' address first, and the others are still known.
        remotes.connected(Vec::new(), true);
        assert_eq!([remotes.next().0, remotes.next().0], [None, Some(a)]);
        remotes.connected(Vec::new(), false);
        assert_eq!([remotes.next().0, remotes.next().0], [None, None]);
    }
}
