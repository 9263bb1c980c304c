use core::fmt;
use core::time::Duration;

use anabranch_types::Bitrate;

/// The constants of the MAC. [`MacConfig::default`] is 802.11b with the long preamble, as in ns-2.
#[derive(Clone, Debug, PartialEq)]
pub struct MacConfig {
    /// A back-off slot: 20 µs (aSlotTime, §15.3.3).
    pub slot: Duration,
    /// Gap before an answer: 10 µs (aSIFSTime, §15.3.3).
    pub sifs: Duration,
    /// Preamble and physical header before every frame: 192 µs long, or 96 µs short (§15.2.2;
    /// 802.11b §18.2.2).
    pub preamble: Duration,
    /// Rate of data frames to one station: 11 Mb/s.
    pub data_rate: Bitrate,
    /// Rate of RTS, CTS, ACK and broadcast frames: 1 Mb/s (§9.6).
    pub basic_rate: Bitrate,
    /// Header and check sequence of a data frame: 28 bytes (§7.1.2, three addresses).
    pub header_bytes: u32,
    /// RTS: 20 bytes (§7.2.1.1).
    pub rts_bytes: u32,
    /// CTS: 14 bytes (§7.2.1.2).
    pub cts_bytes: u32,
    /// ACK: 14 bytes (§7.2.1.3).
    pub ack_bytes: u32,
    /// CW of a first attempt, slots: 31 (aCWmin, §15.3.3). Back-off is drawn from 0 to CW.
    pub window_min: u32,
    /// The largest CW: 1023 (aCWmax, §15.3.3). A failure turns CW into 2·CW + 1 (§9.2.4).
    pub window_max: u32,
    /// Attempts at an RTS, and at data frames up to `rts_threshold`: 7 (dot11ShortRetryLimit, §9.2.4).
    pub short_retry_limit: u32,
    /// Attempts at data frames beyond `rts_threshold`: 4 (dot11LongRetryLimit, §9.2.4).
    pub long_retry_limit: u32,
    /// RTS and CTS precede data frames with more bytes than this, header included. By default they
    /// never do; 0 means always (dot11RTSThreshold, §9.2.6.4).
    pub rts_threshold: u32,
    /// Propagation delay in each direction that a sender allows for when it waits for an answer: 2
    /// µs, as in ns-2.
    pub propagation_allowance: Duration,
    /// The time for which a frame must be on the air before a station senses it: 15 µs (aCCATime,
    /// §15.3.3). A station whose back-off ends earlier transmits and collides. So stations that
    /// chose the same slot collide, although the propagation delay shifts their slots.
    pub sense_time: Duration,
    /// How a message that finds the channel idle gets access.
    pub idle_access: IdleAccess,
    /// How long stations wait after a frame that they could not decode.
    pub eifs_rule: EifsRule,
    /// Whether the back-off can be CW. If not, it is at most CW − 1, as in ns-2.
    pub window_inclusive: bool,
    /// Size of each of a station's three queues (routing, acknowledgements, data): 50 messages.
    pub queue: usize,
}

/// How a message gets access if the channel is idle and no back-off is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAccess {
    /// Send as soon as the channel has been idle for a DIFS (§9.2.5.1).
    AtOnce,
    /// Wait for a DIFS from now on, and then for a back-off (ns-2 2.35).
    BackOff,
}

/// How long stations wait after a frame that they could not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EifsRule {
    /// An EIFS replaces the DIFS, and a decoded frame ends it (§9.2.3.4).
    InsteadOfDifs,
    /// The channel counts as reserved for an EIFS, and then a DIFS follows (ns-2 2.35).
    BeforeDifs,
}

impl Default for MacConfig {
    fn default() -> Self {
        let micros = Duration::from_micros;
        MacConfig {
            slot: micros(20),
            sifs: micros(10),
            preamble: micros(192),
            data_rate: Bitrate::from_bps(11_000_000),
            basic_rate: Bitrate::from_bps(1_000_000),
            header_bytes: 28,
            rts_bytes: 20,
            cts_bytes: 14,
            ack_bytes: 14,
            window_min: 31,
            window_max: 1023,
            short_retry_limit: 7,
            long_retry_limit: 4,
            rts_threshold: u32::MAX,
            propagation_allowance: micros(2),
            sense_time: micros(15),
            idle_access: IdleAccess::AtOnce,
            eifs_rule: EifsRule::InsteadOfDifs,
            window_inclusive: true,
            queue: 50,
        }
    }
}

impl MacConfig {
    /// The default constants, changed in four ways as in ns-2 2.35: every message waits for a
    /// back-off, a DIFS follows an EIFS, the back-off is less than CW, and a frame is sensed as
    /// soon as it arrives.
    pub fn ns2() -> Self {
        MacConfig {
            sense_time: Duration::ZERO,
            idle_access: IdleAccess::BackOff,
            eifs_rule: EifsRule::BeforeDifs,
            window_inclusive: false,
            ..MacConfig::default()
        }
    }

    /// DIFS: SIFS and two slots (§9.2.10).
    pub fn difs(&self) -> Duration {
        self.sifs + 2 * self.slot
    }

    /// EIFS: SIFS, an ACK at 1 Mb/s, and DIFS (§9.2.10); 364 µs by default.
    pub fn eifs(&self) -> Duration {
        let ack = Duration::from_micros(8 * u64::from(self.ack_bytes));
        self.sifs + self.preamble + ack + self.difs()
    }

    pub(in super::super) fn validate(&self) -> Result<(), MacConfigError> {
        let rules = [
            (self.slot.is_zero(), "slot", "above 0"),
            (self.sifs.is_zero(), "sifs", "above 0"),
            (self.sense_time >= self.slot, "sense_time", "below a slot"),
            (self.data_rate == Bitrate::ZERO, "data_rate", "above 0"),
            (self.basic_rate == Bitrate::ZERO, "basic_rate", "above 0"),
            (self.window_min == 0, "window_min", "at least 1"),
            (self.window_max < self.window_min, "window_max", "at least window_min"),
            (self.window_max > 1 << 20, "window_max", "at most 2^20"),
            (self.short_retry_limit == 0, "short_retry_limit", "at least 1"),
            (self.long_retry_limit == 0, "long_retry_limit", "at least 1"),
            (self.queue == 0, "queue", "at least 1"),
            (self.preamble <= self.sifs, "preamble", "longer than sifs"),
        ];
        match rules.into_iter().find(|(broken, ..)| *broken) {
            Some((_, key, allowed)) => Err(MacConfigError { key, allowed }),
            None => Ok(()),
        }
    }
}

/// The error for a constant of the MAC that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacConfigError {
    /// The field of [`MacConfig`].
    pub key: &'static str,
    /// The allowed values of the field.
    pub allowed: &'static str,
}

impl fmt::Display for MacConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the MAC's {} must be {}", self.key, self.allowed)
    }
}

impl core::error::Error for MacConfigError {}

/// The constants in nanoseconds, as a station uses them.
#[derive(Clone, Debug)]
pub(in super::super) struct Timing {
    pub(super) slot: u64,
    pub(super) sifs: u64,
    pub(super) difs: u64,
    /// The time by which a frame that could not be decoded lengthens the following wait.
    pub(super) eifs_extra: u64,
    pub(super) sense: u64,
    /// Airtimes of the control frames.
    pub(super) rts: u64,
    pub(super) cts: u64,
    pub(super) ack: u64,
    /// Times from the end of a frame until its sender stops waiting for the CTS or the ACK.
    pub(super) cts_timeout: u64,
    pub(super) ack_timeout: u64,
    /// The back-off is drawn from CW + `draws` values, where `draws` is 0 or 1.
    pub(super) draws: u32,
    pub(super) config: MacConfig,
}

impl Timing {
    pub(in super::super) fn new(config: &MacConfig) -> Self {
        let nanos = |duration: Duration| duration.as_nanos() as u64;
        let control = |bytes: u32| airtime(config, bytes, config.basic_rate);
        let (difs, eifs) = (nanos(config.difs()), nanos(config.eifs()));
        let answer = nanos(config.sifs) + 2 * nanos(config.propagation_allowance);
        let (cts, ack) = (control(config.cts_bytes), control(config.ack_bytes));
        Timing {
            slot: nanos(config.slot),
            sifs: nanos(config.sifs),
            difs,
            eifs_extra: match config.eifs_rule {
                EifsRule::InsteadOfDifs => eifs - difs,
                EifsRule::BeforeDifs => eifs,
            },
            sense: nanos(config.sense_time),
            rts: control(config.rts_bytes),
            cts,
            ack,
            cts_timeout: answer + cts,
            ack_timeout: answer + ack,
            draws: u32::from(config.window_inclusive),
            config: config.clone(),
        }
    }

    /// Airtime of a data frame with `bytes` bytes of payload.
    pub(super) fn data(&self, bytes: u32, broadcast: bool) -> u64 {
        let config = &self.config;
        let rate = if broadcast { config.basic_rate } else { config.data_rate };
        airtime(config, config.header_bytes.saturating_add(bytes), rate)
    }

    /// Whether RTS and CTS precede a data frame to one station with `bytes` bytes of payload.
    pub(super) fn reserves(&self, bytes: u32) -> bool {
        self.config.header_bytes.saturating_add(bytes) > self.config.rts_threshold
    }
}

/// Airtime of the preamble and `bytes` bytes at `rate`, nanoseconds, rounded up.
fn airtime(config: &MacConfig, bytes: u32, rate: Bitrate) -> u64 {
    let bits = u64::from(bytes) * 8;
    config.preamble.as_nanos() as u64 + (bits * 1_000_000_000).div_ceil(rate.as_bps())
}
