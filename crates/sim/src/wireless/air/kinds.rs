//! The configuration and the events of an air.

use core::fmt;

use anabranch_types::Probability;

use super::super::{MacConfig, MacConfigError, Radio};

/// Configuration that all stations have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AirConfig {
    /// How far signals carry.
    pub radio: Radio,
    /// Constants of the MAC.
    pub mac: MacConfig,
    /// Random loss, in addition to losses by collision.
    pub loss: FrameLoss,
}

impl AirConfig {
    /// Checks the configuration.
    ///
    /// # Errors
    /// When a constant is out of range, or a signal can be sensed farther than it travels in a SIFS.
    pub fn validate(&self) -> Result<(), AirError> {
        self.mac.validate().map_err(AirError::Mac)?;
        let range = self.radio.sense_range();
        let far = Radio::delay(range) >= self.mac.sifs.as_nanos() as u64;
        if far || range.is_nan() || self.radio.capture_ratio < 1.0 {
            return Err(AirError::Radio);
        }
        Ok(())
    }
}

/// Random loss, independent from frame to frame and from receiver to receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameLoss {
    /// Above the MAC: a message is dropped after the MAC has received and acknowledged it, so nothing
    /// repeats it. Hits every message, also those of routing protocols.
    pub above: Probability,
    /// Below the MAC: a frame that would have been decoded is garbled. Hits every frame, RTS, CTS and ACK
    /// too; the MAC's repetitions make up for most of it.
    pub below: Probability,
}

/// The fate of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// A message has arrived at a station.
    Received {
        /// The station.
        at: u32,
        /// The station that sent the message.
        from: u32,
        /// The message.
        token: u32,
    },
    /// A message has arrived at a station and was lost above its MAC.
    Lost {
        /// The station.
        at: u32,
        /// The station that sent the message.
        from: u32,
        /// The message.
        token: u32,
    },
    /// A station that listens to everything has heard a message for another one.
    Overheard {
        /// The station that has heard the message.
        at: u32,
        /// The station that sent the message.
        from: u32,
        /// The message.
        token: u32,
    },
    /// The station is done with the message: it was acknowledged or, as a broadcast, has ended at all stations
    /// that sense it. The last report of this message.
    Sent {
        /// The station.
        from: u32,
        /// The message.
        token: u32,
    },
    /// The station has given the message up at a retry limit: the link to `to` has failed. The last report
    /// of this message, which may have been received all the same, if only ACKs were lost.
    GaveUp {
        /// The station.
        from: u32,
        /// The station that the message was for.
        to: u32,
        /// The message.
        token: u32,
    },
}

/// Counters of the air so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirCounters {
    /// Timers that expired, and frames that began or ended at some station.
    pub events: u64,
    /// Frames put on the air, of every kind.
    pub frames: u64,
    /// Messages lost above the MAC.
    pub lost_above: u64,
    /// Frames garbled by loss below the MAC.
    pub lost_below: u64,
}

/// Most stations; more would take gigabytes of sequence numbers.
pub(in super::super) const MAX_STATIONS: usize = 10_000;

/// The configuration of an air is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AirError {
    /// A constant of the MAC is out of range.
    Mac(MacConfigError),
    /// A signal can be sensed farther away than it travels in a SIFS, or the capture ratio is below 1.
    Radio,
    /// This many stations: 1 to 10,000 are allowed.
    Stations(usize),
}

impl fmt::Display for AirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AirError::Mac(error) => error.fmt(f),
            AirError::Radio => f.write_str(
                "a signal must not be sensed farther away than it gets in a SIFS, \
                 and the capture ratio must be at least 1",
            ),
            AirError::Stations(count) => {
                write!(f, "there can be 1 to 10,000 stations, not {count}")
            }
        }
    }
}

impl core::error::Error for AirError {}
