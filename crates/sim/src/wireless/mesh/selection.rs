use std::collections::BTreeMap;

use anabranch_types::Time;

use super::route::Route;

/// The neighbours that a station has heard. It adds them to a route reply that it forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourList {
    /// The station.
    pub station: u16,
    /// Neighbours of the station, in ascending order.
    pub neighbours: Vec<u16>,
}

/// How separate two routes must be to be used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separation {
    /// Two routes share no station except their ends.
    Stations,
    /// In addition, no station of one route is a neighbour of a station of the other route, except
    /// for the stations next to the ends, where this cannot be avoided (M-TCP, §III.A: "two-hop
    /// disjoint").
    TwoHops,
}

/// Whether two routes between the same stations share no other station.
pub fn are_disjoint(one: &Route, two: &Route) -> bool {
    shared_stations(one, two) == 0
}

/// The number of stations that two routes share, not counting their ends.
pub fn shared_stations(one: &Route, two: &Route) -> usize {
    one.between().iter().filter(|station| two.between().contains(station)).count()
}

/// Which stations hear each other, according to the lists in replies.
#[derive(Clone, Debug, Default)]
pub struct NeighbourMap {
    lists: BTreeMap<u16, Vec<u16>>,
}

impl NeighbourMap {
    /// Replaces a station's list by a newer one.
    pub fn learn(&mut self, list: &NeighbourList) {
        self.lists.insert(list.station, list.neighbours.clone());
    }

    /// Whether the list of one of two stations contains the other.
    pub fn are_neighbours(&self, one: u16, two: u16) -> bool {
        let tells = |one, two| self.lists.get(one).is_some_and(|list| list.contains(two));
        tells(&one, &two) || tells(&two, &one)
    }

    /// Whether two routes between the same stations are as separate as `separation` requires.
    pub fn are_separate(&self, one: &Route, two: &Route, separation: Separation) -> bool {
        let far = match separation {
            Separation::Stations => true,
            Separation::TwoHops => {
                let mut pairs =
                    inner(one).iter().flat_map(|a| inner(two).iter().map(move |b| (a, b)));
                !pairs.any(|(a, b)| self.are_neighbours(*a, *b))
            }
        };
        far && are_disjoint(one, two)
    }
}

/// The stations of a route that are not next to its ends.
fn inner(route: &Route) -> &[u16] {
    let between = route.between();
    between.get(1..between.len().saturating_sub(1)).unwrap_or_default()
}

/// The routes to one destination in the order in which they were found, and the second route to
/// use.
#[derive(Clone, Debug, Default)]
pub struct RouteSet {
    found: Vec<(Route, Time)>,
    map: NeighbourMap,
    second: Option<Route>,
}

/// Maximum number of routes to a destination. When there are more, the oldest is removed.
const MOST_ROUTES: usize = 16;

impl RouteSet {
    /// Adds a route, and the lists of neighbours that came with it.
    pub fn add(&mut self, now: Time, route: &Route, lists: &[NeighbourList], how: Separation) {
        lists.iter().for_each(|list| self.map.learn(list));
        match self.found.iter_mut().find(|(known, _)| known == route) {
            Some((_, found)) => *found = now,
            None => self.found.push((*route, now)),
        }
        if self.found.len() > MOST_ROUTES {
            self.found.remove(0);
        }
        self.select(how);
    }

    /// Removes the routes that use a failed link.
    pub fn remove_link(&mut self, from: u16, to: u16, how: Separation) {
        let before = self.found.len();
        self.found.retain(|(route, _)| !route.uses(from, to));
        if self.found.len() < before {
            self.select(how);
        }
    }

    /// The route that was found first, of those that are left.
    pub fn first(&self) -> Option<Route> {
        self.found.first().map(|(route, _)| *route)
    }

    /// The route to use in addition to the first: the shortest route that is sufficiently separate
    /// from the first, and the newest of equally short ones.
    pub fn second(&self) -> Option<Route> {
        self.second
    }

    fn select(&mut self, how: Separation) {
        let Some(((first, _), others)) = self.found.split_first() else {
            self.second = None;
            return;
        };
        let separate = others.iter().filter(|(route, _)| self.map.are_separate(first, route, how));
        let best = separate.min_by_key(|(route, found)| (route.len(), core::cmp::Reverse(*found)));
        self.second = best.map(|(route, _)| *route);
    }
}

/// Of the routes by which copies of a request reached a destination, the one to answer in addition
/// to the first: the route with the fewest stations in common with the first, then the shortest,
/// then the earliest (SMR: Lee and Gerla 2001, §III.B).
pub fn maximally_disjoint(first: &Route, others: &[Route]) -> Option<Route> {
    let others = others.iter().filter(|route| *route != first);
    others.min_by_key(|route| (shared_stations(first, route), route.len())).copied()
}

#[cfg(test)]
mod tests;
