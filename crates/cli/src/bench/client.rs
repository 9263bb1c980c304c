//! The side that asks, and reports.

use std::time::Duration;

use anabranch::{Connection, Endpoint, Permitted, TrafficClass};
use tokio::time::{Instant, interval_at, sleep, timeout};

use super::args::ClientArgs;
use super::protocol::{
    Answer, ExchangeError, Figures, MAX_TIME, Request, VERSION, read_message, write_message,
};
use super::report::{Interval, Report};
use super::table;
use super::traffic::{Halves, Traffic};
use super::{config, key, profile};
use crate::failure::Failure;
use crate::interrupt::asked_to_end;
use crate::keys;
use crate::output;
use crate::paths;
use crate::qlog::Qlogs;

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a server may take that has said that it is busy.
const PATIENCE_IF_BUSY: Duration = Duration::from_secs(60);
/// How long a measurement lasts that is told neither time nor bytes.
const DEFAULT_TIME: Duration = Duration::from_secs(10);
/// Reports while it runs, at most.
const MOST_INTERVALS: usize = 3600;

/// Measures over a network.
///
/// # Errors
/// When the server does not answer or refuses, or anything fails on the way.
pub(super) async fn run(args: &ClientArgs, qlogs: &Qlogs) -> Result<(), Failure> {
    let (Some(to), Some(peer)) = (&args.to, args.peer) else {
        return Err(Failure::usage("HOST:PORT and --peer are needed without --loopback"));
    };
    let profile = profile(&args.profile, &args.settings)?;
    let route = paths::to_host(to, &args.paths).await?;
    let secret = key(args.key.as_deref())?;
    let mut config = config(secret, profile, args.payload, Permitted::Nobody);
    config.preshared = keys::shared_with(&[peer], args.preshared_key.as_deref())?;
    let endpoint = Endpoint::client(config).map_err(Failure::failed)?;
    let dialling = async {
        if !args.json {
            eprintln!("connecting to {to}");
        }
        endpoint.connect(peer, (route.remote, route.requests)).await
    };
    // Ctrl-C is heard from before that is said.
    let connected = tokio::select! {
        biased;
        () = asked_to_end() => return Err(Failure::interrupted("interrupted")),
        connected = dialling => connected,
        failure = give_up(&endpoint, to) => return Err(failure),
    };
    let connection = connected.map_err(Failure::unreached)?;
    qlogs.follow(&connection, "client");
    let result = measure(args, &connection).await;
    connection.close(0, "done");
    endpoint.wait_idle().await;
    qlogs.finish();
    result
}

/// Ready when the server has been waited for long enough: longer if it has said that it is busy.
async fn give_up(endpoint: &Endpoint, to: &str) -> Failure {
    sleep(PATIENCE).await;
    if endpoint.times_busy() == 0 {
        return Failure::unreached(format!(
            "{to} does not answer; are its address and the keys right?"
        ));
    }
    eprintln!("anabranch: {to} is there and busy with others; waiting for it");
    sleep(PATIENCE_IF_BUSY - PATIENCE).await;
    let seconds = PATIENCE_IF_BUSY.as_secs();
    Failure::unreached(format!(
        "{to} is busy with others and had no time within {seconds} s; try again later"
    ))
}

/// Asks the server at the other end of `connection`, takes part, and reports.
///
/// # Errors
/// When it refuses, or the connection fails.
pub(super) async fn measure(args: &ClientArgs, connection: &Connection) -> Result<(), Failure> {
    let request = request(args);
    let Measured { report, interrupted } =
        exchange(args, connection, &request).await.map_err(Failure::failed)??;
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&table::summary(&report))?;
    }
    if interrupted {
        return Err(Failure::interrupted("interrupted: these are this side's figures until then"));
    }
    Ok(())
}

/// What was measured.
struct Measured {
    report: Report,
    /// Before its end: the other side has not been asked.
    interrupted: bool,
}

/// What `args` ask of the server.
fn request(args: &ClientArgs) -> Request {
    let time = match args.bytes {
        // The bytes end it.
        Some(_) => MAX_TIME,
        None => args.time.unwrap_or(DEFAULT_TIME),
    };
    Request {
        version: VERSION,
        seconds: time.as_secs_f64(),
        bytes: args.bytes.map(|bytes| bytes.as_bytes()),
        streams: args.parallel,
        upload: args.bidir || !args.reverse,
        download: args.bidir || args.reverse,
    }
}

async fn exchange(
    args: &ClientArgs,
    connection: &Connection,
    request: &Request,
) -> Result<Result<Measured, Failure>, ExchangeError> {
    let opened = connection.open_bi(TrafficClass::Interactive).await;
    let (mut ask, mut answers) = opened.map_err(std::io::Error::from)?;
    write_message(&mut ask, request).await?;
    let answer =
        timeout(PATIENCE, read_message(&mut answers)).await.map_err(std::io::Error::from)?;
    if let Answer::Refused(reason) = answer? {
        return Ok(Err(Failure::failed(format!("the server refuses: {reason}"))));
    }
    let mut streams = Vec::new();
    for _ in 0..request.streams {
        let opened = connection.open_bi(TrafficClass::Bulk).await;
        let (mut send, receive) = opened.map_err(std::io::Error::from)?;
        send.write_all(&[0]).await?;
        streams.push((send, receive));
    }
    let (intervals, ours, interrupted) = run_traffic(args, connection, (request, streams)).await?;
    let theirs: Figures = match interrupted {
        false => read_message(&mut answers).await?,
        true => seen_from_here(&ours),
    };
    let paths = connection.named_paths();
    let report = Report::new(args, request, intervals, &paths, (ours, theirs));
    Ok(Ok(Measured { report, interrupted }))
}

/// The other side's figures, as far as this side knows them.
fn seen_from_here(ours: &Figures) -> Figures {
    Figures {
        sent: ours.received.clone(),
        received: ours.sent.clone(),
        sent_seconds: ours.received_seconds,
        received_seconds: ours.sent_seconds,
        ..Figures::default()
    }
}

/// Takes part, and reports every interval, until all has ended or somebody interrupts it, which is told beside this
/// side's figures.
async fn run_traffic(
    args: &ClientArgs,
    connection: &Connection,
    (request, streams): (&Request, Vec<Halves>),
) -> Result<(Vec<Interval>, Figures, bool), ExchangeError> {
    let mut intervals: Vec<Interval> = Vec::new();
    let mut traffic = Traffic::start(streams, request, request.upload);
    let started = traffic.started();
    let every = if args.interval.is_zero() { MAX_TIME * 2 } else { args.interval };
    let mut ticks = interval_at(started + every, every);
    let mut before = Interval::start(traffic.totals(), &connection.named_paths());
    loop {
        let over = tokio::select! {
            biased;
            ended = traffic.ended() => { ended?; Some(false) }
            () = asked_to_end() => Some(true),
            _ = ticks.tick() => None,
        };
        if let Some(interrupted) = over {
            return Ok((intervals, traffic.figures(connection), interrupted));
        }
        let now = Instant::now().duration_since(started).as_secs_f64();
        let interval = before.next(now, traffic.totals(), &connection.named_paths());
        if !args.json {
            output::print(&table::line(&interval)).unwrap_or_default();
        } else if intervals.len() < MOST_INTERVALS {
            intervals.push(interval.clone());
        }
        before = interval;
    }
}
