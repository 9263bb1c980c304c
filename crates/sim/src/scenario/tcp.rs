//! Reads `tcp = { … }`, the options of TCP connections.

use anabranch_policy::view::MAX_PATHS;
use anabranch_policy::{Axis, CongestionController, PolicySpec};
use anabranch_tcp::meta::{Join, MetaConfig};
use anabranch_tcp::{Config, LossRecovery, WindowUpdates};
use std::sync::Arc;

use super::error::Flaw;
use super::plan::PathPlan;
use super::profiles::control;
use super::reader::Section;
use super::striping;
use crate::endpoint::TcpProtocol;

/// Initial receive buffer with autotuning, bytes. It is half of the 128 KiB that tcp_rmem allows at
/// first.
pub(super) const INITIAL_RECEIVE_BUFFER: u64 = 64 << 10;

/// Keys of protocols that send one stream over several paths.
const SEVERAL: &[&str] = &[
    "scheduler",
    "recovery",
    "join",
    "coupled",
    "couple-shared",
    "backup",
    "strip-options",
    "buffers-per-subflow",
    "autotune",
    "initial-receive-buffer",
    "close",
    "most-subflows",
];

/// The protocol with the changes of the flow's section. `backup` and `strip-options` may name the
/// `paths`.
pub(super) fn read(
    section: &Section<'_>,
    protocol: TcpProtocol,
    paths: &[PathPlan],
) -> TcpProtocol {
    if !section.has("tcp") {
        return protocol;
    }
    let Some(table) = section.table("tcp") else { return protocol };
    let mut protocol = protocol;
    let config = Arc::make_mut(&mut protocol.config);
    sizes(&table, config);
    timers(&table, config);
    mechanisms(&table, config);
    if let Some(notices) = table.flag("loss-notices") {
        protocol.loss_notices = notices;
    }
    if let Some(jitter) = table.time("send-jitter") {
        protocol.send_jitter = jitter;
    }
    if let Some(control) = control(&table, "congestion", config.mss) {
        protocol.control = control;
    }
    let alone = section.flag("per-path").unwrap_or(false);
    match &mut protocol.meta {
        Some(meta) => {
            several(&table, meta, config);
            autotune(&table, meta);
            if alone {
                for key in ["backup", "strip-options"].into_iter().filter(|key| table.has(key)) {
                    table.complain(key, "given beside per-path", "a flow over all its paths");
                }
            }
            meta.backups = chosen(&table, "backup", paths).unwrap_or(meta.backups);
            protocol.stripped = chosen(&table, "strip-options", paths).unwrap_or(protocol.stripped);
            if protocol.stripped != 0 && !config.handshake {
                table.complain("strip-options", "given without a handshake", "handshake = true");
            }
        }
        None => {
            for key in SEVERAL.iter().filter(|key| table.has(key)) {
                table.complain(
                    key,
                    "given for a protocol that has no shared buffers",
                    "tcp:mptcp, tcp:mptcp-linux, tcp:parallel, tcp:ptcp",
                );
            }
        }
    }
    coupling(&table, &protocol, paths);
    striping::read(&table, &mut protocol, paths, alone);
    protocol
}

/// If subflows that share a bottleneck are to be coupled, checks that a congestion control uses the
/// state of the other subflows.
fn coupling(table: &Section<'_>, protocol: &TcpProtocol, paths: &[PathPlan]) {
    let couples = |spec: &PolicySpec| {
        let mss = u64::from(protocol.config.mss);
        let control = protocol.registry.build_for::<dyn CongestionController>(spec, mss);
        control.is_ok_and(|control| control.reads_siblings())
    };
    let of_paths = paths.iter().filter_map(|path| path.congestion.as_ref());
    let wanted = protocol.meta.as_ref().is_some_and(|meta| meta.couple_shared);
    if wanted && !of_paths.chain([&protocol.control]).any(couples) {
        table.complain(
            "couple-shared",
            "no path's congestion control is a coupled one",
            "congestion = \"lia\", \"olia\", \"balia\", \"mveno\" or \"wvegas\"",
        );
    }
}

/// The paths that `key` names, as a bit mask of their indices.
fn chosen(table: &Section<'_>, key: &str, paths: &[PathPlan]) -> Option<u16> {
    let mut chosen = 0;
    for (name, place) in table.names(key)? {
        let found = paths.iter().take(MAX_PATHS).position(|path| path.name == name);
        match found {
            Some(index) => chosen |= 1 << index,
            None => {
                let known: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
                table.report(Flaw::unknown(place, table.path_of(key), "path", &name, &known));
            }
        }
    }
    Some(chosen)
}

/// Reads whether the buffers grow, and sets the initial size of the receive buffer if they do.
fn autotune(table: &Section<'_>, meta: &mut MetaConfig) {
    match table.flag("autotune") {
        Some(true) => meta.autotune = meta.autotune.or(Some(INITIAL_RECEIVE_BUFFER)),
        Some(false) => meta.autotune = None,
        None => {}
    }
    if meta.autotune.is_some() && meta.buffers_per_subflow {
        let fix = "autotune = false, or no buffers-per-subflow";
        table.complain("buffers-per-subflow", "given beside autotune", fix);
    }
    if meta.autotune.is_some() && !meta.subflow.timestamps {
        let key = if table.has("autotune") { "autotune" } else { "timestamps" };
        table.complain(key, "buffers are tuned by timestamps", "timestamps, or no autotune");
    }
    let key = "initial-receive-buffer";
    let Some(size) = table.size(key) else { return };
    let given = table.text(key).unwrap_or_default();
    match &mut meta.autotune {
        None => table.complain(key, "given without autotune", "autotune = true"),
        Some(_)
            if size.as_bytes() < u64::from(meta.subflow.mss)
                || size.as_bytes() > meta.receive_buffer =>
        {
            table.refuse_value(key, &given, "one segment at least, and at most the receive buffer");
        }
        Some(initial) => *initial = size.as_bytes(),
    }
}

/// Reads the options of protocols that send one stream over several paths. Buffer sizes are those
/// of the shared buffers.
fn several(table: &Section<'_>, meta: &mut MetaConfig, config: &Config) {
    meta.subflow = config.clone();
    if table.has("receive-buffer") {
        meta.receive_buffer = config.receive_buffer;
    }
    if table.has("send-buffer") {
        meta.send_buffer = config.send_buffer;
    }
    policy(table, Axis::Scheduler, &mut meta.scheduler);
    policy(table, Axis::Recovery, &mut meta.recovery);
    match table.word("join") {
        Some("after-first") => meta.join = Join::AfterFirst,
        Some("all-at-once") => meta.join = Join::AllAtOnce,
        Some("before-data") => meta.join = Join::BeforeData,
        _ => {}
    }
    if let Some(coupled) = table.flag("coupled") {
        meta.coupled = coupled;
    }
    if let Some(shared) = table.flag("couple-shared") {
        meta.couple_shared = shared;
    }
    if meta.couple_shared && !config.timestamps {
        table.complain("couple-shared", "bottlenecks are found by timestamps", "timestamps = true");
    }
    if let Some(per_subflow) = table.flag("buffers-per-subflow") {
        meta.buffers_per_subflow = per_subflow;
    }
    if let Some(close) = table.flag("close") {
        meta.close = close;
    }
    if let Some(most) = table.count("most-subflows").and_then(|most| u8::try_from(most).ok()) {
        meta.most_subflows = Some(most);
        if !config.handshake {
            table.complain("most-subflows", "given without a handshake", "handshake = true");
        }
    }
}

/// Replaces a policy by the one that the key of its axis names. Reports it if it cannot be built.
fn policy(table: &Section<'_>, axis: Axis, policy: &mut PolicySpec) {
    let Some(text) = table.text(axis.name()) else { return };
    let check = |spec: PolicySpec| table.registry().check(axis, &spec).map(|()| spec);
    match text.parse::<PolicySpec>().and_then(check) {
        Ok(spec) => *policy = spec,
        Err(error) => table.complain(axis.name(), error.to_string(), ""),
    }
}

fn sizes(table: &Section<'_>, config: &mut Config) {
    let set = |key: &str, field: &mut u32| {
        if let Some(value) = table.count(key).and_then(|value| u32::try_from(value).ok()) {
            *field = value;
        }
    };
    set("mss", &mut config.mss);
    set("header", &mut config.wire.header_bytes);
    set("timestamp-bytes", &mut config.wire.timestamp_bytes);
    set("sack-bytes", &mut config.wire.sack_block_bytes);
    set("dup-threshold", &mut config.dup_threshold);
    for (key, field) in
        [("receive-buffer", &mut config.receive_buffer), ("send-buffer", &mut config.send_buffer)]
    {
        let Some(size) = table.size(key) else { continue };
        if size.as_bytes() < u64::from(config.mss) {
            let given = table.text(key).unwrap_or_default();
            table.refuse_value(key, &given, "one segment at least");
        }
        *field = size.as_bytes();
    }
}

fn timers(table: &Section<'_>, config: &mut Config) {
    let timers = &mut config.timers;
    for (key, field) in [
        ("min-rto", &mut timers.min_rto),
        ("max-rto", &mut timers.max_rto),
        ("initial-rto", &mut timers.initial_rto),
        ("granularity", &mut timers.granularity),
        ("ack-timer", &mut config.delayed_ack.timeout),
    ] {
        let Some(time) = table.time(key) else { continue };
        if time.is_zero() {
            table.refuse_value(key, "0s", "a duration above zero");
        }
        *field = time;
    }
    if timers.min_rto > timers.max_rto {
        table.complain("min-rto", "above max-rto", "min-rto at most max-rto");
    }
    striping::persist(table, timers);
    if let Some(limit) = table.count("give-up-after").and_then(|limit| u32::try_from(limit).ok()) {
        timers.give_up_after = Some(limit);
    }
    if let Some(every) = table.count("delayed-ack").and_then(|every| u32::try_from(every).ok()) {
        config.delayed_ack.every = every;
        if config.delayed_ack.timeout.is_zero() {
            config.delayed_ack.timeout = core::time::Duration::from_millis(100);
        }
    }
}

fn mechanisms(table: &Section<'_>, config: &mut Config) {
    for (key, field) in [
        ("timestamps", &mut config.timestamps),
        ("ecn", &mut config.ecn),
        ("prr", &mut config.prr),
        ("rack", &mut config.rack),
        ("undo", &mut config.undo),
        ("limited-transmit", &mut config.limited_transmit),
        ("handshake", &mut config.handshake),
        ("rate-samples", &mut config.rate_samples),
    ] {
        if let Some(value) = table.flag(key) {
            *field = value;
        }
    }
    config.window_updates = match table.word("window-updates") {
        Some("each") => WindowUpdates::Each,
        Some("opening") => WindowUpdates::Opening,
        _ => config.window_updates,
    };
    config.recovery = match table.flag("sack") {
        Some(false) => LossRecovery::NewReno,
        Some(true) if config.recovery == LossRecovery::NewReno => LossRecovery::Sack,
        _ => config.recovery,
    };
}
