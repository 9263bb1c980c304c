//! Checks the MPLOT paper line by line: how a connection handles blocks, packet numbers and
//! acknowledgements.
//!
//! The decisions of MPLOT's policies are checked in `crates/policy/tests/mplot_checklist.rs`. The
//! table in `docs/protocols/mplot.md` names a test for every line.

mod support;

mod mplot {
    pub mod acknowledgements;
    pub mod blocks;
    pub mod transit;
}
