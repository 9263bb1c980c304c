//! Reno: the window grows by a packet per round trip and halves on loss or a congestion mark.

use crate::congestion::cwnd::{AdditiveCwnd, CwndRule};
use crate::congestion::plateau::Plateau;
use crate::congestion::{AckEvent, CongestionController, TimeoutEvent};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "reno",
    summary: "halves the window on loss or a congestion mark, once per round trip",
    source: "RFC 5681 §3; RFC 9002 §7; RFC 3168 §6.1.2",
    options: &[
        option("initial", "initial window, packets", "10"),
        option("collapse", "timeouts in a row before the window falls to one packet", "1"),
        option(
            "growth",
            "by acknowledged bytes, or by acks: each counts one packet at most",
            "bytes",
        ),
        option("halve", "on loss: the window, or the flight, the bytes outstanding", "window"),
        option("threshold", "initial slow-start threshold, packets; 0: none", "0"),
        option("floor", "least window after a loss or mark, packets; ns-2 has none: 0", "2"),
        option(
            "plateau",
            "on: the window stops growing where the delivery rate does (pTCP §6)",
            "off",
        ),
    ],
};

/// Reno that reacts once per round trip, as in RFC 9002: losses and marks of packets sent before
/// the last cut do not cut the window again, and acknowledgements of such packets do not grow it.
#[derive(Clone, Debug)]
pub struct Reno {
    cwnd: AdditiveCwnd,
    collapse: u32,
    growth: Growth,
    halve: Halve,
    floor: u64,
    plateau: Option<Plateau>,
}

/// How much the window grows for an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// By all bytes that it covers (RFC 3465 with L unlimited).
    Bytes,
    /// By at most one packet in slow start, and by SMSS²/cwnd above the threshold (RFC 5681 §3.1,
    /// eq. 2 and 3).
    Acks,
}

/// Quantity that a loss halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halve {
    Cwnd,
    /// The bytes outstanding, so that an unused part of the window does not count (RFC 5681, eq.
    /// 4).
    Flight,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    Ok(Box::new(from_options(options)?))
}

/// Reno itself, for controllers that modify it; `options` has Reno's keys.
pub(super) fn from_options(options: &Options<'_>) -> Result<Reno, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    let collapse = options.integer("collapse", 1..=10)? as u32;
    let growth = options.choice("growth", &[("bytes", Growth::Bytes), ("acks", Growth::Acks)])?;
    let halve = options.choice("halve", &[("window", Halve::Cwnd), ("flight", Halve::Flight)])?;
    let floor = options.integer("floor", 0..=2)?;
    let plateau = options.choice("plateau", &[("off", false), ("on", true)])?;
    let plateau = plateau.then(Plateau::default);
    let mut cwnd = AdditiveCwnd::new(initial, options.packet_size());
    cwnd.expect_threshold(options.integer("threshold", 0..=1_000_000)?);
    Ok(Reno { cwnd, collapse, growth, halve, floor, plateau })
}

impl CwndRule for Reno {
    fn additive(&self) -> &AdditiveCwnd {
        &self.cwnd
    }

    fn additive_mut(&mut self) -> &mut AdditiveCwnd {
        &mut self.cwnd
    }

    fn acked(&mut self, event: &AckEvent, _siblings: &[PathView]) {
        let cwnd = &mut self.cwnd;
        if cwnd.congested(event) {
            let whole = match self.halve {
                Halve::Cwnd => cwnd.bytes(),
                Halve::Flight => cwnd.bytes().min(event.prior_in_flight),
            };
            cwnd.cut(event.now, whole / 2, self.floor);
        } else if cwnd.may_grow(event) {
            match self.growth {
                Growth::Bytes => cwnd.grow(event.acked_bytes),
                Growth::Acks => cwnd.grow_once(event.acked_bytes),
            }
        }
        if let Some(plateau) = &mut self.plateau
            && let Some(limit) = plateau.take(event, cwnd.bytes(), cwnd.in_slow_start())
        {
            cwnd.steer(limit);
        }
    }

    fn timed_out(&mut self, event: &TimeoutEvent) {
        if event.consecutive >= self.collapse {
            let first = event.consecutive == self.collapse;
            self.cwnd.collapse(event.now, event.bytes_in_flight, 1, first);
        }
    }
}
