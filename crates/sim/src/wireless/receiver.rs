/// The state of a station's radio: the number of frames that make the channel busy, and the frame
/// that the radio is locked on to.
///
/// The radio locks on to the first frame that finds it idle. A later frame is ignored if the first
/// is stronger by the capture ratio. Otherwise both are lost, and the radio stays locked on to the
/// one that lasts longer. A stronger late frame does not take over the radio, as in ns-2.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receiver {
    sensed: u32,
    held: Option<Held>,
    transmitting: bool,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    from: u32,
    power: f64,
    end: u64,
    /// Whether the frame is strong enough to be decoded and undamaged so far.
    clean: bool,
}

/// The result of a frame at a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The frame was decoded.
    Clean,
    /// The frame was too weak, or damaged by another frame.
    Garbled,
    /// The station was transmitting when the frame ended, so it did not hear the frame.
    Nothing,
}

impl Receiver {
    /// Handles the arrival of a frame's first bit. Its last bit will arrive at `end`. Returns
    /// whether the channel was idle before.
    pub(super) fn start(
        &mut self,
        frame: (u32, u64),
        power: f64,
        decodable: bool,
        capture_ratio: f64,
    ) -> bool {
        let (from, end) = frame;
        let was_quiet = self.sensed == 0;
        self.sensed += 1;
        match &mut self.held {
            None => {
                let clean = decodable && !self.transmitting;
                self.held = Some(Held { from, power, end, clean });
            }
            Some(held) if held.power >= power * capture_ratio => {}
            Some(held) => {
                held.clean = false;
                if end > held.end {
                    *held = Held { from, power, end, clean: false };
                }
            }
        }
        was_quiet
    }

    /// Handles the arrival of the last bit of the frame from station `from`.
    pub(super) fn end(&mut self, from: u32) -> Heard {
        self.sensed -= 1;
        let held = self.held.take_if(|held| held.from == from);
        if self.transmitting {
            Heard::Nothing
        } else if held.is_some_and(|held| held.clean) {
            Heard::Clean
        } else {
            Heard::Garbled
        }
    }

    /// Notes that the station starts to transmit. The frame being received is lost.
    pub(super) fn transmit(&mut self) {
        self.transmitting = true;
        if let Some(held) = &mut self.held {
            held.clean = false;
        }
    }

    /// Notes that the station has stopped transmitting.
    pub(super) fn fall_silent(&mut self) {
        self.transmitting = false;
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.sensed == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATIO: f64 = 10.0;

    #[test]
    fn a_frame_alone_is_decoded_if_strong_enough() {
        let mut radio = Receiver::default();
        assert!(radio.start((1, 100), 1.0, true, RATIO));
        assert!(!radio.is_quiet());
        assert_eq!(radio.end(1), Heard::Clean);
        assert!(radio.start((1, 200), 1.0, false, RATIO));
        assert_eq!(radio.end(1), Heard::Garbled);
        assert!(radio.is_quiet());
    }

    #[test]
    fn the_first_survives_only_a_much_weaker_second() {
        for (second, survives) in [(0.1, true), (0.11, false), (1.0, false), (100.0, false)] {
            let mut radio = Receiver::default();
            radio.start((1, 100), 1.0, true, RATIO);
            assert!(!radio.start((2, 150), second, true, RATIO));
            let expected = if survives { Heard::Clean } else { Heard::Garbled };
            assert_eq!(radio.end(1), expected, "{second}");
            assert_eq!(radio.end(2), Heard::Garbled, "the second is lost whatever its power");
        }
    }

    #[test]
    fn after_a_collision_the_longer_frame_is_followed() {
        let mut radio = Receiver::default();
        radio.start((1, 100), 1.0, true, RATIO);
        radio.start((2, 300), 2.0, true, RATIO);
        assert_eq!(radio.end(1), Heard::Garbled);
        // The radio is still locked on to frame 2, so it cannot receive the third frame.
        radio.start((3, 400), 1.0, true, RATIO);
        assert_eq!(radio.end(2), Heard::Garbled);
        assert_eq!(radio.end(3), Heard::Garbled);
        radio.start((4, 500), 1.0, true, RATIO);
        assert_eq!(radio.end(4), Heard::Clean);
    }

    #[test]
    fn a_station_that_transmits_hears_nothing() {
        let mut radio = Receiver::default();
        radio.start((1, 100), 1.0, true, RATIO);
        radio.transmit();
        radio.fall_silent();
        assert_eq!(radio.end(1), Heard::Garbled);
        radio.transmit();
        radio.start((2, 100), 1.0, true, RATIO);
        assert_eq!(radio.end(2), Heard::Nothing);
        radio.start((3, 200), 1.0, true, RATIO);
        radio.fall_silent();
        assert_eq!(radio.end(3), Heard::Garbled);
    }
}
