//! Random places, loads and losses: every message has exactly one fate, and no station holds more
//! messages than its queues admit.

use anabranch_sim::wireless::{
    Air, AirConfig, Destination, Fixed, FrameLoss, IdleAccess, MacConfig, Message, Position,
    Priority, Report,
};
use anabranch_types::{Probability, Rng, Time};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    to: Option<u32>,
    from: u32,
    /// How often the message reached each of the first 16 stations, whether or not it was then lost
    /// above the MAC.
    came: [u8; 16],
    ended: bool,
    gave_up: bool,
}

/// Follows every message from its sending to its last report.
#[derive(Debug)]
struct Book {
    fates: Vec<Fate>,
    last: Time,
    inside: u64,
}

impl Book {
    fn note(&mut self, now: Time, report: Report) {
        assert!(now >= self.last, "time goes back: {now:?} after {:?}", self.last);
        self.last = now;
        let (Report::Received { token, .. }
        | Report::Lost { token, .. }
        | Report::Overheard { token, .. }
        | Report::Sent { token, .. }
        | Report::GaveUp { token, .. }) = report;
        let fate = &mut self.fates[token as usize];
        assert!(!fate.ended, "{report:?} after the end of {fate:?}");
        match report {
            Report::Received { at, from, .. } | Report::Lost { at, from, .. } => {
                assert_eq!(from, fate.from);
                assert!(at != from && fate.to.is_none_or(|to| to == at), "{report:?}");
                fate.came[at as usize] += 1;
                assert_eq!(fate.came[at as usize], 1, "twice: {report:?}");
            }
            Report::Overheard { at, from, .. } => {
                assert_eq!(from, fate.from);
                assert!(at != from && fate.to.is_some_and(|to| to != at), "{report:?}");
            }
            Report::Sent { from, .. } => {
                assert_eq!(from, fate.from);
                fate.ended = true;
                if let Some(to) = fate.to {
                    assert_eq!(fate.came[to as usize], 1, "acknowledged but never there");
                }
            }
            Report::GaveUp { from, to, .. } => {
                assert_eq!((from, Some(to)), (fate.from, fate.to));
                fate.ended = true;
                fate.gave_up = true;
            }
        }
        self.inside -= u64::from(fate.ended);
    }

    /// Records messages for `to` that were withdrawn at `from`.
    fn withdraw(&mut self, (from, to): (u32, u32), tokens: &[u32]) {
        for token in tokens {
            let fate = &mut self.fates[*token as usize];
            assert!(!fate.ended && (fate.from, fate.to) == (from, Some(to)), "{fate:?}");
            fate.ended = true;
            self.inside -= 1;
        }
    }
}

fn config(rng: &mut Rng) -> AirConfig {
    let base = if rng.chance(0.3) { MacConfig::ns2() } else { MacConfig::default() };
    let limits = [0, 500, u32::MAX];
    let mac = MacConfig {
        rts_threshold: limits[rng.below(3) as usize],
        window_min: 1 + rng.below(31) as u32,
        idle_access: if rng.chance(0.5) { IdleAccess::AtOnce } else { IdleAccess::BackOff },
        queue: 1 + rng.below(8) as usize,
        ..base
    };
    let mut loss = |p: f64| Probability::clamped(if rng.chance(0.5) { p } else { 0.0 });
    let loss = FrameLoss { above: loss(0.2), below: loss(0.3) };
    AirConfig { mac, loss, ..AirConfig::default() }
}

fn message(rng: &mut Rng, stations: u64, from: u32, token: u32) -> Message {
    let to = match rng.below(stations + 1) as u32 {
        to if u64::from(to) == stations || to == from => Destination::Broadcast,
        to => Destination::Station(to),
    };
    let lines = [Priority::Routing, Priority::Acknowledgement, Priority::Data, Priority::Data];
    let priority = lines[rng.below(4) as usize];
    Message { token, to, bytes: rng.below(1500) as u32, priority }
}

fn run(seed: u64) {
    let mut rng = Rng::new(seed);
    let config = config(&mut rng);
    let stations = 1 + rng.below(12);
    let side = [20.0, 500.0, 1500.0][rng.below(3) as usize];
    let mut place = || Position::new(rng.uniform() * side, rng.uniform() * side);
    let places = Fixed((0..stations).map(|_| place()).collect());
    let mut air = Air::new(&config, Box::new(places), seed).unwrap();
    air.listen(rng.chance(0.5));
    let mut book = Book { fates: Vec::new(), last: Time::ZERO, inside: 0 };
    let mut withdrawn = Vec::new();
    let mut now = Time::ZERO;
    let gap = [1e4, 1e6, 2e7][rng.below(3) as usize];
    for token in 0..600 {
        now = Time::from_nanos(now.as_nanos() + rng.exponential(gap) as u64);
        while let Some(report) = air.poll(now) {
            book.note(air.now(), report);
        }
        let from = rng.below(stations) as u32;
        if rng.chance(0.05) {
            let to = rng.below(stations) as u32;
            withdrawn.clear();
            air.withdraw(from, to, &mut withdrawn);
            book.withdraw((from, to), &withdrawn);
        }
        let message = message(&mut rng, stations, from, token);
        let to = match message.to {
            Destination::Station(to) => Some(to),
            Destination::Broadcast => None,
        };
        let taken = air.send(now, from, message);
        book.fates.push(Fate { to, from, ended: !taken, ..Fate::default() });
        book.inside += u64::from(taken);
        let most = 3 * config.mac.queue + 1;
        assert!((0..stations as u32).all(|station| air.backlog(station) <= most));
    }
    // Every message ends: it has at most 4 attempts to send data, each with at most 7 attempts to
    // send an RTS.
    while let Some(report) = air.poll(Time::from_secs(100_000)) {
        book.note(air.now(), report);
    }
    assert_eq!(book.inside, 0);
    assert!(book.fates.iter().all(|fate| fate.ended));
    assert!((0..stations as u32).all(|station| air.backlog(station) == 0));
    assert_eq!(air.next_event(), None);
    let given_up = book.fates.iter().filter(|fate| fate.gave_up).count() as u64;
    let counted = (0..stations as u32).map(|station| air.station(station).given_up).sum::<u64>();
    assert_eq!(given_up, counted);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_message_has_one_fate(seed in any::<u64>()) {
        run(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let trace = |seed| {
        let places = Fixed::circle(10, 200.0);
        let mut air = Air::new(&AirConfig::default(), Box::new(places), seed).unwrap();
        for token in 0..100 {
            let to = Destination::Station((token + 1) % 10);
            let message = Message { token, to, bytes: 500, priority: Priority::Data };
            air.send(Time::ZERO, token % 10, message);
        }
        let next = || air.poll(Time::from_secs(10)).map(|report| (air.now(), report));
        core::iter::from_fn(next).collect::<Vec<_>>()
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}
