//! Limits on the frames of one packet, so that no packet causes too much work for its length
//! (`docs/spec/wire-0.md`, Frames).

use anabranch_policy::view::SymbolSpace;

use super::ingress::Broken;
use super::paths::PathIndex;
use crate::wire::{CloseCode, Frame};

/// Most frames of a packet, where a run of PADDING counts as one.
pub(super) const MAX_FRAMES: u16 = 128;
/// Most source symbols of a packet.
pub(super) const MAX_SOURCES: u16 = 16;
/// Most repairs of a packet, since each has to be compared with all known symbols of its block.
pub(super) const MAX_REPAIRS: u16 = 8;

/// Frames that a packet has held so far, counted by kind.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    frames: u16,
    sources: u16,
    repairs: u16,
    /// Whether there was a RANK frame, by symbol space.
    ranked: [bool; SymbolSpace::ALL.len()],
    /// Slots, as bits, of the paths for which there was an ACK frame.
    acknowledged: u16,
}

impl Allowance {
    /// Counts a frame.
    pub(super) fn take(&mut self, frame: &Frame<'_>) -> Result<(), Broken> {
        self.frames += 1;
        let again = match frame {
            Frame::Symbol(_) => {
                self.sources += 1;
                self.sources > MAX_SOURCES
            }
            Frame::Repair(_) => {
                self.repairs += 1;
                self.repairs > MAX_REPAIRS
            }
            Frame::Rank(rank) => {
                core::mem::replace(&mut self.ranked[rank.first.space() as usize], true)
            }
            _ => false,
        };
        if again || self.frames > MAX_FRAMES { Err(TOO_MANY) } else { Ok(()) }
    }

    /// Counts a report about a path.
    pub(super) fn take_ack(&mut self, about: PathIndex) -> Result<(), Broken> {
        let again = self.acknowledged & about.bit() != 0;
        self.acknowledged |= about.bit();
        if again { Err(TOO_MANY) } else { Ok(()) }
    }
}

const TOO_MANY: Broken =
    Broken { code: CloseCode::FRAME_ENCODING, what: "a packet holds more frames than is allowed" };
