//! Items that are computed from a paper's formulas, without a simulated network.

pub mod fmtcp;
pub mod late;
pub mod mplot;
pub mod ptcp;
