use super::*;
use proptest::prelude::*;

fn list(station: u16, neighbours: &[u16]) -> NeighbourList {
    NeighbourList { station, neighbours: neighbours.to_vec() }
}

#[test]
fn routes_that_meet_or_pass_close_to_each_other_are_told_apart() {
    let upper = Route::new(&[0, 1, 2, 3, 9]);
    let lower = Route::new(&[0, 4, 5, 6, 9]);
    let mut map = NeighbourMap::default();
    assert!(are_disjoint(&upper, &lower));
    assert!(!are_disjoint(&upper, &Route::new(&[0, 4, 2, 6, 9])));
    assert!(map.are_separate(&upper, &lower, Separation::TwoHops));
    // Stations next to the ends may be neighbours.
    map.learn(&list(1, &[0, 2, 4, 5]));
    map.learn(&list(6, &[2, 3, 5, 9]));
    assert!(map.are_separate(&upper, &lower, Separation::TwoHops));
    map.learn(&list(5, &[2, 4, 6]));
    assert!(!map.are_separate(&upper, &lower, Separation::TwoHops));
    assert!(map.are_separate(&upper, &lower, Separation::Stations));
}

#[test]
fn the_second_route_is_the_shortest_then_the_newest() {
    let how = Separation::TwoHops;
    let at = Time::from_secs;
    let mut set = RouteSet::default();
    set.add(at(1), &Route::new(&[0, 1, 2, 9]), &[], how);
    assert_eq!((set.first(), set.second()), (Some(Route::new(&[0, 1, 2, 9])), None));
    set.add(at(2), &Route::new(&[0, 3, 4, 5, 9]), &[], how);
    set.add(at(3), &Route::new(&[0, 6, 7, 9]), &[], how);
    set.add(at(4), &Route::new(&[0, 8, 5, 9]), &[], how);
    set.add(at(5), &Route::new(&[0, 1, 9]), &[], how);
    assert_eq!(set.second(), Some(Route::new(&[0, 8, 5, 9])));
    set.remove_link(8, 5, how);
    assert_eq!(set.second(), Some(Route::new(&[0, 6, 7, 9])));
    // A route that is found again counts as new.
    set.add(at(6), &Route::new(&[0, 8, 5, 9]), &[], how);
    set.add(at(7), &Route::new(&[0, 6, 7, 9]), &[], how);
    assert_eq!(set.second(), Some(Route::new(&[0, 6, 7, 9])));
    // When the first route is removed, the next oldest takes its place.
    set.remove_link(2, 9, how);
    assert_eq!(set.first(), Some(Route::new(&[0, 3, 4, 5, 9])));
    assert_eq!(set.second(), Some(Route::new(&[0, 1, 9])));
}

#[test]
fn the_destination_answers_what_has_least_in_common_with_the_first() {
    let first = Route::new(&[0, 1, 2, 3, 9]);
    let others = [
        Route::new(&[0, 1, 2, 4, 9]),
        Route::new(&[0, 5, 6, 7, 8, 9]),
        Route::new(&[0, 4, 3, 9]),
        Route::new(&[0, 5, 6, 8, 9]),
        Route::new(&[0, 5, 7, 8, 9]),
    ];
    assert_eq!(maximally_disjoint(&first, &others), Some(Route::new(&[0, 5, 6, 8, 9])));
    assert_eq!(maximally_disjoint(&first, &[first]), None);
}

fn route() -> impl Strategy<Value = Route> {
    proptest::collection::vec(1_u16..12, 1..6).prop_map(|between| {
        let stations = [&[0][..], &between, &[12]].concat();
        Route::new(&stations).without_loops()
    })
}

proptest! {
    #[test]
    fn what_is_selected_keeps_its_promise(
        routes in proptest::collection::vec(route(), 1..12),
        links in proptest::collection::vec((1_u16..12, 1_u16..12), 0..20),
        failed in proptest::collection::vec((0_u16..13, 0_u16..13), 0..4),
        stations_only in any::<bool>(),
    ) {
        let how = if stations_only { Separation::Stations } else { Separation::TwoHops };
        let mut set = RouteSet::default();
        let lists: Vec<_> = (1..12)
            .map(|station| {
                let heard = links.iter().filter(|(from, _)| *from == station);
                list(station, &heard.map(|(_, to)| *to).collect::<Vec<_>>())
            })
            .collect();
        for (at, route) in routes.iter().enumerate() {
            set.add(Time::from_secs(at as u64), route, &lists, how);
        }
        for (from, to) in &failed {
            set.remove_link(*from, *to, how);
        }
        let whole = |route: &&Route| !failed.iter().any(|(from, to)| route.uses(*from, *to));
        prop_assert_eq!(set.first(), routes.iter().find(whole).copied());
        let near = |a: &u16, b: &u16| links.contains(&(*a, *b)) || links.contains(&(*b, *a));
        let far = |one: &Route, two: &Route| {
            let ends = |route: &Route, at: u16| {
                route.position(at).is_some_and(|at| at == 1 || at + 2 == route.len())
            };
            one.between().iter().all(|a| two.between().iter().all(|b| {
                a != b && (stations_only || ends(one, *a) || ends(two, *b) || !near(a, b))
            }))
        };
        if let Some(first) = set.first() {
            let others = routes.iter().filter(whole).filter(|route| **route != first);
            let shortest = others.filter(|route| far(&first, route)).map(|route| route.len()).min();
            prop_assert_eq!(set.second().map(|route| route.len()), shortest);
            if let Some(second) = set.second() {
                prop_assert!(far(&first, &second) && whole(&&second));
            }
        } else {
            prop_assert_eq!(set.second(), None);
        }
    }
}
