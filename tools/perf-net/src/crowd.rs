//! Many connections at once, on one core and on two: whether a server uses all cores.

use std::time::Instant;

use anabranch::{Connection, Endpoint, PathSpec, Profile, TrafficClass};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::Failure;
use crate::ours::{endpoint_config, loopback, read_all, write_all};
use crate::run::{Options, Task};

/// Connections at once.
const CONNECTIONS: u64 = 100;

/// Medians over the rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Crowd {
    /// How many connections there were.
    pub connections: u64,
    /// Rate of all connections together, both ends on one core.
    pub one_core_gbps: f64,
    /// Rate of all connections together on two cores.
    pub two_cores_gbps: f64,
    /// Rate on two cores over the rate on one.
    pub ratio: f64,
}

/// Moves the bytes over all connections together, alternately on one core and on two.
pub fn measure(options: &Options) -> Result<Crowd, Failure> {
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        let (one, two) = (transfer(options, 1)?, transfer(options, 2)?);
        eprintln!("round {}: {CONNECTIONS} connections: {one:.2} and {two:.2} Gb/s", round + 1);
        rounds.push((one, two));
    }
    let median = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    Ok(Crowd {
        connections: CONNECTIONS,
        one_core_gbps: median(&|round| round.0),
        two_cores_gbps: median(&|round| round.1),
        ratio: median(&|round| round.1 / round.0),
    })
}

/// Gigabits per second of all connections with `cores` threads for both ends.
fn transfer(options: &Options, cores: usize) -> Result<f64, Failure> {
    let (bytes, payload) = (options.bytes / CONNECTIONS, options.payload);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(cores).enable_all().build()?;
    let work = async move {
        let profile = Profile::named("anabranch").ok_or("the default profile is missing")?;
        let server = Endpoint::bind(endpoint_config(payload, profile.clone())?, loopback())?;
        let client = Endpoint::bind(endpoint_config(payload, profile.clone())?, loopback())?;
        let (local, remote) = (client.local_addrs()[0], server.local_addrs()[0]);
        let key = server.public_key();
        let mut pairs = Vec::new();
        for _ in 0..CONNECTIONS {
            let paths = [PathSpec { local, remote }];
            let accepting =
                async { Ok::<_, Failure>(server.accept().await.ok_or("the endpoint ended")?.await?) };
            let (near, far) = tokio::join!(client.connect(key, &paths[..]), accepting);
            pairs.push((near?, far?));
        }
        let start = Instant::now();
        let mut transfers = JoinSet::new();
        for (near, far) in pairs {
            transfers.spawn(send(near, Task::bulk(bytes, payload)));
            transfers.spawn(receive(far, bytes));
        }
        while let Some(done) = transfers.join_next().await {
            done.map_err(|_| "a transfer panicked")??;
        }
        Ok((bytes * CONNECTIONS) as f64 * 8e-9 / start.elapsed().as_secs_f64())
    };
    runtime.block_on(async { tokio::spawn(work).await.map_err(|_| "the transfers panicked")? })
}

async fn send(connection: Connection, task: Task) -> Result<(), Failure> {
    let (mut stream, mut back) = connection.open_bi(TrafficClass::Bulk).await?;
    write_all(task, &mut stream, &mut back).await
}

async fn receive(connection: Connection, bytes: u64) -> Result<(), Failure> {
    let (mut back, mut stream) = connection.accept_bi().await?;
    let total = read_all(&mut stream).await?;
    if total != bytes {
        return Err(format!("{total} of {bytes} bytes arrived").into());
    }
    back.finish()?;
    // The peer closes when it has read the end.
    connection.closed().await;
    Ok(())
}
