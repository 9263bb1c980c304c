use core::str::FromStr;
use core::time::Duration;

use anabranch_types::{Bitrate, DataSize, Probability, Time, parse_duration};

use super::config::{LinkConfig, LinkConfigError, MAX_DELAY, RATE_RANGE};
use crate::loss::{GilbertElliottConfig, LossConfig, MarkovConfig, MarkovState};
use crate::queue::{Discipline, QueueLimit, RedConfig};
use crate::rate::{Blackout, Schedule};

/// Every key, as error messages list them.
const KEYS: &str = "name, rate, delay, loss, jitter, buffer, blackout, ecn, red, reorder";
const NAME: &str = "1 to 32 letters, digits, '.', '_' or '-'";
const RATE: &str = "1kbit to 1000gbit, such as 12mbit, or 12mbit/3mbit@10s for a change after 10s";
const DELAY: &str = "0ms to 60s, such as 40ms";
const LOSS: &str = "a loss such as 5%; 5%/20%@10s for a change after 10s; \
    markov:5%/35%@250ms for states with a mean dwell (of each, if each is followed by @dwell); \
    ge:1%/20% for the chance of entering and of leaving the bad state, and optionally \
    /LOSS_IN_GOOD/LOSS_IN_BAD (else 0% and 100%)";
const BUFFER: &str = "1500B to 1GiB, such as 64KiB, or 1p to 1000000p for packets";
const BLACKOUT: &str = "a start before its end, such as 10s-15s, several joined by '+'";

impl FromStr for LinkConfig {
    type Err = LinkConfigError;

    /// Reads `key=value` pairs and flags, separated by commas.
    ///
    /// | key | value |
    /// |---|---|
    /// | `rate` | `12mbit`; changes as `12mbit/3mbit@10s`; required |
    /// | `delay` | one way, `40ms`; required |
    /// | `name` | letters, digits, `.`, `_`, `-` |
    /// | `loss` | `5%`, `5%/20%@10s`, `markov:5%/35%@250ms`, `ge:1%/20%`, `ge:1%/20%/0%/50%` |
    /// | `jitter` | `2ms`: extra delay, uniform from zero to this; order is kept |
    /// | `buffer` | `64KiB` or `100p`; one bandwidth-delay product if left out |
    /// | `blackout` | `10s-15s`, several joined by `+` |
    /// | `ecn` | flag: RED that marks |
    /// | `red` | flag: RED that drops |
    /// | `reorder` | flag: jitter may reorder |
    ///
    /// # Errors
    /// Names the key, what was given and what is allowed: unknown and repeated keys, values without
    /// unit, negative or out of range, and a missing rate or delay.
    fn from_str(text: &str) -> Result<Self, LinkConfigError> {
        let mut draft = Draft::default();
        let mut seen: Vec<&str> = Vec::new();
        for item in text.split(',') {
            let (key, value) = match item.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (item.trim(), None),
            };
            if seen.contains(&key) {
                return Err(LinkConfigError::new(key, item.trim(), "each key only once"));
            }
            seen.push(key);
            draft.set(key, value)?;
        }
        draft.finish()
    }
}

/// What has been read so far.
#[derive(Default)]
struct Draft {
    name: String,
    rate: Option<Schedule<Bitrate>>,
    delay: Option<Duration>,
    loss: LossConfig,
    jitter: Option<Duration>,
    buffer: Option<QueueLimit>,
    blackouts: Vec<Blackout>,
    ecn: bool,
    red: bool,
    reorder: bool,
}

impl Draft {
    fn set(&mut self, key: &str, value: Option<&str>) -> Result<(), LinkConfigError> {
        let Some(value) = value else { return self.set_flag(key) };
        let refuse = |allowed| LinkConfigError::new(key, value, allowed);
        match key {
            "name" => self.name = name(value).ok_or_else(|| refuse(NAME))?,
            "rate" => self.rate = Some(schedule(value, rate).ok_or_else(|| refuse(RATE))?),
            "delay" => self.delay = Some(delay(value).ok_or_else(|| refuse(DELAY))?),
            "loss" => self.loss = loss(value).ok_or_else(|| refuse(LOSS))?,
            "jitter" => self.jitter = Some(delay(value).ok_or_else(|| refuse(DELAY))?),
            "buffer" => self.buffer = Some(buffer(value).ok_or_else(|| refuse(BUFFER))?),
            "blackout" => {
                let windows: Option<_> = value.split('+').map(blackout).collect();
                self.blackouts = windows.ok_or_else(|| refuse(BLACKOUT))?;
            }
            "ecn" | "red" | "reorder" => return Err(refuse("the bare word, without a value")),
            _ => return Err(LinkConfigError::new(key, key, KEYS)),
        }
        Ok(())
    }

    fn set_flag(&mut self, key: &str) -> Result<(), LinkConfigError> {
        match key {
            "ecn" => self.ecn = true,
            "red" => self.red = true,
            "reorder" => self.reorder = true,
            "" => return Err(LinkConfigError::new("link", "an empty item", KEYS)),
            _ if KEYS.split(", ").any(|known| known == key) => {
                return Err(LinkConfigError::new(key, key, format!("a value, as in {key}=...")));
            }
            _ => return Err(LinkConfigError::new(key, key, KEYS)),
        }
        Ok(())
    }

    fn finish(self) -> Result<LinkConfig, LinkConfigError> {
        let missing = |key, allowed| LinkConfigError::new(key, "nothing", allowed);
        let rate = self.rate.ok_or_else(|| missing("rate", RATE))?;
        let delay = self.delay.ok_or_else(|| missing("delay", DELAY))?;
        if self.ecn && self.red {
            let allowed = "one of ecn (RED that marks) and red (RED that drops)";
            return Err(LinkConfigError::new("red", "both ecn and red", allowed));
        }
        if self.reorder && self.jitter.is_none() {
            return Err(LinkConfigError::new("reorder", "no jitter", "reorder along with jitter"));
        }
        let mut config = LinkConfig::new(Bitrate::ZERO, delay);
        config.name = self.name;
        config.rate = rate;
        config.loss = self.loss;
        config.jitter.max = self.jitter.unwrap_or_default();
        config.jitter.reorder = self.reorder;
        config.queue.limit = self.buffer;
        config.blackouts = self.blackouts;
        if self.ecn || self.red {
            config.queue.discipline =
                Discipline::Red(RedConfig { ecn: self.ecn, ..RedConfig::default() });
        }
        config.validate()?;
        Ok(config)
    }
}

fn name(text: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    ((1..=32).contains(&text.len()) && text.chars().all(plain)).then(|| text.to_owned())
}

fn rate(text: &str) -> Option<Bitrate> {
    text.parse().ok().filter(|rate| (RATE_RANGE.0..=RATE_RANGE.1).contains(rate))
}

fn delay(text: &str) -> Option<Duration> {
    parse_duration(text).ok().filter(|delay| *delay <= MAX_DELAY)
}

/// A percentage. A bare number is refused, because `1` might mean 1 % or always.
fn percent(text: &str) -> Option<Probability> {
    text.trim().ends_with('%').then(|| text.parse().ok())?
}

/// `initial`, then any number of `/value@time`.
fn schedule<V: Copy>(text: &str, value: impl Fn(&str) -> Option<V>) -> Option<Schedule<V>> {
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

fn loss(text: &str) -> Option<LossConfig> {
    let config = if let Some(states) = text.strip_prefix("markov:") {
        LossConfig::Markov(markov(states)?)
    } else if let Some(parameters) = text.strip_prefix("ge:") {
        LossConfig::GilbertElliott(gilbert_elliott(parameters)?)
    } else {
        let schedule = schedule(text, percent)?;
        match schedule.steps() {
            [(_, p)] if *p == Probability::ZERO => LossConfig::None,
            [(_, p)] => LossConfig::Bernoulli(*p),
            _ => LossConfig::Scheduled(schedule),
        }
    };
    config.validate().is_ok().then_some(config)
}

/// `5%/35%@250ms`: a state without a dwell has that of the next one that names it.
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
    // A single state is no chain: plain `loss=5%` says it.
    (states.len() >= 2).then_some(MarkovConfig { states, jumps: None })
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

fn blackout(text: &str) -> Option<Blackout> {
    let (start, end) = text.split_once('-')?;
    let start = Time::ZERO + parse_duration(start).ok()?;
    let end = Time::ZERO + parse_duration(end).ok()?;
    (start < end).then_some(Blackout { start, end })
}
