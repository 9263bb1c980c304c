//! Chooses the socket that is written to next.

use anabranch_types::Bitrate;

/// Writes to one socket after the other, to each until it is full.
#[derive(Debug, Default)]
pub(super) struct UntilFull {
    /// The socket written to last.
    current: usize,
}

impl UntilFull {
    /// The socket, of `count`, for the next packet: the current one while it has room, else the
    /// next one that has room.
    pub(super) fn choose(
        &mut self,
        count: usize,
        mut has_room: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let found =
            (0..count).map(|step| (self.current + step) % count).find(|at| has_room(*at))?;
        self.current = found;
        Some(found)
    }
}

/// Weighted round robin: each path gets its next packet when it would have sent, at its rate, the
/// packets before.
#[derive(Debug)]
pub(super) struct ByRate {
    rates: Vec<Bitrate>,
    /// When each path has sent the packets given to it, in ns of a virtual clock that restarts with
    /// new rates.
    through: Vec<u128>,
}

impl ByRate {
    /// `paths` paths with equal rates.
    pub(super) fn new(paths: usize) -> Self {
        ByRate { rates: vec![Bitrate::from_bps(1); paths], through: vec![0; paths] }
    }

    /// Sets the rates, and starts the round again if they have changed. A path with rate zero gets
    /// no packets. If all rates are zero, the old ones stay.
    pub(super) fn set_rates(&mut self, rates: impl Iterator<Item = Bitrate>) {
        let rates: Vec<Bitrate> = rates.take(self.rates.len()).collect();
        if rates.len() < self.rates.len() || rates.iter().all(|rate| *rate == Bitrate::ZERO) {
            return;
        }
        if rates != self.rates {
            self.rates = rates;
            self.through.fill(0);
        }
    }

    /// The path for the next packet, of `len` bytes: the one that would have sent it first.
    pub(super) fn choose(&self, len: u64) -> Option<usize> {
        let paths = self.rates.iter().zip(&self.through).enumerate();
        let due =
            paths.filter_map(|(path, (rate, through))| Some((through + time(len, *rate)?, path)));
        due.min().map(|(_, path)| path)
    }

    /// Gives the packet to a path.
    pub(super) fn take(&mut self, path: usize, len: u64) {
        if let (Some(rate), Some(through)) = (self.rates.get(path), self.through.get_mut(path)) {
            *through += time(len, *rate).unwrap_or_default();
        }
    }
}

/// Time to send `len` bytes, ns; `None` at a rate of zero.
fn time(len: u64, rate: Bitrate) -> Option<u128> {
    (u128::from(len) * 8_000_000_000).checked_div(u128::from(rate.as_bps()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each path has its turn in this many packets.
    fn turns(order: &mut ByRate, packets: usize) -> Vec<usize> {
        let mut turns = vec![0; order.rates.len()];
        for _ in 0..packets {
            let path = order.choose(1000).expect("a path");
            order.take(path, 1000);
            turns[path] += 1;
        }
        turns
    }

    fn kbps(rates: &[u64]) -> impl Iterator<Item = Bitrate> {
        rates.iter().map(|rate| Bitrate::from_bps(rate * 1000))
    }

    #[test]
    fn turns_follow_the_rates() {
        let mut order = ByRate::new(2);
        assert_eq!(turns(&mut order, 10), [5, 5]);
        order.set_rates(kbps(&[500, 3000]));
        assert_eq!(turns(&mut order, 700), [100, 600]);
        // Short runs keep the ratio too: six of seven packets.
        assert_eq!(turns(&mut order, 7), [1, 6]);
    }

    #[test]
    fn a_path_of_rate_zero_has_no_turn_unless_all_have_none() {
        let mut order = ByRate::new(3);
        order.set_rates(kbps(&[1000, 0, 3000]));
        assert_eq!(turns(&mut order, 40), [10, 0, 30]);
        order.set_rates(kbps(&[0, 0, 0]));
        assert_eq!(turns(&mut order, 40), [10, 0, 30]);
    }

    #[test]
    fn a_socket_is_left_when_it_is_full() {
        let mut order = UntilFull::default();
        let mut room = [2, 1, 3];
        let mut chosen = Vec::new();
        while let Some(socket) = order.choose(3, |at| room[at] > 0) {
            room[socket] -= 1;
            chosen.push(socket);
        }
        assert_eq!(chosen, [0, 0, 1, 2, 2, 2]);
        room = [1, 1, 0];
        assert_eq!(order.choose(3, |at| room[at] > 0), Some(0));
    }
}
