//! Thinning of acknowledgements: a link drops an acknowledgement that a later one makes redundant.

use anabranch_tcp::{Flags, Segment};

use super::PortId;
use super::packet::{Payload, Slab};
use crate::link::{Delivery, DropCause, Dropped, LinkOutput};

/// Thins the pure TCP acknowledgements that arrive at one instant, as access points and modems do
/// with acknowledgements that wait together for the medium. Of each connection, the last
/// acknowledgement stays, and one in `one_in` of the earlier ones.
///
/// Segments that carry more than a cumulative acknowledgement stay: payload, SYN, FIN, probes, ECN
/// echoes or selective acknowledgements. Every datagram stays, because its content is encrypted.
#[derive(Debug)]
pub(super) struct Thinning {
    one_in: u32,
    /// For each connection, how many acknowledgements were dropped since one was kept, where the
    /// outputs of one instant are processed from last to first.
    left_out: Vec<((PortId, u32), u32)>,
}

impl Thinning {
    /// Thinning that keeps one in `one_in`; `None` if that keeps all of them.
    pub(super) fn new(one_in: u32) -> Option<Self> {
        (one_in > 1).then(|| Thinning { one_in, left_out: Vec::new() })
    }

    /// Drops the redundant acknowledgements among `outputs`, which are in the order of time.
    pub(super) fn pass(&mut self, outputs: &mut [LinkOutput<u32>], packets: &mut Slab) {
        let mut instant = None;
        for output in outputs.iter_mut().rev() {
            let LinkOutput::Delivered(Delivery { time, token, .. }) = *output else { continue };
            if instant != Some(time) {
                instant = Some(time);
                self.left_out.clear();
            }
            let connection = packets.with_payload(token, |packet, payload| {
                let Payload::Segment(segment) = payload else { return None };
                is_mere_progress(segment).then_some((packet.to, packet.stream))
            });
            if connection.is_some_and(|connection| self.leaves_out(connection)) {
                *output = LinkOutput::Dropped(Dropped { time, token, cause: DropCause::Thinned });
            }
        }
    }

    fn leaves_out(&mut self, connection: (PortId, u32)) -> bool {
        let Some((_, count)) = self.left_out.iter_mut().find(|(known, _)| *known == connection)
        else {
            self.left_out.push((connection, 0));
            return false;
        };
        *count = (*count + 1) % self.one_in;
        *count > 0
    }
}

fn is_mere_progress(segment: &Segment) -> bool {
    let Segment { len, flags, sack, .. } = segment;
    let plain = flags.without(Flags::MAPPED).without(Flags::ECT);
    *len == 0 && plain == Flags::ACK && sack.is_empty()
}
