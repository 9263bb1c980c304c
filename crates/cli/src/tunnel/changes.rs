//! Describes the differences between two versions of the settings.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use anabranch::{PresharedKey, PublicKey};
use anabranch_forward::Permit;
use anabranch_types::DataSize;

use super::config::{Common, Connect, Serve};
use super::ways::Way;
use crate::{format, keys};

/// The secrets that are shared with peers.
pub(super) type Preshared = BTreeMap<PublicKey, PresharedKey>;

/// Differences between two versions of the settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Changes that take effect now or with the next connection.
    pub(super) made: Vec<String>,
    /// Changes that take effect only after a restart.
    pub(super) kept: Vec<String>,
}

impl Changes {
    /// The changes of the settings and of the secrets of `serve`.
    pub(super) fn of_serve(old: (&Serve, &Preshared), new: (&Serve, &Preshared)) -> Self {
        let mut changes = Changes::default();
        let ((old, old_secrets), (new, new_secrets)) = (old, new);
        for (key, permits) in &new.peers {
            let peer = called(&new.common, key);
            let Some(before) = old.permits(key) else {
                changes.made.push(format!("peer {peer} added"));
                continue;
            };
            changes.lists(&peer, "permit", (&before.connect, &permits.connect));
            changes.lists(&peer, "permit-listen", (&before.listen, &permits.listen));
            changes.lists(&peer, "permit-udp", (&before.udp, &permits.udp));
            changes.of_peer(key, (&old.common, old_secrets), (&new.common, new_secrets));
        }
        for (key, _) in old.peers.iter().filter(|(key, _)| new.permits(key).is_none()) {
            changes.made.push(format!("peer {} removed", called(&old.common, key)));
        }
        changes.keep("listen", &list(&old.listen), &list(&new.listen));
        if old.announce != new.announce {
            changes.made.push(format!("announce is {}", list(&new.announce)));
        }
        changes.of_common(&old.common, &new.common);
        changes
    }

    /// The changes of the settings and of the secrets of `connect`.
    pub(super) fn of_connect(old: (&Connect, &Preshared), new: (&Connect, &Preshared)) -> Self {
        let mut changes = Changes::default();
        let ((old, old_secrets), (new, new_secrets)) = (old, new);
        let (before, after) = (Way::all(old), Way::all(new));
        changes.made.extend(without(&after, &before).map(|way| format!("{way} added")));
        changes.made.extend(without(&before, &after).map(|way| format!("{way} removed")));
        let mut later = |key: &str, old: String, new: String| {
            if old != new {
                changes.made.push(format!("{key} is {new} from the next connection on"));
            }
        };
        later("endpoint", old.endpoint.to_string(), new.endpoint.to_string());
        later("path", list(&old.paths), list(&new.paths));
        changes.keep("public-key", &old.peer.to_string(), &new.peer.to_string());
        if old.peer == new.peer {
            changes.of_peer(&new.peer, (&old.common, old_secrets), (&new.common, new_secrets));
        }
        changes.of_common(&old.common, &new.common);
        changes
    }

    fn lists(&mut self, peer: &str, key: &str, (old, new): (&[Permit], &[Permit])) {
        if old != new {
            self.made.push(format!("peer {peer}: {key} is {}", list(new)));
        }
    }

    /// Notes the changes of a peer that is in both settings.
    fn of_peer(
        &mut self,
        key: &PublicKey,
        (old, old_secrets): (&Common, &Preshared),
        (new, new_secrets): (&Common, &Preshared),
    ) {
        let peer = called(new, key);
        if old.names.get(key) != new.names.get(key) {
            let name = new.names.get(key).map_or("no name", String::as_str);
            self.made.push(format!("peer {key}: name is {name}"));
        }
        let secret = |secrets: &Preshared| secrets.get(key).map(|secret| *secret.as_bytes());
        match (secret(old_secrets), secret(new_secrets)) {
            (old, new) if old == new => {}
            (_, None) => self.made.push(format!(
                "peer {peer}: without preshared-key-file from the next connection on"
            )),
            _ => self.made.push(format!(
                "peer {peer}: another preshared-key-file from the next connection on"
            )),
        }
    }

    fn of_common(&mut self, old: &Common, new: &Common) {
        let file = |path: &Path| path.display().to_string();
        self.keep("private-key-file", &file(&old.key), &file(&new.key));
        let off = |text: Option<String>| text.unwrap_or_else(|| "off".to_owned());
        let metrics = |common: &Common| off(common.metrics.map(|address| address.to_string()));
        self.keep("metrics", &metrics(old), &metrics(new));
        let seconds = |time: Duration| format!("{} s", time.as_secs());
        let keepalive = |common: &Common| off(common.keepalive.map(seconds));
        self.keep("persistent-keepalive", &keepalive(old), &keepalive(new));
        let most = |common: &Common| common.max_forwarded.to_string();
        self.keep("max-forwarded", &most(old), &most(new));
        let size = |size: DataSize| format::bytes(size.as_bytes());
        let default = || "the default".to_owned();
        let memory = |common: &Common| common.max_memory.map_or_else(default, size);
        self.keep("max-memory", &memory(old), &memory(new));
        self.keep("profile", &old.profile.name, &new.profile.name);
    }

    /// Notes what cannot be changed.
    fn keep(&mut self, key: &str, old: &str, new: &str) {
        if old != new {
            self.kept.push(format!("{key} stays {old} until a restart, and is then {new}"));
        }
    }

    /// Notes if the file of the secret key can be read and holds another key than the one in use.
    pub(super) fn keep_key(&mut self, used: PublicKey, common: &Common) {
        // After `--user` the key file may no longer be readable.
        let Ok(secret) = keys::load(&common.key) else { return };
        let public = secret.public_key();
        if public != used {
            self.kept.push(format!("the key stays {used} until a restart, and is then {public}"));
        }
    }
}

/// A peer by its name and key.
pub(super) fn called(common: &Common, key: &PublicKey) -> String {
    match common.names.get(key) {
        Some(name) => format!("{name} {key}"),
        None => key.to_string(),
    }
}

fn list<T: Display>(all: &[T]) -> String {
    match all {
        [] => "none".to_owned(),
        all => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The elements of `all` that are not in `others`. An element that both contain is returned as
/// often as `all` has it more often than `others`.
pub(super) fn without<'a, T: PartialEq>(
    all: &'a [T],
    others: &'a [T],
) -> impl Iterator<Item = &'a T> {
    let mut others: Vec<&T> = others.iter().collect();
    all.iter().filter(move |one| match others.iter().position(|other| other == one) {
        Some(at) => {
            others.swap_remove(at);
            false
        }
        None => true,
    })
}
