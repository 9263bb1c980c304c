use core::time::Duration;

use anabranch_types::{Probability, Time};

use super::{LossConfig, LossConfigError, LossModel, LossProcess};
use crate::rate::draws::Draws;

/// Maximum number of links in a group.
pub const MAX_GROUP: u32 = 64;

/// Losses that are correlated between the links of a group, along a chain of positions.
///
/// In every time slot, U₁ is drawn uniformly. U₍ⱼ₊₁₎ equals Uⱼ with probability θ and is otherwise
/// drawn anew. Link j loses a packet if Uⱼ is below the link's loss probability at that time. So
/// each link has exactly its own loss probability, whatever those of the other links, and links of
/// equal loss have the correlation θ^|i − j|, as in MPLOT §IV-E. This works for any probabilities
/// and any θ.
///
/// The draws depend only on the seed, the group's name, the slot and the position. So links need
/// not know each other, and traffic on one link does not affect another.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelatedConfig {
    /// Name of the group. Links with the same group name share their draws.
    pub group: String,
    /// Position along the chain, 1 to [`MAX_GROUP`].
    pub position: u32,
    /// θ, the correlation of neighbours.
    pub theta: Probability,
    /// How long one draw is valid, 1 µs to 1 day; choose about the transmission time of a packet.
    /// Packets of a link whose transmission ends in the same slot share a draw.
    pub slot: Duration,
    /// Period after which each link draws anew which course its loss probability follows: with
    /// probability θ that of the link before it in the chain, otherwise its own. So the states of a
    /// Markov loss also have the correlation θ^|i − j|. `None` leaves the courses independent. The
    /// period is 1 µs to 1 day and should be many dwell times long, since a link may change its
    /// state at each draw.
    pub states: Option<Duration>,
    /// The link's own loss. A process whose state changes with packets (Gilbert–Elliott, traces)
    /// and another correlated loss are not allowed.
    pub base: Box<LossConfig>,
}

impl CorrelatedConfig {
    pub(super) fn validate(&self) -> Result<(), LossConfigError> {
        if !(1..=MAX_GROUP).contains(&self.position) {
            return Err(LossConfigError::Position(self.position));
        }
        valid_slot(self.slot)?;
        self.states.map_or(Ok(()), valid_slot)?;
        match &*self.base {
            LossConfig::None
            | LossConfig::Bernoulli(_)
            | LossConfig::Markov(_)
            | LossConfig::Scheduled(_) => self.base.validate(),
            LossConfig::GilbertElliott(_)
            | LossConfig::Correlated(_)
            | LossConfig::Joint(_)
            | LossConfig::Trace(_) => Err(LossConfigError::CorrelatedBase),
        }
    }
}

/// The process of a [`CorrelatedConfig`].
#[derive(Clone, Debug)]
pub struct Correlated {
    course: Course,
    position: u32,
    theta: f64,
    draws: SlotDraws,
}

/// How a link's loss probability changes with time.
#[derive(Clone, Debug)]
enum Course {
    /// It changes independently of all other links.
    Own(Box<LossProcess>),
    /// It follows the course of some position that is not after the link's own. This position is
    /// drawn anew every period.
    Followed {
        /// The course that begins at each position.
        courses: Vec<LossProcess>,
        /// Index of the course that is followed, and when it is drawn again.
        current: usize,
        until: Time,
        draws: SlotDraws,
    },
}

impl Correlated {
    /// The process of `config`. The link's own draws are the substreams of `seed` called `stream`;
    /// the group's draws are also substreams of `seed`.
    ///
    /// # Errors
    /// When `config` is not well formed.
    pub fn new(
        config: &CorrelatedConfig,
        seed: u64,
        stream: &str,
    ) -> Result<Self, LossConfigError> {
        config.validate()?;
        let group = &config.group;
        let course = match config.states {
            None => Course::Own(Box::new(LossProcess::new(&config.base, seed, stream)?)),
            Some(span) => {
                let place = |place| {
                    LossProcess::new(&config.base, seed, &format!("loss.course.{group}.{place}"))
                };
                Course::Followed {
                    courses: (1..=config.position).map(place).collect::<Result<_, _>>()?,
                    current: 0,
                    until: Time::ZERO,
                    draws: SlotDraws::new(seed, &format!("{group}.states"), span),
                }
            }
        };
        Ok(Correlated {
            course,
            position: config.position,
            theta: config.theta.get(),
            draws: SlotDraws::new(seed, group, config.slot),
        })
    }

    /// Uⱼ of this link at `now`, in `[0, 1)`.
    pub fn draw(&self, now: Time) -> f64 {
        let origin = self.draws.origin(now, self.position, self.theta);
        self.draws.uniform(now, 2 * origin + 1)
    }
}

impl LossModel for Correlated {
    fn is_lost(&mut self, now: Time) -> bool {
        self.draw(now) < self.probability(now).get()
    }

    fn probability(&mut self, now: Time) -> Probability {
        match &mut self.course {
            Course::Own(base) => base.probability(now),
            Course::Followed { courses, current, until, draws } => {
                if *until <= now {
                    *current = draws.origin(now, self.position, self.theta) as usize - 1;
                    *until = draws.slot_end(now);
                }
                courses[*current].probability(now)
            }
        }
    }

    fn next_change(&self) -> Time {
        match &self.course {
            Course::Own(base) => base.next_change(),
            Course::Followed { courses, current, until, .. } => {
                courses[*current].next_change().min(*until)
            }
        }
    }
}

/// Uniform random numbers, by time slot and index, that are the same for every link of a group.
#[derive(Clone, Debug)]
pub(super) struct SlotDraws {
    draws: Draws,
    slot_nanos: u64,
}

impl SlotDraws {
    /// The draws of `group` from `seed`. Each is valid for `slot`.
    pub(super) fn new(seed: u64, group: &str, slot: Duration) -> Self {
        let slot_nanos = u64::try_from(slot.as_nanos()).unwrap_or(u64::MAX).max(1);
        SlotDraws { draws: Draws::new(seed, &format!("loss.group.{group}")), slot_nanos }
    }

    /// The position, from 1 to `position`, whose value is valid at `position`. Each position takes
    /// the value of the position before it with probability `theta`.
    fn origin(&self, now: Time, position: u32, theta: f64) -> u32 {
        // Go backwards along the chain to the nearest position with its own value.
        let mut origin = position;
        while origin > 1 && self.uniform(now, 2 * origin) < theta {
            origin -= 1;
        }
        origin
    }

    /// When the slot that contains `now` ends.
    fn slot_end(&self, now: Time) -> Time {
        let slots = now.as_nanos() / self.slot_nanos + 1;
        Time::from_nanos(slots.saturating_mul(self.slot_nanos))
    }

    /// Random number `index` of the slot that contains `now`, uniform in `[0, 1)`.
    pub(super) fn uniform(&self, now: Time, index: u32) -> f64 {
        self.draws.uniform(now.as_nanos() / self.slot_nanos, index)
    }
}

/// Checks that a slot is 1 µs to 1 day long.
pub(super) fn valid_slot(slot: Duration) -> Result<(), LossConfigError> {
    let range = Duration::from_micros(1)..=Duration::from_secs(86_400);
    if range.contains(&slot) { Ok(()) } else { Err(LossConfigError::Slot(slot)) }
}
