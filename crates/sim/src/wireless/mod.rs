//! Radio channels that stations share.

pub mod bianchi;
