//! Configuration that the connecting and the listening side have in common.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch::{Config, PresharedKey, Profile, PublicKey, Schedule, SecretKey, TransportConfig};

use crate::insight::Insight;

/// Longest wait for the peer to learn that a connection has ended.
pub(super) const FLUSH: Duration = Duration::from_secs(3);

/// Silence after which the other side is asked for a sign of life, so that the screen soon shows that nobody is there.
const HEARTBEAT: Duration = Duration::from_millis(250);
/// Times between handshake messages, short enough that a peer that comes back is found within a second.
const SCHEDULE: Schedule = Schedule {
    first: Duration::from_millis(200),
    longest: Duration::from_millis(600),
    give_up: Duration::from_secs(30),
};

/// This machine's secret key, and the secrets that it shares with peers.
#[derive(Clone, Debug)]
pub(super) struct Secrets {
    pub(super) key: SecretKey,
    pub(super) shared: BTreeMap<PublicKey, PresharedKey>,
}

impl From<SecretKey> for Secrets {
    /// Nothing is shared with anybody.
    fn from(key: SecretKey) -> Self {
        Secrets { key, shared: BTreeMap::new() }
    }
}

/// Configuration of an endpoint whose connections are lost after this long a silence.
pub(super) fn endpoint_config(
    secrets: Secrets,
    profile: Profile,
    silence: Duration,
    insight: &Insight,
) -> Config {
    let mut config = Config::new(secrets.key);
    config.profile = profile;
    config.preshared = secrets.shared;
    config.transport = TransportConfig {
        idle_timeout: Some(silence),
        heartbeat: Some(HEARTBEAT),
        ..config.transport
    };
    config.schedule = SCHEDULE;
    config.key_log = insight.key_log.clone();
    config
}
