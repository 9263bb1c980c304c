//! The goodput of one long transfer.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use crate::cpu::cpu_seconds;
use crate::workload::Transport;

const PIECE: usize = 1 << 17;
/// How much longer than the receiver the sender goes on at most.
const PATIENCE: Duration = Duration::from_secs(5);

/// Writes until the receiver has enough.
pub async fn send(transport: &impl Transport, times: [Duration; 2]) -> Result<Value, String> {
    let end = Instant::now() + 2 * (times[0] + times[1]) + PATIENCE;
    if let Ok(opened) = timeout_at(end, transport.open()).await {
        let ((mut stream, _guard), piece) = (opened?, vec![0x5a; PIECE]);
        while let Ok(Ok(_)) = timeout_at(end, stream.write(&piece)).await {}
    }
    Ok(json!({ "cpu_seconds": cpu_seconds() }))
}

/// Receives everything; the goodput counts what comes after the warm-up.
pub async fn receive(
    transport: &impl Transport,
    [warm_up, time]: [Duration; 2],
) -> Result<Value, String> {
    let (mut all, mut counted, mut buffer) = (0_u64, 0_u64, vec![0; PIECE]);
    let most = Instant::now() + warm_up + time;
    if let Ok(accepted) = timeout_at(most, transport.accept()).await {
        let (mut stream, _guard) = accepted?;
        let from = Instant::now() + warm_up;
        while let Ok(read) = timeout_at(from + time, stream.read(&mut buffer)).await {
            let count = read.map_err(|error| format!("cannot receive: {error}"))? as u64;
            if count == 0 {
                return Err("the sender ended too early".to_owned());
            }
            all += count;
            counted += if Instant::now() >= from { count } else { 0 };
        }
    }
    let mbps = counted as f64 * 8e-6 / time.as_secs_f64();
    Ok(json!({ "goodput_mbps": mbps, "all_bytes": all, "cpu_seconds": cpu_seconds() }))
}
