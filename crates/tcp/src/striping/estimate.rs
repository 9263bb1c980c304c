//! The smart application's estimates of its paths' rates.

use anabranch_types::{Bitrate, Time};

use super::socket::Socket;
use super::{Estimate, RateSource};

/// Makes an estimate at every multiple of the interval.
#[derive(Debug)]
pub(super) struct Estimator {
    config: Estimate,
    /// How many intervals had passed at the last estimate.
    round: Option<u64>,
    /// When acknowledged bytes were last measured.
    last: Time,
    /// Bytes that each socket's peer had acknowledged at the last estimate.
    acknowledged: Vec<u64>,
}

impl Estimator {
    pub(super) fn new(config: Estimate, paths: usize) -> Self {
        Estimator { config, round: None, last: Time::ZERO, acknowledged: vec![0; paths] }
    }

    /// New rates in the order of the sockets, if they are due and the source has any.
    pub(super) fn poll(&mut self, now: Time, sockets: &[Socket]) -> Option<Vec<Bitrate>> {
        let interval = self.config.interval.as_nanos().max(1);
        let round = (u128::from(now.as_nanos()) / interval) as u64;
        if self.round == Some(round) {
            return None;
        }
        let is_first = self.round.replace(round).is_none();
        let rates = self.rates(now, round, is_first, sockets)?;
        Some(match self.config.within_buffers {
            true => {
                sockets.iter().zip(rates).map(|(socket, rate)| rate.min(usable(socket))).collect()
            }
            false => rates,
        })
    }

    fn rates(
        &mut self,
        now: Time,
        round: u64,
        is_first: bool,
        sockets: &[Socket],
    ) -> Option<Vec<Bitrate>> {
        match &self.config.source {
            RateSource::Told(rates) => {
                let at = usize::try_from(round).unwrap_or(usize::MAX);
                rates.get(at).or(rates.last()).cloned()
            }
            RateSource::Acknowledged => {
                let rates = self.acknowledged(now, sockets);
                (!is_first).then_some(rates)
            }
            RateSource::Window => {
                let rate = |socket: &Socket| {
                    let rtt = socket.sender.smoothed_rtt()?;
                    Some(Bitrate::from_transfer(socket.sender.cwnd(), rtt))
                };
                sockets.iter().map(rate).collect()
            }
        }
    }

    /// Bytes acknowledged since the last estimate, divided by the time since then. A socket that
    /// delivered nothing counts with one packet: at a rate of zero it would have no further turn
    /// and never be measured again.
    fn acknowledged(&mut self, now: Time, sockets: &[Socket]) -> Vec<Bitrate> {
        let time = now.since(self.last);
        self.last = now;
        let rate = |(socket, before): (&Socket, &mut u64)| {
            let acknowledged = socket.sender.acknowledged();
            let bytes = acknowledged - core::mem::replace(before, acknowledged);
            Bitrate::from_transfer(bytes.max(u64::from(socket.sender.config().mss)), time)
        };
        sockets.iter().zip(&mut self.acknowledged).map(rate).collect()
    }
}

/// The rate that a socket's buffers let it have.
fn usable(socket: &Socket) -> Bitrate {
    let (config, rtt) = (socket.sender.config(), socket.sender.rtt());
    match rtt.samples {
        0 => Bitrate::from_bps(u64::MAX),
        _ => Bitrate::from_transfer(config.receive_buffer.min(config.send_buffer), rtt.min),
    }
}
