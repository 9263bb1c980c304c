//! Fills a link for a short time to find throttling and long queues.

use std::time::Duration;

use anabranch::policy::registry::PolicySpec;
use anabranch::{Connection, DatagramError, PathId, TrafficClass};
use tokio::time::{Instant, interval, timeout};

use super::facts::Load;
use super::probe::{Samples, only_path};

/// How long a link is filled.
const TIME: Duration = Duration::from_secs(3);
/// Time at the beginning that is not counted, while the rate is still being found.
const WARM_UP: Duration = Duration::from_secs(1);
/// Payload of a datagram: with its headers it fits into the smallest packet that every path
/// carries.
const DATAGRAM: [u8; 1000] = [0; 1000];
/// Time between two samples of the figures.
const LOOK: Duration = Duration::from_millis(20);

/// Sends as much as the congestion control `control` admits; the error says why it could not go on to the end. The
/// peer need not read the datagrams: it acknowledges those that nobody reads, and drops them.
pub(super) async fn fill(connection: &Connection, control: &PolicySpec) -> Result<Load, String> {
    connection.set_congestion(PathId(0), control).map_err(|error| error.to_string())?;
    let over = || "the connection has no path left".to_owned();
    let begun = Instant::now();
    let mut samples = Samples::default();
    let mut from = None;
    let mut looks = interval(LOOK);
    while begun.elapsed() < TIME {
        looks.tick().await;
        pour(connection).await.map_err(|error| error.to_string())?;
        let path = only_path(connection).ok_or_else(over)?;
        if begun.elapsed() >= WARM_UP {
            samples.take(&path);
            from = from.or(Some((Instant::now(), path.counters)));
        }
    }
    let (since, before) = from.ok_or("this machine is too busy to fill it")?;
    let (elapsed, after) =
        (since.elapsed().as_secs_f64(), only_path(connection).ok_or_else(over)?.counters);
    let acked = after.acked_packets - before.acked_packets;
    let lost = after.lost_packets - before.lost_packets;
    let lost = lost.saturating_sub(after.spurious_losses - before.spurious_losses);
    let sent = (after.sent_packets - before.sent_packets).max(1);
    let size = (after.sent_bytes - before.sent_bytes) as f64 / sent as f64;
    Ok(Load {
        mbps: acked as f64 * size * 8.0 / 1e6 / elapsed,
        loss: lost as f64 / (acked + lost).max(1) as f64,
        rtt_median_ms: samples.median(),
    })
}

/// Keeps the queue full until it is time to look again.
pub(super) async fn pour(connection: &Connection) -> Result<(), DatagramError> {
    let pouring = async {
        loop {
            connection.send_datagram(&DATAGRAM, TrafficClass::Bulk).await?;
        }
    };
    timeout(LOOK, pouring).await.unwrap_or(Ok(()))
}
