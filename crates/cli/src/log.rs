//! `RUST_LOG`: writes the library's log to standard error.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// Writes what `RUST_LOG` selects to standard error. Without it nothing is logged, at no cost.
///
/// # Errors
/// When the variable's value is not a valid filter.
pub fn start() -> Result<(), Failure> {
    if std::env::var_os(EnvFilter::DEFAULT_ENV).is_none_or(|filter| filter.is_empty()) {
        return Ok(());
    }
    let filter = EnvFilter::try_from_default_env()
        .map_err(|error| Failure::usage(format!("{}: {error}", EnvFilter::DEFAULT_ENV)))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(false)
        .init();
    Ok(())
}
