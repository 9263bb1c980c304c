//! Small changes of the sending rate that show which paths share a bottleneck: the packets of these
//! paths are delayed too.

use anabranch_types::Bitrate;

/// The factor by which the window and the pacing rate are multiplied.
#[derive(Clone, Copy, Debug)]
pub struct Swing(pub f64);

impl Default for Swing {
    fn default() -> Self {
        Swing(1.0)
    }
}

impl Swing {
    /// A window in bytes, multiplied by the factor.
    pub fn window(self, bytes: u64) -> u64 {
        if self.0 == 1.0 { bytes } else { (bytes as f64 * self.0) as u64 }
    }

    /// A pacing rate, multiplied by the factor.
    pub fn rate(self, rate: Bitrate) -> Bitrate {
        if self.0 == 1.0 { rate } else { rate.mul_f64(self.0) }
    }
}
