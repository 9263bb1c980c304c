use core::time::Duration;
use std::collections::BTreeMap;

use anabranch_types::Time;

/// The route requests known to a station: those of other stations that it has handled, and its own.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Requests {
    handled: BTreeMap<u16, Handled>,
    own: BTreeMap<u16, Discovery>,
    number: u32,
}

/// The latest request of a source that this station has handled.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Handled {
    /// The request's number.
    pub(in super::super) number: u32,
    /// Number of hops that the first copy took to this station.
    pub(in super::super) first_hops: usize,
    /// The smallest number of hops that a copy took to this station.
    pub(in super::super) least_hops: usize,
    /// The neighbour from which the first copy came.
    pub(in super::super) from: u16,
}

/// A search for one destination.
#[derive(Clone, Copy, Debug, Default)]
struct Discovery {
    /// Number of requests since the last reply.
    outstanding: u32,
    /// When the last search began; `None` after a reply.
    last: Option<Time>,
    /// When the neighbours were asked; `None` once all stations have been asked.
    limited: Option<Time>,
}

/// What to do with a packet for a destination without a known route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Search {
    /// Ask only the neighbours.
    Neighbours,
    /// Ask all stations.
    Everybody,
    /// Let the packet wait.
    Wait,
    /// Give up the packet. It comes from another station, which must search for a route itself.
    GiveUp,
}

/// How searches are repeated.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Pace {
    /// If given, the neighbours are asked first, and this is how long their answer may take.
    pub(in super::super) neighbours_first: Option<Duration>,
    /// A quarter of the wait before the second search; each further wait is four times the one before.
    pub(in super::super) first_wait: Duration,
    /// The longest wait before a search is repeated.
    pub(in super::super) most_wait: Duration,
}

impl Requests {
    /// The latest handled request of a source.
    pub(in super::super) fn handled(&mut self, source: u16) -> &mut Handled {
        self.handled.entry(source).or_default()
    }

    /// The number for the next request of this station, from 1.
    pub(in super::super) fn next_number(&mut self) -> u32 {
        self.number += 1;
        self.number
    }

    /// Decides whether and how to search for a route to `to`. `own` is true if the packet is this
    /// station's own. For packets of other stations, only the neighbours are asked, and only once,
    /// as in ns-2; RFC 4728 has no such search.
    pub(in super::super) fn search(
        &mut self,
        now: Time,
        to: u16,
        own: bool,
        pace: &Pace,
    ) -> Search {
        let discovery = self.own.entry(to).or_default();
        let factor = 1_u32 << (2 * discovery.outstanding).min(20);
        let wait = pace.first_wait.saturating_mul(factor).min(pace.most_wait);
        if !own && pace.neighbours_first.is_none() {
            return Search::GiveUp;
        }
        if discovery.last.is_none_or(|last| last + wait <= now) {
            discovery.outstanding += 1;
            discovery.last = Some(now);
            if !own && discovery.outstanding > 1 {
                return Search::GiveUp;
            }
            discovery.limited = pace.neighbours_first.map(|_| now);
            return match pace.neighbours_first {
                Some(_) => Search::Neighbours,
                None => Search::Everybody,
            };
        }
        match (pace.neighbours_first, discovery.limited) {
            (Some(patience), Some(since)) if own && now > since + patience => {
                discovery.limited = None;
                Search::Everybody
            }
            _ => Search::Wait,
        }
    }

    /// Notes that a reply for the destination `to` has arrived.
    pub(in super::super) fn answered(&mut self, to: u16) {
        let discovery = self.own.entry(to).or_default();
        (discovery.outstanding, discovery.last) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        neighbours_first: Some(Duration::from_millis(30)),
        first_wait: Duration::from_millis(500),
        most_wait: Duration::from_secs(10),
    };

    /// The searches for one destination if a packet needs a route every 10 ms, with their times in
    /// milliseconds.
    fn searches(pace: &Pace, own: bool, seconds: u64) -> Vec<(u64, Search)> {
        let mut requests = Requests::default();
        let ask = |at| (at, requests.search(Time::from_millis(at), 5, own, pace));
        let all = (0..seconds * 100).map(|step| step * 10).map(ask);
        all.filter(|(_, search)| *search != Search::Wait).collect()
    }

    #[test]
    fn neighbours_are_asked_first_and_searches_become_rare() {
        use Search::{Everybody, Neighbours};
        let expected = [
            (0, Neighbours),
            (40, Everybody),
            (2000, Neighbours),
            (2040, Everybody),
            (10_000, Neighbours),
            (10_040, Everybody),
            (20_000, Neighbours),
            (20_040, Everybody),
        ];
        assert_eq!(searches(&PACE, true, 25), expected);
    }

    #[test]
    fn everybody_is_asked_at_once_if_so_configured() {
        let pace = Pace { neighbours_first: None, ..PACE };
        let at: Vec<u64> = searches(&pace, true, 25).iter().map(|(at, _)| *at).collect();
        assert_eq!(at, [0, 2000, 10_000, 20_000]);
    }

    #[test]
    fn for_a_packet_that_is_forwarded_the_neighbours_are_asked_once() {
        use Search::{GiveUp, Neighbours};
        assert_eq!(searches(&PACE, false, 3), [(0, Neighbours), (2000, GiveUp)]);
    }

    #[test]
    fn a_reply_ends_the_waiting() {
        let mut requests = Requests::default();
        let mut search = |at| requests.search(Time::from_millis(at), 5, true, &PACE);
        assert_eq!(search(0), Search::Neighbours);
        assert_eq!(search(10), Search::Wait);
        requests.answered(5);
        assert_eq!(requests.search(Time::from_millis(20), 5, true, &PACE), Search::Neighbours);
    }
}
