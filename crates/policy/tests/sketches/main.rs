//! Can the policy axes express the protocols they are meant for? Each file sketches what is peculiar
//! to one of them as policies, and carries the decisions out over made-up paths. Those that need no
//! coding run on the engines themselves (`crates/sim/tests/contract`).

mod executor;
mod fmtcp;
mod mplot;
mod sliding;
