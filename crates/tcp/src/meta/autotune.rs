//! Buffers that grow with the transfer, as Linux tunes them.
//!
//! **Receiving** (dynamic right-sizing, Fisk and Feng 2001; Linux 6.18, `tcp_rcvbuf_grow` and
//! `mptcp_rcv_space_adjust`): once per round trip of the slowest subflow, the receiver checks how
//! much the application read in that time. If that is more than in any round trip before, the
//! buffer grows to the sum of three terms: twice the amount read, so that the window never stops a
//! sender that doubles its rate; twice this first term times the relative growth of the amount
//! read; and the span up to the highest data that has arrived above a gap. The receiver takes
//! round-trip times from the timestamps that data echoes, smoothed with gain 1/8.
//!
//! **Sending** (`tcp_sndbuf_expand`, `__mptcp_propagate_sndbuf`): the buffer is the sum of the
//! subflows' shares. In Linux the share of a subflow is the memory of two of its congestion
//! windows, each of ten segments at least; it grows on acknowledgements that leave the window
//! unfilled. Linux counts a segment of 1448 bytes as 4352, the memory of a segment in a buffer of
//! its own, but waiting data lies in large pieces and takes little more than its bytes. So a share
//! has room for six windows of payload.
//!
//! Neither buffer shrinks. On the receiving side Linux counts memory, about half of which is
//! payload; here both buffers count payload only.

use anabranch_policy::scheduler::linux::{LEAST_WINDOW, WINDOWS};
use anabranch_policy::view::MAX_PATHS;
use anabranch_types::Time;
use core::time::Duration;

use crate::segment::Segment;

/// Least congestion window of a subflow that both sides assume, segments (TCP_INIT_CWND).
const INITIAL_SEGMENTS: u64 = LEAST_WINDOW;

/// Tunes the receive buffer.
#[derive(Clone, Debug)]
pub(super) struct ReceiveTuner {
    /// The present size of the buffer and its upper limit, bytes.
    pub(super) buffer: u64,
    most: u64,
    /// Bytes of a full segment.
    mss: u64,
    /// Smoothed round-trip time of each subflow, and the last timestamp echo that was sampled.
    rtts: [(Duration, Time); MAX_PATHS],
    /// When the current round trip began, and how many bytes had been read by then.
    since: Time,
    read: u64,
    /// Most bytes read in a round trip.
    space: u64,
}

impl ReceiveTuner {
    /// A buffer that begins with `initial` bytes and grows up to `most`, for segments of `mss`
    /// bytes.
    pub(super) fn new(initial: u64, most: u64, mss: u64) -> Self {
        let mss = mss.max(1);
        let space = initial.min(INITIAL_SEGMENTS * mss);
        let (rtts, since) = ([(Duration::ZERO, Time::ZERO); MAX_PATHS], Time::ZERO);
        ReceiveTuner { buffer: initial.min(most), most, mss, rtts, since, read: 0, space }
    }

    /// Takes a sample of the round-trip time from a full segment that echoes a new timestamp.
    pub(super) fn on_segment(&mut self, now: Time, subflow: usize, segment: &Segment) {
        let Some(echo) = segment.timestamps.map(|stamps| stamps.echo) else { return };
        let Some((smoothed, last)) = self.rtts.get_mut(subflow) else { return };
        if echo == Time::MAX || echo <= *last || u64::from(segment.len) < self.mss {
            return;
        }
        let sample = now.since(echo);
        *smoothed = if smoothed.is_zero() { sample } else { (*smoothed * 7 + sample) / 8 };
        *last = echo;
    }

    /// The application has read everything below `read`; `above_gap` is how far beyond the next byte data has arrived.
    pub(super) fn on_read(&mut self, now: Time, read: u64, above_gap: u64) {
        let rtt = self.rtts.iter().map(|(smoothed, _)| *smoothed).max().unwrap_or_default();
        if rtt.is_zero() || now.since(self.since) < rtt {
            return;
        }
        let copied = read - self.read;
        if copied > self.space {
            let twice = 2 * copied;
            let growth = u128::from(twice) * u128::from(copied - self.space);
            let growth =
                u64::try_from(growth / u128::from(self.space.max(1))).unwrap_or(u64::MAX / 8);
            let wanted =
                twice.saturating_add(2 * growth.min(u64::MAX / 8)).saturating_add(above_gap);
            self.buffer = self.buffer.max(wanted.min(self.most));
            self.space = copied;
        }
        (self.since, self.read) = (now, read);
    }
}

/// Tunes the send buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendTuner {
    most: u64,
    mss: u64,
    /// Each subflow's share of the buffer, bytes.
    given: [u64; MAX_PATHS],
}

impl SendTuner {
    /// A buffer of at most `most` bytes, for segments of `mss` bytes.
    pub(super) fn new(most: u64, mss: u64) -> Self {
        SendTuner { most, mss: mss.max(1), given: [0; MAX_PATHS] }
    }

    /// The buffer, bytes.
    pub(super) fn buffer(&self) -> u64 {
        let sum: u64 = self.given.iter().sum();
        sum.max(WINDOWS * INITIAL_SEGMENTS * self.mss).min(self.most)
    }

    /// An acknowledgement on an open subflow has left `in_flight` bytes in flight; the window has
    /// `cwnd` bytes.
    pub(super) fn on_ack(&mut self, subflow: usize, cwnd: u64, in_flight: u64) {
        if let Some(given) = self.given.get_mut(subflow)
            && in_flight < cwnd
        {
            *given = (*given).max(WINDOWS * cwnd.max(INITIAL_SEGMENTS * self.mss));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Timestamps;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// A full segment arrives at `now` ms and echoes a timestamp that is `rtt` ms old.
    fn hear(tuner: &mut ReceiveTuner, now: u64, subflow: usize, rtt: u64) {
        let timestamps = Some(Timestamps { value: ms(now), echo: ms(now - rtt) });
        tuner.on_segment(ms(now), subflow, &Segment { len: 1000, timestamps, ..Segment::EMPTY });
    }

    #[test]
    fn the_receive_buffer_grows_to_twice_what_was_read_in_a_round_trip_and_by_its_growth() {
        let mut tuner = ReceiveTuner::new(64_000, 1_000_000, 1000);
        tuner.on_read(ms(100), 50_000, 0);
        assert_eq!(tuner.buffer, 64_000, "no round trip is known");
        hear(&mut tuner, 140, 0, 40);
        // Time in ms, total bytes read, bytes above a gap, and the size of the buffer after the
        // call.
        for (now, read, above_gap, buffer) in [
            (150, 9_000, 0, 64_000),       // less than ten segments: nothing
            (170, 60_000, 0, 64_000),      // within the round trip
            (190, 29_000, 0, 120_000),     // 20 kB: 40 + 2 · 40 · (20 − 10)/10
            (230, 54_000, 0, 120_000),     // 25 kB: 50 + 2 · 50 · 5/20 = 75
            (270, 94_000, 7_000, 183_000), // 40 kB: 80 + 2 · 80 · 15/25 + 7
            (310, 494_000, 0, 1_000_000),  // to the limit
            (350, 500_000, 0, 1_000_000),  // and never less
        ] {
            tuner.on_read(ms(now), read, above_gap);
            assert_eq!(tuner.buffer, buffer, "{now} ms");
        }
    }

    #[test]
    fn the_slowest_subflow_says_how_long_a_round_trip_is() {
        let mut tuner = ReceiveTuner::new(64_000, 1_000_000, 1000);
        hear(&mut tuner, 200, 0, 40);
        hear(&mut tuner, 200, 1, 100);
        // A repeated echo is not a sample; the next one moves the mean by an eighth.
        hear(&mut tuner, 220, 0, 60);
        assert_eq!(tuner.rtts[0].0, Duration::from_millis(40));
        hear(&mut tuner, 228, 0, 48);
        assert_eq!(tuner.rtts[0].0, Duration::from_millis(41));
        tuner.on_read(ms(220), 20_000, 0);
        tuner.on_read(ms(319), 40_000, 0);
        assert_eq!((tuner.read, tuner.buffer), (20_000, 120_000));
        tuner.on_read(ms(320), 40_000, 0);
        assert_eq!(tuner.read, 40_000);
    }

    #[test]
    fn the_send_buffer_holds_six_windows_of_every_subflow() {
        let mut tuner = SendTuner::new(600_000, 1000);
        assert_eq!(tuner.buffer(), 60_000, "before any subflow is open");
        // Subflow, congestion window, bytes in flight, and the size of the buffer after the call.
        for (subflow, cwnd, in_flight, buffer) in [
            (0, 4_000, 1_000, 60_000),
            (1, 30_000, 30_000, 60_000),
            (1, 30_000, 29_000, 240_000),
            (0, 25_000, 1_000, 330_000),
            (0, 1_000, 0, 330_000),
            (1, 90_000, 0, 600_000),
        ] {
            tuner.on_ack(subflow, cwnd, in_flight);
            assert_eq!(tuner.buffer(), buffer, "{subflow}: {cwnd}");
        }
    }
}
