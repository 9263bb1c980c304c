//! Systems other than Linux: commands are not confined.

use std::io;
use std::path::Path;

use super::{Kernel, Needs};
use crate::failure::Failure;

/// Does nothing.
///
/// # Errors
/// None.
pub fn confine(_: &Needs) -> Result<(), Failure> {
    Ok(())
}

/// Returns nothing: no error is caused by confinement here.
pub fn explain(_: &Path, _: &io::Error) -> &'static str {
    ""
}

/// Nothing is known of this kernel.
pub fn kernel() -> Option<Kernel> {
    None
}
