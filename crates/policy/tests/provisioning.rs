//! Estimator and redundancy in a loop: MPLOT's repairs at a steady loss, and their cost.

use anabranch_policy::loss::{LossEstimator, Resolved, build_estimator};
use anabranch_policy::redundancy::{RedundancyPolicy, RedundancyView, build};
use anabranch_policy::view::{BlockId, BlockView, LossView, PathView, TrafficClass};
use anabranch_types::{PathId, Rng, Time};
use core::time::Duration;

/// Means over the blocks of a run.
#[derive(Debug)]
struct Cost {
    /// Proactive repairs per source.
    proactive: f64,
    /// Rounds of reactive repairs per block.
    rounds: f64,
    /// Symbols sent per source, divided by what a perfect code needs, 1/(1 − p).
    overhead: f64,
}

struct Loop {
    estimator: Box<dyn LossEstimator>,
    redundancy: Box<dyn RedundancyPolicy>,
    paths: Vec<PathView>,
    rng: Rng,
    p: f64,
}

impl Loop {
    fn view(&self, loss: LossView) -> RedundancyView<'_> {
        RedundancyView {
            now: Time::ZERO,
            paths: &self.paths,
            loss,
            max_symbols: 255,
            max_symbol_size: 1150,
            flushing: false,
            class: TrafficClass::Bulk,
            slides: false,
            sources_sent: 0,
            repairs_unneeded: 0,
        }
    }

    /// Sends `count` packets of a block, one acknowledgement each; a loss is known three packets
    /// later. Returns how many arrived.
    fn send(&mut self, block: u64, count: u16) -> u16 {
        let fates: Vec<bool> = (0..count).map(|_| !self.rng.chance(self.p)).collect();
        self.estimator.on_sent(PathId(0), Some(BlockId(block)), u32::from(count));
        for index in 0..fates.len() + 3 {
            let acked = u32::from(fates.get(index).is_some_and(|arrived| *arrived));
            let earlier = index.checked_sub(3).and_then(|index| fates.get(index));
            let lost = u32::from(earlier.is_some_and(|arrived| !arrived));
            if acked + lost > 0 {
                self.estimator.on_resolved(&Resolved {
                    now: Time::from_millis(block),
                    path: PathId(0),
                    block: Some(BlockId(block)),
                    acked,
                    lost,
                    queue: Duration::ZERO,
                    srtt: Duration::from_millis(40),
                });
            }
        }
        fates.iter().filter(|arrived| **arrived).count() as u16
    }

    fn run(mut self, blocks: u64) -> Cost {
        let (mut sources, mut proactive, mut rounds, mut sent) = (0_u64, 0_u64, 0_u64, 0_u64);
        // Blocks overlap: each block is planned before the previous one is resolved.
        let mut known = LossView::default();
        for number in 0..blocks {
            let plan = known;
            known = self.estimator.aggregate();
            let mut redundancy = core::mem::replace(&mut self.redundancy, none());
            let shape = redundancy.next_block(&self.view(plan));
            let mut block = BlockView {
                id: BlockId(number),
                sources: shape.sources,
                closed: true,
                ..BlockView::default()
            };
            let repairs = redundancy.proactive(&block, &self.view(plan));
            block.received = self.send(number, shape.sources + repairs);
            self.estimator.on_block_resolved(BlockId(number));
            let mut total = u64::from(shape.sources + repairs);
            let mut reactive = 0;
            while block.deficit() > 0 {
                let loss = self.estimator.aggregate();
                let more = redundancy.still_needed(&block, &[0; 16], &self.view(loss));
                assert!(more > 0, "a block that is short asks for nothing");
                block.received += self.send(number, more);
                total += u64::from(more);
                reactive += 1;
            }
            self.redundancy = redundancy;
            if number >= 10 {
                sources += u64::from(shape.sources);
                proactive += u64::from(repairs);
                rounds += reactive;
                sent += total;
            }
        }
        let per = |what: u64| what as f64 / sources as f64;
        Cost {
            proactive: per(proactive),
            rounds: rounds as f64 / (blocks - 10) as f64,
            overhead: per(sent) * (1.0 - self.p),
        }
    }
}

fn none() -> Box<dyn RedundancyPolicy> {
    build(&"none".parse().unwrap()).unwrap()
}

fn cost(estimator: &str, redundancy: &str, p: f64) -> Cost {
    let mut path = PathView::unknown(PathId(0));
    path.cwnd = 100 * path.packet_size;
    let estimator = build_estimator(&estimator.parse().unwrap()).unwrap();
    let redundancy = build(&redundancy.parse().unwrap()).unwrap();
    let rng = Rng::substream(5, "provisioning");
    Loop { estimator, redundancy, paths: vec![path], rng, p }.run(2000)
}

#[test]
fn steady_loss_is_provisioned_near_its_expectation() {
    for (p, most) in [(0.1, 1.05), (0.3, 1.08), (0.5, 1.12)] {
        let cost = cost("per-block", "mean-sigma", p);
        let expected = p / (1.0 - p);
        assert!(cost.proactive > expected, "{p}: {cost:?}");
        assert!(cost.proactive < 1.3 * expected, "{p}: {cost:?}");
        // Most blocks need no second round, which is the purpose of kappa1 = 1.
        assert!(cost.rounds < 0.5, "{p}: {cost:?}");
        assert!(cost.overhead < most, "{p}: {cost:?}");
    }
}

#[test]
fn readings_of_the_estimator_trade_rounds_for_repairs() {
    for p in [0.1, 0.3, 0.5] {
        let updated = cost("per-block", "mean-sigma", p);
        let prior = cost("per-block:variance=prior", "mean-sigma", p);
        let per_ack = cost("per-ack", "mean-sigma", p);
        assert!(prior.proactive > updated.proactive && prior.rounds < updated.rounds, "{p}");
        assert!(updated.proactive > per_ack.proactive && updated.rounds < per_ack.rounds, "{p}");
    }
}

#[test]
fn no_deviations_leave_every_second_block_short() {
    let cost = cost("per-block", "mean-sigma:kappa1=0", 0.3);
    assert!((0.5..1.0).contains(&cost.rounds), "{cost:?}");
}
