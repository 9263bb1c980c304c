//! Loss processes: which packets a link loses at random, and its loss probability at each instant.
//!
//! A process decides once for each packet, when the packet has been serialised. Times passed to one
//! process must not decrease. Processes with a state that changes over time have two random
//! streams, one for the state and one for the packets, so that the state does not depend on the
//! traffic.

mod aggregate;
mod bernoulli;
mod config;
mod correlated;
mod gilbert_elliott;
mod joint;
mod markov;
mod scheduled;
mod trace;

#[cfg(test)]
mod tests;

use anabranch_types::{Probability, Rng, Time};

pub use aggregate::aggregate_windows;
pub use bernoulli::Bernoulli;
pub use config::{GilbertElliottConfig, LossConfig, LossConfigError, MarkovConfig, MarkovState};
pub use correlated::{Correlated, CorrelatedConfig, MAX_GROUP};
pub use gilbert_elliott::GilbertElliott;
pub use joint::{Component, Joint, JointConfig, largest_correlation};
pub use markov::Markov;
pub use scheduled::Scheduled;
pub use trace::{LossTrace, LossTraceForm, Replay};

/// The interface of every loss process.
pub trait LossModel {
    /// Whether the packet that finishes serialisation at `now` is lost. Call it once per packet.
    fn is_lost(&mut self, now: Time) -> bool;

    /// The probability with which a packet at `now` would be lost.
    fn probability(&mut self, now: Time) -> Probability;

    /// The loss to subtract from the capacity from `now` until [`next_change`](Self::next_change).
    ///
    /// This is [`probability`](Self::probability) if the process's state changes with time. If the
    /// state changes with each packet (Gilbert–Elliott), no average over time exists without
    /// traffic, so this is the stationary mean.
    fn capacity_loss(&mut self, now: Time) -> Probability {
        self.probability(now)
    }

    /// When the probability next changes by the passage of time; `Time::MAX` for never.
    fn next_change(&self) -> Time;
}

/// One of the built-in loss processes, dispatched without a virtual call.
#[derive(Clone, Debug)]
pub enum LossProcess {
    /// No packet is lost, and no random number is drawn.
    None,
    /// Independent losses.
    Bernoulli(Bernoulli),
    /// Two states with a possible change after every packet.
    GilbertElliott(GilbertElliott),
    /// Any number of states that change with time.
    Markov(Markov),
    /// Independent losses whose probability changes at known times.
    Scheduled(Scheduled),
    /// Losses that are correlated along a chain of links.
    Correlated(Correlated),
    /// Losses of several links with a given correlation matrix.
    Joint(Joint),
    /// Losses replayed from a trace.
    Replay(Replay),
}

impl LossProcess {
    /// The process that `config` describes. It draws from the substreams of `seed` whose names
    /// start with `stream`.
    ///
    /// # Errors
    /// When `config` is not well formed; see [`LossConfig`].
    pub fn new(config: &LossConfig, seed: u64, stream: &str) -> Result<Self, LossConfigError> {
        let packets = Rng::substream(seed, stream);
        Ok(match config {
            LossConfig::None => LossProcess::None,
            LossConfig::Bernoulli(p) => LossProcess::Bernoulli(Bernoulli::new(*p, packets)),
            LossConfig::GilbertElliott(ge) => {
                LossProcess::GilbertElliott(GilbertElliott::new(ge, packets)?)
            }
            LossConfig::Markov(markov) => {
                let state = Rng::substream(seed, &format!("{stream}.state"));
                LossProcess::Markov(Markov::new(markov, state, packets)?)
            }
            LossConfig::Scheduled(schedule) => {
                LossProcess::Scheduled(Scheduled::new(schedule, packets))
            }
            LossConfig::Correlated(config) => {
                LossProcess::Correlated(Correlated::new(config, seed, stream)?)
            }
            LossConfig::Joint(config) => LossProcess::Joint(Joint::new(config, seed)?),
            LossConfig::Trace(trace) => LossProcess::Replay(Replay::new(trace)),
        })
    }
}

/// Evaluates `$call` with the process that `$self` holds, or `$none` if there is no loss.
macro_rules! dispatch {
    ($self:expr, $none:expr, $model:ident => $call:expr) => {
        match $self {
            LossProcess::None => $none,
            LossProcess::Bernoulli($model) => $call,
            LossProcess::GilbertElliott($model) => $call,
            LossProcess::Markov($model) => $call,
            LossProcess::Scheduled($model) => $call,
            LossProcess::Correlated($model) => $call,
            LossProcess::Joint($model) => $call,
            LossProcess::Replay($model) => $call,
        }
    };
}

impl LossModel for LossProcess {
    #[inline]
    fn is_lost(&mut self, now: Time) -> bool {
        dispatch!(self, false, model => model.is_lost(now))
    }

    fn probability(&mut self, now: Time) -> Probability {
        dispatch!(self, Probability::ZERO, model => model.probability(now))
    }

    fn capacity_loss(&mut self, now: Time) -> Probability {
        dispatch!(self, Probability::ZERO, model => model.capacity_loss(now))
    }

    fn next_change(&self) -> Time {
        dispatch!(self, Time::MAX, model => model.next_change())
    }
}
