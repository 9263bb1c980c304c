//! Parses the text forms of losses.

use core::time::Duration;

use anabranch_types::{Probability, parse_duration};

use super::parse::schedule;
use crate::loss::{
    CorrelatedConfig, GilbertElliottConfig, JointConfig, LossConfig, LossTrace, LossTraceForm,
    MarkovConfig, MarkovState,
};

pub(super) const LOSS: &str = "a loss such as 5%; 5%/20%@10s for a change after 10s; \
    markov:5%/35%@250ms for states with a mean dwell (of each, if each is followed by @dwell); \
    trimodal:25%/75%@250ms/2%@1s for two states and, with a chance of 2% at each jump, a second of nothing; \
    ge:1%/20% for the chance of entering and of leaving the bad state, and optionally \
    /LOSS_IN_GOOD/LOSS_IN_BAD (else 0% and 100%); pattern:0001 for every fourth packet; \
    joint:GROUP/2/10%+20%+5%/30%@1ms for the second of three links whose losses have the correlation \
    30% to the power of their distance, where such losses exist";
pub(super) const CORRELATION: &str = "GROUP/PLACE/NEIGHBOURS@SLOT, such as air/2/50%@1ms, beside a loss \
    that is constant, scheduled or markov; places from 1 to 64, slots from 1us to 1 day";

/// The settings of a shared loss, read before the loss of the link itself is known.
pub(super) struct Correlation {
    group: String,
    position: u32,
    theta: Probability,
    slot: Duration,
}

impl Correlation {
    /// The loss `base`, shared in this way; `None` if this kind of loss cannot be shared.
    pub(super) fn of(self, base: LossConfig) -> Option<LossConfig> {
        let Correlation { group, position, theta, slot } = self;
        let base = Box::new(base);
        let config = CorrelatedConfig { group, position, theta, slot, states: None, base };
        let config = LossConfig::Correlated(config);
        config.validate().is_ok().then_some(config)
    }
}

/// Reads `group/position/theta@slot`.
pub(super) fn correlation(text: &str) -> Option<Correlation> {
    let parts: Vec<&str> = text.split('/').collect();
    let [group, position, strength] = parts.as_slice() else { return None };
    let (theta, slot) = strength.split_once('@')?;
    Some(Correlation {
        group: name(group)?,
        position: position.parse().ok()?,
        theta: percent(theta)?,
        slot: parse_duration(slot).ok()?,
    })
}

/// Reads the name of a link or a group.
pub(super) fn name(text: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    ((1..=32).contains(&text.len()) && text.chars().all(plain)).then(|| text.to_owned())
}

/// Reads a percentage. A number without `%` is refused, because `1` could mean 1 % or 100 %.
pub(super) fn percent(text: &str) -> Option<Probability> {
    text.trim().ends_with('%').then(|| text.parse().ok())?
}

pub(super) fn loss(text: &str) -> Option<LossConfig> {
    let config = match text.split_once(':') {
        Some(("markov", states)) => LossConfig::Markov(markov(states)?),
        Some(("trimodal", states)) => LossConfig::Markov(trimodal(states)?),
        Some(("ge", parameters)) => LossConfig::GilbertElliott(gilbert_elliott(parameters)?),
        Some(("pattern", outcomes)) => LossConfig::Trace(pattern(outcomes)?),
        Some(("joint", group)) => LossConfig::Joint(joint(group)?),
        Some(_) => return None,
        None => scheduled(text)?,
    };
    config.validate().is_ok().then_some(config)
}

fn scheduled(text: &str) -> Option<LossConfig> {
    let schedule = schedule(text, percent)?;
    Some(match schedule.steps() {
        [(_, p)] if *p == Probability::ZERO => LossConfig::None,
        [(_, p)] => LossConfig::Bernoulli(*p),
        _ => LossConfig::Scheduled(schedule),
    })
}

/// Reads states such as `5%/35%@250ms`. A state without a dwell time takes it from the next state
/// that has one.
fn markov(text: &str) -> Option<MarkovConfig> {
    let mut states = Vec::new();
    let mut dwell = None;
    for part in text.rsplit('/') {
        let level = match part.split_once('@') {
            Some((level, time)) => {
                dwell = Some(parse_duration(time).ok()?);
                level
            }
            None => part,
        };
        states.push(MarkovState { loss: percent(level)?, mean_dwell: dwell? });
    }
    states.reverse();
    // A single state is not a chain; it must be written as plain `loss=5%`.
    (states.len() >= 2).then_some(MarkovConfig { states, jumps: None })
}

/// Reads `low/high@dwell/down@down_dwell`.
fn trimodal(text: &str) -> Option<MarkovConfig> {
    let parts: Vec<&str> = text.split('/').collect();
    let [low, high, down] = parts.as_slice() else { return None };
    let (high, dwell) = high.split_once('@')?;
    let (down, down_dwell) = down.split_once('@')?;
    let (dwell, down_dwell) = (parse_duration(dwell).ok()?, parse_duration(down_dwell).ok()?);
    Some(MarkovConfig::trimodal(percent(low)?, percent(high)?, dwell, percent(down)?, down_dwell))
}

fn gilbert_elliott(text: &str) -> Option<GilbertElliottConfig> {
    let parameters: Option<Vec<Probability>> = text.split('/').map(percent).collect();
    match parameters?.as_slice() {
        [enter, leave] => Some(GilbertElliottConfig::simple(*enter, *leave)),
        [enter, leave, good, bad] => Some(GilbertElliottConfig {
            good_to_bad: *enter,
            bad_to_good: *leave,
            loss_in_good: *good,
            loss_in_bad: *bad,
        }),
        _ => None,
    }
}

/// Reads the outcome of each packet, such as `0001`; the sequence repeats.
fn pattern(text: &str) -> Option<LossTrace> {
    LossTrace::parse(text, LossTraceForm::Outcomes { repeat: true }).ok()
}

/// Reads `group/position/loss+loss…/theta@slot`.
fn joint(text: &str) -> Option<JointConfig> {
    let parts: Vec<&str> = text.split('/').collect();
    let [group, position, losses, strength] = parts.as_slice() else { return None };
    let (theta, slot) = strength.split_once('@')?;
    let losses: Option<Vec<Probability>> = losses.split('+').map(percent).collect();
    let (losses, theta) = (losses?, percent(theta)?);
    Some(JointConfig {
        group: name(group)?,
        position: position.parse().ok()?,
        correlation: JointConfig::powers(theta, losses.len().min(64)),
        losses,
        slot: parse_duration(slot).ok()?,
    })
}
