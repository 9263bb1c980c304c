//! Both ends of a TCP connection, over one or several paths.

use anabranch_policy::{CongestionController, PolicyError};
use anabranch_tcp::meta::{MetaReceiver, MetaSender};
use anabranch_tcp::striping::{StripingReceiver, StripingSender};
use anabranch_tcp::{Receiver, Segment, Sender, SenderStatistics};
use anabranch_types::{Rng, Time};
use core::time::Duration;
use std::sync::Arc;

use super::TcpProtocol;

/// The sending end. The sender over a single path is stored inline, because a pointer would cost
/// another memory access for every packet.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large variant is the usual one")]
pub(super) enum SendingEnd {
    Single(Sender),
    Meta(Box<MetaSender>),
    Striping(Box<StripingSender>),
}

/// The receiving end. The receiver over a single path is stored inline, as in [`SendingEnd`].
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large variant is the usual one")]
pub(super) enum ReceivingEnd {
    Single(Receiver),
    Meta(Box<MetaReceiver>),
    Striping(Box<StripingReceiver>),
}

/// Sends the segments of a connection over several paths. `send` is a trait object here, so that
/// the closure is called directly only in the loop for a single path, where the compiler then
/// inlines it.
fn drain(mut poll: impl FnMut() -> Option<(usize, Segment)>, send: &mut dyn FnMut(usize, Segment)) {
    while let Some((path, segment)) = poll() {
        send(path, segment);
    }
}

/// The congestion controller of a path.
fn controller(
    protocol: &TcpProtocol,
    path: usize,
) -> Result<Box<dyn CongestionController>, PolicyError> {
    let mss = u64::from(protocol.connection().mss);
    protocol.registry.build_for(protocol.control_on(path), mss)
}

impl SendingEnd {
    /// A sender over `paths` paths.
    ///
    /// # Errors
    /// When a congestion controller or scheduler cannot be built.
    pub(super) fn new(protocol: &TcpProtocol, paths: usize) -> Result<Self, PolicyError> {
        match (&protocol.meta, &protocol.striping) {
            (Some(meta), _) => {
                let controls: Vec<_> =
                    (0..paths).map(|path| protocol.control_on(path).clone()).collect();
                let sender = MetaSender::from_registry(&protocol.registry, meta, &controls)?;
                Ok(SendingEnd::Meta(Box::new(sender)))
            }
            (None, Some(striping)) => {
                let controllers: Result<_, _> =
                    (0..paths).map(|path| controller(protocol, path)).collect();
                let sender = StripingSender::new(striping, &protocol.config, controllers?);
                Ok(SendingEnd::Striping(Box::new(sender)))
            }
            (None, None) => {
                let controller = controller(protocol, 0)?;
                Ok(SendingEnd::Single(Sender::new(Arc::clone(&protocol.config), controller)))
            }
        }
    }

    /// Sets the random generator that a multipath connection uses to detect shared bottlenecks.
    pub(super) fn toss_with(&mut self, rng: Rng) {
        if let SendingEnd::Meta(sender) = self {
            sender.toss_with(rng);
        }
    }

    /// The interface of a path is down. Only a multipath connection is told; other connections
    /// wait.
    pub(super) fn leave(&mut self, now: Time, path: usize) {
        if let SendingEnd::Meta(sender) = self {
            sender.leave(now, path);
        }
    }

    /// The interface of a path is up again. A new subflow of a multipath connection takes the place
    /// of the one that left.
    ///
    /// # Errors
    /// When the subflow's congestion controller cannot be built.
    pub(super) fn rejoin(
        &mut self,
        path: usize,
        protocol: &TcpProtocol,
    ) -> Result<(), PolicyError> {
        if let SendingEnd::Meta(sender) = self {
            sender.rejoin(path, controller(protocol, path)?);
        }
        Ok(())
    }

    /// Makes a path a backup or a regular path; see
    /// [`TcpSender::set_backup`](super::TcpSender::set_backup).
    pub(super) fn set_backup(&mut self, path: usize, backup: bool) {
        if let SendingEnd::Meta(sender) = self {
            sender.set_backup(path, backup);
        }
    }

    pub(super) fn write(&mut self, bytes: u64) -> u64 {
        match self {
            SendingEnd::Single(sender) => sender.write(bytes),
            SendingEnd::Meta(sender) => sender.write(bytes),
            SendingEnd::Striping(sender) => sender.write(bytes),
        }
    }

    pub(super) fn finish(&mut self) {
        match self {
            SendingEnd::Single(sender) => sender.finish(),
            SendingEnd::Meta(sender) => sender.finish(),
            SendingEnd::Striping(sender) => sender.finish(),
        }
    }

    pub(super) fn handle_segment(&mut self, now: Time, path: usize, segment: &Segment) {
        match self {
            SendingEnd::Single(sender) => sender.handle_segment(now, segment),
            SendingEnd::Meta(sender) => sender.handle_segment(now, path, segment),
            SendingEnd::Striping(sender) => sender.handle_segment(now, path, segment),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        match self {
            SendingEnd::Single(sender) => sender.handle_timeout(now),
            SendingEnd::Meta(sender) => sender.handle_timeout(now),
            SendingEnd::Striping(sender) => sender.handle_timeout(now),
        }
    }

    pub(super) fn handle_loss_notice(&mut self, now: Time, path: usize, offset: u64) {
        match self {
            SendingEnd::Single(sender) => sender.handle_loss_notice(now, offset),
            SendingEnd::Meta(sender) => sender.handle_loss_notice(now, path, offset),
            SendingEnd::Striping(sender) => sender.handle_loss_notice(now, path, offset),
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        match self {
            SendingEnd::Single(sender) => sender.next_timeout(),
            SendingEnd::Meta(sender) => sender.next_timeout(),
            SendingEnd::Striping(sender) => sender.next_timeout(),
        }
    }

    /// Passes every segment that may leave now to `send`, with its path.
    #[inline]
    pub(super) fn transmit(&mut self, now: Time, mut send: impl FnMut(usize, Segment)) {
        match self {
            SendingEnd::Single(sender) => {
                while let Some(segment) = sender.poll_transmit(now) {
                    send(0, segment);
                }
                while sender.poll_event().is_some() {}
            }
            SendingEnd::Meta(sender) => {
                drain(|| sender.poll_transmit(now), &mut send);
            }
            SendingEnd::Striping(sender) => {
                drain(|| sender.poll_transmit(now), &mut send);
            }
        }
    }

    /// First offset of the data that has never been sent.
    pub(super) fn sent(&self) -> u64 {
        match self {
            SendingEnd::Single(sender) => sender.sent(),
            SendingEnd::Meta(sender) => sender.statistics().bound_bytes,
            SendingEnd::Striping(sender) => sender.sent(),
        }
    }

    /// Bytes of data acknowledged in order.
    pub(super) fn acknowledged(&self) -> u64 {
        match self {
            SendingEnd::Single(sender) => sender.acknowledged(),
            SendingEnd::Meta(sender) => sender.acknowledged(),
            SendingEnd::Striping(sender) => sender.acknowledged(),
        }
    }

    /// Whether all data has been acknowledged and, if the connection is to be closed, it is closed.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            SendingEnd::Single(sender) => sender.is_drained(),
            SendingEnd::Meta(sender) => sender.is_complete(),
            SendingEnd::Striping(sender) => sender.is_drained(),
        }
    }

    /// The sender on `path`, or the senders on all paths.
    pub(super) fn senders(&self, path: Option<usize>) -> Vec<&Sender> {
        match self {
            SendingEnd::Single(sender) => vec![sender],
            SendingEnd::Meta(sender) => {
                let paths = path.map_or(0..sender.subflows(), |path| path..path + 1);
                paths.filter_map(|path| sender.subflow(path)).collect()
            }
            SendingEnd::Striping(sender) => {
                let paths = path.map_or(0..sender.sockets(), |path| path..path + 1);
                paths.filter_map(|path| sender.socket(path)).collect()
            }
        }
    }

    /// Bytes that the congestion windows of all paths allow beyond what is in flight.
    pub(super) fn room(&self) -> u64 {
        let room = |sender: &&Sender| sender.cwnd().saturating_sub(sender.in_flight());
        self.senders(None).iter().map(room).sum()
    }

    pub(super) fn smoothed_rtt(&self, path: usize) -> Option<Duration> {
        self.senders(Some(path)).first().and_then(|sender| sender.smoothed_rtt())
    }

    /// Counters of all paths together.
    pub(super) fn statistics(&self) -> SenderStatistics {
        self.senders(None).into_iter().map(|sender| *sender.statistics()).sum()
    }
}

impl ReceivingEnd {
    /// A receiver over `paths` paths.
    pub(super) fn new(protocol: &TcpProtocol, paths: usize) -> Self {
        match (&protocol.meta, &protocol.striping) {
            (Some(meta), _) => ReceivingEnd::Meta(Box::new(MetaReceiver::new(meta, paths))),
            (None, Some(striping)) => {
                let receiver = StripingReceiver::new(striping, &protocol.config, paths);
                ReceivingEnd::Striping(Box::new(receiver))
            }
            (None, None) => ReceivingEnd::Single(Receiver::new(Arc::clone(&protocol.config))),
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
            ReceivingEnd::Single(receiver) => receiver.handle_segment(now, segment, marked),
            ReceivingEnd::Meta(receiver) => receiver.handle_segment(now, path, segment, marked),
            ReceivingEnd::Striping(receiver) => receiver.handle_segment(now, path, segment, marked),
        }
    }

    /// The range of stream offsets that a segment's data covers: the first, and the one after the
    /// last.
    pub(super) fn data_of(&self, path: usize, segment: &Segment) -> Option<(u64, u64)> {
        let start = match self {
            ReceivingEnd::Single(_) => Some(segment.seq),
            ReceivingEnd::Meta(receiver) => receiver.data_of(path, segment),
            ReceivingEnd::Striping(_) => segment.data_sequence(),
        };
        start.map(|start| (start, start + u64::from(segment.len)))
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        match self {
            ReceivingEnd::Single(receiver) => receiver.handle_timeout(now),
            ReceivingEnd::Meta(receiver) => receiver.handle_timeout(now),
            ReceivingEnd::Striping(receiver) => receiver.handle_timeout(now),
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        match self {
            ReceivingEnd::Single(receiver) => receiver.next_timeout(),
            ReceivingEnd::Meta(receiver) => receiver.next_timeout(),
            ReceivingEnd::Striping(receiver) => receiver.next_timeout(),
        }
    }

    /// Passes every segment that may leave now to `send`, with its path.
    #[inline]
    pub(super) fn transmit(&mut self, now: Time, mut send: impl FnMut(usize, Segment)) {
        match self {
            ReceivingEnd::Single(receiver) => {
                while let Some(segment) = receiver.poll_transmit(now) {
                    send(0, segment);
                }
            }
            ReceivingEnd::Meta(receiver) => {
                drain(|| receiver.poll_transmit(now), &mut send);
            }
            ReceivingEnd::Striping(receiver) => {
                drain(|| receiver.poll_transmit(now), &mut send);
            }
        }
    }

    /// Bytes of data that have arrived in order.
    pub(super) fn delivered(&self) -> u64 {
        match self {
            ReceivingEnd::Single(receiver) => receiver.delivered(),
            ReceivingEnd::Meta(receiver) => receiver.delivered(),
            ReceivingEnd::Striping(receiver) => receiver.delivered(),
        }
    }

    /// Bytes of data that arrived more than once.
    pub(super) fn duplicate_bytes(&self) -> u64 {
        match self {
            ReceivingEnd::Single(receiver) => receiver.statistics().duplicate_bytes,
            ReceivingEnd::Meta(receiver) => receiver.statistics().duplicate_bytes,
            ReceivingEnd::Striping(receiver) => receiver.duplicate_bytes(),
        }
    }

    /// Number of segments that arrived with data beyond the next expected byte, without duplicates.
    pub(super) fn out_of_order(&self) -> u64 {
        match self {
            ReceivingEnd::Single(receiver) => receiver.statistics().out_of_order,
            ReceivingEnd::Meta(receiver) => receiver.statistics().out_of_order,
            ReceivingEnd::Striping(receiver) => receiver.out_of_order(),
        }
    }
}
