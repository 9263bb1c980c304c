use super::*;
use anabranch_types::Rng;

const ROUND: Duration = Duration::from_millis(50);

/// A path that carries IP packets of up to `mtu` bytes and loses the fraction `loss` of all
/// packets.
struct Way {
    mtu: u16,
    loss: f64,
    rng: Rng,
    now: Time,
}

impl Way {
    fn new(mtu: u16, loss: f64) -> Self {
        let now = Time::ZERO + Duration::from_secs(1);
        Way { mtu, loss, rng: Rng::new(u64::from(mtu)), now }
    }

    fn passes(&mut self, size: u16) -> bool {
        !self.rng.chance(self.loss) && size <= self.mtu
    }

    /// Sends the probe that is due, if any, and reports its fate to `state`.
    fn probe(&mut self, state: &mut PathMtu) -> bool {
        let Some(size) = state.probe_due(self.now) else { return false };
        state.on_probe_sent(size, self.now + ROUND);
        assert_eq!(state.probe_due(self.now), None, "one at a time");
        self.now += ROUND;
        if self.passes(size) {
            state.on_probe_acked(self.now, size);
        } else {
            state.on_timer(self.now, self.loss);
        }
        true
    }

    /// Searches to the end; returns the number of probes.
    fn search(&mut self, state: &mut PathMtu) -> u32 {
        let mut probes = 0;
        while self.probe(state) {
            probes += 1;
            assert!(probes < 1000, "the search does not end");
        }
        probes
    }

    /// A round trip of ten full packets and a short one.
    fn carry(&mut self, state: &mut PathMtu) -> Option<Narrowing> {
        let (sent, full) = (self.now, state.size());
        let fates: Vec<bool> = (0..10).map(|_| self.passes(full)).collect();
        let short = self.passes(50);
        self.now += ROUND;
        for _ in fates.iter().filter(|passed| **passed) {
            state.on_acked(full, sent);
        }
        if short {
            state.on_acked(50, sent + Duration::from_millis(1));
        }
        let losses = fates.iter().filter(|passed| !**passed);
        losses.filter_map(|_| state.on_lost(self.now, full, sent)).last()
    }
}

#[test]
fn a_clean_search_finds_every_size_exactly() {
    for mtu in 1200..=9000 {
        let mut state = PathMtu::new(1200, Some(9000));
        let probes = Way::new(mtu, 0.0).search(&mut state);
        assert_eq!(state.size(), mtu);
        assert!(probes <= 28, "{probes} probes to find {mtu}");
    }
}

#[test]
fn the_ceiling_takes_one_probe_and_is_never_exceeded() {
    let mut state = PathMtu::new(1232, Some(1472));
    assert_eq!(Way::new(9000, 0.0).search(&mut state), 1);
    assert_eq!(state.size(), 1472);
    assert!(!state.on_probe_acked(Time::ZERO, 5000));
    assert_eq!(state.size(), 1472);
}

#[test]
fn loss_never_makes_a_path_seem_wider_and_seldom_narrower() {
    let mut exact = 0;
    for mtu in 1232..=1532 {
        let mut state = PathMtu::new(1232, Some(1472));
        let mut way = Way::new(mtu, 0.3);
        way.search(&mut state);
        assert!(state.size() <= mtu && state.size() >= 1232);
        exact += u32::from(state.size() == mtu.min(1472));
        // An MTU that was missed is found when the search is repeated.
        for _ in 0..20 {
            way.now += RAISE_AFTER;
            way.search(&mut state);
        }
        assert_eq!(state.size(), mtu.min(1472));
    }
    assert!(exact > 270, "{exact} of 301 at the first attempt");
}

#[test]
fn a_path_that_became_narrower_is_found_out_within_rounds_whatever_its_loss() {
    for loss in [0.0, 0.1, 0.3] {
        for mtu in [1200, 1210, 1231, 1232, 1300, 1400, 1471] {
            let mut state = PathMtu::new(1232, Some(1472));
            let mut way = Way::new(1500, loss);
            while state.size() < 1472 {
                way.search(&mut state);
                way.now += RAISE_AFTER;
            }
            way.mtu = mtu;
            let mut rounds = 0;
            while state.size() > mtu {
                way.carry(&mut state);
                rounds += 1;
                assert!(rounds < 40, "still {} over {mtu} at {loss}", state.size());
            }
            way.search(&mut state);
            assert!((1200..=mtu).contains(&state.size()));
            assert!(loss > 0.0 || state.size() == mtu, "{} instead of {mtu}", state.size());
        }
    }
}

#[test]
fn loss_alone_does_not_shrink_packets() {
    for loss in [0.0, 0.1, 0.3, 0.5] {
        let mut state = PathMtu::new(1232, Some(1472));
        let mut way = Way::new(1500, 0.0);
        way.search(&mut state);
        way.loss = loss;
        for _ in 0..20_000 {
            assert_eq!(way.carry(&mut state), None, "at {loss}");
        }
    }
}

/// If packets are lost in runs, many full packets are lost while short ones before and after them
/// pass.
#[test]
fn losses_in_runs_do_not_shrink_packets() {
    for (begins, ends) in [(0.02, 0.1), (0.05, 0.1), (0.1, 0.1), (0.1, 0.3), (0.3, 0.2)] {
        let mut state = PathMtu::new(1232, Some(1472));
        let mut way = Way::new(1500, 0.0);
        way.search(&mut state);
        let mut lost = false;
        for _ in 0..20_000 {
            let mut passes = || {
                lost = way.rng.chance(if lost { 1.0 - ends } else { begins });
                !lost
            };
            let sent = way.now;
            let full: Vec<bool> = (0..4).map(|_| passes()).collect();
            let short = passes();
            way.now += ROUND;
            for passed in full {
                if passed {
                    state.on_acked(1472, sent);
                } else {
                    let said = state.on_lost(way.now, 1472, sent);
                    assert_eq!(said, None, "runs begin with {begins} and end with {ends}");
                }
            }
            if short {
                state.on_acked(27, sent + Duration::from_millis(1));
            }
        }
    }
}

/// The loss of a new path is not known yet.
#[test]
fn a_new_path_that_loses_half_of_all_packets_is_not_narrow() {
    for seed in 0..3000 {
        let mut state = PathMtu::new(1232, Some(1472));
        let mut way = Way::new(1500, 0.5);
        way.rng = Rng::new(seed);
        for _ in 0..20 {
            let sent = way.now;
            let fates: Vec<bool> = (0..4).map(|_| way.passes(1232)).collect();
            let short = way.passes(27);
            way.now += ROUND;
            fates.iter().filter(|passed| **passed).for_each(|_| state.on_acked(1232, sent));
            if short {
                state.on_acked(27, sent + Duration::from_millis(1));
            }
            for _ in fates.iter().filter(|passed| !**passed) {
                assert_eq!(state.on_lost(way.now, 1232, sent), None, "seed {seed}");
            }
        }
    }
}

#[test]
fn a_blackout_is_no_black_hole() {
    let mut state = PathMtu::new(1232, Some(1472));
    let mut way = Way::new(1500, 0.0);
    way.search(&mut state);
    for _ in 0..100 {
        way.loss = 1.0;
        let sent = way.now;
        for _ in 0..1000 {
            assert_eq!(state.on_lost(way.now + ROUND, 1472, sent), None);
        }
        way.now += ROUND;
        way.loss = 0.0;
        state.on_acked(50, way.now);
        assert_eq!(state.on_lost(way.now + ROUND, 1472, sent), None);
        assert_eq!(way.carry(&mut state), None);
    }
    assert_eq!(state.size(), 1472);
}

#[test]
fn short_packets_that_pass_do_not_hide_a_hole() {
    let mut state = PathMtu::new(1232, Some(1472));
    let mut way = Way::new(1500, 0.0);
    way.search(&mut state);
    way.mtu = 1400;
    for _ in 0..10 {
        state.on_acked(1300, way.now);
        if way.carry(&mut state) == Some(Narrowing::Shrunk) {
            way.search(&mut state);
            assert_eq!(state.size(), 1400);
            return;
        }
    }
    panic!("the hole was not found");
}

#[test]
fn below_the_least_size_a_path_is_of_no_use() {
    let mut state = PathMtu::new(1232, Some(1472));
    let mut way = Way::new(1100, 0.0);
    let mut said = Vec::new();
    for _ in 0..200 {
        said.extend(way.carry(&mut state).map(|narrowing| (narrowing, way.now)));
    }
    let (first, second) = (said[0], said[1]);
    assert_eq!((first.0, second.0), (Narrowing::Shrunk, Narrowing::Unusable));
    let waited = second.1.since(first.1);
    assert!((UNUSABLE_AFTER..2 * UNUSABLE_AFTER).contains(&waited), "{waited:?}");
}

#[test]
fn a_policer_that_passes_short_packets_for_a_second_is_no_narrow_path() {
    let mut state = PathMtu::new(1200, Some(1200));
    let mut way = Way::new(1500, 0.0);
    for _ in 0..20 {
        assert_eq!(way.carry(&mut state), None);
        let until = way.now + Duration::from_secs(1);
        way.mtu = 1000;
        while way.now < until {
            assert_eq!(way.carry(&mut state), None);
        }
        way.mtu = 1500;
    }
    assert_eq!(state.size(), 1200);
}

#[test]
fn a_size_that_is_fixed_stays() {
    for ceiling in [None, Some(500)] {
        let mut state = PathMtu::new(550, ceiling);
        assert_eq!(state.probe_due(Time::ZERO), None);
        let mut way = Way::new(100, 0.0);
        for _ in 0..10 {
            assert_eq!(way.carry(&mut state), None);
        }
        assert_eq!(state.size(), 550);
    }
}

#[test]
fn a_moved_path_starts_over_and_old_probes_prove_what_they_prove() {
    let mut state = PathMtu::new(1232, Some(1472));
    Way::new(1400, 0.0).search(&mut state);
    assert_eq!(state.size(), 1400);
    state.restart();
    assert_eq!((state.size(), state.probe_due(Time::ZERO)), (1232, Some(1472)));
    // A late acknowledgement shows that the size was given up wrongly.
    Way::new(1240, 0.0).search(&mut state);
    assert!(state.on_probe_acked(Time::ZERO, 1300));
    assert_eq!(state.size(), 1300);
}

/// Repairs are longer than the symbols that they cover. A path whose MTU is between the two sizes
/// loses only repairs.
#[test]
fn a_hole_for_repairs_alone_is_found_while_symbols_are_lost_and_arrive() {
    let mut state = PathMtu::new(1232, Some(1472));
    let mut way = Way::new(1225, 0.1);
    for _ in 0..12 {
        let sent = way.now;
        way.now += ROUND;
        let mut said = state.on_lost(way.now, 1232, sent);
        for _ in 0..20 {
            match way.passes(1220) {
                true => state.on_acked(1220, sent + Duration::from_millis(1)),
                false => said = said.or(state.on_lost(way.now, 1220, sent)),
            }
        }
        if said.is_some() {
            assert_eq!((said, state.size()), (Some(Narrowing::Shrunk), 1200));
            return;
        }
    }
    panic!("the hole was not found");
}
