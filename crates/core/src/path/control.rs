//! Control frames in flight on one path.

use std::collections::VecDeque;

use crate::wire::ControlFrame;

/// Frames by the number of the packet that carries them. In steady state nothing is allocated.
#[derive(Debug, Default)]
pub struct ControlInFlight {
    /// In order of packet number.
    frames: VecDeque<(u64, ControlFrame)>,
    /// How many of the frames answer challenges.
    responses: usize,
}

impl ControlInFlight {
    /// Adds a frame sent in packet `number`, which is not below any earlier number.
    pub fn push(&mut self, number: u64, frame: ControlFrame) {
        self.responses += usize::from(is_response(&frame));
        self.frames.push_back((number, frame));
    }

    /// Number of frames neither acknowledged nor lost.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether no frame is in flight.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Number of answers to challenges in flight.
    pub fn responses(&self) -> usize {
        self.responses
    }

    /// Takes the next frame of a packet that was acknowledged or lost; `None` if no frame is left.
    pub fn take(&mut self, number: u64) -> Option<ControlFrame> {
        let at = self.frames.partition_point(|(earlier, _)| *earlier < number);
        if self.frames.get(at)?.0 != number {
            return None;
        }
        let (_, frame) = self.frames.remove(at)?;
        self.responses -= usize::from(is_response(&frame));
        Some(frame)
    }
}

fn is_response(frame: &ControlFrame) -> bool {
    matches!(frame, ControlFrame::PathResponse { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_by_packet_in_their_order() {
        let mut frames = ControlInFlight::default();
        let frame = |limit| ControlFrame::MaxData { limit };
        for (number, limit) in [(3, 30), (3, 31), (7, 70), (9, 90)] {
            frames.push(number, frame(limit));
        }
        assert_eq!(frames.take(5), None);
        assert_eq!(frames.take(7), Some(frame(70)));
        assert_eq!(frames.take(7), None);
        assert_eq!((frames.take(3), frames.take(3)), (Some(frame(30)), Some(frame(31))));
        assert_eq!((frames.take(3), frames.take(10)), (None, None));
        assert_eq!(frames.take(9), Some(frame(90)));
    }
}
