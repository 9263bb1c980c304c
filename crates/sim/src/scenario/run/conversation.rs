//! The two ends of a TCP conversation: over one path, or over several at once.

use anabranch_policy::{PolicyError, congestion};
use anabranch_tcp::meta::{MetaReceiver, MetaSender};
use anabranch_tcp::{Config, Receiver, Segment, Sender, SenderStatistics, WireFormat};
use anabranch_types::Time;
use core::time::Duration;

use crate::scenario::profiles::TcpProtocol;

/// The sending end.
#[derive(Debug)]
pub(super) enum Speaker {
    Single(Box<Sender>),
    Meta(Box<MetaSender>),
}

/// The receiving end.
#[derive(Debug)]
pub(super) enum Listener {
    Single(Box<Receiver>),
    Meta(Box<MetaReceiver>),
}

impl Speaker {
    /// A sender over `paths` paths.
    ///
    /// # Errors
    /// When a controller or scheduler cannot be built.
    pub(super) fn new(protocol: &TcpProtocol, paths: usize) -> Result<Self, PolicyError> {
        match &protocol.meta {
            None => {
                let mss = u64::from(protocol.config.mss);
                let controller = congestion::build(&protocol.control, mss)?;
                Ok(Speaker::Single(Box::new(Sender::new(&protocol.config, controller))))
            }
            Some(meta) => {
                let controls = vec![protocol.control.clone(); paths];
                Ok(Speaker::Meta(Box::new(MetaSender::new(meta, &controls)?)))
            }
        }
    }

    pub(super) fn write(&mut self, bytes: u64) -> u64 {
        match self {
            Speaker::Single(sender) => sender.write(bytes),
            Speaker::Meta(sender) => sender.write(bytes),
        }
    }

    pub(super) fn finish(&mut self) {
        match self {
            Speaker::Single(sender) => sender.finish(),
            Speaker::Meta(sender) => sender.finish(),
        }
    }

    pub(super) fn handle_segment(&mut self, now: Time, path: usize, segment: &Segment) {
        match self {
            Speaker::Single(sender) => sender.handle_segment(now, segment),
            Speaker::Meta(sender) => sender.handle_segment(now, path, segment),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        match self {
            Speaker::Single(sender) => sender.handle_timeout(now),
            Speaker::Meta(sender) => sender.handle_timeout(now),
        }
    }

    pub(super) fn handle_loss_notice(&mut self, now: Time, path: usize, offset: u64) {
        match self {
            Speaker::Single(sender) => sender.handle_loss_notice(now, offset),
            Speaker::Meta(sender) => {
                if let Some(subflow) = sender.subflow_mut(path) {
                    subflow.handle_loss_notice(now, offset);
                }
            }
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        match self {
            Speaker::Single(sender) => sender.next_timeout(),
            Speaker::Meta(sender) => sender.next_timeout(),
        }
    }

    /// The next segment, and the path it leaves on.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<(usize, Segment)> {
        match self {
            Speaker::Single(sender) => {
                let segment = sender.poll_transmit(now);
                if segment.is_none() {
                    while sender.poll_event().is_some() {}
                }
                segment.map(|segment| (0, segment))
            }
            Speaker::Meta(sender) => sender.poll_transmit(now),
        }
    }

    /// First offset of the data that has never been sent.
    pub(super) fn sent(&self) -> u64 {
        match self {
            Speaker::Single(sender) => sender.sent(),
            Speaker::Meta(sender) => sender.statistics().bound_bytes,
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        match self {
            Speaker::Single(sender) => sender.is_drained(),
            Speaker::Meta(sender) => sender.is_drained(),
        }
    }

    /// The sender on one path, or those on all of them.
    pub(super) fn senders(&self, path: Option<usize>) -> Vec<&Sender> {
        match self {
            Speaker::Single(sender) => vec![sender],
            Speaker::Meta(sender) => {
                let paths = path.map_or(0..sender.subflows(), |path| path..path + 1);
                paths.filter_map(|path| sender.subflow(path)).collect()
            }
        }
    }

    /// Bytes that all windows together admit.
    pub(super) fn window(&self) -> u64 {
        self.senders(None).iter().map(|sender| sender.window()).sum()
    }

    pub(super) fn smoothed_rtt(&self, path: usize) -> Option<Duration> {
        self.senders(Some(path)).first().and_then(|sender| sender.smoothed_rtt())
    }

    /// Counters of all paths together.
    pub(super) fn statistics(&self) -> SenderStatistics {
        self.senders(None).into_iter().map(|sender| *sender.statistics()).sum()
    }
}

impl Listener {
    /// A receiver over `paths` paths.
    pub(super) fn new(protocol: &TcpProtocol, paths: usize) -> Self {
        match &protocol.meta {
            None => Listener::Single(Box::new(Receiver::new(&protocol.config))),
            Some(meta) => Listener::Meta(Box::new(MetaReceiver::new(meta, paths))),
        }
    }

    pub(super) fn handle_segment(
        &mut self,
        now: Time,
        path: usize,
        segment: &Segment,
        marked: bool,
    ) {
        match self {
            Listener::Single(receiver) => receiver.handle_segment(now, segment, marked),
            Listener::Meta(receiver) => receiver.handle_segment(now, path, segment, marked),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        match self {
            Listener::Single(receiver) => receiver.handle_timeout(now),
            Listener::Meta(receiver) => receiver.handle_timeout(now),
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        match self {
            Listener::Single(receiver) => receiver.next_timeout(),
            Listener::Meta(receiver) => receiver.next_timeout(),
        }
    }

    /// The next segment, and the path it leaves on.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<(usize, Segment)> {
        match self {
            Listener::Single(receiver) => receiver.poll_transmit(now).map(|segment| (0, segment)),
            Listener::Meta(receiver) => receiver.poll_transmit(now),
        }
    }

    /// Bytes of data that have arrived in order.
    pub(super) fn delivered(&self) -> u64 {
        match self {
            Listener::Single(receiver) => receiver.delivered(),
            Listener::Meta(receiver) => receiver.delivered(),
        }
    }

    /// Arrivals of data beyond the next expected byte, duplicates excluded.
    pub(super) fn out_of_order(&self) -> u64 {
        match self {
            Listener::Single(receiver) => receiver.statistics().out_of_order,
            Listener::Meta(receiver) => receiver.statistics().out_of_order,
        }
    }
}

/// The sizes that segments of `protocol` have on the wire.
pub(super) fn wire(protocol: &TcpProtocol) -> WireFormat {
    config(protocol).wire
}

/// The configuration of a connection, or of each subflow.
pub(super) fn config(protocol: &TcpProtocol) -> &Config {
    protocol.meta.as_ref().map_or(&protocol.config, |meta| &meta.subflow)
}
