//! DPSAF, as far as it is published: shares by the most likely sequence of outcomes, corrected by
//! the results of earlier shares.
//!
//! Only abstracts of DPSAF are public: a TCP model of maximum likelihood with losses and a time
//! offset, and feedback from selective acknowledgements that corrects the next schedule. According
//! to LATE, the model has no timeouts. The rest is our derivation.

use anabranch_types::{PathId, Time};
use core::time::Duration;

use crate::analysis::rounds::{Forecast, MAX_WINDOW};
use crate::registry::{Entry, Options, PolicyError};
use crate::scheduler::shares::{Expectation, Shares, SharesOptions, faster};
use crate::scheduler::{Scheduler, SchedulerEvent, unblock};
use crate::view::{PathView, SchedulerView, SymbolId};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "dpsaf",
    summary: "as late, by the most likely course of events, corrected by when the slow path's data arrived",
    source: "derived from what is public of Xue et al. 2018 (DPSAF)",
    options: &[
        SharesOptions::WINDOW,
        SharesOptions::SPARE,
        SharesOptions::ARRIVAL,
        unblock::OPTION,
    ],
};

/// The likeliest forecast, and the correction that is added to it.
#[derive(Clone, Copy, Debug, Default)]
struct Likeliest {
    /// Packets, positive or negative.
    correction: f64,
    /// The symbol whose arrival is awaited for the next correction.
    probe: Option<Probe>,
}

/// The first symbol that the slowest path was given after the shares of the others.
#[derive(Clone, Copy, Debug)]
struct Probe {
    symbol: SymbolId,
    master: PathId,
    /// When the symbol left.
    sent: Time,
    /// When the symbol was known to have arrived, and when all symbols before it were.
    arrived: Option<Time>,
    before: Option<Time>,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    unblock::wrap(options, Shares::new(Likeliest::default(), SharesOptions::read(options)?))
}

impl Expectation for Likeliest {
    fn packets(&mut self, path: &Forecast, time: Duration, window: u32, ssthresh: u32) -> f64 {
        path.likeliest(time, window, ssthresh)
    }

    fn on_beyond(&mut self, master: &PathView, view: &SchedulerView<'_>) {
        if self.probe.is_none() {
            let (symbol, master, sent) = (view.fresh.next, master.id, view.now);
            self.probe = Some(Probe { symbol, master, sent, arrived: None, before: None });
        }
    }

    fn on_event(&mut self, event: SchedulerEvent, view: &SchedulerView<'_>) {
        let Some(probe) = &mut self.probe else { return };
        let Some(master) = view.path(probe.master).filter(|master| master.usable()) else {
            self.probe = None;
            return;
        };
        match event {
            SchedulerEvent::Acked(path) if path == master.id => {
                let is_acked = master.oldest_unacked.is_none_or(|oldest| oldest > probe.sent);
                if is_acked {
                    probe.arrived = probe.arrived.or(Some(view.now));
                }
            }
            // The lost packet may be the probe, whose arrival would then show nothing.
            SchedulerEvent::Lost(path) | SchedulerEvent::Timeout(path) if path == master.id => {
                self.probe = None;
                return;
            }
            _ => {}
        }
        if view.floor() >= probe.symbol {
            probe.before = probe.before.or(Some(view.now));
        }
        if let (Some(arrived), Some(before)) = (probe.arrived, probe.before) {
            self.probe = None;
            self.correct(master, arrived, before, view);
        }
    }

    fn correction(&self) -> f64 {
        self.correction
    }
}

impl Likeliest {
    /// Corrects the shares of the other paths after the slowest path's symbol was known to have
    /// arrived at `arrived`, and all symbols before it at `before`; acknowledgements took half a
    /// round trip each. The correction is half of what the other paths deliver between the two
    /// times.
    fn correct(
        &mut self,
        master: &PathView,
        arrived: Time,
        before: Time,
        view: &SchedulerView<'_>,
    ) {
        let Some(least) = faster(view, master).map(|path| path.rtt.smoothed).min() else { return };
        let back = (master.rtt.smoothed.saturating_sub(least) / 2).as_secs_f64();
        let late = before.since(arrived).as_secs_f64();
        let early = arrived.since(before).as_secs_f64();
        let rate = |path: &PathView| {
            path.cwnd_packets() as f64 / path.rtt.smoothed.as_secs_f64().max(1e-6)
        };
        let gap = (late - early + back) * faster(view, master).map(rate).sum::<f64>();
        let most = f64::from(MAX_WINDOW);
        self.correction = (self.correction - gap / 2.0).clamp(-most, most);
    }
}
