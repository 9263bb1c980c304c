//! The papers' formulas as pure functions, named by their results.
//!
//! | module | gives | source |
//! |---|---|---|
//! | [`provisioning`] | exact repair counts, Table II, goodput against redundancy, block bounds | MPLOT eqs 5–12 |
//! | [`diversity`] | gains of many paths, the volatility of aggregate loss, least-squares fits | MPLOT §IV-A |
//! | [`fountain`] | decoding failure, extra packets, expected delivery times and their bounds | FMTCP eqs 4–16 |
//! | [`buffers`] | buffers that never stall a multipath receiver | FMTCP eqs 1–2; pTCP §2 |
//! | [`rounds`] | packets a window delivers in a given time, losses and timeouts included | LATE eqs 1–23 |
//!
//! Probabilities are of packet loss, in `[0, 1]`; times are seconds where they are `f64`.

pub mod buffers;
pub mod diversity;
pub mod fountain;
pub mod provisioning;
pub mod rounds;

#[cfg(test)]
mod tests;
