//! Loss estimation for real links. The counts decay exponentially and exclude losses due to
//! congestion.

use anabranch_types::{PathId, Time, math};
use core::time::Duration;

use crate::loss::tally::ByPath;
use crate::loss::{LossEstimator, Resolved};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::LossView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "windowed",
    summary: "lost share while no queue stands, with a half-life of max(250 ms, 4 RTT)",
    source: "own; the queue condition keeps congestion's losses out",
    options: &[
        option("half-life", "least half-life of an observation", "250ms"),
        option("rtts", "half-life in round-trip times, if that is longer", "4"),
        option("prior", "packets assumed delivered before the first", "8"),
        option("queue", "standing queue above which nothing is counted, at least srtt/4", "10ms"),
    ],
};

/// Packets in one observation of the lost share; the deviation is computed from these observations.
const BATCH: u32 = 32;

/// Exponentially weighted counts per path and over the aggregate. While the forward queue is longer
/// than max(`queue`, srtt/4), nothing is counted: losses may be due to congestion, and without
/// losses, arrivals must not be counted either.
#[derive(Clone, Debug)]
pub struct Windowed {
    half_life: Duration,
    rtts: u32,
    prior: f64,
    queue: Duration,
    paths: ByPath<Track>,
    aggregate: Track,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn LossEstimator>, PolicyError> {
    let minute = Duration::from_secs(60);
    Ok(Box::new(Windowed {
        half_life: options.duration("half-life", Duration::from_millis(1)..=minute)?,
        rtts: options.integer("rtts", 0..=1000)? as u32,
        prior: options.real("prior", 0.0..=1000.0)?,
        queue: options.duration("queue", Duration::ZERO..=minute)?,
        paths: ByPath::default(),
        aggregate: Track::default(),
    }))
}

/// Decaying counts of one path or of all paths, in packets.
#[derive(Clone, Copy, Debug, Default)]
struct Track {
    acked: f64,
    lost: f64,
    /// What remains of the packets assumed at the start; `None` before the first event.
    prior: Option<f64>,
    last: Time,
    /// The observation being collected.
    batch: (u32, u32),
    batch_at: Time,
    /// Squared distances of observations from the mean, weighted by their packets, and the sum of the weights.
    squares: f64,
    squares_weight: f64,
}

impl Track {
    /// Counts `times` events that are alike.
    fn add(
        &mut self,
        event: &Resolved,
        times: u32,
        half_life: impl FnOnce() -> Duration,
        prior: f64,
    ) {
        // One acknowledgement resolves many packets at once, so time has passed only for the first
        // of them.
        if event.now > self.last {
            self.forget(event.now.since(self.last), half_life());
            self.last = event.now;
        }
        self.prior.get_or_insert(prior);
        let (acked, lost) = (f64::from(event.acked), f64::from(event.lost));
        for _ in 0..times {
            self.acked += acked;
            self.lost += lost;
            self.observe(event);
        }
    }

    /// Halves the counts for every half-life that has passed.
    fn forget(&mut self, age: Duration, half_life: Duration) {
        let decay =
            math::exp(-core::f64::consts::LN_2 * age.as_secs_f64() / half_life.as_secs_f64());
        self.prior = self.prior.map(|left| left * decay);
        self.acked *= decay;
        self.lost *= decay;
        self.squares *= decay;
        self.squares_weight *= decay;
    }

    /// Closes an observation once it has lasted for a round trip and holds a batch of packets.
    #[inline]
    fn observe(&mut self, event: &Resolved) {
        if self.batch == (0, 0) {
            self.batch_at = event.now;
        }
        let (acked, lost) = self.batch;
        let (acked, lost) = (acked.saturating_add(event.acked), lost.saturating_add(event.lost));
        self.batch = (acked, lost);
        let total = acked.saturating_add(lost);
        if total >= BATCH && event.now.since(self.batch_at) >= event.srtt {
            let distance = f64::from(lost) / f64::from(total) - self.mean();
            self.squares += distance * distance * f64::from(total);
            self.squares_weight += f64::from(total);
            self.batch = (0, 0);
        }
    }

    /// Takes back spurious losses without decay, since they are recent compared with the half-life.
    fn take_back(&mut self, lost: u32) {
        let packets = f64::from(lost).min(self.lost);
        self.lost -= packets;
        self.acked += packets;
        let open = lost.min(self.batch.1);
        self.batch = (self.batch.0.saturating_add(open), self.batch.1 - open);
    }

    fn mean(&self) -> f64 {
        let total = self.acked + self.lost + self.prior.unwrap_or(0.0);
        if total > 0.0 { (self.lost / total).clamp(0.0, 1.0) } else { 0.0 }
    }

    fn view(&self) -> LossView {
        let mean = self.mean();
        let variance = if self.squares_weight > 0.0 {
            self.squares / self.squares_weight
        } else {
            // Before the first observation, the variance is that of independent losses in one
            // observation.
            mean * (1.0 - mean) / f64::from(BATCH)
        };
        LossView { mean, deviation: variance.clamp(0.0, 1.0).sqrt() }
    }
}

impl LossEstimator for Windowed {
    fn on_resolved(&mut self, event: &Resolved) {
        self.on_resolved_run(event, 1);
    }

    fn on_resolved_run(&mut self, event: &Resolved, count: u32) {
        if event.queue > self.queue && event.queue > event.srtt / 4 {
            return;
        }
        let half_life = || self.half_life.max(event.srtt.saturating_mul(self.rtts));
        self.paths.entry(event.path).add(event, count, half_life, self.prior);
        self.aggregate.add(event, count, half_life, self.prior);
    }

    fn on_spurious(&mut self, event: &Resolved) {
        self.paths.entry(event.path).take_back(event.lost);
        self.aggregate.take_back(event.lost);
    }

    fn path(&self, path: PathId) -> LossView {
        self.paths.find(path).map_or_else(LossView::default, Track::view)
    }

    fn aggregate(&self) -> LossView {
        self.aggregate.view()
    }
}
