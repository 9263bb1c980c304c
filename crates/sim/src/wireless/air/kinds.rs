//! The configuration, reports and errors of [`Air`](super::Air).

use core::fmt;

use anabranch_types::Probability;

use super::super::{MacConfig, MacConfigError, Radio};

/// The configuration of all stations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AirConfig {
    /// The range of signals.
    pub radio: Radio,
    /// Constants of the MAC.
    pub mac: MacConfig,
    /// Random loss, in addition to losses by collisions.
    pub loss: FrameLoss,
}

impl AirConfig {
    /// Checks the configuration.
    ///
    /// # Errors
    /// When a constant is out of its range, or a signal can be sensed farther away than it travels
    /// in a SIFS.
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

/// Random loss, which is independent for each frame and each receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameLoss {
    /// Loss above the MAC: a message is dropped after the MAC has received and acknowledged it, so
    /// it is not retransmitted. All messages can be lost, including those of routing protocols.
    pub above: Probability,
    /// Loss below the MAC: a frame that would have been decoded is garbled. All frames can be lost,
    /// including RTS, CTS and ACK. The MAC's retransmissions repair most of these losses.
    pub below: Probability,
}

/// The fate of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// A message has arrived at its station.
    Received {
        /// The station.
        at: u32,
        /// The station that sent the message.
        from: u32,
        /// The message.
        token: u32,
    },
    /// A message has arrived at its station, but was lost above the MAC.
    Lost {
        /// The station.
        at: u32,
        /// The station that sent the message.
        from: u32,
        /// The message.
        token: u32,
    },
    /// A station has decoded a message for another station, while listening is on.
    Overheard {
        /// The station that has heard the message.
        at: u32,
        /// The station that sent the message.
        from: u32,
        /// The message.
        token: u32,
    },
    /// The station has finished the message: it was acknowledged, or it is a broadcast that has
    /// ended at all stations that sense it. This is the last report of the message.
    Sent {
        /// The station.
        from: u32,
        /// The message.
        token: u32,
    },
    /// The station has given the message up at a retry limit: the link to `to` has failed. This is
    /// the last report of the message. The message may still have been received, if only its ACKs
    /// were lost.
    GaveUp {
        /// The station.
        from: u32,
        /// The station that the message was for.
        to: u32,
        /// The message.
        token: u32,
    },
}

/// Counters of the medium so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirCounters {
    /// Number of events: timers that expired, and starts and ends of frames at stations.
    pub events: u64,
    /// Frames sent, of all kinds.
    pub frames: u64,
    /// Messages lost above the MAC.
    pub lost_above: u64,
    /// Frames garbled by loss below the MAC.
    pub lost_below: u64,
}

/// Maximum number of stations. More would take gigabytes for sequence numbers.
pub(in super::super) const MAX_STATIONS: usize = 10_000;

/// Why the configuration of an [`Air`](super::Air) is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AirError {
    /// A constant of the MAC is out of range.
    Mac(MacConfigError),
    /// A signal can be sensed farther away than it travels in a SIFS, or the capture ratio is below 1.
    Radio,
    /// The number of stations is not from 1 to 10 000.
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
