//! One side of multipath QUIC by noq, which `cargo xtask kernel --quic` runs in its namespace:
//! `send|receive bulk|flows|gap|messages CONTROL FOLDER PATHS WARM-UP SECONDS`. The receiver writes its certificate to
//! the folder; each path leads from the client's to the server's address of that path.

mod bulk;
#[path = "../../kernel/cpu.rs"]
mod cpu;
#[path = "../../kernel/workload.rs"]
mod workload;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use noq::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};
use noq::{
    ClientConfig, Connection, Endpoint, FourTuple, PathStatus, RecvStream, SendStream,
    ServerConfig, TransportConfig,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::Value;
use tokio::io::{Join, join};

use workload::{Transport, Workload};

const PORT: u16 = 5003;
/// Interval of attempts to find the certificate or to open a path, and their number.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: u32 = 250;

/// One side of the transfer.
struct Quic {
    endpoint: Endpoint,
    /// The sender's configuration.
    client: Option<ClientConfig>,
    paths: u8,
}

/// A connection that is closed when this is dropped.
struct Open(Connection);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close(0_u32.into(), b"");
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(|error| error.to_string()).and_then(|it| it.block_on(side(&words)));
    match done {
        Ok(seen) => println!("{seen}"),
        Err(message) => {
            eprintln!("quic: {message}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

async fn side(words: &[String]) -> Result<Value, String> {
    let [side, what, control, folder, numbers @ ..] = words else {
        return Err("a side, what to do, a congestion control and a folder are needed".to_owned());
    };
    let numbers = numbers.iter().map(|word| word.parse::<u16>().map_err(|error| error.to_string()));
    let numbers: Vec<u16> = numbers.collect::<Result<_, _>>()?;
    let [paths, warm_up, seconds] = numbers[..] else {
        return Err("three numbers are needed".to_owned());
    };
    let paths = u8::try_from(paths).map_err(|error| error.to_string())?;
    let times = [warm_up, seconds].map(|time| Duration::from_secs(time.into()));
    let certificate = PathBuf::from(folder).join("certificate");
    let transport = transport(control, paths)?;
    let sends = side == "send";
    let quic = match sends {
        true => Quic::sender(&certificate, transport, paths).await?,
        false => Quic::receiver(&certificate, transport, paths)?,
    };
    let seen = match (Workload::named(what), sends) {
        (Some(workload), true) => workload.send(&quic).await,
        (Some(workload), false) => workload.receive(&quic).await,
        (None, true) => bulk::send(&quic, times).await,
        (None, false) => bulk::receive(&quic, times).await,
    };
    quic.end().await;
    seen
}

/// The defaults, with a congestion control for each path and as many paths as the road has.
fn transport(control: &str, paths: u8) -> Result<Arc<TransportConfig>, String> {
    let mut transport = TransportConfig::default();
    match control {
        "cubic" => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        "bbr" => transport.congestion_controller_factory(Arc::new(Bbr3Config::default())),
        "reno" => transport.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        other => return Err(format!("there is no congestion control {other}")),
    };
    if paths > 1 {
        transport.max_concurrent_multipath_paths(paths.into());
    }
    Ok(Arc::new(transport))
}

impl Quic {
    fn receiver(file: &Path, transport: Arc<TransportConfig>, paths: u8) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("the receiver: {error}");
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
        let made = made.map_err(|error| failed(&error))?;
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::with_single_cert(vec![certificate.clone()], key);
        let mut config = config.map_err(|error| failed(&error))?;
        config.transport_config(transport);
        let here = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
        let endpoint = Endpoint::server(config, here).map_err(|error| failed(&error))?;
        // Write the certificate whole or not at all: the sender may read it at any moment.
        let part = file.with_extension("part");
        fs::write(&part, &certificate)
            .and_then(|()| fs::rename(&part, file))
            .map_err(|error| failed(&error))?;
        Ok(Quic { endpoint, client: None, paths })
    }

    async fn sender(
        file: &Path,
        transport: Arc<TransportConfig>,
        paths: u8,
    ) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("the sender: {error}");
        for _ in 0..LOOKS {
            if file.exists() {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        let certificate = fs::read(file).map_err(|error| failed(&error))?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from(certificate)).map_err(|error| failed(&error))?;
        let client = ClientConfig::with_root_certificates(Arc::new(roots));
        let mut client = client.map_err(|error| failed(&error))?;
        client.transport_config(transport);
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let endpoint = Endpoint::client(any).map_err(|error| failed(&error))?;
        Ok(Quic { endpoint, client: Some(client), paths })
    }
}

/// Opens a further path while data is sent. The path is refused until the receiver has issued connection ids for it.
async fn add_path(connection: Connection, server: SocketAddr) {
    let mut error = None;
    for _ in 0..LOOKS {
        let path = FourTuple::from_remote(server);
        match connection.open_path(path, PathStatus::Available).await {
            Ok(_) => return,
            Err(_) if connection.close_reason().is_some() => return,
            Err(why) => error = Some(why),
        }
        tokio::time::sleep(LOOK).await;
    }
    if let Some(why) = error {
        eprintln!("quic: no path to {server}: {why}");
    }
}

fn server(path: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 77, path, 2), PORT))
}

impl Transport for Quic {
    type Stream = Join<RecvStream, SendStream>;
    type Guard = Open;

    async fn open(&self) -> Result<(Self::Stream, Open), String> {
        let failed = |error: &dyn std::fmt::Display| format!("a connection: {error}");
        let client = self.client.clone().ok_or("the receiver does not connect")?;
        let connecting = self.endpoint.connect_with(client, server(1), "localhost");
        let connecting = connecting.map_err(|error| failed(&error))?;
        let connection = connecting.await.map_err(|error| failed(&error))?;
        for path in 2..=self.paths {
            tokio::spawn(add_path(connection.clone(), server(path)));
        }
        let (send, receive) = connection.open_bi().await.map_err(|error| failed(&error))?;
        Ok((join(receive, send), Open(connection)))
    }

    async fn accept(&self) -> Result<(Self::Stream, Open), String> {
        let failed = |error: &dyn std::fmt::Display| format!("accept: {error}");
        let incoming = self.endpoint.accept().await.ok_or("the endpoint ended")?;
        let connection = incoming.await.map_err(|error| failed(&error))?;
        let (send, receive) = connection.accept_bi().await.map_err(|error| failed(&error))?;
        Ok((join(receive, send), Open(connection)))
    }

    async fn end(&self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
    }
}
