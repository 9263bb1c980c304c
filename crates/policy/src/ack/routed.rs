//! Acknowledgements on the same path, a quicker one, a random one, the best one or all.

use anabranch_types::{PathId, Rng};

use crate::ack::timing::{OPTIONS, Timing};
use crate::ack::{AckPolicy, AckTiming, ReceivedEvent};
use crate::registry::{Entry, Options, PolicyError};
use crate::view::PathView;

/// The registry entry of acknowledgements on the same path.
pub const SAME: Entry = Entry {
    name: "same-path",
    summary: "acknowledges on the path that carried the packet",
    source: "MPTCP, RFC 8684; PTCP",
    options: OPTIONS,
};

/// The registry entry of acknowledgements on a quicker path.
pub const QUICKER: Entry = Entry {
    name: "quicker-path",
    summary: "acknowledges on the path that carried the packet, or on one that is twice as quick \
              at its slowest",
    source: "own; docs/decisions/0011",
    options: OPTIONS,
};

/// The registry entry of acknowledgements on a random path.
pub const RANDOM: Entry = Entry {
    name: "random-path",
    summary: "acknowledges on a path drawn uniformly among the usable ones",
    source: "MPLOT §II-C",
    options: OPTIONS,
};

/// The registry entry of acknowledgements on the best path.
pub const BEST: Entry = Entry {
    name: "best-path",
    summary: "acknowledges on the usable path with the least RTT · (1 + loss)",
    source: "MPLOT §VI (best path); the measure is our own",
    options: OPTIONS,
};

/// The registry entry of acknowledgements on all paths.
pub const ALL: Entry = Entry {
    name: "all-paths",
    summary: "acknowledges on every usable path",
    source: "MPLOT §VI (all paths)",
    options: OPTIONS,
};

#[derive(Clone, Copy, Debug)]
enum Route {
    Same,
    Quicker,
    Random,
    Best,
    All,
}

/// One timing rule with one of five routes.
#[derive(Clone, Copy, Debug)]
pub struct Routed {
    timing: Timing,
    route: Route,
}

fn make(options: &Options<'_>, route: Route) -> Result<Box<dyn AckPolicy>, PolicyError> {
    Ok(Box::new(Routed { timing: Timing::read(options)?, route }))
}

/// Makes the policy that answers on the same path.
pub fn build_same(options: &Options<'_>) -> Result<Box<dyn AckPolicy>, PolicyError> {
    make(options, Route::Same)
}

/// Makes the policy that answers on the same path or a quicker one.
pub fn build_quicker(options: &Options<'_>) -> Result<Box<dyn AckPolicy>, PolicyError> {
    make(options, Route::Quicker)
}

/// Makes the policy that answers on a random path.
pub fn build_random(options: &Options<'_>) -> Result<Box<dyn AckPolicy>, PolicyError> {
    make(options, Route::Random)
}

/// Makes the policy that answers on the best path.
pub fn build_best(options: &Options<'_>) -> Result<Box<dyn AckPolicy>, PolicyError> {
    make(options, Route::Best)
}

/// Makes the policy that answers on all paths.
pub fn build_all(options: &Options<'_>) -> Result<Box<dyn AckPolicy>, PolicyError> {
    make(options, Route::All)
}

/// Cost of a path for an acknowledgement, s: a lost acknowledgement costs about another round trip.
/// The cost uses the least round trip, because a side that mostly acknowledges has few samples, and
/// a single delayed answer would distort their mean.
fn cost(path: &PathView) -> f64 {
    match path.rtt.samples {
        0 => f64::INFINITY,
        _ => path.rtt.min.as_secs_f64() * (1.0 + path.loss.mean),
    }
}

/// The path with the least cost.
fn best<'a>(paths: impl Iterator<Item = &'a PathView>) -> Option<PathId> {
    paths.min_by(|a, b| cost(a).total_cmp(&cost(b))).map(|path| path.id)
}

/// Upper estimate of a path's round trip, s, with losses counted as in [`cost`]: the smoothed round
/// trip plus four deviations, as in a retransmission timeout (RFC 6298 §2.3).
fn slowest(path: &PathView) -> f64 {
    let (smoothed, variation) = (path.rtt.smoothed, path.rtt.variation);
    (smoothed + 4 * variation).as_secs_f64() * (1.0 + path.loss.mean)
}

/// The path, if any, that acknowledges packets of the path `about` in its place: the best path if
/// `about` is not usable, else a path whose round trip is at most half as long even when it is
/// slow. A smaller gain is not worth a change of path, because every change alters the round trips
/// that the sender measures.
fn quicker<'a>(
    about: PathId,
    usable: impl Iterator<Item = &'a PathView> + Clone,
) -> Option<PathId> {
    let Some(own) = usable.clone().find(|path| path.id == about) else {
        return best(usable);
    };
    let measured = usable.filter(|path| path.rtt.samples > 0);
    let quickest = measured.min_by(|a, b| slowest(a).total_cmp(&slowest(b)))?;
    (own.rtt.samples > 0 && 2.0 * slowest(quickest) <= cost(own)).then_some(quickest.id)
}

impl AckPolicy for Routed {
    fn on_received(&mut self, event: &ReceivedEvent) -> AckTiming {
        self.timing.due(event)
    }

    fn reports_every_path(&self) -> bool {
        self.timing.about_all
    }

    fn route(&mut self, about: PathId, paths: &[PathView], rng: &mut Rng, out: &mut Vec<PathId>) {
        let usable = || paths.iter().filter(|path| path.usable());
        match self.route {
            Route::Same => {}
            Route::Quicker => out.extend(quicker(about, usable())),
            Route::Random => {
                let drawn = rng.below(usable().count() as u64) as usize;
                out.extend(usable().nth(drawn).map(|path| path.id));
            }
            Route::Best => {
                // An endpoint that only acknowledges may have no sample of the path `about`. That path is known to
                // carry packets; another with a sample may have ten times its delay.
                let unknown = usable().any(|path| path.id == about && path.rtt.samples == 0);
                out.extend(best(usable()).filter(|_| !unknown));
            }
            Route::All => out.extend(usable().map(|path| path.id)),
        }
        // The path that just delivered a packet is the best guess when no other is usable.
        if out.is_empty() {
            out.push(about);
        }
    }
}
