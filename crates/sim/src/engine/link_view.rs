use core::time::Duration;

use anabranch_types::{Bitrate, Time};

use super::{LinkId, Network};
use crate::link::{Link, LinkConfig, LinkCounters};

/// A read-only view of a link of an engine.
#[derive(Clone, Copy, Debug)]
pub struct LinkView<'a> {
    config: &'a LinkConfig,
    link: usize,
    network: &'a Network,
}

impl<'a> LinkView<'a> {
    /// A view of `link`, which must exist.
    pub(super) fn new(config: &'a LinkConfig, link: LinkId, network: &'a Network) -> Self {
        LinkView { config, link: link.0 as usize, network }
    }

    /// The configuration that the link was made from.
    pub fn config(&self) -> &'a LinkConfig {
        self.config
    }

    /// The counters so far. The random loss of a packet that is still in flight may or may not be counted
    /// yet.
    pub fn counters(&self) -> LinkCounters {
        if let Some(link) = self.shaped() {
            return *link.counters();
        }
        let tally = self.network.links.tally(self.link);
        let [inside, bytes_inside, left, bytes_left] = self.inside();
        let gone = tally.delivered + tally.lost;
        let bytes_gone = tally.bytes_delivered + tally.bytes_lost;
        LinkCounters {
            packets_in: gone + inside + tally.dropped_full,
            bytes_in: bytes_gone + bytes_inside + tally.bytes_dropped,
            packets_delivered: tally.delivered,
            bytes_delivered: tally.bytes_delivered,
            packets_serialised: gone + left,
            bytes_serialised: bytes_gone + bytes_left,
            dropped_full: tally.dropped_full,
            lost_random: tally.lost,
            ..LinkCounters::default()
        }
    }

    /// Packets in the queue, without the packet being serialised.
    pub fn packets_waiting(&self) -> u64 {
        self.shaped().map_or_else(|| self.waiting().0, |link| link.queue().len() as u64)
    }

    /// Bytes in the queue, without the packet being serialised.
    pub fn bytes_waiting(&self) -> u64 {
        self.shaped().map_or_else(|| self.waiting().1, |link| link.queue().bytes())
    }

    /// Queueing delay. On a drop-tail link with constant rate and delay and at most independent
    /// losses, this is the backlog divided by the rate. On any other link, it is the time that the
    /// most recently dequeued packet waited.
    pub fn queueing_delay(&self) -> Duration {
        let rate = self.config.rate.at(Time::ZERO);
        self.shaped().map_or_else(|| rate.time_to_send(self.waiting().1), Link::waited)
    }

    /// Packets inside the link: waiting, being serialised or propagating.
    pub fn packets_inside(&self) -> u64 {
        self.shaped().map_or_else(|| self.inside()[0], |link| link.packets_inside() as u64)
    }

    /// The link's rate when the last packet was handled; zero in a blackout.
    pub fn rate(&self) -> Bitrate {
        self.shaped().map_or_else(|| self.config.rate.at(Time::ZERO), |link| link.rate())
    }

    /// The full model of the link; `None` for a drop-tail link with constant rate and delay and at
    /// most independent losses. The model's tokens are the engine's packet handles.
    pub fn shaped(&self) -> Option<&'a Link<u32>> {
        self.network.links.shaped(self.link)
    }

    fn waiting(&self) -> (u64, u64) {
        self.network.links.waiting(self.link, &self.network.packets, self.network.now)
    }

    fn inside(&self) -> [u64; 4] {
        self.network.links.inside(self.link, &self.network.packets, self.network.now)
    }
}
