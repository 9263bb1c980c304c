//! The two ends of TCP flows as agents, over one or several paths. Every transfer has a connection
//! of its own between the same ports; a bulk transfer is a connection that never ends.

mod connection;
mod flow;
mod receiver;
mod sender;
mod slices;

#[cfg(test)]
mod tests;

use anabranch_types::Ecn;
use core::time::Duration;
use std::sync::Arc;

use anabranch_policy::{PolicySpec, Registry};
use anabranch_tcp::meta::MetaConfig;
use anabranch_tcp::striping::StripingConfig;
use anabranch_tcp::{Config, Flags, Segment, WireFormat};

pub use flow::TcpFlow;
pub use receiver::TcpReceiver;
pub use sender::TcpSender;

use crate::engine::{Outbox, Payload, PortId};

/// Configuration of both ends of a TCP flow.
#[derive(Clone, Debug)]
pub struct TcpProtocol {
    /// Mechanisms, sizes and timers.
    pub config: Arc<Config>,
    /// Congestion control.
    pub control: PolicySpec,
    /// Congestion control of each path, in path order, where it is not `control`.
    pub path_controls: Vec<Option<PolicySpec>>,
    /// Explicit loss notification: whether the sender is told which segments were lost at random
    /// rather than in a queue. The notice arrives a round trip after the segment was sent, or with
    /// the first acknowledgement that shows the gap.
    pub loss_notices: bool,
    /// The longest time that the host waits before it sends; each wait is drawn uniformly from zero
    /// to this.
    pub send_jitter: Duration,
    /// Bit mask of the paths on which a middlebox removes the options of multipath connections in
    /// both directions.
    pub stripped: u16,
    /// How one stream uses several paths, if it does. The configuration of its subflows then
    /// replaces `config`.
    pub meta: Option<MetaConfig>,
    /// How an application stripes one stream over connections of several paths, if it does.
    pub striping: Option<Box<StripingConfig>>,
    /// Which link rates a striping application is told, if any.
    pub told: Option<ToldRates>,
    /// The registry in which policies are looked up by name.
    pub registry: Registry,
}

/// Which link rates a striping application is told. For a trace of delivery opportunities this is
/// the mean rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldRates {
    /// The link's rate as if there were no blackouts.
    BlackoutsUnseen,
    /// The link's actual rate, which is zero in a blackout.
    BlackoutsSeen,
}

impl TcpProtocol {
    /// The stream offset of the data that a segment carries; `None` if it carries none.
    pub(super) fn data_of(&self, segment: &Segment) -> Option<u64> {
        let own = (self.meta.is_none() && self.striping.is_none()).then_some(segment.seq);
        segment.data_sequence().or(own)
    }

    /// A connection over one path, without loss notices or send jitter.
    pub fn new(config: Config, control: PolicySpec) -> Self {
        let (loss_notices, send_jitter) = (false, Duration::ZERO);
        let path_controls = Vec::new();
        let (config, stripped) = (Arc::new(config), 0);
        TcpProtocol {
            config,
            control,
            path_controls,
            loss_notices,
            send_jitter,
            stripped,
            meta: None,
            striping: None,
            told: None,
            registry: Registry::new(),
        }
    }

    /// A stream over several paths, with the congestion control `control` on each.
    pub fn over_several(meta: MetaConfig, control: PolicySpec) -> Self {
        let protocol = TcpProtocol::new(meta.subflow.clone(), control);
        TcpProtocol { meta: Some(meta), ..protocol }
    }

    /// An application that stripes one stream over connections configured by `config`.
    pub fn striped(striping: StripingConfig, config: Config, control: PolicySpec) -> Self {
        let striping = Some(Box::new(striping));
        TcpProtocol { striping, ..TcpProtocol::new(config, control) }
    }

    /// Whether a flow can use several paths at once.
    pub fn is_over_several(&self) -> bool {
        self.meta.is_some() || self.striping.is_some()
    }

    /// The congestion control on a path.
    fn control_on(&self, path: usize) -> &PolicySpec {
        self.path_controls.get(path).and_then(Option::as_ref).unwrap_or(&self.control)
    }

    /// Sets whether a middlebox on a path removes the options of multipath connections from now on.
    pub(super) fn set_stripped(&mut self, path: usize, strips: bool) {
        let own = 1_u16.checked_shl(path as u32).unwrap_or(0);
        self.stripped = if strips { self.stripped | own } else { self.stripped & !own };
    }

    /// The segment after it has passed the middleboxes of its path.
    #[inline]
    fn pass(&self, path: usize, segment: Segment) -> Segment {
        let strips =
            self.stripped != 0 && 1_u16.checked_shl(path as u32).unwrap_or(0) & self.stripped != 0;
        if strips { segment.stripped() } else { segment }
    }

    /// The configuration of the connection or, over several paths, of each subflow.
    fn connection(&self) -> &Config {
        self.meta.as_ref().map_or(&*self.config, |meta| &meta.subflow)
    }
}

/// Sends a segment of the connection `number` with the size and the ECN codepoint that the segment
/// asks for.
#[inline]
fn send(out: &mut Outbox<'_>, port: PortId, number: u32, wire: &WireFormat, segment: Segment) {
    let ecn = if segment.flags.has(Flags::ECT) { Ecn::Ect0 } else { Ecn::NotEct };
    out.send_in(port, number, segment.wire_size(wire), ecn, Payload::Segment(segment));
}
