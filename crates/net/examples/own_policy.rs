//! Custom policies, without a change to the library: a congestion controller that never has more in flight than it is
//! told, and a scheduler that fills the first path before it uses the next.
//!
//! Both ends are in this process, on loopback: `cargo run -p anabranch --example own_policy`.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch::policy::Axis;
use anabranch::policy::congestion::{AckEvent, CongestionController, TimeoutEvent};
use anabranch::policy::registry::{Entry, option};
use anabranch::policy::scheduler::{Pick, Pull, Scheduler, Work};
use anabranch::policy::view::{PathView, SchedulerView};
use anabranch::{Config, Endpoint, PathId, PathSpec, Permitted, Profile, SecretKey, TrafficClass};

const MEGABYTE: usize = 1_000_000;

const STEADY: Entry = Entry {
    name: "steady",
    summary: "a congestion window that does not move",
    source: "",
    options: &[option("packets", "the window, packets", "50")],
};

const IN_ORDER: Entry =
    Entry { name: "in-order", summary: "the first path that has room", source: "", options: &[] };

/// A constant congestion window, for networks in which something else divides the capacity.
#[derive(Debug)]
struct Steady {
    cwnd: u64,
    /// Bytes acknowledged on all paths, for the application to look at.
    acknowledged: Arc<AtomicU64>,
}

impl CongestionController for Steady {
    fn on_ack(&mut self, event: &AckEvent, _siblings: &[PathView]) {
        self.acknowledged.fetch_add(event.acked_bytes, Ordering::Relaxed);
    }

    fn on_timeout(&mut self, _event: &TimeoutEvent) {}

    fn set_packet_size(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.max(bytes);
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn phase(&self) -> &'static str {
        "steady"
    }
}

/// Work goes to the first path that has room.
#[derive(Debug)]
struct InOrder;

impl Scheduler for InOrder {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let mut before = view.paths.iter().take_while(|other| other.id != path);
        if before.any(|other| other.usable() && other.ready) {
            return Pull::Idle("an earlier path has room");
        }
        // Lost symbols come before new ones.
        let due = view.blocks.iter().find(|block| block.has_work());
        let work = match due {
            Some(block) => Work::Block(block.id),
            None if view.fresh.symbols > 0 => Work::Fresh,
            None => return Pull::Idle("nothing to send"),
        };
        picks.push(Pick { work, count: 1, path, not_before: Default::default() });
        Pull::Send("first with room")
    }
}

/// Reads one stream to its end.
async fn receive(server: Endpoint) -> Result<usize, Box<dyn Error + Send + Sync>> {
    let connection = server.accept().await.ok_or("the endpoint ended")?.await?;
    let (mut send, mut receive) = connection.accept_bi().await?;
    let bytes = receive.read_to_end(10 * MEGABYTE).await?;
    send.finish()?;
    connection.closed().await;
    Ok(bytes.len())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let acknowledged = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&acknowledged);
    let mut profile = Profile::default();
    profile.register::<dyn CongestionController>(&STEADY, move |options| {
        let cwnd = options.integer("packets", 1..=100_000)? * options.packet_size();
        Ok(Box::new(Steady { cwnd, acknowledged: Arc::clone(&counter) }))
    })?;
    profile.register::<dyn Scheduler>(&IN_ORDER, |_| Ok(Box::new(InOrder)))?;
    profile.set(Axis::Congestion, "steady:packets=60")?;
    profile.set(Axis::Scheduler, "in-order")?;

    let any: SocketAddr = "127.0.0.1:0".parse()?;
    let client_key = SecretKey::generate()?;
    let mut config = Config::new(SecretKey::generate()?);
    config.permitted = Permitted::Only([client_key.public_key()].into());
    let server = Endpoint::bind(config, [any])?;
    let (public_key, remote) = (server.public_key(), server.local_addrs()[0]);
    let received = tokio::spawn(receive(server));

    let client = Endpoint::bind(Config { profile, ..Config::new(client_key) }, [any, any])?;
    let paths: Vec<PathSpec> =
        client.local_addrs().into_iter().map(|local| PathSpec { local, remote }).collect();
    let connection = client.connect(public_key, paths).await?;
    let (mut send, mut back) = connection.open_bi(TrafficClass::Bulk).await?;
    send.write_all(&vec![7; 5 * MEGABYTE]).await?;
    send.finish()?;
    // The peer finishes its half of the stream when it has read everything.
    back.read_to_end(0).await?;
    for path in connection.stats().iter().flat_map(|stats| &stats.paths) {
        println!("path {}: {} bytes sent, {}", path.id.0, path.counters.sent_bytes, path.phase);
    }
    println!("{} bytes acknowledged", acknowledged.load(Ordering::Relaxed));
    connection.close(0, "");
    assert_eq!(received.await??, 5 * MEGABYTE);
    assert!(acknowledged.load(Ordering::Relaxed) >= 5 * MEGABYTE as u64);
    Ok(())
}
