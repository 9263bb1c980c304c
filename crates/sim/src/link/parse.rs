use core::time::Duration;

use anabranch_types::{Bitrate, DataSize, Time, parse_duration};

use super::Policer;
use super::config::{LinkConfig, LinkConfigError, MIN_MTU, RATE_RANGE};
use super::parse_loss::{LOSS, loss, name};
use crate::delay::{Clumps, DelayCourse, DelaySteps, JitterLaw, MAX_CORRELATION, MAX_DELAY};
use crate::queue::QueueLimit;
use crate::rate::{Blackout, ContendedRate, Fluctuation, RandomRate, Schedule};
use crate::wireless::bianchi::Access;

/// All keys, as error messages list them.
pub(super) const KEYS: &str = "name, rate, fluctuation, delay, loss, correlation, jitter, jitter-law, \
    jitter-correlation, delay-steps, clumps, policer, buffer, blackout, mtu, ecn, red, codel, reorder";
const NAME: &str = "1 to 32 letters, digits, '.', '_' or '-'";
pub(super) const RATE: &str =
    "1kbit to 1000gbit, such as 12mbit, or 12mbit/3mbit@10s for a change after 10s";
const FLUCTUATION: &str = "period/least-most/step, such as 1s/20%-100%/10%: a new share of the rate \
    every second, uniform and rounded to tenths; 1ms to 1 day, shares above 0% and up to 1000%; or \
    basic/5 or rts-cts/5: packets take as long as one of 5 stations on an 802.11 channel needs; 1 to 256";
pub(super) const DELAY: &str = "0ms to 60s, such as 40ms, or 40ms/80ms@10s for a change after 10s";
const JITTER: &str = "0ms to 60s, such as 2ms";
const JITTER_CORRELATION: &str = "0ms to 1 day, such as 100ms";
const DELAY_STEPS: &str = "period/least-most, such as 15s/10ms-60ms: every 15s another extra delay of at \
    most 60ms, at least 10ms from the one before; periods of 100ms to 1 day, least at most half of most";
const CLUMPS: &str = "the time between two releases, such as 5ms, or 2ms-8ms; 1us to 10s";
const BUFFER: &str = "1500B to 1GiB, such as 64KiB, or 1p to 1000000p for packets";
const BLACKOUT: &str = "a start before its end, such as 10s-15s, several joined by '+'";

const MTU: &str = "68B to 1GiB, such as 1400B, or 1500B/1400B@10s for a change after 10s";

impl LinkConfig {
    /// Applies one `key=value` of the text form. The key `correlation` is not accepted here.
    ///
    /// # Errors
    /// When the key does not exist or does not accept `value`. [`validate`](Self::validate) checks whether the
    /// keys are compatible.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LinkConfigError> {
        let refuse = |allowed| LinkConfigError::new(key, value, allowed);
        match key {
            "name" => self.name = name(value).ok_or_else(|| refuse(NAME))?,
            "rate" => {
                self.rate = schedule(value, rate).ok_or_else(|| refuse(RATE))?;
                if matches!(self.fluctuation, Fluctuation::Trace(_)) {
                    self.fluctuation = Fluctuation::None;
                }
            }
            "fluctuation" => {
                self.fluctuation = fluctuation(value).ok_or_else(|| refuse(FLUCTUATION))?;
            }
            "delay" => {
                let delays = schedule(value, delay).ok_or_else(|| refuse(DELAY))?;
                let mut steps = delays.steps().iter().copied();
                self.delay = steps.next().map_or(Duration::ZERO, |(_, delay)| delay);
                self.delay_changes = steps.collect();
                if matches!(self.delay_course, DelayCourse::Trace(_)) {
                    self.delay_course = DelayCourse::Steady;
                }
            }
            "loss" => self.loss = loss(value).ok_or_else(|| refuse(LOSS))?,
            "jitter" => self.jitter.size = delay(value).ok_or_else(|| refuse(JITTER))?,
            "jitter-law" => {
                let names = || LinkConfigError::new(key, value, JitterLaw::NAMES.join(", "));
                self.jitter.law = JitterLaw::named(value).ok_or_else(names)?;
            }
            "jitter-correlation" => {
                let time = parse_duration(value).ok().filter(|time| *time <= MAX_CORRELATION);
                self.jitter.correlation = time.ok_or_else(|| refuse(JITTER_CORRELATION))?;
            }
            "delay-steps" => {
                let steps = delay_steps(value).ok_or_else(|| refuse(DELAY_STEPS))?;
                self.delay_course = DelayCourse::Steps(steps);
            }
            "clumps" => self.clumps = Some(clumps(value).ok_or_else(|| refuse(CLUMPS))?),
            "policer" => {
                self.policer = Some(policer(value).ok_or_else(|| refuse(Policer::ALLOWED))?);
            }
            "buffer" => self.queue.limit = Some(buffer(value).ok_or_else(|| refuse(BUFFER))?),
            "blackout" => {
                let windows: Option<_> = value.split('+').map(blackout).collect();
                self.blackouts = windows.ok_or_else(|| refuse(BLACKOUT))?;
            }
            "mtu" => self.mtu = schedule(value, mtu).ok_or_else(|| refuse(MTU))?,
            "ecn" | "red" | "codel" | "reorder" => {
                return Err(refuse("the bare word, without a value"));
            }
            _ => return Err(LinkConfigError::new(key, key, KEYS)),
        }
        Ok(())
    }

    /// Refuses jitter that is incompatible with the delay, and jitter options without jitter.
    /// `given` returns whether a key was given.
    pub(crate) fn check_jitter(&self, given: impl Fn(&str) -> bool) -> Result<(), LinkConfigError> {
        for key in ["jitter-law", "jitter-correlation"] {
            if given(key) && !given("jitter") && self.jitter.size.is_zero() {
                return Err(LinkConfigError::new(key, "no jitter", "this key along with jitter"));
            }
        }
        self.jitter.validate(self.delay)?;
        let varies = given("jitter")
            || !self.jitter.size.is_zero()
            || !self.delay_changes.is_empty()
            || self.delay_course != DelayCourse::Steady;
        if self.jitter.reorder && given("reorder") && !varies {
            let allowed = "reorder along with jitter or with a delay that changes";
            return Err(LinkConfigError::new("reorder", "neither", allowed));
        }
        Ok(())
    }
}

fn rate(text: &str) -> Option<Bitrate> {
    text.parse().ok().filter(|rate| (RATE_RANGE.0..=RATE_RANGE.1).contains(rate))
}

fn delay(text: &str) -> Option<Duration> {
    parse_duration(text).ok().filter(|delay| *delay <= MAX_DELAY)
}

/// Reads `initial`, followed by any number of `/value@time`.
pub(super) fn schedule<V: Copy>(
    text: &str,
    value: impl Fn(&str) -> Option<V>,
) -> Option<Schedule<V>> {
    let mut parts = text.split('/');
    let initial = value(parts.next()?)?;
    let changes: Option<Vec<(Time, V)>> = parts
        .map(|part| {
            let (level, time) = part.split_once('@')?;
            Some((Time::ZERO + parse_duration(time).ok()?, value(level)?))
        })
        .collect();
    Schedule::new(initial, changes?).ok()
}

/// Reads `period/least-most/step` or `access/stations`.
fn fluctuation(text: &str) -> Option<Fluctuation> {
    let parts: Vec<&str> = text.split('/').collect();
    let course = match parts.as_slice() {
        [period, shares, step] => Fluctuation::Random(random(period, shares, step)?),
        [access, stations] => {
            let access = match *access {
                "basic" => Access::Basic,
                "rts-cts" => Access::RtsCts,
                _ => return None,
            };
            Fluctuation::Contended(ContendedRate { access, stations: stations.parse().ok()? })
        }
        _ => return None,
    };
    course.validate().is_ok().then_some(course)
}

fn random(period: &str, shares: &str, step: &str) -> Option<RandomRate> {
    let (least, most) = shares.split_once('-')?;
    Some(RandomRate {
        period: parse_duration(period).ok()?,
        least: share(least)?,
        most: share(most)?,
        step: share(step)?,
    })
}

/// Reads a percentage from 0 % to 100 000 % as a share: `250%` is 2.5.
fn share(text: &str) -> Option<f64> {
    let value: f64 = text.trim().strip_suffix('%')?.parse().ok()?;
    (0.0..=1000.0).contains(&value).then_some(value / 100.0)
}

/// Reads `period/least-most`.
fn delay_steps(text: &str) -> Option<DelaySteps> {
    let (period, sizes) = text.split_once('/')?;
    let (least, most) = sizes.split_once('-')?;
    let read = |text| parse_duration(text).ok();
    let steps = DelaySteps { period: read(period)?, least: read(least)?, most: read(most)? };
    steps.validate().is_ok().then_some(steps)
}

/// Reads `gap` or `least-most`.
fn clumps(text: &str) -> Option<Clumps> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let (least, most) = (parse_duration(least).ok()?, parse_duration(most).ok()?);
    let clumps = Clumps { least, most };
    clumps.validate().is_ok().then_some(clumps)
}

/// Reads `rate/burst`.
fn policer(text: &str) -> Option<Policer> {
    let (rate, burst) = text.split_once('/')?;
    let policer = Policer { rate: rate.parse().ok()?, burst: burst.parse().ok()? };
    policer.validate().is_ok().then_some(policer)
}

fn buffer(text: &str) -> Option<QueueLimit> {
    match text.strip_suffix('p') {
        Some(packets) => {
            let packets = packets.parse().ok().filter(|n| (1..=1_000_000).contains(n))?;
            Some(QueueLimit::Packets(packets))
        }
        None => {
            let bytes: DataSize = text.parse().ok()?;
            (1500..=1 << 30).contains(&bytes.as_bytes()).then_some(QueueLimit::Bytes(bytes))
        }
    }
}

fn mtu(text: &str) -> Option<u32> {
    let bytes: DataSize = text.parse().ok()?;
    let bytes = u32::try_from(bytes.as_bytes()).ok()?;
    (MIN_MTU..=1 << 30).contains(&bytes).then_some(bytes)
}

fn blackout(text: &str) -> Option<Blackout> {
    let (start, end) = text.split_once('-')?;
    let start = Time::ZERO + parse_duration(start).ok()?;
    let end = Time::ZERO + parse_duration(end).ok()?;
    (start < end).then_some(Blackout { start, end })
}
