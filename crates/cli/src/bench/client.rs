//! The client of `bench`: sends requests to the server and reports the results.

use std::time::Duration;

use anabranch::{Connection, Endpoint, Permitted, TrafficClass};
use tokio::time::{Instant, interval_at, sleep, timeout};

use super::args::ClientArgs;
use super::intervals::{Interval, Totals};
use super::latency::Prober;
use super::protocol::{
    Answer, ExchangeError, Figures, MAX_TIME, Request, VERSION, read_message, write_message,
};
use super::report::{Measurement, Report};
use super::table;
use super::traffic::{Halves, Traffic};
use super::{config, key, profile};
use crate::failure::Failure;
use crate::insight::Insight;
use crate::interrupt::asked_to_end;
use crate::keys;
use crate::output;
use crate::paths;

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for an answer in all, if the server has said that it is busy.
const PATIENCE_IF_BUSY: Duration = Duration::from_secs(60);
/// Duration of a measurement for which neither time nor bytes are given.
const DEFAULT_TIME: Duration = Duration::from_secs(10);
/// Most intervals that the JSON report holds.
const MOST_INTERVALS: usize = 3600;

/// Measures over a network.
///
/// # Errors
/// When the server does not answer or refuses, or anything fails on the way.
pub(super) async fn run(args: &ClientArgs, insight: &Insight) -> Result<(), Failure> {
    let (Some(to), Some(peer)) = (&args.to, args.peer) else {
        return Err(Failure::usage("HOST:PORT and --peer are needed without --loopback"));
    };
    let profile = profile(&args.profile, &args.settings)?;
    let route = paths::to_host(to, &args.paths).await?;
    let secret = key(args.key.as_deref())?;
    let mut config = config(secret, profile, args.payload, Permitted::Nobody);
    config.preshared = keys::shared_with(&[peer], args.preshared_key.as_deref())?;
    config.key_log = insight.key_log.clone();
    let endpoint = Endpoint::client(config).map_err(Failure::failed)?;
    let dialling = async {
        if !args.json {
            eprintln!("connecting to {to}");
        }
        endpoint.connect(peer, (route.remote, route.requests)).await
    };
    // `biased` polls for Ctrl-C first, so it is caught from the moment the line above is printed.
    let connected = tokio::select! {
        biased;
        () = asked_to_end() => return Err(Failure::interrupted("interrupted")),
        connected = dialling => connected,
        failure = give_up(&endpoint, to) => return Err(failure),
    };
    let connection = connected.map_err(Failure::unreached)?;
    insight.follow(&connection, "client");
    let result = measure(args, &connection).await;
    connection.close(0, "done");
    endpoint.wait_idle().await;
    insight.finish();
    result
}

/// Waits for [`PATIENCE`], or for [`PATIENCE_IF_BUSY`] if the server says that it is busy. Then
/// returns the failure.
async fn give_up(endpoint: &Endpoint, to: &str) -> Failure {
    sleep(PATIENCE).await;
    if endpoint.times_busy() == 0 {
        return Failure::unreached(format!(
            "{to} does not answer; are its address and the keys right?"
        ));
    }
    eprintln!("anabranch: {to} is busy with other clients; waiting for it");
    sleep(PATIENCE_IF_BUSY - PATIENCE).await;
    let seconds = PATIENCE_IF_BUSY.as_secs();
    Failure::unreached(format!("{to} was busy with other clients for {seconds} s; try again later"))
}

/// Asks the server at the other end of `connection`, takes part, and reports.
///
/// # Errors
/// When the server refuses, or the connection fails.
pub(super) async fn measure(args: &ClientArgs, connection: &Connection) -> Result<(), Failure> {
    let request = request(args);
    let Measured { report, interrupted } =
        exchange(args, connection, &request).await.map_err(Failure::failed)??;
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&table::summary(&report, table::columns()))?;
    }
    if interrupted {
        return Err(Failure::interrupted(
            "interrupted: the figures are those of this side, up to the interruption",
        ));
    }
    Ok(())
}

/// Result of a measurement.
struct Measured {
    report: Report,
    /// The measurement was interrupted, and the other side was not asked for its figures.
    interrupted: bool,
}

/// The request to the server that `args` describe.
fn request(args: &ClientArgs) -> Request {
    let time = match args.bytes {
        // The measurement ends after that many bytes.
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
        bitrate: args.bitrate.map(|rate| rate.as_bps()),
        datagrams: args.udp,
        omit: args.omit.unwrap_or_default().as_secs_f64(),
        latency: args.latency,
    }
    .with_lowest_version()
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
    let prober = match request.latency {
        true => Some(Prober::start(open(connection, TrafficClass::Interactive).await?)),
        false => None,
    };
    if let Some(prober) = &prober {
        prober.idle().await;
    }
    let mut streams = Vec::new();
    for _ in 0..request.streams {
        let (mut send, receive) = open(connection, TrafficClass::Bulk).await?;
        send.write_all(&[0]).await?;
        streams.push((send, receive));
    }
    let ran = run_traffic(args, connection, (request, streams)).await?;
    let theirs: Figures = match ran.interrupted {
        false => read_message(&mut answers).await?,
        true => seen_from_here(&ran.ours),
    };
    let latency = match &prober {
        Some(prober) => Some(prober.end(ran.times).await),
        None => None,
    };
    let Ran { intervals, base, ours, .. } = ran;
    let measured = Measurement { intervals, base, ours, theirs, latency };
    let report = Report::new(args, request, &connection.named_paths(), measured);
    Ok(Ok(Measured { report, interrupted: ran.interrupted }))
}

async fn open(connection: &Connection, class: TrafficClass) -> Result<Halves, std::io::Error> {
    connection.open_bi(class).await.map_err(std::io::Error::from)
}

/// The server's figures, as far as this side knows them.
fn seen_from_here(ours: &Figures) -> Figures {
    Figures {
        sent: ours.received.clone(),
        received: ours.sent.clone(),
        sent_seconds: ours.received_seconds,
        received_seconds: ours.sent_seconds,
        ..Figures::default()
    }
}

/// This side's part of a measurement.
struct Ran {
    intervals: Vec<Interval>,
    base: Interval,
    ours: Figures,
    interrupted: bool,
    /// When the measurement began, when results began to count, and when it ended.
    times: (Instant, Instant, Instant),
}

/// Why an interval ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Tick,
    /// The time that `--omit` leaves out of the results is over.
    Counts,
    Over,
    Interrupted,
}

/// Runs this side's traffic and reports every interval, until all traffic has ended or the user interrupts. Returns
/// this side's figures, and whether it was interrupted.
async fn run_traffic(
    args: &ClientArgs,
    connection: &Connection,
    (request, streams): (&Request, Vec<Halves>),
) -> Result<Ran, ExchangeError> {
    let mut intervals: Vec<Interval> = Vec::new();
    let mut traffic = Traffic::start(connection, streams, request, request.upload);
    let every = if args.interval.is_zero() { MAX_TIME * 2 } else { args.interval };
    let totals = |traffic: &Traffic| Totals {
        streams: traffic.totals(),
        datagrams: request.datagrams.then(|| traffic.datagrams()),
    };
    let start = |traffic: &Traffic| Interval::start(totals(traffic), &connection.named_paths());
    let mut tell = |interval: &Interval| {
        if !args.json {
            output::print(&table::line(interval, table::columns())).unwrap_or_default();
        } else if intervals.len() < MOST_INTERVALS {
            intervals.push(interval.clone());
        }
    };
    let mut counts_from = traffic.started();
    let mut ticks = interval_at(counts_from + every, every);
    let mut base = start(&traffic);
    let mut before = base.clone();
    let interrupted = loop {
        let cause = tokio::select! {
            biased;
            over = traffic.ended() => if over? { Cause::Over } else { Cause::Counts },
            () = asked_to_end() => Cause::Interrupted,
            _ = ticks.tick() => Cause::Tick,
        };
        let now = counts_from.elapsed().as_secs_f64();
        let mut interval = before.next(now, totals(&traffic), &connection.named_paths());
        if traffic.is_omitting() {
            interval = interval.omitted();
        }
        // An interval that is cut off after a tenth of its time or less gets no line.
        if cause == Cause::Tick || interval.sum.seconds > every.as_secs_f64() / 10.0 {
            tell(&interval);
        }
        before = interval;
        match cause {
            Cause::Tick => {}
            Cause::Counts => {
                traffic.omit();
                counts_from = Instant::now();
                ticks = interval_at(counts_from + every, every);
                base = start(&traffic);
                before = base.clone();
            }
            Cause::Over => break false,
            Cause::Interrupted => break true,
        }
    };
    let times = (traffic.started(), counts_from, Instant::now());
    Ok(Ran { intervals, base, ours: traffic.figures(), interrupted, times })
}
