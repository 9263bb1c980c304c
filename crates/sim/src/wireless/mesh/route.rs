use core::fmt;

/// Maximum number of stations on a source route, including its ends, as in ns-2.
pub const MAX_ROUTE: usize = 16;

/// Stations in the order in which a packet visits them, source and destination included.
#[derive(Clone, Copy, Default)]
pub struct Route {
    stations: [u16; MAX_ROUTE],
    len: u8,
}

impl Route {
    /// An empty route.
    pub const EMPTY: Route = Route { stations: [0; MAX_ROUTE], len: 0 };

    /// The route over these stations. Stations after the first [`MAX_ROUTE`] are left out.
    pub fn new(stations: &[u16]) -> Self {
        let mut route = Route::EMPTY;
        stations.iter().for_each(|station| {
            route.push(*station);
        });
        route
    }

    /// The stations.
    pub fn stations(&self) -> &[u16] {
        self.stations.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The number of stations, including the ends.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether the route has no stations.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of transmissions along the route.
    pub fn hops(&self) -> usize {
        self.len().saturating_sub(1)
    }

    /// The station at the index `at`, counted from 0.
    pub fn get(&self, at: usize) -> Option<u16> {
        self.stations().get(at).copied()
    }

    /// The first station.
    pub fn first(&self) -> Option<u16> {
        self.get(0)
    }

    /// The last station.
    pub fn last(&self) -> Option<u16> {
        self.stations().last().copied()
    }

    /// The stations between the ends.
    pub fn between(&self) -> &[u16] {
        self.stations().get(1..self.len().saturating_sub(1)).unwrap_or_default()
    }

    /// Whether a station is on the route, including its ends.
    pub fn contains(&self, station: u16) -> bool {
        self.stations().contains(&station)
    }

    /// The index of a station on the route.
    pub fn position(&self, station: u16) -> Option<usize> {
        self.stations().iter().position(|other| *other == station)
    }

    /// Whether the route takes the link from one station to another, in this direction.
    pub fn uses(&self, from: u16, to: u16) -> bool {
        self.link(from, to).is_some()
    }

    /// The index of the station `from` if `to` follows it on the route.
    pub fn link(&self, from: u16, to: u16) -> Option<usize> {
        self.stations().windows(2).position(|pair| *pair == [from, to])
    }

    /// Whether the route has no room for another station.
    pub fn is_full(&self) -> bool {
        self.len() == MAX_ROUTE
    }

    /// Adds a station at the end. Returns whether there was room.
    pub fn push(&mut self, station: u16) -> bool {
        let room = !self.is_full();
        if room && let Some(place) = self.stations.get_mut(usize::from(self.len)) {
            *place = station;
            self.len += 1;
        }
        room
    }

    /// Keeps the first `len` stations.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len.min(MAX_ROUTE) as u8);
    }

    /// The part of the route from the index `at` on.
    #[must_use]
    pub fn from(&self, at: usize) -> Route {
        Route::new(self.stations().get(at..).unwrap_or_default())
    }

    /// The first `len` stations.
    #[must_use]
    pub fn until(&self, len: usize) -> Route {
        let mut route = *self;
        route.truncate(len);
        route
    }

    /// The route in reverse.
    #[must_use]
    pub fn reversed(&self) -> Route {
        let mut route = *self;
        let len = route.len();
        if let Some(stations) = route.stations.get_mut(..len) {
            stations.reverse();
        }
        route
    }

    /// This route followed by another; `None` if the result is too long.
    #[must_use]
    pub fn joined(&self, other: &Route) -> Option<Route> {
        let mut route = *self;
        other.stations().iter().all(|station| route.push(*station)).then_some(route)
    }

    /// The route without loops: parts that lead back to an earlier station are removed.
    #[must_use]
    pub fn without_loops(&self) -> Route {
        let mut route = Route::EMPTY;
        for station in self.stations() {
            match route.position(*station) {
                Some(at) => route.truncate(at + 1),
                None => {
                    route.push(*station);
                }
            }
        }
        route
    }

    /// The number of stations that both routes begin with.
    pub fn common_prefix(&self, other: &Route) -> usize {
        let pairs = self.stations().iter().zip(other.stations());
        pairs.take_while(|(one, two)| one == two).count()
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.stations() == other.stations()
    }
}

impl Eq for Route {}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.stations()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn loops_are_cut_out() {
        // An example from ns-2: A B C B D becomes A B D.
        assert_eq!(Route::new(&[1, 2, 3, 2, 4]).without_loops(), Route::new(&[1, 2, 4]));
        assert_eq!(Route::new(&[1, 2, 3, 1]).without_loops(), Route::new(&[1]));
    }

    #[test]
    fn a_full_route_takes_no_more() {
        let mut route = Route::new(&[7; 20]);
        assert_eq!(route.len(), MAX_ROUTE);
        assert!(!route.push(1));
        assert_eq!(route.joined(&Route::new(&[1])), None);
    }

    proptest! {
        #[test]
        fn parts_make_the_whole(
            stations in proptest::collection::vec(0_u16..6, 0..16),
            at in 0_usize..16,
        ) {
            let route = Route::new(&stations);
            prop_assert_eq!(route.until(at).joined(&route.from(at)), Some(route));
            prop_assert_eq!(route.reversed().reversed(), route);
            let plain = route.without_loops();
            prop_assert_eq!(plain.first(), route.first());
            prop_assert_eq!(plain.last(), route.last());
            for (place, station) in plain.stations().iter().enumerate() {
                prop_assert_eq!(plain.position(*station), Some(place), "each station once");
            }
            for pair in plain.stations().windows(2) {
                prop_assert!(route.uses(pair[0], pair[1]), "no link is new");
            }
        }
    }
}
