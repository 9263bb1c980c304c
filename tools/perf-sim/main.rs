//! How fast the simulator is: `cargo xtask perf sim`.
//!
//! Three workloads over a dumbbell of three links each way, beside ns-2 and ns-3 in the same run
//! where they are installed, and the cost of a packet-hop from 10 to 10 000 flows. All times are
//! processor time of whole runs, building the network included, best of several.

mod clock;
mod others;
mod ours;

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use others::Other;
use ours::Measured;

/// One of the workloads.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Name of the workload in reports.
    pub name: &'static str,
    /// Flows: each a sender and a receiver behind 1 ms links of 1 Gb/s, or as fast as the shared one.
    pub flows: u32,
    /// Rate of the shared link, which has 18 ms and a queue of one bandwidth-delay product.
    pub mbps: f64,
    /// Virtual time of a run.
    pub seconds: f64,
    /// Random loss at the end of the shared link.
    pub loss: f64,
}

const WORKLOADS: [Workload; 3] = [
    Workload { name: "a_10flows_10Mbps_300s", flows: 10, mbps: 10.0, seconds: 300.0, loss: 0.0 },
    Workload { name: "b_100flows_1Gbps_20s", flows: 100, mbps: 1e3, seconds: 20.0, loss: 0.0 },
    Workload { name: "c_1flow_100Mbps_loss1_100s", flows: 1, mbps: 1e2, seconds: 1e2, loss: 0.01 },
];
/// Flows and virtual seconds of the runs that show whether the cost of a packet-hop is flat.
const SCALES: [(u32, f64); 4] = [(10, 200.0), (100, 20.0), (1000, 4.0), (10_000, 2.0)];
/// Stations of the radio cells, which always have a message, and virtual seconds of their runs.
const CELLS: [(u32, u64); 2] = [(10, 400), (50, 100)];

const HELP: &str = "\
Measures the simulator's speed beside that of ns-2 and ns-3, where they are installed

Usage: cargo xtask perf sim [--json] [--runs N] [--alone]

  --json     print JSON instead of tables
  --runs N   take the best of N runs of each workload (3); ns-3 runs once, without workload b
  --alone    leave the other simulators out
";

impl Workload {
    /// The bandwidth-delay product in packets of 1040 bytes, over 40 ms; at least ten.
    pub fn queue(&self) -> u32 {
        ((self.mbps * 1e6 * 0.04 / 8.0 / 1040.0).ceil() as u32).max(10)
    }

    /// FLOWS MBPS SECONDS LOSS QUEUE, as the other simulators' programs take them.
    fn arguments(&self) -> [String; 5] {
        let numbers = [self.mbps, self.seconds, self.loss].map(|number| number.to_string());
        let [mbps, seconds, loss] = numbers;
        [self.flows.to_string(), mbps, seconds, loss, self.queue().to_string()]
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("perf sim: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let (mut json, mut runs, mut alone) = (false, 3, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = true,
            "--alone" => alone = true,
            "--runs" => {
                runs = arguments.next().ok_or("--runs needs a number")?.parse::<u32>()?.max(1)
            }
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => return Err(format!("unknown argument `{other}`\n\n{HELP}").into()),
        }
    }
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("perf-sim");
    let work = std::env::temp_dir();
    let idle = ours::bytes_per_idle_flow(10_000)?;
    let others = if alone { Vec::new() } else { Other::installed(&scripts, &work) };
    let mut workloads = Vec::new();
    for workload in &WORKLOADS {
        workloads.push(compare(workload, &others, runs)?);
    }
    let mut scales = Vec::new();
    for (flows, seconds) in SCALES {
        let mbps = f64::from(flows);
        let workload = Workload { name: "scale", flows, mbps, seconds, loss: 0.0 };
        scales.push((flows, best(&workload, runs)?));
    }
    let radios = radios(runs)?;
    let report = json!({
        "workloads": workloads,
        "radios": radios,
        "scales": scales.iter().map(scale).collect::<Vec<_>>(),
        "bytes_per_idle_flow": idle,
        "bytes_per_packet_in_flight": anabranch_sim::engine::BYTES_PER_PACKET,
    });
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print_tables(&report);
    }
    Ok(())
}

/// The fastest of several runs, which must all have the same digest.
fn best(workload: &Workload, runs: u32) -> Result<Measured, Box<dyn std::error::Error>> {
    let mut best = ours::run(workload)?;
    for _ in 1..runs {
        let again = ours::run(workload)?;
        if again.digest != best.digest {
            return Err(format!("two runs of {} differ", workload.name).into());
        }
        if again.seconds < best.seconds {
            best = again;
        }
    }
    Ok(best)
}

/// Compares our simulator with the others on one workload.
fn compare(
    workload: &Workload,
    others: &[Other],
    runs: u32,
) -> Result<Value, Box<dyn std::error::Error>> {
    let ours = best(workload, runs)?;
    let rate = ours.packet_hops as f64 / ours.seconds;
    let mut rows = vec![json!({
        "simulator": "anabranch", "seconds": ours.seconds, "data_packets": ours.data_packets,
        "packet_hops": ours.packet_hops, "packet_hops_per_second": rate,
        "digest": format!("{:016x}", ours.digest),
    })];
    for other in others {
        // A run of ns-3 takes minutes where the others take seconds.
        let slow = other.name == "ns-3";
        if slow && workload.mbps >= 1e3 {
            continue;
        }
        let tries = (0..if slow { 1 } else { runs }).filter_map(|_| other.run(workload));
        let Some(run) = tries.min_by(|a, b| a.seconds.total_cmp(&b.seconds)) else { continue };
        let theirs = run.packet_hops() as f64 / run.seconds;
        rows.push(json!({
            "simulator": other.name, "seconds": run.seconds, "data_packets": run.data_packets,
            "packet_hops": run.packet_hops(), "packet_hops_per_second": theirs,
            "ours_is_faster_by": rate / theirs,
        }));
    }
    Ok(json!({ "name": workload.name, "runs": rows }))
}

/// The fastest of several runs of a radio network: a saturated cell, or stations that move and route.
fn radio(
    (name, virtual_seconds): (&str, u64),
    run: impl Fn() -> Result<(u64, f64), Box<dyn std::error::Error>>,
    runs: u32,
) -> Result<Value, Box<dyn std::error::Error>> {
    let (events, mut seconds) = run()?;
    for _ in 1..runs {
        let again = run()?;
        if again.0 != events {
            return Err(format!("two runs of {name} differ").into());
        }
        seconds = seconds.min(again.1);
    }
    Ok(json!({
        "name": name, "events": events, "seconds": seconds,
        "events_per_second": events as f64 / seconds,
        "virtual_seconds_per_second": virtual_seconds as f64 / seconds,
    }))
}

/// Measures every radio network.
fn radios(runs: u32) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    let mut radios = Vec::new();
    for (stations, seconds) in CELLS {
        let name = format!("cell of {stations}");
        radios.push(radio((&name, seconds), || ours::run_cell(stations, seconds), runs)?);
    }
    radios.push(radio(("50 moving, DSR, TCP", 101), ours::run_mesh, runs)?);
    Ok(radios)
}

fn scale((flows, measured): &(u32, Measured)) -> Value {
    json!({
        "flows": flows,
        "ns_per_packet_hop": measured.seconds * 1e9 / measured.packet_hops as f64,
        "packet_hops": measured.packet_hops,
        "packets_in_flight": measured.in_flight,
    })
}

fn print_tables(report: &Value) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    println!("{:<27} {:<10} {:>8} {:>12} {:>8}", "workload", "simulator", "s", "M hops/s", "ratio");
    for workload in list(&report["workloads"]) {
        for run in list(&workload["runs"]) {
            let mega = number(&run["packet_hops_per_second"]) / 1e6;
            let ratio = run["ours_is_faster_by"].as_f64();
            let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.1}"));
            let name = workload["name"].as_str().unwrap_or_default();
            let simulator = run["simulator"].as_str().unwrap_or_default();
            let seconds = number(&run["seconds"]);
            println!("{name:<27} {simulator:<10} {seconds:>8.3} {mega:>12.2} {ratio:>8}");
        }
    }
    println!("\n{:>7} {:>9} {:>10}", "flows", "ns/hop", "in flight");
    for scale in list(&report["scales"]) {
        let nanos = number(&scale["ns_per_packet_hop"]);
        let (flows, flying) = (&scale["flows"], &scale["packets_in_flight"]);
        println!("{flows:>7} {nanos:>9.1} {flying:>10}");
    }
    println!("\n{:<20} {:>11} {:>14}", "radio network", "M events/s", "virtual s/s");
    for radio in list(&report["radios"]) {
        let mega = number(&radio["events_per_second"]) / 1e6;
        let pace = number(&radio["virtual_seconds_per_second"]);
        println!("{:<20} {mega:>11.2} {pace:>14.0}", radio["name"].as_str().unwrap_or_default());
    }
    println!("\nbytes per idle flow: {:.0}", number(&report["bytes_per_idle_flow"]));
    println!("bytes per packet in flight: {}", report["bytes_per_packet_in_flight"]);
}
