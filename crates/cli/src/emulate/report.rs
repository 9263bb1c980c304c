//! The statistics of the links once the commands have ended.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use anabranch_emulate::{Emulator, Lateness, LinkStats, RouteStats};
use anabranch_types::Time;
use serde::Serialize;

use super::table::Watch;
use crate::failure::Failure;
use crate::format::{self, three_decimals};

/// The report, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    version: &'static str,
    scenario: Option<String>,
    seed: u64,
    #[serde(serialize_with = "three_decimals")]
    seconds: f64,
    exit_code: Option<i32>,
    /// Whether the links behaved as configured, and if not, why.
    usable: bool,
    unusable_because: Option<String>,
    lateness: Late,
    /// Packets that the kernel dropped before they reached a link.
    unread: u64,
    paths: Vec<PathReport>,
    links: Vec<LinkReport>,
}

/// Lateness: how long after their due times packets were sent on, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Late {
    packets: u64,
    p50_us: u64,
    p99_us: u64,
    max_us: u64,
}

#[derive(Debug, Serialize)]
struct PathReport {
    name: String,
    client: Ipv4Addr,
    server: Ipv4Addr,
    /// Null where the kernel has no IPv6.
    client_ipv6: Option<Ipv6Addr>,
    server_ipv6: Option<Ipv6Addr>,
    /// Packets that arrived at an interface that was down.
    unsent: u64,
}

/// The counters of one direction of a link; bytes are those of IP packets.
#[derive(Debug, Serialize)]
struct LinkReport {
    name: String,
    #[serde(serialize_with = "three_decimals")]
    rate_mbps: f64,
    #[serde(serialize_with = "three_decimals")]
    delivered_mbps: f64,
    packets_in: u64,
    bytes_in: u64,
    packets_delivered: u64,
    bytes_delivered: u64,
    lost_random: u64,
    dropped_full: u64,
    dropped_early: u64,
    dropped_blackout: u64,
    dropped_too_long: u64,
    dropped_policed: u64,
    ecn_marks: u64,
    /// How long packets waited in the queue, milliseconds.
    #[serde(serialize_with = "three_decimals")]
    queue_mean_ms: f64,
    #[serde(serialize_with = "three_decimals")]
    queue_p95_ms: f64,
}

/// A run of `emulate` to report on.
pub(super) struct Run<'a> {
    pub(super) scenario: Option<String>,
    pub(super) seed: u64,
    pub(super) exit_code: Option<i32>,
    /// Largest lateness that is allowed for 99 % of the packets.
    pub(super) most_late: Duration,
    pub(super) emulator: &'a Emulator,
}

impl Report {
    /// Reports the links until now.
    ///
    /// # Errors
    /// When the system does not tell what it dropped.
    pub(super) fn new(run: Run<'_>) -> Result<(Self, Time, Vec<LinkStats>), Failure> {
        let Run { scenario, seed, exit_code, most_late, emulator } = run;
        let (now, links, routes) = (emulator.now(), emulator.links(), emulator.routes());
        let unread = emulator.unread().map_err(Failure::failed)?;
        let lateness = Late::of(&Lateness::merged(routes.iter().map(|route| &route.lateness)));
        let unusable_because = unusable(emulator, unread).or_else(|| lateness.excess(most_late));
        let report = Report {
            version: env!("CARGO_PKG_VERSION"),
            scenario,
            seed,
            seconds: now.since(Time::ZERO).as_secs_f64(),
            exit_code,
            usable: unusable_because.is_none(),
            unusable_because,
            lateness,
            unread,
            paths: paths(emulator, &routes),
            links: links.iter().map(|link| LinkReport::new(now, link)).collect(),
        };
        Ok((report, now, links))
    }

    /// Why the links did not behave as configured; `None` if they did.
    pub(super) fn warning(&self) -> Option<&str> {
        self.unusable_because.as_deref()
    }

    /// The links over the whole time, as a text table.
    pub(super) fn text(&self, watch: &Watch, now: Time, links: &[LinkStats]) -> String {
        let mut text = watch.headings() + "\n";
        for row in watch.whole(now, links) {
            text += &(watch.line(&row) + "\n");
        }
        let Late { packets, p50_us, p99_us, max_us } = self.lateness;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:.1} s; {} sent on, late by {p50_us} µs in the median, {p99_us} µs at p99, {max_us} µs at most",
            self.seconds,
            format::counted(packets, "packet")
        );
        text
    }
}

impl Late {
    fn of(lateness: &Lateness) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Late {
            packets: lateness.count(),
            p50_us: micros(lateness.quantile(0.5)),
            p99_us: micros(lateness.quantile(0.99)),
            max_us: micros(lateness.max()),
        }
    }

    /// Why the lateness is too large; `None` if it is not.
    fn excess(&self, most: Duration) -> Option<String> {
        let (late, most) = (self.p99_us, most.as_micros());
        (u128::from(late) > most).then(|| {
            format!(
                "1 % of packets were sent on more than {late} µs late, where {most} µs are allowed: this machine is \
                 too busy; --late allows more"
            )
        })
    }
}

/// Why packets did not pass the links as configured; `None` if they did.
fn unusable(emulator: &Emulator, unread: u64) -> Option<String> {
    if let Some(event) = emulator.failed_event() {
        return Some(event);
    }
    if !emulator.is_running() {
        return Some("the links stopped: a device could not be read".to_owned());
    }
    (unread > 0).then(|| {
        let packets = format::counted(unread, "packet");
        format!("{packets} dropped before they reached a link: this machine is too busy")
    })
}

fn paths(emulator: &Emulator, routes: &[RouteStats]) -> Vec<PathReport> {
    let path = |(path, ends): (&anabranch_emulate::PathEnds, &[RouteStats])| PathReport {
        name: path.name.clone(),
        client: path.client.v4,
        server: path.server.v4,
        client_ipv6: path.client.v6,
        server_ipv6: path.server.v6,
        unsent: ends.iter().map(|end| end.unsent).sum(),
    };
    emulator.paths().iter().zip(routes.chunks(2)).map(path).collect()
}

impl LinkReport {
    fn new(now: Time, stats: &LinkStats) -> Self {
        let link = &stats.link;
        let seconds = now.since(Time::ZERO).as_secs_f64().max(1e-9);
        LinkReport {
            name: stats.name.clone(),
            rate_mbps: stats.rate.as_mbps(),
            delivered_mbps: link.bytes_delivered as f64 * 8e-6 / seconds,
            packets_in: link.packets_in,
            bytes_in: link.bytes_in,
            packets_delivered: link.packets_delivered,
            bytes_delivered: link.bytes_delivered,
            lost_random: link.lost_random,
            dropped_full: link.dropped_full,
            dropped_early: link.dropped_early,
            dropped_blackout: link.dropped_blackout,
            dropped_too_long: link.dropped_too_long,
            dropped_policed: link.dropped_policed,
            ecn_marks: link.ecn_marks,
            queue_mean_ms: millis(stats.waits.mean()),
            queue_p95_ms: millis(stats.waits.quantile(0.95)),
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
