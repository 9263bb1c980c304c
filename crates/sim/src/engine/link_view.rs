use anabranch_types::{Bitrate, Time};

use super::network::Channel;
use super::packet::Slab;
use crate::link::{Link, LinkConfig, LinkCounters};

/// A link of an engine, to look at.
#[derive(Clone, Copy, Debug)]
pub struct LinkView<'a> {
    config: &'a LinkConfig,
    channel: &'a Channel,
    packets: &'a Slab,
    now: Time,
}

impl<'a> LinkView<'a> {
    pub(super) fn new(
        config: &'a LinkConfig,
        channel: &'a Channel,
        packets: &'a Slab,
        now: Time,
    ) -> Self {
        LinkView { config, channel, packets, now }
    }

    /// The description the link was made from.
    pub fn config(&self) -> &'a LinkConfig {
        self.config
    }

    /// What has happened so far. Random losses of a packet that is still on its way may or may not
    /// be counted yet.
    pub fn counters(&self) -> LinkCounters {
        let plain = match self.channel {
            Channel::Shaped(link) => return *link.counters(),
            Channel::Plain(plain) => plain,
        };
        let tally = plain.tally();
        let [inside, bytes_inside, left, bytes_left] = plain.inside(self.packets, self.now);
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

    /// Packets that wait, the one being serialised not among them.
    pub fn packets_waiting(&self) -> u64 {
        match self.channel {
            Channel::Shaped(link) => link.queue().len() as u64,
            Channel::Plain(plain) => plain.waiting(self.packets, self.now).0,
        }
    }

    /// Bytes that wait.
    pub fn bytes_waiting(&self) -> u64 {
        match self.channel {
            Channel::Shaped(link) => link.queue().bytes(),
            Channel::Plain(plain) => plain.waiting(self.packets, self.now).1,
        }
    }

    /// Packets inside: waiting, being serialised or propagating.
    pub fn packets_inside(&self) -> u64 {
        match self.channel {
            Channel::Shaped(link) => link.packets_inside() as u64,
            Channel::Plain(plain) => plain.inside(self.packets, self.now)[0],
        }
    }

    /// The rate in force, as of the last packet; zero in a blackout.
    pub fn rate(&self) -> Bitrate {
        match self.channel {
            Channel::Shaped(link) => link.rate(),
            Channel::Plain(_) => self.config.rate.at(Time::ZERO),
        }
    }

    /// The link with everything it knows, if it is more than a queue of constant rate and delay. Its
    /// tokens are the engine's.
    pub fn shaped(&self) -> Option<&'a Link<u32>> {
        match self.channel {
            Channel::Shaped(link) => Some(link),
            Channel::Plain(_) => None,
        }
    }
}
