//! One side of a workload, in its namespace: `side send|receive WORKLOAD kernel|ours WORDS`.

use serde_json::Value;

use crate::ours::Ours;
use crate::sockets::Sockets;
use crate::traffic::Traffic;
use crate::workload::{Transport, Workload};

/// Does this side's part and prints its results.
///
/// # Errors
/// When the words are wrong, or the workload fails.
pub fn run(words: &[String]) -> Result<(), String> {
    let [side, workload, transport, rest @ ..] = words else {
        return Err("a side, a workload and a transport are needed".to_owned());
    };
    let (sends, workload) = (side == "send", Workload::named(workload).ok_or("no such workload")?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let seen = runtime.map_err(|error| error.to_string())?.block_on(async {
        match transport.as_str() {
            "kernel" => part(Sockets::new(Traffic::read(rest)?, sends)?, sends, workload).await,
            "ours" => part(Ours::new(rest, sends, workload)?, sends, workload).await,
            other => Err(format!("there is no transport {other}")),
        }
    });
    println!("{}", seen?);
    Ok(())
}

async fn part(transport: impl Transport, sends: bool, workload: Workload) -> Result<Value, String> {
    let seen = match sends {
        true => workload.send(&transport).await,
        false => workload.receive(&transport).await,
    };
    transport.end().await;
    seen
}
