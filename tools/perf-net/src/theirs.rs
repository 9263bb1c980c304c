//! One stream through quinn, and through its fork noq, which has the same interface.

macro_rules! stack {
    ($stack:ident) => {
        pub mod $stack {
            use std::net::{Ipv4Addr, SocketAddr};
            use std::sync::{Arc, mpsc};
            use std::time::Instant;

            use ::$stack::{
                ClientConfig, Endpoint, MtuDiscoveryConfig, ServerConfig, TransportConfig,
            };
            use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

            use crate::Failure;
            use crate::run::{Running, Sample, Side, Task, join, on_thread};

            /// Moves the bytes once.
            pub fn transfer(task: Task) -> Result<Sample, Failure> {
                let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
                let certificate = made.cert.der().clone();
                let key =
                    PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
                let mut server = ServerConfig::with_single_cert(vec![certificate.clone()], key)?;
                server.transport_config(transport(task.payload));
                let client = client(certificate, task.payload)?;
                let (tell, told) = mpsc::channel();
                let receiver = on_thread("receiver", move || receive(server, task, tell))?;
                let remote = told.recv()?;
                let sender = on_thread("sender", move || send(client, task, remote))?;
                let (receiver, sender) = (join(receiver)?, join(sender)?);
                Ok(Sample::new(task, sender, receiver))
            }

            /// The defaults, with the path's size known from the start.
            fn transport(payload: u16) -> Arc<TransportConfig> {
                let mut transport = TransportConfig::default();
                let mut discovery = MtuDiscoveryConfig::default();
                discovery.upper_bound(payload);
                transport.initial_mtu(payload).min_mtu(payload.min(1200));
                transport.mtu_discovery_config(Some(discovery));
                Arc::new(transport)
            }

            fn client(
                certificate: CertificateDer<'static>,
                payload: u16,
            ) -> Result<ClientConfig, Failure> {
                let mut roots = rustls::RootCertStore::empty();
                roots.add(certificate)?;
                let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
                client.transport_config(transport(payload));
                Ok(client)
            }

            fn loopback() -> SocketAddr {
                SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
            }

            async fn receive(
                config: ServerConfig,
                task: Task,
                tell: mpsc::Sender<SocketAddr>,
            ) -> Result<Side, Failure> {
                let endpoint = Endpoint::server(config, loopback())?;
                tell.send(endpoint.local_addr()?)?;
                let connection = endpoint.accept().await.ok_or("the endpoint ended")?.await?;
                let (mut back, mut stream) = connection.accept_bi().await?;
                let clock = Running::start()?;
                let mut piece = vec![0; task.piece];
                let mut total = 0;
                while let Some(count) = stream.read(&mut piece).await? {
                    total += count as u64;
                }
                let side = clock.stop()?;
                if total != task.bytes {
                    return Err(format!("{total} of {} bytes arrived", task.bytes).into());
                }
                back.finish()?;
                connection.closed().await;
                Ok(side)
            }

            async fn send(
                config: ClientConfig,
                task: Task,
                remote: SocketAddr,
            ) -> Result<Side, Failure> {
                let endpoint = Endpoint::client(loopback())?;
                let connection = endpoint.connect_with(config, remote, "localhost")?.await?;
                let (mut stream, mut back) = connection.open_bi().await?;
                let clock = Running::start()?;
                let (piece, start) = (vec![7; task.piece], Instant::now());
                let mut left = task.bytes;
                while left > 0 {
                    task.wait(start, task.bytes - left).await;
                    let part = piece.get(..left.min(task.piece as u64) as usize).unwrap_or(&piece);
                    stream.write_all(part).await?;
                    left -= part.len() as u64;
                }
                stream.finish()?;
                while back.read(&mut [0; 16]).await?.is_some() {}
                let side = clock.stop()?;
                connection.close(0_u32.into(), b"");
                endpoint.wait_idle().await;
                Ok(side)
            }
        }
    };
}

stack!(quinn);
stack!(noq);
