//! Finds out which paths of a connection share a bottleneck.
//!
//! Statistics of delays alone (RFC 8382) cannot distinguish one shared queue from two queues that
//! behave alike, as those of two equal links do. This module therefore experiments: each path's
//! sending rate swings up and down by a few percent in an order drawn at random, and two paths
//! share a bottleneck if the delay of one follows the swings of the other. No other traffic follows
//! that order. Without a common queue, the score of two paths therefore exceeds z at a given time
//! with a probability below exp(−z²/2) (Hoeffding 1963, theorem 2), whatever jitter, losses and
//! other traffic do to the delays.

use anabranch_types::{PathId, Rng, Time};
use core::time::Duration;

use crate::view::{MAX_PATHS, PathView};

/// Share of a path's rate and window by which its sending swings. With 0.05, finding a shared
/// bottleneck takes twice as long.
const SWING: f64 = 0.08;
/// Bins of time in a swing, up or down, and in a pair of one up and one down.
const SWING_BINS: u64 = 8;
const PAIR_BINS: u64 = 2 * SWING_BINS;
/// Bins kept for each path: four pairs, plus the longest wait for acknowledgements.
const BINS: u64 = 4 * PAIR_BINS + LATEST * SWING_BINS + PAIR_BINS;
/// The longest round trip lasts at most this many swings.
const LATEST: u64 = 6;
/// Shortest and longest swing, s.
const SHORTEST: f64 = 0.02;
const LONGEST: f64 = 0.5;
/// A swing lasts at least as long as this many packets of the slowest path take; the last half of
/// them measure the delay.
const LEAST_PACKETS: f64 = 8.0;
/// The length of swings changes when it should be larger or smaller by more than this factor.
const RESIZE: f64 = 1.5;
/// Factor by which a score decays from pair to pair, so that it covers about the last 32 pairs.
const KEPT: f64 = 31.0 / 32.0;
/// Weight of the newest pair in [`Score::size`] and [`Score::own`].
const LEARNT: f64 = 1.0 / 8.0;
/// How many votes a score needs to count; how many pairs of swings are tried; and how many pairs
/// without swings follow if no score suggests a common queue, since swings cost one or two percent
/// of the rate where jitter is large.
const LEAST_VOTES: f64 = 12.0;
const TRIED_PAIRS: u64 = 8;
const RESTED_PAIRS: u64 = 24;
/// Above `SHARED`, paths are taken to share a bottleneck, until their score is `PARTED` or less.
/// Chance exceeds the first once in 3 million independent evaluations. Once paths have parted,
/// their score falls to the second within 40 pairs.
const SHARED: f64 = 5.0;
const PARTED: f64 = 2.0;

/// Delays of packets that left in one bin of time.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    number: u64,
    sum: f64,
    count: u32,
}

/// How closely the delay of one path follows the coins of another. A path's coin says whether it
/// swings up or down first.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    /// Mean absolute change of the delay in a pair of swings, s.
    size: f64,
    /// The part of the change that follows the path's own coins, s.
    own: f64,
    /// How often the rest of the change agreed with the other path's coin, minus how often it disagreed, and the
    /// variance of this sum; both decay.
    sum: f64,
    variance: f64,
}

impl Score {
    /// Adds a pair in whose first swing the delay rose by `bump`, s. A coin is 1 if its path swung up first, else −1.
    fn add(&mut self, bump: f64, coin: f64, own_coin: f64) {
        self.size += LEARNT * (bump.abs() - self.size);
        let rest = bump - own_coin * self.own;
        self.own += LEARNT * own_coin * rest.clamp(-self.size, self.size);
        // Only the sign counts, so that one large change of delay does not outweigh many small ones.
        let vote = if rest == 0.0 { 0.0 } else { coin * rest.signum() };
        self.sum = KEPT * self.sum + vote;
        self.variance = KEPT * KEPT * self.variance + vote * vote;
    }

    /// The score, in standard deviations of a score that chance alone gives.
    fn z(&self) -> f64 {
        self.sum / self.variance.max(1.0).sqrt()
    }
}

/// Measurements of the path in one slot.
#[derive(Clone, Debug)]
struct Track {
    id: PathId,
    samples: u64,
    bins: Vec<Bin>,
    /// How closely the path's delay follows the coins of the path in each slot, for a bottleneck
    /// near the sender and for one near the receiver.
    follows: [[Score; 2]; MAX_PATHS],
    /// The slots of the paths that share a bottleneck with this path, as bits.
    shares: u16,
}

impl Track {
    fn new(id: PathId) -> Self {
        let bins = vec![Bin::default(); BINS as usize];
        Track { id, samples: 0, bins, follows: Default::default(), shares: 0 }
    }

    fn add(&mut self, number: u64, delay: f64) {
        let bin = &mut self.bins[(number % BINS) as usize];
        if bin.number != number {
            *bin = Bin { number, ..Bin::default() };
        }
        bin.sum += delay;
        bin.count += 1;
    }

    /// Mean delay in the second half of the swing that ends before bin `end`, s.
    fn level(&self, end: u64) -> Option<f64> {
        let numbers = end.saturating_sub(SWING_BINS / 2)..end;
        let (sum, count) = numbers.fold((0.0, 0), |(sum, count), number| {
            let bin = &self.bins[(number % BINS) as usize];
            if bin.number == number { (sum + bin.sum, count + bin.count) } else { (sum, count) }
        });
        (count > 0).then(|| sum / f64::from(count))
    }

    /// Delay at the end of the first swing of the pair that begins with bin `start`, above the mean of the delays
    /// before that swing and at the end of the second, s: a steady rise or fall cancels out.
    fn bump(&self, start: u64) -> Option<f64> {
        let [before, middle, after] = [0, SWING_BINS, PAIR_BINS].map(|at| self.level(start + at));
        Some(middle? - (before? + after?) / 2.0)
    }
}

/// Detects which paths of a connection share a bottleneck; the module's documentation says how.
#[derive(Clone, Debug)]
pub struct Bottlenecks {
    seed: u64,
    /// Beginning and length of the bins.
    origin: Time,
    bin: Duration,
    /// The swing that is under way, and the coins of its pair, one for each slot.
    swing: u64,
    coins: u64,
    /// Whether to go on swinging: some paths may share a bottleneck, or too little is known.
    /// `tried` has a bit for each of the last 64 pairs, by number modulo 64: whether paths swung in
    /// it.
    curious: bool,
    tried: u64,
    /// The next pair to evaluate.
    next: u64,
    tracks: Vec<Track>,
}

impl Bottlenecks {
    /// A detector that knows nothing yet; `rng` gives the seed of the coins.
    pub fn new(mut rng: Rng) -> Self {
        let seed = rng.next_u64();
        let (origin, bin) = (Time::ZERO, Duration::from_secs(1));
        let tracks = Vec::new();
        Bottlenecks {
            seed,
            origin,
            bin,
            swing: 0,
            coins: 0,
            curious: true,
            tried: 0,
            next: 0,
            tracks,
        }
    }

    /// Processes the acknowledgement of a packet that left at `sent` on the path in `slot`; `paths`
    /// are current snapshots of all paths, by slot. Returns true if [`factor`](Self::factor) and
    /// [`shares`](Self::shares) may have changed.
    pub fn on_ack(&mut self, now: Time, sent: Time, slot: u8, paths: &[PathView]) -> bool {
        let slot = usize::from(slot);
        let Some(path) = paths.get(slot).filter(|_| slot < MAX_PATHS) else { return false };
        let is_new = self.expect(slot, path);
        if is_new && sent > self.origin {
            let number = self.number(sent);
            self.tracks[slot].add(number, path.rtt.queue.as_secs_f64());
        }
        let swing = self.number(now) / SWING_BINS;
        if swing == self.swing && self.origin > Time::ZERO {
            return false;
        }
        self.swing = swing;
        self.resize(now, paths);
        self.evaluate(now, paths);
        self.toss(self.swing / 2);
        true
    }

    /// Factor for the rate and the window of the path in `slot`.
    pub fn factor(&self, slot: u8) -> f64 {
        if self.tried >> (self.swing / 2 % 64) & 1 == 0 {
            return 1.0;
        }
        let first = self.swing.is_multiple_of(2);
        1.0 + if first { SWING } else { -SWING } * coin(self.coins, slot.into())
    }

    /// The slots of the paths that share a bottleneck with the one in `slot`, bit by bit.
    pub fn shares(&self, slot: u8) -> u16 {
        self.tracks.get(usize::from(slot)).map_or(0, |track| track.shares)
    }

    fn number(&self, time: Time) -> u64 {
        (time.since(self.origin).as_nanos() / self.bin.as_nanos().max(1)) as u64
    }

    /// The coins of a pair.
    fn coins(&self, pair: u64) -> u64 {
        Rng::new(self.seed.wrapping_add(pair)).next_u64()
    }

    /// If the pair is new, tosses its coins and decides whether paths swing in it.
    fn toss(&mut self, pair: u64) {
        let coins = self.coins(pair);
        if coins != self.coins {
            self.coins = coins;
            let due = pair % (TRIED_PAIRS + RESTED_PAIRS) < TRIED_PAIRS;
            let bit = pair % 64;
            self.tried = self.tried & !(1 << bit) | u64::from(self.curious || due) << bit;
        }
    }

    /// Discards what is known of the slot if it now has another path, or if its path's round-trip
    /// samples have started anew. Returns whether the path's newest delay has not been seen yet.
    fn expect(&mut self, slot: usize, path: &PathView) -> bool {
        while self.tracks.len() <= slot {
            self.tracks.push(Track::new(path.id));
        }
        let track = &mut self.tracks[slot];
        if track.id != path.id || path.rtt.samples < track.samples {
            *track = Track::new(path.id);
            for other in &mut self.tracks {
                other.follows[slot] = Default::default();
                other.shares &= !(1 << slot);
            }
        }
        let before = core::mem::replace(&mut self.tracks[slot].samples, path.rtt.samples);
        before < path.rtt.samples
    }

    /// Starts again with swings of another length if the paths need one.
    fn resize(&mut self, now: Time, paths: &[PathView]) {
        let length = swing_length(paths);
        let present = self.bin.as_secs_f64() * SWING_BINS as f64;
        if length > RESIZE * present || length * RESIZE < present || self.origin == Time::ZERO {
            self.bin = Duration::from_secs_f64(length / SWING_BINS as f64);
            (self.origin, self.swing, self.next) = (now, 0, 1);
            self.tracks.iter_mut().for_each(|track| track.bins.fill(Bin::default()));
        }
    }

    /// Evaluates the pairs whose packets have been acknowledged by now.
    fn evaluate(&mut self, now: Time, paths: &[PathView]) {
        let usable = paths.iter().filter(|path| path.usable());
        let latest = usable.map(|path| path.rtt.smoothed).max().unwrap_or_default();
        let wait = self.number(self.origin + latest).min(LATEST * SWING_BINS) + SWING_BINS;
        let over = self.number(now).saturating_sub(wait) / PAIR_BINS;
        // Bins of older pairs are not kept.
        self.next = self.next.max(over.saturating_sub(2));
        while self.next < over {
            if self.tried >> (self.next % 64) & 1 == 1 {
                self.score(self.next, paths);
            }
            self.next += 1;
        }
        self.curious = false;
        let count = self.tracks.len();
        for a in 0..count {
            for b in a + 1..count {
                self.judge(a, b);
            }
        }
    }

    fn score(&mut self, pair: u64, paths: &[PathView]) {
        let coins = self.coins(pair);
        for (to, track) in self.tracks.iter_mut().enumerate().take(paths.len()) {
            for from in (0..paths.len().min(MAX_PATHS)).filter(|from| *from != to) {
                // Packets that meet near the receiver have left at different times.
                let lag = lag(&paths[from], &paths[to]) / self.bin.as_secs_f64();
                for (near, bins) in [0.0, lag].into_iter().enumerate() {
                    let start = (pair * PAIR_BINS).saturating_add_signed(bins.round() as i64);
                    if let Some(bump) = track.bump(start) {
                        track.follows[from][near].add(bump, coin(coins, from), coin(coins, to));
                    }
                }
            }
        }
    }

    fn judge(&mut self, a: usize, b: usize) {
        let (there, back) = (&self.tracks[b].follows[a], &self.tracks[a].follows[b]);
        let known = there[0].variance.min(back[0].variance) >= LEAST_VOTES;
        let both = there.iter().zip(back).map(|(there, back)| there.z() + back.z());
        let z = both.fold(f64::NEG_INFINITY, f64::max) / core::f64::consts::SQRT_2;
        let shared = self.tracks[a].shares >> b & 1 == 1;
        let shared = z > if shared { PARTED } else { SHARED };
        self.curious |= z > PARTED || !known;
        for (slot, other) in [(a, b), (b, a)] {
            let shares = &mut self.tracks[slot].shares;
            *shares = *shares & !(1 << other) | u16::from(shared) << other;
        }
    }
}

/// The coin of one slot, 1 or −1, among the coins of a pair.
fn coin(coins: u64, slot: usize) -> f64 {
    if coins >> slot & 1 == 1 { 1.0 } else { -1.0 }
}

/// How much later a packet on `to` must leave than one on `from` to meet it near the receiver, s.
fn lag(from: &PathView, to: &PathView) -> f64 {
    to.rtt.forward_lead(&from.rtt).as_secs_f64() - from.rtt.forward_lead(&to.rtt).as_secs_f64()
}

/// How long a swing should last, s: the largest of the paths' least round-trip times, since packets
/// of two paths that meet were sent less than that time apart; longer if [`LATEST`] or
/// [`LEAST_PACKETS`] requires it.
fn swing_length(paths: &[PathView]) -> f64 {
    let needed = paths.iter().filter(|path| path.usable()).map(|path| {
        let packet = path.packet_size as f64 * 8.0 / (path.rate.as_bps() as f64).max(1.0);
        let late = path.rtt.smoothed.as_secs_f64() / LATEST as f64;
        path.rtt.min.as_secs_f64().max(late).max(LEAST_PACKETS * packet)
    });
    needed.fold(SHORTEST, f64::max).min(LONGEST)
}

#[cfg(test)]
mod tests;
