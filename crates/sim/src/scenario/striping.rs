//! Reads the keys of `tcp = { … }` for striping applications and for closed windows.

use anabranch_tcp::striping::{Estimate, RateSource, SocketBuffers, Striping};
use anabranch_tcp::{PersistTimer, TimerConfig};
use core::time::Duration;
use std::sync::Arc;

use super::error::Flaw;
use super::plan::PathPlan;
use super::reader::Section;
use crate::endpoint::{TcpProtocol, ToldRates};

/// Keys of connections that have a receive window of their own, which may close.
const SOCKETS: &[&str] = &["initial-persist", "max-persist", "window-updates"];
/// Keys of applications that stripe.
const STRIPING: &[&str] =
    &["resequencing-buffer", "low-water", "path-receive-buffer", "path-send-buffer"];
/// Keys of applications that stripe by rates.
const BY_RATE: &[&str] = &["estimator", "estimate-interval", "estimate-within-buffers"];
/// Profiles of applications that stripe.
const PROFILES: &str = "tcp:unaware, tcp:smart";

/// Applies the settings in the flow's table to `protocol`. `alone` is true if each path has a flow
/// of its own.
pub(super) fn read(
    table: &Section<'_>,
    protocol: &mut TcpProtocol,
    paths: &[PathPlan],
    alone: bool,
) {
    if protocol.meta.is_some() {
        for key in SOCKETS.iter().filter(|key| table.has(key)) {
            let allowed = "a protocol whose connections have buffers of their own";
            table.complain(key, "given for a protocol with shared buffers", allowed);
        }
    }
    let Some(striping) = &mut protocol.striping else {
        for key in STRIPING.iter().chain(BY_RATE).filter(|key| table.has(key)) {
            table.complain(key, "given for a protocol that does not stripe", PROFILES);
        }
        return;
    };
    if let Some(size) = table.size("resequencing-buffer") {
        striping.resequencing_buffer = size.as_bytes();
    }
    if let Some(size) = table.size("low-water") {
        striping.low_water = size.as_bytes();
    }
    striping.buffers = vec![SocketBuffers::default(); paths.len()];
    let mss = u64::from(protocol.config.mss);
    for key in ["path-receive-buffer", "path-send-buffer"] {
        if alone && table.has(key) {
            table.complain(key, "given beside per-path", "a flow over all its paths");
        }
        for (path, bytes) in sizes(table, key, paths, mss) {
            let Some(buffers) = striping.buffers.get_mut(path) else { continue };
            match key {
                "path-send-buffer" => buffers.send = Some(bytes),
                _ => buffers.receive = Some(bytes),
            }
        }
    }
    match &mut striping.striping {
        Striping::ByRate(estimate) => protocol.told = estimator(table, estimate, protocol.told),
        Striping::UntilFull => {
            for key in BY_RATE.iter().filter(|key| table.has(key)) {
                table.complain(key, "given for an application that knows no rates", "tcp:smart");
            }
        }
    }
}

/// Reads the table at `key`, which gives a size for each path. Returns the indices of the paths
/// with their sizes.
fn sizes(table: &Section<'_>, key: &str, paths: &[PathPlan], mss: u64) -> Vec<(usize, u64)> {
    let mut sizes = Vec::new();
    for (name, text, place) in table.free(key) {
        let at = format!("{}.{name}", table.path_of(key));
        let Some(path) = paths.iter().position(|path| path.name == name) else {
            let known: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
            table.report(Flaw::unknown(place, at, "path", &name, &known));
            continue;
        };
        let size = text.parse::<anabranch_types::DataSize>().ok();
        match size.filter(|size| size.as_bytes() >= mss) {
            Some(size) => sizes.push((path, size.as_bytes())),
            None => {
                let given = format!("'{text}' is not accepted");
                table.report(Flaw::other(place, at, given, "a size of one segment at least"));
            }
        }
    }
    sizes
}

/// Reads how path rates are estimated. Returns which link rates the application is told, if any.
fn estimator(
    table: &Section<'_>,
    estimate: &mut Estimate,
    told: Option<ToldRates>,
) -> Option<ToldRates> {
    if let Some(interval) = table.time("estimate-interval") {
        if interval < Duration::from_millis(1) {
            let given = table.text("estimate-interval").unwrap_or_default();
            table.refuse_value("estimate-interval", &given, "1ms or more");
        }
        estimate.interval = interval;
    }
    if let Some(within) = table.flag("estimate-within-buffers") {
        estimate.within_buffers = within;
    }
    // The rates are filled in later, when the links are known.
    let unknown = RateSource::Told(Arc::default());
    let (source, told) = match table.word("estimator") {
        Some("link") => (unknown, Some(ToldRates::BlackoutsUnseen)),
        Some("link-blackouts") => (unknown, Some(ToldRates::BlackoutsSeen)),
        Some("window") => (RateSource::Window, None),
        Some("acknowledged") => (RateSource::Acknowledged, None),
        _ => return told,
    };
    estimate.source = source;
    told
}

/// Reads the keys of the persist timer.
pub(super) fn persist(table: &Section<'_>, timers: &mut TimerConfig) {
    let (initial, most) = (table.time("initial-persist"), table.time("max-persist"));
    for (key, time) in [("initial-persist", initial), ("max-persist", most)] {
        if time.is_some_and(|time| time.is_zero()) {
            table.refuse_value(key, "0s", "a duration above zero");
        }
    }
    let given = timers.persist;
    let initial = initial.or(given.map(|given| given.initial));
    match (initial, most) {
        (Some(initial), most) => {
            let most = most.or(given.map(|given| given.most)).unwrap_or(timers.max_rto);
            if initial > most {
                let key =
                    if table.has("initial-persist") { "initial-persist" } else { "max-persist" };
                table.complain(
                    key,
                    "the first interval above the largest",
                    "initial-persist at most max-persist",
                );
            }
            timers.persist = Some(PersistTimer { initial, most });
        }
        (None, Some(_)) => {
            table.complain("max-persist", "given without initial-persist", "both, or neither");
        }
        (None, None) => {}
    }
}
