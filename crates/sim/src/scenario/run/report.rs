//! Makes the report of a finished run.

use anabranch_types::{Bitrate, Time};

use super::assemble::{Figures, Outcome, shut_windows};
use super::build::Live;
use super::series::Recorder;
use super::target::Target;
use crate::engine::{Engine, LinkId};
use crate::link::{Link, LinkCounters};
use crate::probe::Metric;
use crate::report::{FlowReport, LinkReport, RunReport, Samples, Scalar};
use crate::scenario::plan::{LinkPlan, Plan};
use crate::scenario::probes::MESH;
use crate::wireless::mesh::MeshCounters;

/// The report of `live`, which ran `plan`. The caller sets the point and the seed.
pub(super) fn report(plan: &Plan, live: &mut Live, recorder: Recorder) -> RunReport {
    let measured_from = Time::ZERO + plan.warm_up;
    let Live { engine, flows, .. } = &mut *live;
    let outcomes: Vec<Outcome> =
        flows.iter().map(|flow| Outcome::of(flow, engine, measured_from)).collect();
    let live = &*live;
    let mut report = RunReport {
        digest: live.engine.digest(),
        packet_hops: live.engine.packet_hops(),
        events: live.engine.events(),
        virtual_seconds: live.engine.now().as_secs_f64(),
        ..RunReport::default()
    };
    for (subject, target) in Target::all(plan) {
        for (metric, value) in figures(&target, &outcomes, live, measured_from) {
            add(&mut report, &recorder, &subject, metric, value);
        }
    }
    for (index, link) in plan.links.iter().enumerate() {
        let subject = format!("link.{}", link.name);
        for (metric, value) in link_figures(plan, live, index, link, recorder.mean_queue(index)) {
            add(&mut report, &recorder, &subject, metric, value);
        }
    }
    for (metric, value) in mesh_figures(live) {
        add(&mut report, &recorder, MESH, metric, value);
    }
    for (subject, metric) in &recorder.samples {
        let Some(target) = Target::of(plan, subject) else { continue };
        let chosen = target.flows();
        let chosen: Vec<&Outcome> = chosen.iter().filter_map(|flow| outcomes.get(*flow)).collect();
        if let Some(values) = Figures::new(&chosen).samples(metric) {
            let (subject, metric) = (subject.clone(), (*metric).to_owned());
            report.samples.push(Samples { subject, metric, values });
        }
    }
    report.series = recorder.series();
    report
}

/// Adds a figure, unless it is measured only on request and was not requested.
fn add(report: &mut RunReport, recorder: &Recorder, subject: &str, metric: &str, value: f64) {
    let wanted = Metric::named(metric).is_none_or(|metric| !metric.on_request)
        || recorder.figures.iter().any(|(of, figure)| of == subject && figure == metric)
        || recorder
            .samples
            .iter()
            .any(|(of, sample)| of == subject && starts_alike(sample, metric));
    if wanted {
        let (subject, metric) = (subject.to_owned(), metric.to_owned());
        report.scalars.push(Scalar { subject, metric, value });
    }
}

/// Whether `metric` is a statistic of the samples `sample`, as `block_delay_mean_s` is of
/// `block_delay_s`.
fn starts_alike(sample: &str, metric: &str) -> bool {
    sample.strip_suffix("_s").is_some_and(|stem| metric.starts_with(stem))
}

fn figures(
    target: &Target,
    outcomes: &[Outcome],
    live: &Live,
    measured_from: Time,
) -> Vec<(&'static str, f64)> {
    match target {
        Target::Flows(flows) => {
            let chosen: Vec<&Outcome> =
                flows.iter().filter_map(|flow| outcomes.get(*flow)).collect();
            Figures::new(&chosen).all()
        }
        Target::Paths(paths) => {
            let rate = |(flow, path): &(usize, usize)| outcomes.get(*flow)?.path_throughput(*path);
            let mut figures = vec![("throughput_mbps", paths.iter().filter_map(rate).sum())];
            let shut = |(flow, path): &(usize, usize)| outcomes.get(*flow)?.path_shut(*path);
            if let Some(shut) = paths.iter().map(shut).collect::<Option<Vec<_>>>() {
                figures.extend(shut_windows(shut.into_iter()));
            }
            figures
        }
        Target::Loads(loads) => {
            let rate = |load: &super::build::LiveLoad| {
                let end = load.stop.map_or(live.engine.now(), |stop| stop.min(live.engine.now()));
                let time = end.since(load.start.max(measured_from)).as_secs_f64();
                let bytes = load.bytes(&live.engine).saturating_sub(load.remembered);
                if time > 0.0 { bytes as f64 * 8e-6 / time } else { 0.0 }
            };
            let loads = loads.iter().filter_map(|load| live.loads.get(*load));
            vec![("throughput_mbps", loads.map(rate).sum())]
        }
        Target::Link(_) => Vec::new(),
    }
}

/// The report of every link. For the capacity, the rate and loss processes are computed again from
/// the seed.
pub(super) fn links(
    plan: &Plan,
    engine: &Engine,
    flows: &[FlowReport],
    seed: u64,
) -> Vec<LinkReport> {
    let first = flows.iter().map(|flow| flow.start).min().unwrap_or_default();
    let last = flows.iter().map(|flow| flow.last).max().unwrap_or_default();
    let forward = |index| {
        plan.flows.iter().flat_map(|flow| &flow.paths).any(|path| path.forward.contains(&index))
    };
    let link = |(index, link): (usize, &LinkPlan)| {
        let counters = engine.link(LinkId(index as u32)).map(|view| view.counters());
        let carries_data = forward(index);
        let walk = Link::<()>::new(&link.config, seed, &link.name).ok().filter(|_| carries_data);
        LinkReport {
            name: link.name.clone(),
            counters: counters.unwrap_or_default(),
            carries_data,
            capacity_bits: walk.map_or(0.0, |walk| walk.capacity_integral(first, last)),
        }
    };
    plan.links.iter().enumerate().map(link).collect()
}

fn link_figures(
    plan: &Plan,
    live: &Live,
    index: usize,
    link: &LinkPlan,
    mean_queue: Option<f64>,
) -> Vec<(&'static str, f64)> {
    let Some(view) = live.engine.link(LinkId(index as u32)) else { return Vec::new() };
    let (now, before) = (view.counters(), live.links.get(index).copied().unwrap_or_default());
    let count = |of: fn(&LinkCounters) -> u64| of(&now).saturating_sub(of(&before)) as f64;
    let serialised = count(|c| c.packets_serialised);
    let losses = count(|c| c.lost_random);
    let possible = bits(link, Time::ZERO + plan.warm_up, live.engine.now());
    let sent = count(|c| c.bytes_serialised) * 8.0;
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let mut figures = vec![
        ("utilisation", share(sent, possible)),
        ("sent_packets", count(|c| c.packets_in)),
        ("delivered_packets", count(|c| c.packets_delivered)),
        ("marks", count(|c| c.ecn_marks)),
        ("drops_queue", count(LinkCounters::dropped_by_queue)),
        ("drops_policed", count(|c| c.dropped_policed)),
        ("drops_blackout", count(|c| c.dropped_blackout)),
        ("drops_mtu", count(|c| c.dropped_too_long)),
        ("losses", losses),
        ("loss_share", share(losses, serialised)),
    ];
    figures.extend(mean_queue.map(|mean| ("queue_mean_packets", mean)));
    figures
}

/// Counters of a mesh's stations since the end of the warm-up.
fn mesh_figures(live: &Live) -> Vec<(&'static str, f64)> {
    let Some((stations, before)) = live.mesh else { return Vec::new() };
    let now = MeshCounters::read(&live.engine, stations);
    let since = |of: fn(&MeshCounters) -> u64| of(&now).saturating_sub(of(&before)) as f64;
    vec![
        ("routing_packets", since(|c| c.routing_transmissions)),
        ("routing_bytes", since(|c| c.routing_bytes)),
        ("route_requests", since(|c| c.limited_requests + c.requests)),
        ("forwarded_requests", since(|c| c.requests_forwarded)),
        ("link_failures", since(|c| c.link_failures)),
        ("copies", since(|c| c.copies)),
    ]
}

/// Bits that the link can send between two times at its nominal rate, without blackout times.
fn bits(link: &LinkPlan, from: Time, to: Time) -> f64 {
    let schedule = link.config.effective_rate();
    let steps = schedule.steps();
    let ends = steps.iter().skip(1).map(|(time, _)| *time).chain([Time::MAX]);
    let piece = |((start, rate), end): (&(Time, Bitrate), Time)| {
        let time = end.min(to).since((*start).max(from)).as_secs_f64();
        rate.as_bps() as f64 * time
    };
    steps.iter().zip(ends).map(piece).sum()
}
