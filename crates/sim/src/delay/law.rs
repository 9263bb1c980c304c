use core::time::Duration;

use super::quantile::{Gamma, normal_cdf};

/// How the delays of packets are distributed.
///
/// The *size* is a link's jitter. Under every law but the uniform one it is the standard deviation σ, and
/// the link's delay μ is the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterLaw {
    /// Uniform from the link's delay to the delay plus the size.
    #[default]
    Uniform,
    /// Normal, with negative values set to zero, which raises the mean above μ, by 0.083 σ for σ = μ.
    Normal,
    /// Gamma of shape (μ/σ)²: skewed to the right by 2σ/μ, exponential for σ = μ.
    Gamma,
    /// The exponential of a normal: skewed to the right by (3 + σ²/μ²)·σ/μ, with a longer tail than the gamma law.
    LogNormal,
}

impl JitterLaw {
    /// Every law.
    pub const ALL: [JitterLaw; 4] =
        [JitterLaw::Uniform, JitterLaw::Normal, JitterLaw::Gamma, JitterLaw::LogNormal];

    /// The names of all laws.
    pub const NAMES: [&'static str; 4] = [
        JitterLaw::Uniform.name(),
        JitterLaw::Normal.name(),
        JitterLaw::Gamma.name(),
        JitterLaw::LogNormal.name(),
    ];

    /// The name of the law in scenarios and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            JitterLaw::Uniform => "uniform",
            JitterLaw::Normal => "normal",
            JitterLaw::Gamma => "gamma",
            JitterLaw::LogNormal => "log-normal",
        }
    }

    /// The law of this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        JitterLaw::ALL.into_iter().find(|law| law.name() == name)
    }

    /// Whether mean and deviation set the shape of the law; the mean must then be above zero.
    pub(super) const fn has_shape(self) -> bool {
        matches!(self, JitterLaw::Gamma | JitterLaw::LogNormal)
    }
}

/// Turns a standard normal number into a packet's deviation from the link's delay, so that the delay has
/// the law.
#[derive(Clone, Debug)]
pub(super) enum Deviation {
    /// The deviation is between zero and `most` seconds.
    Uniform { most: f64 },
    /// The deviation has mean zero and standard deviation `sigma`, in seconds.
    Normal { sigma: f64 },
    /// `mean` in seconds; `gamma` has mean 1.
    Gamma { mean: f64, gamma: Gamma },
    /// `mean` in seconds; `scale` and `sigma` are mean and standard deviation of the logarithm.
    LogNormal { mean: f64, scale: f64, sigma: f64 },
}

impl Deviation {
    /// The deviations for the mean delay `mean`.
    pub(super) fn new(law: JitterLaw, size: Duration, mean: Duration) -> Self {
        let (size, mean) = (size.as_secs_f64(), mean.as_secs_f64());
        // The squared coefficient of variation, σ²/μ².
        let variation = (size / mean) * (size / mean);
        match law {
            JitterLaw::Uniform => Deviation::Uniform { most: size },
            JitterLaw::Normal => Deviation::Normal { sigma: size },
            JitterLaw::Gamma => Deviation::Gamma { mean, gamma: Gamma::new(1.0 / variation) },
            JitterLaw::LogNormal => {
                let square = libm::log1p(variation);
                let scale = libm::log(mean) - square / 2.0;
                Deviation::LogNormal { mean, scale, sigma: libm::sqrt(square) }
            }
        }
    }

    /// The deviation in seconds for the standard normal number `z`; it rises with `z`.
    pub(super) fn seconds(&self, z: f64) -> f64 {
        match self {
            Deviation::Uniform { most } => most * normal_cdf(z),
            Deviation::Normal { sigma } => sigma * z,
            Deviation::Gamma { mean, gamma } => mean * (gamma.quantile(z) - 1.0),
            Deviation::LogNormal { mean, scale, sigma } => libm::exp(scale + sigma * z) - mean,
        }
    }
}
