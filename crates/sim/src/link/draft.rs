//! Parses a link from its text form.

use core::str::FromStr;
use core::time::Duration;

use anabranch_types::Bitrate;

use super::config::{LinkConfig, LinkConfigError, MISSING};
use super::parse::{DELAY, KEYS, RATE};
use super::parse_loss::{CORRELATION, Correlation, correlation};
use crate::delay::{DelayCourse, DelayTrace};
use crate::queue::{CodelConfig, Discipline, RedConfig};
use crate::rate::{DeliveryTrace, Fluctuation, Schedule, TraceError};

/// Reads the file at the path that a link or a scenario names. In a scenario, the path is relative
/// to the scenario's file. An error is a text of one line.
pub type ReadFile<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

impl FromStr for LinkConfig {
    type Err = LinkConfigError;

    /// Like [`LinkConfig::read`], but without access to files.
    ///
    /// # Errors
    /// The errors of [`LinkConfig::read`]. A key that names a file is refused.
    fn from_str(text: &str) -> Result<Self, LinkConfigError> {
        LinkConfig::read(text, &mut |_| Err("no files are read here".to_owned()))
    }
}

impl LinkConfig {
    /// Reads `key=value` pairs and flags, separated by commas.
    ///
    /// | key | value |
    /// |---|---|
    /// | `rate` | `12mbit`; changes as `12mbit/3mbit@10s`; `trace:FILE`; required |
    /// | `fluctuation` | `1s/20%-100%/10%`: each second a new share of the rate, in tenths |
    /// | | `basic/5` or `rts-cts/5`: packets take as long as one of 5 stations on an 802.11 channel needs |
    /// | `delay` | one way, `40ms`; changes as `40ms/80ms@10s`; `trace:FILE`; required |
    /// | `name` | letters, digits, `.`, `_`, `-` |
    /// | `loss` | `5%`, `5%/20%@10s`, `markov:5%/35%@250ms`, `trimodal:25%/75%@250ms/2%@1s`, `ge:1%/20%`, `ge:1%/20%/0%/50%`, `pattern:0001`, `joint:air/1/10%+20%/30%@1ms` |
    /// | `correlation` | `air/2/50%@1ms`: this loss is shared, second link of the group `air`, θ = 0.5, in slots of 1 ms |
    /// | `jitter` | `2ms`: extra delay, uniform from zero to this, or the standard deviation under another law; order is kept |
    /// | `jitter-law` | `uniform`, `normal`, `gamma`, `log-normal`: how delays are distributed |
    /// | `jitter-correlation` | `100ms`: within this time the correlation of packets falls to 1/e |
    /// | `delay-steps` | `15s/10ms-60ms`: every 15 s another extra delay of at most 60 ms, at least 10 ms from the last |
    /// | `clumps` | `2ms-8ms`: packets wait at the end of the link, and every 2 to 8 ms all are released |
    /// | `policer` | `20mbit/64KiB`: packets beyond this rate and burst are dropped as they arrive |
    /// | `buffer` | `64KiB` or `100p`; one bandwidth-delay product if left out |
    /// | `blackout` | `10s-15s`, several joined by `+` |
    /// | `mtu` | `1400B`; changes as `1500B/1400B@10s`; any size if left out |
    /// | `ecn` | flag: RED that marks; CoDel that marks beside `codel` |
    /// | `red` | flag: RED that drops |
    /// | `codel` | flag: CoDel, 5 ms in 100 ms, that drops |
    /// | `reorder` | flag: jitter and falling delays may reorder |
    ///
    /// The formats of the files are those of [`DeliveryTrace`] and [`DelayTrace`].
    ///
    /// # Errors
    /// When a key is unknown or repeated, a value has no unit, is negative or out of range, a file
    /// cannot be read or is not a trace, or the rate or the delay is missing. The error names the
    /// key, the given value and the allowed values.
    pub fn read(text: &str, files: &mut ReadFile<'_>) -> Result<Self, LinkConfigError> {
        let draft = Draft::new(LinkConfig::new(Bitrate::ZERO, Duration::ZERO));
        let (draft, given) = draft.read(text, files)?;
        for (key, allowed) in [("rate", RATE), ("delay", DELAY)] {
            if !given.contains(&key) {
                return Err(LinkConfigError::new(key, MISSING, allowed));
            }
        }
        draft.finish(&given)
    }

    /// This link with the settings of `text`, in the form of [`read`](Self::read); no key is required.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn changed(self, text: &str, files: &mut ReadFile<'_>) -> Result<Self, LinkConfigError> {
        let (draft, given) = Draft::new(self).read(text, files)?;
        draft.finish(&given)
    }

    /// Makes the link send at the delivery opportunities of `trace`.
    pub fn set_rate_trace(&mut self, trace: DeliveryTrace) {
        self.rate = Schedule::constant(trace.mean_rate());
        self.fluctuation = Fluctuation::Trace(trace);
    }

    /// Makes the link's delay follow `trace`.
    pub fn set_delay_trace(&mut self, trace: DelayTrace) {
        self.delay = trace.mean();
        self.delay_changes.clear();
        self.delay_course = DelayCourse::Trace(trace);
    }
}

/// The settings of a link that have been read so far.
struct Draft {
    config: LinkConfig,
    /// Keys whose values come from a trace file.
    traced: Vec<&'static str>,
    correlation: Option<(Correlation, String)>,
    ecn: bool,
    red: bool,
    codel: bool,
}

impl Draft {
    /// A draft with the settings of `config`.
    fn new(config: LinkConfig) -> Self {
        Draft {
            config,
            traced: Vec::new(),
            correlation: None,
            ecn: false,
            red: false,
            codel: false,
        }
    }

    /// Applies the settings of `text`. Also returns the keys that `text` contains.
    fn read<'a>(
        mut self,
        text: &'a str,
        files: &mut ReadFile<'_>,
    ) -> Result<(Self, Vec<&'a str>), LinkConfigError> {
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
                Some(value) => self.set(key, value, files)?,
                None => self.set_flag(key)?,
            }
        }
        for (key, course) in [("fluctuation", "rate"), ("delay-steps", "delay")] {
            if seen.contains(&key) && self.traced.contains(&course) {
                return Err(LinkConfigError::new(key, "beside a trace", "one of the two"));
            }
        }
        Ok((self, seen))
    }

    fn set(
        &mut self,
        key: &str,
        value: &str,
        files: &mut ReadFile<'_>,
    ) -> Result<(), LinkConfigError> {
        if key == "correlation" {
            let refused = || LinkConfigError::new(key, value, CORRELATION);
            self.correlation = Some((correlation(value).ok_or_else(refused)?, value.to_owned()));
            return Ok(());
        }
        match value.strip_prefix("trace:") {
            Some(path) if matches!(key, "rate" | "delay") => self.trace(key, path, files),
            _ => self.config.set(key, value),
        }
    }

    /// Reads the trace file at `path` for `key`.
    fn trace(
        &mut self,
        key: &str,
        path: &str,
        files: &mut ReadFile<'_>,
    ) -> Result<(), LinkConfigError> {
        let refuse = |why: String| LinkConfigError::new(key, format!("trace:{path}"), why);
        let wrong = |error: TraceError| refuse(format!("a trace; {error}"));
        let text = files(path).map_err(|why| refuse(format!("a file that can be read; {why}")))?;
        if key == "rate" {
            self.traced.push("rate");
            self.config.set_rate_trace(DeliveryTrace::parse(&text).map_err(wrong)?);
        } else {
            self.traced.push("delay");
            self.config.set_delay_trace(DelayTrace::parse(&text).map_err(wrong)?);
        }
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

    /// The finished link. Fails if the `given` keys are not compatible.
    fn finish(self, given: &[&str]) -> Result<LinkConfig, LinkConfigError> {
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
