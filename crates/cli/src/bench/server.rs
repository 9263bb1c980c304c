//! The server of `bench`: carries out the tests that clients request.

use std::pin::pin;
use std::time::Duration;

use anabranch::{Connection, Endpoint, Permitted};
use anabranch::{RecvStream, SendStream};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::args::ServerArgs;
use super::latency::echo;
use super::protocol::{Answer, ExchangeError, Figures, Request, read_message, write_message};
use super::traffic::{Halves, Traffic};
use super::{config, key, profile};
use crate::arrivals::Arrivals;
use crate::failure::Failure;
use crate::insight::Insight;
use crate::interrupt::asked_to_end;
use crate::keys;
use crate::limited::Limited;
use crate::{clock, format};

/// How long a client may take to say what it wants, and to open its streams.
const PATIENCE: Duration = Duration::from_secs(10);
/// A client is active if it sends at least this many packets within [`PATIENCE`]; keepalives are
/// fewer.
const ALIVE: u64 = 20;

/// Serves clients until interrupted; with `--once`, serves one client.
///
/// # Errors
/// When sockets or the key fail; with `--once` also when the measurement does.
pub(super) async fn run(args: &ServerArgs, insight: &Insight) -> Result<(), Failure> {
    if args.allow.is_empty() && !args.anyone {
        return Err(Failure::usage(
            "say who may connect: --allow PUBKEY once for each, or --anyone",
        ));
    }
    let permitted = match args.anyone {
        true => Permitted::Anyone,
        false => Permitted::Only(args.allow.iter().copied().collect()),
    };
    let profile = profile(&args.profile, &args.settings)?;
    let mut config = config(key(args.key.as_deref())?, profile, args.payload, permitted);
    config.preshared = keys::shared_with(&args.allow, args.preshared_key.as_deref())?;
    config.key_log = insight.key_log.clone();
    let endpoint = Endpoint::bind(config, args.listen.iter().copied())
        .map_err(|error| Failure::cannot_listen_on(&args.listen, &error))?;
    for address in endpoint.local_addrs() {
        eprintln!("listening on {address}");
    }
    eprintln!("public key {}", endpoint.public_key());
    let result = attend(args, &endpoint, insight).await;
    insight.finish();
    result
}

/// Serves clients as they come.
async fn attend(args: &ServerArgs, endpoint: &Endpoint, insight: &Insight) -> Result<(), Failure> {
    let arrivals = Arrivals::of(endpoint);
    let lines = Limited::new("clients".to_owned(), "");
    loop {
        let accepted = tokio::select! {
            accepted = arrivals.next() => accepted,
            () = asked_to_end() => return Ok(()),
        };
        let Some(connection) = accepted else { return Ok(()) };
        insight.follow(&connection, "server");
        if args.once {
            let served = serve(&connection).await;
            let result = served.map(|figures| figures.iter().for_each(|of| tell(&connection, of)));
            connection.close(0, "done");
            endpoint.wait_idle().await;
            return result.map_err(Failure::failed);
        }
        let lines = lines.clone();
        tokio::spawn(async move {
            match serve(&connection).await {
                Ok(Some(figures)) => lines.line(|| tell(&connection, &figures)),
                Ok(None) => {}
                Err(error) => {
                    lines.line(|| eprintln!("anabranch: {}: {error}", connection.peer()));
                }
            }
        });
    }
}

/// Prints one line with the results of a client's measurement.
fn tell(connection: &Connection, figures: &Figures) {
    let paths = connection.named_paths();
    let places: Vec<String> =
        paths.iter().map(|path| path.stats.address.remote.to_string()).collect();
    let mut parts = Vec::new();
    for (verb, bytes, seconds) in [
        ("received", &figures.received, figures.received_seconds),
        ("sent", &figures.sent, figures.sent_seconds),
    ] {
        let bytes: u64 = bytes.iter().sum();
        if bytes > 0 && seconds > 0.0 {
            let rate = format::mbps(bytes as f64 * 8e-6 / seconds);
            let bytes = format::bytes(bytes);
            parts.push(format!("{verb} {bytes} in {seconds:.1} s, {rate} Mb/s"));
        }
    }
    let (stamp, places) = (clock::stamp(), places.join(", "));
    eprintln!("{stamp}client {places}: {}", parts.join("; "));
}

/// Carries out one client's measurement; `None` if it was refused. Returns once the client has gone.
pub(super) async fn serve(connection: &Connection) -> Result<Option<Figures>, ExchangeError> {
    let (mut back, request) = awaited(connection).await?;
    if let Some(reason) = request.objection() {
        write_message(&mut back, &Answer::Refused(reason.into())).await?;
        back.finish()?;
        back.acked().await?;
        return Ok(None);
    }
    write_message(&mut back, &Answer::Ready).await?;
    if request.latency {
        let halves = timeout(PATIENCE, connection.accept_bi()).await;
        let halves = halves.map_err(std::io::Error::from)?.map_err(std::io::Error::from)?;
        // The task ends with the connection.
        tokio::spawn(echo(halves));
    }
    let streams = timeout(PATIENCE, streams(connection, request.streams)).await;
    let streams = streams.map_err(std::io::Error::from)??;
    let mut traffic = Traffic::start(connection, streams, &request, request.download);
    while !traffic.ended().await? {
        traffic.omit();
    }
    let figures = traffic.figures();
    write_message(&mut back, &figures).await?;
    back.finish()?;
    connection.closed().await;
    Ok(Some(figures))
}

/// Waits for the client's request. A client that keeps sending datagrams is given more time: `doctor` fills links with
/// them and requests nothing.
async fn awaited(connection: &Connection) -> Result<(SendStream, Request), ExchangeError> {
    let mut asked = pin!(asked(connection));
    let mut heard = 0;
    loop {
        match timeout(PATIENCE, asked.as_mut()).await {
            Ok(asked) => return asked,
            Err(late) => {
                let stats = connection.stats();
                let paths = stats.iter().flat_map(|stats| &stats.paths);
                let now: u64 = paths.map(|path| path.counters.received_packets).sum();
                if now < heard + ALIVE {
                    return Err(std::io::Error::from(late).into());
                }
                heard = now;
            }
        }
    }
}

async fn asked(connection: &Connection) -> Result<(SendStream, Request), ExchangeError> {
    let (back, mut control) = connection.accept_bi().await.map_err(std::io::Error::from)?;
    let request = read_message(&mut control).await?;
    // The client leaves its half open, but nothing more is expected on it.
    control.stop(0);
    Ok((back, request))
}

/// Accepts the data streams. The client begins each with one byte, so that this side learns of it.
async fn streams(connection: &Connection, count: u16) -> Result<Vec<Halves>, ExchangeError> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let (send, mut receive): (SendStream, RecvStream) =
            connection.accept_bi().await.map_err(std::io::Error::from)?;
        receive.read_u8().await?;
        streams.push((send, receive));
    }
    Ok(streams)
}
