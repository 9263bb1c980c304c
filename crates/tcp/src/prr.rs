//! Proportional rate reduction (RFC 9937, which replaces RFC 6937).

/// The state of one recovery. All amounts are bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    ssthresh: u64,
    /// Bytes in flight when recovery began (RecoverFS).
    flight: u64,
    delivered: u64,
    out: u64,
    mss: u64,
    cwnd: u64,
}

impl Prr {
    /// Recovery begins. Just before it, `flight` bytes were outstanding and not SACKed; at its end
    /// the window is to be `ssthresh`.
    pub(crate) fn new(flight: u64, ssthresh: u64, mss: u32) -> Self {
        let mss = u64::from(mss);
        // Until the first acknowledgement is counted, only the first retransmission may leave.
        Prr { ssthresh, flight: flight.max(mss), delivered: 0, out: 0, mss, cwnd: 0 }
    }

    /// An acknowledgement delivered `delivered` bytes and left `pipe` in the network; `progress` if
    /// it moved the cumulative acknowledgement and declared nothing new lost (RFC 9937 §6).
    pub(crate) fn on_ack(&mut self, delivered: u64, pipe: u64, progress: bool) {
        self.delivered += delivered;
        let mut allowed = if pipe > self.ssthresh {
            let share = u128::from(self.delivered) * u128::from(self.ssthresh);
            let due = share.div_ceil(u128::from(self.flight)).min(u128::from(u64::MAX)) as u64;
            due.saturating_sub(self.out)
        } else {
            let mut bound = self.delivered.saturating_sub(self.out).max(delivered);
            if progress {
                bound += self.mss;
            }
            bound.min(self.ssthresh.saturating_sub(pipe))
        };
        if self.out == 0 {
            allowed = allowed.max(self.mss);
        }
        self.cwnd = pipe + allowed;
    }

    /// `bytes` were sent during the recovery.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// The congestion window in force until the next acknowledgement.
    pub(crate) fn cwnd(&self) -> u64 {
        self.cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// Twenty segments in flight, one lost, the window to be halved: after the first retransmission
    /// every second acknowledgement lets one segment out.
    #[test]
    fn one_loss_spreads_the_reduction() {
        let mut prr = Prr::new(20_000, 10_000, MSS);
        // Three SACKed, one lost: 16 remain.
        let mut pipe = 16_000;
        let mut sent = Vec::new();
        for ack in 0..16 {
            let delivered = if ack == 0 { 3000 } else { 1000 };
            prr.on_ack(delivered, pipe, false);
            let mut now = 0;
            while pipe + 1000 <= prr.cwnd() {
                pipe += 1000;
                prr.on_sent(1000);
                now += 1;
            }
            sent.push(now);
            pipe -= 1000;
        }
        // The pipe reaches the threshold at the fourteenth acknowledgement. From then on one
        // segment leaves for each that arrives.
        assert_eq!(sent, [1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
    }

    /// Nearly everything was lost: the pipe is far below the threshold and grows by what arrives,
    /// one segment faster where the acknowledgement makes progress.
    #[test]
    fn below_the_threshold_the_pipe_grows_back_slowly() {
        let mut prr = Prr::new(20_000, 10_000, MSS);
        prr.on_ack(3000, 2000, false);
        assert_eq!(prr.cwnd(), 5000);
        prr.on_sent(3000);
        prr.on_ack(1000, 4000, false);
        assert_eq!(prr.cwnd(), 5000);
        prr.on_sent(1000);
        prr.on_ack(1000, 4000, true);
        assert_eq!(prr.cwnd(), 6000);
    }

    #[test]
    fn the_first_retransmission_is_always_allowed() {
        let mut prr = Prr::new(100_000, 2000, MSS);
        prr.on_ack(1000, 99_000, false);
        assert_eq!(prr.cwnd(), 100_000);
        prr.on_sent(1000);
        prr.on_ack(1000, 98_000, false);
        assert_eq!(prr.cwnd(), 98_000);
    }
}
