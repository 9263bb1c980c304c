//! MPLOT's paper line by line: tests of its policies' decisions through the public traits.
//!
//! The transport's use of the decisions is checked in `crates/sim/tests/mplot_checklist.rs`. The table in
//! `docs/protocols/mplot.md` names a test for every line.

mod mplot {
    pub mod estimation;
    pub mod mapping;
    pub mod provisioning;
    pub mod readings;
    pub mod window;
}
