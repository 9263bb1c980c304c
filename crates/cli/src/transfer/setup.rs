//! What both the connecting and the listening side need.

use std::path::Path;
use std::time::Duration;

use anabranch::{Profile, SecretKey, TransportConfig};

use crate::failure::Failure;

/// How long the news of a connection's end may take.
pub(super) const FLUSH: Duration = Duration::from_secs(3);

/// The profile of this name.
pub(super) fn profile(name: &str) -> Result<Profile, Failure> {
    Profile::named(name).ok_or_else(|| {
        Failure::usage(format!("there is no profile {name}; `anabranch profiles` lists them"))
    })
}

/// Limits of a connection that is lost after so long a silence.
pub(super) fn transport(silence: Duration) -> TransportConfig {
    TransportConfig { idle_timeout: Some(silence), ..TransportConfig::default() }
}

/// Reads this machine's secret key.
pub(super) fn secret(path: &Path) -> Result<SecretKey, Failure> {
    SecretKey::load(path).map_err(|error| {
        Failure::failed(format!(
            "{}: {error}; `anabranch keygen --out FILE` makes a key",
            path.display()
        ))
    })
}
