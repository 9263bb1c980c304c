//! The clock of the peer, by which it reports receive times.

/// Unwraps 32-bit microseconds of the peer's clock.
#[derive(Debug, Default)]
pub struct PeerClock(u64);

impl PeerClock {
    /// Returns the time in microseconds as 64 bits. It is never 0, and its low 32 bits equal
    /// `micros`.
    pub fn unwrap(&mut self, micros: u32) -> u64 {
        if self.0 == 0 {
            // High enough that a step back does not underflow.
            self.0 = (1 << 32) + u64::from(micros);
            return self.0;
        }
        let step = i64::from(micros.wrapping_sub(self.0 as u32) as i32);
        let moved = self.0.wrapping_add_signed(step);
        self.0 = self.0.max(moved);
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on_beyond_32_bits_and_may_step_back() {
        let mut clock = PeerClock::default();
        let start = clock.unwrap(u32::MAX - 5);
        assert_eq!(clock.unwrap(4) - start, 10);
        assert_eq!(clock.unwrap(u32::MAX) - start, 5);
        assert_eq!(clock.unwrap(14) - start, 20);
    }
}
