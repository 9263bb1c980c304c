//! MPLOT's redundancy: repairs for the mean loss and κ standard deviations, blocks of one round
//! trip.

use core::time::Duration;

use crate::redundancy::equations;
use crate::redundancy::{BlockShape, RedundancyPolicy, RedundancyView};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::{BlockView, LossView, MAX_PATHS, PathView};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "mean-sigma",
    summary: "blocks of one round trip with repairs for mean + k·deviation of loss, then on deficit",
    source: "MPLOT §III-B and §III-C, eqs 5 to 12",
    options: &[
        option("kappa1", "deviations above the mean for proactive repairs (eq. 9)", "1"),
        option("kappa2", "deviations above the mean for reactive repairs (eq. 10)", "0"),
        option("delta", "block recovery time, in median round-trip times (eq. 11)", "1"),
        option("epsilon", "chance that a block needs a second round (eqs 6 and 11)", "0.5"),
        option("kmin", "proactive repairs by eq9, by eq6 or exact for epsilon", "eq9"),
        option("codeword", "symbols of a block, repairs in reserve included", "255"),
        option(
            "residual",
            "chance that a whole codeword does not suffice; bounds sources",
            "0.001",
        ),
        option("sizes", "symbols as large as the path allows, or 700, 500, 200 (paper)", "path"),
        option("packets", "least packets per block, for which symbols shrink", "5"),
        option(
            "round",
            "reactive repairs at each loss (ack), or once a round is resolved (lit)",
            "ack",
        ),
        option(
            "reckoned",
            "proactive repairs from the loss known as a block closes, or as it opens (§III-B)",
            "closed",
        ),
    ],
};

/// Symbol payloads of MPLOT's 750, 550 and 250 byte packets behind its 50 byte header.
const PAPER_SIZES: [u16; 3] = [700, 500, 200];
/// Symbols are no shorter than this, unless the path requires it.
const LEAST_SIZE: u16 = 200;

/// How the number of proactive repairs is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provision {
    MeanSigma,
    Fitted,
    Exact,
}

/// MPLOT's provisioning. Its loss probability is q = mean + κ·deviation, at most 0.95.
#[derive(Clone, Debug)]
pub struct MeanSigma {
    kappa1: f64,
    kappa2: f64,
    delta: f64,
    epsilon: f64,
    provision: Provision,
    codeword: u16,
    residual: f64,
    paper_sizes: bool,
    packets: f64,
    whole_rounds: bool,
    /// Whether the loss estimate when a block opened determines its proactive repairs.
    at_opening: bool,
    /// The loss estimate when the newest block was opened.
    opened_with: f64,
    /// Loss and codeword length of the last bound on sources, and the bound. It is kept since
    /// estimates often do not change.
    bound: Option<(f64, u16, u16)>,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn RedundancyPolicy>, PolicyError> {
    let provisions =
        [("eq9", Provision::MeanSigma), ("eq6", Provision::Fitted), ("exact", Provision::Exact)];
    Ok(Box::new(MeanSigma {
        kappa1: options.real("kappa1", 0.0..=10.0)?,
        kappa2: options.real("kappa2", 0.0..=10.0)?,
        delta: options.real("delta", 0.01..=100.0)?,
        epsilon: options.real("epsilon", 1e-6..=0.999)?,
        provision: options.choice("kmin", &provisions)?,
        codeword: options.integer("codeword", 2..=65_535)? as u16,
        residual: options.real("residual", 1e-9..=0.5)?,
        paper_sizes: options.choice("sizes", &[("path", false), ("paper", true)])?,
        packets: options.integer("packets", 1..=1000)? as f64,
        whole_rounds: options.choice("round", &[("ack", false), ("lit", true)])?,
        at_opening: options.choice("reckoned", &[("closed", false), ("opened", true)])?,
        opened_with: 0.0,
        bound: None,
    }))
}

fn pessimistic(loss: LossView, kappa: f64) -> f64 {
    let q = loss.mean + kappa * loss.deviation;
    if q.is_nan() { 0.0 } else { q.clamp(0.0, equations::MAX_LOSS) }
}

/// Paths that share the load: usable paths that are not backups, or all paths if there are none.
fn carriers<'a>(view: &RedundancyView<'a>) -> impl Iterator<Item = &'a PathView> + use<'a> {
    let paths = view.paths;
    let ordinary = |path: &PathView| path.usable() && !path.backup;
    let any = paths.iter().any(ordinary);
    paths.iter().filter(move |path| !any || ordinary(path))
}

/// The median smoothed round-trip time: the mean of the middle two for an even number of paths.
fn median_rtt<'a>(paths: impl Iterator<Item = &'a PathView>) -> Duration {
    let mut times = [Duration::ZERO; MAX_PATHS];
    let mut count = 0;
    for (slot, path) in times.iter_mut().zip(paths) {
        *slot = path.rtt.smoothed;
        count += 1;
    }
    let times = &mut times[..count];
    times.sort_unstable();
    match (times.get(count.saturating_sub(1) / 2), times.get(count / 2)) {
        (Some(low), Some(high)) => low.saturating_add(*high) / 2,
        _ => Duration::ZERO,
    }
}

impl MeanSigma {
    /// Most bytes of a block on the wire: eq. 11, of which eq. 12 is a case, with windows in bytes.
    fn block_bytes(&self, view: &RedundancyView<'_>) -> f64 {
        let delta = self.delta * median_rtt(carriers(view)).as_secs_f64();
        let windows =
            carriers(view).map(|path| (path.cwnd as f64, path.rtt.smoothed.as_secs_f64()));
        equations::block_bound(windows, delta, equations::alpha(self.epsilon), view.loss.mean)
    }

    /// The largest symbol that still leaves `packets` packets in a block of `bytes`.
    fn symbol_size(&self, bytes: f64, overhead: f64, max: u16) -> u16 {
        if !self.paper_sizes {
            let size = (bytes / self.packets - overhead).clamp(0.0, f64::from(max)) as u16;
            return size.clamp(LEAST_SIZE.min(max), max).max(1);
        }
        let fits = |size: &u16| bytes / (f64::from(*size) + overhead) >= self.packets;
        let mut allowed = PAPER_SIZES.into_iter().filter(|size| *size <= max);
        let least = allowed.clone().next_back().unwrap_or(max).max(1);
        allowed.find(fits).unwrap_or(least)
    }

    /// The cap on sources, from the codeword's residual failure.
    fn source_cap(&mut self, q: f64, codeword: u16) -> u16 {
        match self.bound {
            Some((at, symbols, cap)) if at == q && symbols == codeword => cap,
            _ => {
                let cap = equations::f_max(q, codeword, self.residual);
                self.bound = Some((q, codeword, cap));
                cap
            }
        }
    }

    fn repairs(&self, sources: u16, q: f64, codeword: u16) -> u16 {
        let room = codeword.saturating_sub(sources);
        let repairs = match self.provision {
            Provision::MeanSigma => equations::k_mean_sigma(sources, q),
            Provision::Fitted if q > 0.0 => equations::k_fitted(sources, q, self.epsilon),
            Provision::Exact if q > 0.0 => equations::k_min(sources, q, self.epsilon, room).max(1),
            Provision::Fitted | Provision::Exact => 0,
        };
        repairs.min(room)
    }
}

impl RedundancyPolicy for MeanSigma {
    fn next_block(&mut self, view: &RedundancyView<'_>) -> BlockShape {
        let codeword = self.codeword.min(view.max_symbols).max(1);
        let q = pessimistic(view.loss, self.kappa1);
        self.opened_with = q;
        let packet = carriers(view).map(|path| path.packet_size).min().unwrap_or(0);
        let overhead = packet.saturating_sub(u64::from(view.max_symbol_size)) as f64;
        let bytes = self.block_bytes(view);
        let symbol_size = self.symbol_size(bytes, overhead, view.max_symbol_size);
        let block = bytes / (f64::from(symbol_size) + overhead).max(1.0);
        let sources = block / (1.0 + equations::redundancy(q));
        let cap = self.source_cap(q, codeword);
        let sources = if sources >= f64::from(cap) { cap } else { (sources as u16).max(1) };
        BlockShape { sources, symbol_size }
    }

    fn proactive(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        let codeword = self.codeword.min(view.max_symbols);
        let now = || pessimistic(view.loss, self.kappa1);
        // One block is open at a time, so the block that closes is the newest one opened.
        let q = if self.at_opening { self.opened_with } else { now() };
        self.repairs(block.sources, q, codeword)
    }

    fn still_needed(
        &self,
        block: &BlockView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> u16 {
        // A block is encoded as a whole, so it has no repairs until it closes.
        let mid_round = block.in_flight > 0 || block.due > 0 || block.proactive_left > 0;
        if !block.closed || (self.whole_rounds && mid_round) {
            return 0;
        }
        let handed = hypothetical.iter().fold(0_u16, |sum, n| sum.saturating_add(*n));
        let missing = block.shortfall().saturating_sub(handed);
        let most = self.codeword.min(view.max_symbols).max(1);
        equations::with_reserve(missing, pessimistic(view.loss, self.kappa2)).min(most)
    }
}
