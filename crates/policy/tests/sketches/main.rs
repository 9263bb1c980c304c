//! Can the policy axes express the protocols they are meant for? Each file sketches what is peculiar
//! to one of them as policies, and carries the decisions out over made-up paths.

mod blest;
mod executor;
mod fmtcp;
mod late;
mod mplot;
mod mtcp;
mod ptcp;
mod sliding;
