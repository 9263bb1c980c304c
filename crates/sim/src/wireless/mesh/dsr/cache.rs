use super::super::route::Route;

/// The routes that a station knows, stored as whole paths (RFC 4728 §4.1). All begin at this
/// station.
///
/// As in ns-2's path cache, there are two parts: one for 30 routes that were searched for or used,
/// and one for 64 routes that were seen in packets of other stations. In each part, new routes
/// replace the oldest. A route of the second part that is used moves to the first.
#[derive(Clone, Debug)]
pub(in super::super) struct RouteCache {
    own: Shelf,
    seen: Shelf,
}

#[derive(Clone, Debug)]
struct Shelf {
    routes: Vec<Route>,
    next: usize,
}

impl Default for RouteCache {
    fn default() -> Self {
        RouteCache { own: Shelf::new(30), seen: Shelf::new(64) }
    }
}

impl RouteCache {
    /// Adds a route that was searched for.
    pub(in super::super) fn add(&mut self, route: &Route) {
        self.own.add(route);
    }

    /// Adds a route that was seen in other stations' packets.
    pub(in super::super) fn notice(&mut self, route: &Route) {
        self.seen.add(route);
    }

    /// The shortest route to a station. Of equally short routes, those of the first part are
    /// preferred, and then the one at the lowest index. With `for_use`, a route of the second part
    /// moves to the first.
    pub(in super::super) fn find(&mut self, to: u16, for_use: bool) -> Option<Route> {
        let own = self.own.find(to);
        let seen = self.seen.find(to);
        let (at, len) = match (own, seen) {
            (Some((at, len)), None) => return self.own.part(at, len),
            (Some((at, len)), Some((_, other))) if len <= other => return self.own.part(at, len),
            (_, seen) => seen?,
        };
        let found = self.seen.part(at, len);
        if for_use && let Some(route) = self.seen.routes.get_mut(at) {
            self.own.add(route);
            *route = Route::EMPTY;
        }
        found
    }

    /// Removes a failed link: routes that use the link are cut before it.
    pub(in super::super) fn remove_link(&mut self, from: u16, to: u16) {
        self.own.remove_link(from, to);
        self.seen.remove_link(from, to);
    }

    /// All routes, in no particular order.
    #[cfg(test)]
    pub(in super::super) fn routes(&self) -> impl Iterator<Item = &Route> {
        self.own.routes.iter().chain(&self.seen.routes).filter(|route| !route.is_empty())
    }
}

impl Shelf {
    fn new(room: usize) -> Self {
        Shelf { routes: vec![Route::EMPTY; room], next: 0 }
    }

    fn add(&mut self, route: &Route) {
        for kept in &mut self.routes {
            let common = kept.common_prefix(route);
            if common == kept.len() {
                // The place is free, or has a route that the new one extends.
                *kept = *route;
                return;
            }
            if common == route.len() {
                return;
            }
        }
        if let Some(oldest) = self.routes.get_mut(self.next) {
            *oldest = *route;
        }
        self.next = (self.next + 1) % self.routes.len().max(1);
    }

    /// Index of the shortest route to a station, and the number of the route's stations up to this
    /// one.
    fn find(&self, to: u16) -> Option<(usize, usize)> {
        let lengths = self.routes.iter().enumerate();
        let lengths = lengths.filter_map(|(at, route)| Some((at, route.position(to)? + 1)));
        lengths.min_by_key(|(_, len)| *len)
    }

    fn part(&self, at: usize, len: usize) -> Option<Route> {
        self.routes.get(at).map(|route| route.until(len))
    }

    fn remove_link(&mut self, from: u16, to: u16) {
        for route in &mut self.routes {
            if let Some(at) = route.link(from, to) {
                // A route whose first link has failed is removed.
                route.truncate(if at == 0 { 0 } else { at + 1 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_shortest_route_is_found_and_its_use_keeps_it() {
        let mut cache = RouteCache::default();
        cache.add(&Route::new(&[0, 1, 2, 3, 4]));
        cache.notice(&Route::new(&[0, 5, 3, 6]));
        assert_eq!(cache.find(2, true), Some(Route::new(&[0, 1, 2])));
        assert_eq!(cache.find(3, false), Some(Route::new(&[0, 5, 3])));
        assert_eq!(cache.find(3, true), Some(Route::new(&[0, 5, 3])));
        // The route is now in the first part, so 64 new routes in the second part do not replace
        // it.
        for station in 0..64 {
            cache.notice(&Route::new(&[0, 100 + station]));
        }
        assert_eq!(cache.find(6, false), Some(Route::new(&[0, 5, 3, 6])));
        assert_eq!(cache.find(9, true), None);
    }

    #[test]
    fn a_failed_link_ends_the_routes_that_use_it() {
        let mut cache = RouteCache::default();
        cache.add(&Route::new(&[0, 1, 2, 3]));
        cache.add(&Route::new(&[0, 4, 2, 1]));
        cache.remove_link(1, 2);
        assert_eq!(cache.find(3, true), None);
        // The reverse direction of the link is kept.
        assert_eq!(cache.find(1, true), Some(Route::new(&[0, 1])));
        assert_eq!(cache.find(2, true), Some(Route::new(&[0, 4, 2])));
        cache.remove_link(0, 4);
        assert_eq!(cache.find(2, true), None);
    }

    #[test]
    fn the_oldest_make_room() {
        let mut cache = RouteCache::default();
        for station in 1..=31 {
            cache.add(&Route::new(&[0, station]));
        }
        assert_eq!(cache.find(1, true), None);
        assert!((2..=31).all(|station| cache.find(station, true).is_some()));
    }

    fn route() -> impl Strategy<Value = Route> {
        proptest::collection::vec(1_u16..8, 1..6).prop_map(|stations| {
            let start = [&[0][..], &stations].concat();
            Route::new(&start).without_loops()
        })
    }

    proptest! {
        /// Compares the cache with a list of links: a route that is found uses no failed link, has
        /// no loops, and is not longer than any added route without a failed link.
        #[test]
        fn what_is_found_is_whole_and_shortest(
            added in proptest::collection::vec((route(), any::<bool>()), 1..25),
            failed in proptest::collection::vec((0_u16..8, 0_u16..8), 0..6),
            to in 1_u16..8,
        ) {
            let mut cache = RouteCache::default();
            for (route, asked) in &added {
                if *asked { cache.add(route) } else { cache.notice(route) }
            }
            for (from, to) in &failed {
                cache.remove_link(*from, *to);
            }
            let whole = |route: &Route| !failed.iter().any(|(from, to)| route.uses(*from, *to));
            let parts = added.iter().filter_map(|(route, _)| {
                let part = route.until(route.position(to)? + 1);
                whole(&part).then_some(part.len())
            });
            let found = cache.find(to, false);
            prop_assert_eq!(found.map(|route| route.len()), parts.min());
            if let Some(route) = found {
                prop_assert!(whole(&route));
                prop_assert_eq!((route.first(), route.last()), (Some(0), Some(to)));
            }
            for kept in cache.routes() {
                prop_assert_eq!(kept.first(), Some(0));
            }
        }
    }
}
