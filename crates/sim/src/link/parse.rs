use core::str::FromStr;
use core::time::Duration;

use anabranch_types::{Bitrate, DataSize, Time, parse_duration};

use super::config::{LinkConfig, LinkConfigError, MAX_DELAY, MIN_MTU, RATE_RANGE};
use super::parse_loss::{CORRELATION, Correlation, LOSS, correlation, loss, name};
use crate::delay::{JitterLaw, MAX_CORRELATION};
use crate::queue::{CodelConfig, Discipline, QueueLimit, RedConfig};
use crate::rate::{Blackout, Fluctuation, RandomRate, Schedule};

/// Every key, as error messages list them.
const KEYS: &str = "name, rate, fluctuation, delay, loss, correlation, jitter, jitter-law, \
    jitter-correlation, buffer, blackout, mtu, ecn, red, codel, reorder";
const NAME: &str = "1 to 32 letters, digits, '.', '_' or '-'";
const RATE: &str = "1kbit to 1000gbit, such as 12mbit, or 12mbit/3mbit@10s for a change after 10s";
const FLUCTUATION: &str = "period/least-most/step, such as 1s/20%-100%/10%: a new share of the rate \
    every second, uniform and rounded to tenths; 1ms to 1 day, shares above 0% and up to 1000%";
const DELAY: &str = "0ms to 60s, such as 40ms, or 40ms/80ms@10s for a change after 10s";
const JITTER: &str = "0ms to 60s, such as 2ms";
const JITTER_CORRELATION: &str = "0ms to 1 day, such as 100ms";
const BUFFER: &str = "1500B to 1GiB, such as 64KiB, or 1p to 1000000p for packets";
const BLACKOUT: &str = "a start before its end, such as 10s-15s, several joined by '+'";

const MTU: &str = "68B to 1GiB, such as 1400B, or 1500B/1400B@10s for a change after 10s";

impl FromStr for LinkConfig {
    type Err = LinkConfigError;

    /// Reads `key=value` pairs and flags, separated by commas.
    ///
    /// | key | value |
    /// |---|---|
    /// | `rate` | `12mbit`; changes as `12mbit/3mbit@10s`; required |
    /// | `fluctuation` | `1s/20%-100%/10%`: each second a new share of the rate, in tenths |
    /// | `delay` | one way, `40ms`; changes as `40ms/80ms@10s`; required |
    /// | `name` | letters, digits, `.`, `_`, `-` |
    /// | `loss` | `5%`, `5%/20%@10s`, `markov:5%/35%@250ms`, `trimodal:25%/75%@250ms/2%@1s`, `ge:1%/20%`, `ge:1%/20%/0%/50%`, `pattern:0001`, `joint:air/1/10%+20%/30%@1ms` |
    /// | `correlation` | `air/2/50%@1ms`: this loss is shared, second link of the group `air`, θ = 0.5, in slots of 1 ms |
    /// | `jitter` | `2ms`: extra delay, uniform from zero to this, or the standard deviation under another law; order is kept |
    /// | `jitter-law` | `uniform`, `normal`, `gamma`, `log-normal`: how delays are distributed |
    /// | `jitter-correlation` | `100ms`: within this time the correlation of packets falls to 1/e |
    /// | `buffer` | `64KiB` or `100p`; one bandwidth-delay product if left out |
    /// | `blackout` | `10s-15s`, several joined by `+` |
    /// | `mtu` | `1400B`; changes as `1500B/1400B@10s`; any size if left out |
    /// | `ecn` | flag: RED that marks; CoDel that marks beside `codel` |
    /// | `red` | flag: RED that drops |
    /// | `codel` | flag: CoDel, 5 ms in 100 ms, that drops |
    /// | `reorder` | flag: jitter and falling delays may reorder |
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
            match value {
                Some(value) => draft.set(key, value)?,
                None => draft.set_flag(key)?,
            }
        }
        draft.finish(&seen)
    }
}

impl LinkConfig {
    /// Sets what one `key=value` of the text form says, all but `correlation`.
    ///
    /// # Errors
    /// When there is no such key, or `value` is not one that it takes. Whether it goes with the others,
    /// [`validate`](Self::validate) says.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LinkConfigError> {
        let refuse = |allowed| LinkConfigError::new(key, value, allowed);
        match key {
            "name" => self.name = name(value).ok_or_else(|| refuse(NAME))?,
            "rate" => self.rate = schedule(value, rate).ok_or_else(|| refuse(RATE))?,
            "fluctuation" => {
                let random = fluctuation(value).ok_or_else(|| refuse(FLUCTUATION))?;
                self.fluctuation = Fluctuation::Random(random);
            }
            "delay" => {
                let delays = schedule(value, delay).ok_or_else(|| refuse(DELAY))?;
                let mut steps = delays.steps().iter().copied();
                self.delay = steps.next().map_or(Duration::ZERO, |(_, delay)| delay);
                self.delay_changes = steps.collect();
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

    /// Refuses jitter that does not go with the delay, and words about jitter where there is none; `given`
    /// tells which keys were there.
    pub(crate) fn check_jitter(&self, given: impl Fn(&str) -> bool) -> Result<(), LinkConfigError> {
        for key in ["jitter-law", "jitter-correlation"] {
            if given(key) && !given("jitter") && self.jitter.size.is_zero() {
                return Err(LinkConfigError::new(key, "no jitter", "this key along with jitter"));
            }
        }
        self.jitter.validate(self.delay).map_err(|error| self.jitter_error(error))?;
        let varies =
            given("jitter") || !self.jitter.size.is_zero() || !self.delay_changes.is_empty();
        if self.jitter.reorder && given("reorder") && !varies {
            let allowed = "reorder along with jitter or with changes of the delay";
            return Err(LinkConfigError::new("reorder", "neither", allowed));
        }
        Ok(())
    }
}

/// What has been read so far.
struct Draft {
    config: LinkConfig,
    correlation: Option<(Correlation, String)>,
    ecn: bool,
    red: bool,
    codel: bool,
}

impl Default for Draft {
    fn default() -> Self {
        let config = LinkConfig::new(Bitrate::ZERO, Duration::ZERO);
        Draft { config, correlation: None, ecn: false, red: false, codel: false }
    }
}

impl Draft {
    fn set(&mut self, key: &str, value: &str) -> Result<(), LinkConfigError> {
        if key != "correlation" {
            return self.config.set(key, value);
        }
        let refused = || LinkConfigError::new(key, value, CORRELATION);
        self.correlation = Some((correlation(value).ok_or_else(refused)?, value.to_owned()));
        Ok(())
    }

    fn set_flag(&mut self, key: &str) -> Result<(), LinkConfigError> {
        match key {
            "ecn" => self.ecn = true,
            "codel" => self.codel = true,
            "red" => self.red = true,
            "reorder" => self.config.jitter.reorder = true,
            "" => return Err(LinkConfigError::new("link", "an empty item", KEYS)),
            _ if KEYS.split(", ").any(|known| known == key) => {
                return Err(LinkConfigError::new(key, key, format!("a value, as in {key}=...")));
            }
            _ => return Err(LinkConfigError::new(key, key, KEYS)),
        }
        Ok(())
    }

    /// The link, if the keys that were `given` go together.
    fn finish(self, given: &[&str]) -> Result<LinkConfig, LinkConfigError> {
        for (key, allowed) in [("rate", RATE), ("delay", DELAY)] {
            if !given.contains(&key) {
                return Err(LinkConfigError::new(key, "nothing", allowed));
            }
        }
        if self.ecn && self.red {
            let allowed = "one of ecn (RED that marks) and red (RED that drops)";
            return Err(LinkConfigError::new("red", "both ecn and red", allowed));
        }
        if self.red && self.codel {
            return Err(LinkConfigError::new("codel", "both red and codel", "one of them"));
        }
        let mut config = self.config;
        config.check_jitter(|key| given.contains(&key))?;
        if let Some((shared, given)) = self.correlation {
            let refused = || LinkConfigError::new("correlation", given, CORRELATION);
            config.loss = shared.of(config.loss).ok_or_else(refused)?;
        }
        let ecn = self.ecn;
        if self.codel {
            config.queue.discipline = Discipline::Codel(CodelConfig { ecn, ..Default::default() });
        } else if ecn || self.red {
            config.queue.discipline = Discipline::Red(RedConfig { ecn, ..Default::default() });
        }
        config.validate()?;
        Ok(config)
    }
}

fn rate(text: &str) -> Option<Bitrate> {
    text.parse().ok().filter(|rate| (RATE_RANGE.0..=RATE_RANGE.1).contains(rate))
}

fn delay(text: &str) -> Option<Duration> {
    parse_duration(text).ok().filter(|delay| *delay <= MAX_DELAY)
}

/// `initial`, then any number of `/value@time`.
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

/// `period/least-most/step`.
fn fluctuation(text: &str) -> Option<RandomRate> {
    let parts: Vec<&str> = text.split('/').collect();
    let [period, shares, step] = parts.as_slice() else { return None };
    let (least, most) = shares.split_once('-')?;
    let random = RandomRate {
        period: parse_duration(period).ok()?,
        least: share(least)?,
        most: share(most)?,
        step: share(step)?,
    };
    random.validate().is_ok().then_some(random)
}

/// A percentage that may exceed 100 %.
fn share(text: &str) -> Option<f64> {
    let value: f64 = text.trim().strip_suffix('%')?.parse().ok()?;
    (0.0..=1000.0).contains(&value).then_some(value / 100.0)
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
