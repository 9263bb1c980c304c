//! Parses emulated paths on the command line.

use anabranch_emulate::PathConfig;

use crate::failure::Failure;

/// Calls paths that have no name `path1`, `path2`, and so on, by their places.
///
/// # Errors
/// When two paths have the same name.
pub fn name(paths: &mut [PathConfig]) -> Result<(), Failure> {
    for index in 0..paths.len() {
        let (before, rest) = paths.split_at_mut(index);
        let Some(PathConfig { forward, .. }) = rest.first_mut() else { continue };
        if forward.name.is_empty() {
            forward.name = format!("path{}", index + 1);
        }
        let name = &forward.name;
        if before.iter().any(|other| other.forward.name == *name) {
            return Err(Failure::usage(format!(
                "two paths are called '{name}'; give each its own name=…"
            )));
        }
    }
    Ok(())
}
