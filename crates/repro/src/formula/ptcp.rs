//! pTCP's buffer rule.

use anabranch_policy::analysis::buffers::striping_buffer;
use anabranch_types::{Bitrate, DataSize};

use crate::measure::Measure;
use crate::outcome::Outcome;

/// `ptcp-buffer`: (R₂/R₁)·W for the pipes of the paper's figure 8, 5 and 0.5 Mb/s. That the simulated
/// knee lies there is the other half of the item.
pub fn striping() -> Outcome {
    let mut outcome = Outcome::new();
    let window = DataSize::from_bytes(64 * 1024);
    let rate = |kbps: u64| Bitrate::from_bps(kbps * 1000);
    let buffer = striping_buffer(rate(5000), rate(500), window).unwrap_or_default();
    let factor = buffer.as_bytes() as f64 / window.as_bytes() as f64;
    outcome.measure("buffer over W at a ratio of 10", Measure::exact(factor));
    outcome.remark(
        "The formula gives ten times W. The simulated knee of figure 8, which is to lie there, needs \
         the striping application over finite buffers.",
    );
    outcome
}
