//! Our transport through the library, for the workloads that `anabranch bench` does not have.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anabranch::{
    Config, Connection, Endpoint, PathSpec, Permitted, Profile, PublicKey, RecvStream, SecretKey,
    SendStream, TrafficClass,
};
use tokio::io::{Join, join};
use tokio::time::timeout;

use crate::workload::{Transport, Workload};

const PORT: u16 = 5002;

/// One side of our transport.
#[derive(Debug)]
pub struct Ours {
    endpoint: Endpoint,
    receiver: PublicKey,
    paths: Vec<PathSpec>,
    class: TrafficClass,
}

/// A connection that is closed when this is dropped.
#[derive(Debug)]
pub struct Open(Connection);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close(0, "done");
    }
}

impl Ours {
    /// Reads `PROFILE KEY PATHS`. The sender has a socket for each path, the receiver one for all and the key.
    ///
    /// # Errors
    /// When a word is wrong, a socket cannot be bound, or the key cannot be read.
    pub fn new(words: &[String], sends: bool, workload: Workload) -> Result<Self, String> {
        let [profile, key, paths] = words else {
            return Err("a profile, a key and the number of paths are needed".to_owned());
        };
        let profile = Profile::named(profile).ok_or(format!("there is no profile {profile}"))?;
        let key = SecretKey::load(Path::new(key)).map_err(|error| error.to_string())?;
        let receiver = key.public_key();
        let paths: u8 = paths.parse().map_err(|error| format!("paths: {error}"))?;
        let socket = |error: std::io::Error| format!("a socket: {error}");
        let class = match workload {
            Workload::Messages => TrafficClass::Interactive,
            Workload::Flows | Workload::Gap => TrafficClass::Bulk,
        };
        if !sends {
            let config = Config { profile, permitted: Permitted::Anyone, ..Config::new(key) };
            let here = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
            let endpoint = Endpoint::bind(config, [here]).map_err(socket)?;
            return Ok(Ours { endpoint, receiver, paths: Vec::new(), class });
        }
        let secret = SecretKey::generate().map_err(|error| error.to_string())?;
        let endpoint =
            Endpoint::client(Config { profile, ..Config::new(secret) }).map_err(socket)?;
        let address =
            |path, side, port| SocketAddr::from((Ipv4Addr::new(10, 77, path, side), port));
        let bound = (1..=paths).map(|path| {
            let local = endpoint.add_socket(address(path, 1, 0)).map_err(socket)?;
            Ok(PathSpec { local, remote: address(path, 2, PORT) })
        });
        let paths = bound.collect::<Result<Vec<_>, String>>()?;
        Ok(Ours { endpoint, receiver, paths, class })
    }
}

impl Transport for Ours {
    type Stream = Join<RecvStream, SendStream>;
    type Guard = Open;

    async fn open(&self) -> Result<(Self::Stream, Open), String> {
        let paths: Vec<PathSpec> = self.paths.clone();
        let connected = self.endpoint.connect(self.receiver, paths).await;
        let connection = connected.map_err(|error| error.to_string())?;
        let (send, receive) =
            connection.open_bi(self.class).await.map_err(|error| error.to_string())?;
        Ok((join(receive, send), Open(connection)))
    }

    async fn accept(&self) -> Result<(Self::Stream, Open), String> {
        let incoming = self.endpoint.accept().await.ok_or("the endpoint ended")?;
        let connection = incoming.accept().await.map_err(|error| error.to_string())?;
        let (send, receive) = connection.accept_bi().await.map_err(|error| error.to_string())?;
        Ok((join(receive, send), Open(connection)))
    }

    async fn end(&self) {
        let _ = timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
    }
}
