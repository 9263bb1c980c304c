//! State learnt about the route to an address, kept while the path uses another address.

use core::mem::swap;

use anabranch_policy::congestion::CongestionController;
use anabranch_policy::view::{InterLoss, LossView};
use anabranch_types::Time;

use super::mtu::PathMtu;
use super::pacer::Pacer;
use super::rtt::RttEstimator;
use super::{Path, PathAddress};

/// State that holds for one address of the peer only (RFC 9000 §9.4).
#[derive(Debug)]
pub struct Learnt {
    /// The addresses.
    pub address: PathAddress,
    congestion: Box<dyn CongestionController>,
    rtt: RttEstimator,
    pacer: Pacer,
    mtu: PathMtu,
    loss: LossView,
    inter_loss: InterLoss,
}

impl Learnt {
    /// Creates the state of an address about which nothing is known yet.
    pub fn new(
        address: PathAddress,
        congestion: Box<dyn CongestionController>,
        mtu: PathMtu,
    ) -> Self {
        Learnt {
            address,
            congestion,
            rtt: RttEstimator::default(),
            pacer: Pacer::default(),
            mtu,
            loss: LossView::default(),
            inter_loss: InterLoss::default(),
        }
    }
}

impl Path {
    /// Switches the path to `way`, which then holds the state of the previous route. Packet numbers
    /// continue.
    pub fn lead_to(&mut self, now: Time, way: &mut Learnt) {
        swap(&mut self.address, &mut way.address);
        swap(&mut self.congestion, &mut way.congestion);
        swap(&mut self.rtt, &mut way.rtt);
        swap(&mut self.pacer, &mut way.pacer);
        swap(&mut self.mtu, &mut way.mtu);
        swap(&mut self.loss, &mut way.loss);
        swap(&mut self.inter_loss, &mut way.inter_loss);
        self.ecn.start_over(self.sent.next_number());
        self.take_packet_size();
        self.update_pacing(now);
    }
}
