use anabranch_types::Bitrate;

/// Computes how long packets take on the wire, exact to the nanosecond and without drift: the
/// fraction of a nanosecond that is cut off at the end of a packet is added to the next packet of
/// the same busy period.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Serialiser {
    /// The fraction by which the end of the last packet was rounded down, in units of 1 / `rate` nanoseconds.
    carry: u64,
    /// The rate of the last packet, bits per second.
    rate: u64,
}

/// Bits per byte times nanoseconds per second: a byte takes this many units of 1 / `rate`
/// nanoseconds.
const UNITS_PER_BYTE: u64 = 8_000_000_000;

impl Serialiser {
    /// The nanoseconds that a byte takes at `rate`, if that is a whole number.
    pub(crate) fn per_byte(rate: Bitrate) -> Option<u64> {
        let rate = rate.as_bps().max(1);
        UNITS_PER_BYTE.is_multiple_of(rate).then_some(UNITS_PER_BYTE / rate)
    }

    /// The nanoseconds that a packet of `size` bytes takes at `rate`. A rate of zero counts as 1
    /// b/s. `fresh` is true if the packet begins a busy period.
    #[inline]
    pub(crate) fn nanos(&mut self, size: u32, rate: Bitrate, fresh: bool) -> u64 {
        let rate = rate.as_bps().max(1);
        if fresh {
            self.carry = 0;
        } else if self.rate != rate {
            let carry = u128::from(self.carry) * u128::from(rate);
            self.carry = (carry / u128::from(self.rate.max(1))) as u64;
        }
        let units = u64::from(size).saturating_mul(UNITS_PER_BYTE).saturating_add(self.carry);
        self.carry = units % rate;
        self.rate = rate;
        units / rate
    }

    /// Forgets the fraction by which the end of the last packet was rounded down.
    pub(crate) fn reset(&mut self) {
        self.carry = 0;
    }
}
