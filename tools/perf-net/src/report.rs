//! Medians and ratios, as a table or as JSON.

use core::fmt;

use serde::Serialize;

use crate::aead::Rate;
use crate::crowd::Crowd;
use crate::run::{Load, Options, Sample, Stack, Subject};

/// A subject and its transfers.
#[derive(Debug)]
pub struct Series {
    pub subject: Subject,
    pub samples: Vec<Sample>,
}

impl Series {
    /// No transfers yet.
    pub fn new(subject: Subject) -> Self {
        Series { subject, samples: Vec::new() }
    }
}

/// One row: medians over the rounds.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: String,
    gbps: f64,
    gbps_min: f64,
    gbps_max: f64,
    sender_cpu_s_per_gb: f64,
    receiver_cpu_s_per_gb: f64,
    /// CPU time of both sides for the bytes of a full packet, microseconds.
    cpu_us_per_packet: f64,
    /// Rate over quinn's median in this run and under the same load.
    over_quinn: Option<f64>,
    /// quinn's CPU time per byte over this row's.
    cpu_advantage: Option<f64>,
    /// Rate over the bare cipher's with the longest packets measured.
    over_aead: Option<f64>,
    /// CPU time per byte of the roofline with the same repairs, over this row's.
    of_roofline: Option<f64>,
}

/// Everything measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    bytes: u64,
    rounds: usize,
    udp_payload: u16,
    rows: Vec<Row>,
    aead: Vec<Rate>,
    crowd: Option<Crowd>,
}

impl Report {
    /// Medians of `series`, beside quinn's and the roofline's of the same load if they were run.
    pub fn new(
        options: &Options,
        series: &[Series],
        aead: Vec<Rate>,
        crowd: Option<Crowd>,
    ) -> Self {
        let bare = aead.iter().max_by_key(|rate| rate.length).map(|rate| rate.seal_gbps);
        let rows = series.iter().map(|entry| {
            let load = entry.subject.load;
            let beside = |is: &dyn Fn(&Stack) -> bool| {
                series.iter().find(|other| other.subject.load == load && is(&other.subject.stack))
            };
            let quinn = beside(&|stack| matches!(stack, Stack::Quinn));
            let repairs = entry.subject.name().contains("repairs");
            let least =
                beside(&|stack| matches!(stack, Stack::Roofline { coded } if *coded == repairs));
            let cpu = |entry: &Series| median(entry, Sample::cpu_per_gb);
            Row {
                over_quinn: quinn
                    .map(|quinn| median(entry, Sample::gbps) / median(quinn, Sample::gbps)),
                cpu_advantage: quinn.map(|quinn| cpu(quinn) / cpu(entry)),
                of_roofline: least.map(|least| cpu(least) / cpu(entry)),
                over_aead: bare
                    .filter(|_| load != Load::Paced)
                    .map(|bare| median(entry, Sample::gbps) / bare),
                ..row(entry)
            }
        });
        let rows = rows.collect();
        let (bytes, rounds, udp_payload) = (options.bytes, options.rounds, options.payload);
        Report { bytes, rounds, udp_payload, rows, aead, crowd }
    }
}

fn row(entry: &Series) -> Row {
    let per_gb = |cpu: f64, sample: &Sample| cpu / (sample.bytes as f64 * 1e-9);
    let rates = || entry.samples.iter().map(Sample::gbps);
    Row {
        name: entry.subject.name(),
        gbps: median(entry, Sample::gbps),
        gbps_min: rates().fold(f64::INFINITY, f64::min),
        gbps_max: rates().fold(0.0, f64::max),
        sender_cpu_s_per_gb: median(entry, |sample| per_gb(sample.sender_cpu, sample)),
        receiver_cpu_s_per_gb: median(entry, |sample| per_gb(sample.receiver_cpu, sample)),
        cpu_us_per_packet: median(entry, Sample::cpu_per_packet),
        over_quinn: None,
        cpu_advantage: None,
        over_aead: None,
        of_roofline: None,
    }
}

fn median(entry: &Series, of: impl Fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = entry.samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = self.bytes >> 20;
        writeln!(
            f,
            "{mebibytes} MiB over loopback, one stream, UDP payload {} B where none is named, medians of {} runs",
            self.udp_payload, self.rounds
        )?;
        writeln!(
            f,
            "{:<32} {:>6} {:>15} {:>10} {:>10} {:>9} {:>8} {:>8} {:>8} {:>9}",
            "",
            "Gb/s",
            "[min-max]",
            "tx s/GB",
            "rx s/GB",
            "us/packet",
            "÷ quinn",
            "CPU adv.",
            "÷ AEAD",
            "of least"
        )?;
        for row in &self.rows {
            let ratio =
                |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
            writeln!(
                f,
                "{:<32} {:>6.2} {:>15} {:>10.3} {:>10.3} {:>9.2} {:>8} {:>8} {:>8} {:>9}",
                row.name,
                row.gbps,
                format!("[{:.2}-{:.2}]", row.gbps_min, row.gbps_max),
                row.sender_cpu_s_per_gb,
                row.receiver_cpu_s_per_gb,
                row.cpu_us_per_packet,
                ratio(row.over_quinn),
                ratio(row.cpu_advantage),
                ratio(row.over_aead),
                ratio(row.of_roofline)
            )?;
        }
        for rate in &self.aead {
            writeln!(
                f,
                "ring AES-256-GCM, {} B: {:.1} Gb/s, {:.0} ns a packet",
                rate.length, rate.seal_gbps, rate.seal_ns
            )?;
        }
        if let Some(crowd) = &self.crowd {
            writeln!(
                f,
                "{} connections at once: {:.2} Gb/s on one core, {:.2} on two, {:.2} times as many",
                crowd.connections, crowd.one_core_gbps, crowd.two_cores_gbps, crowd.ratio
            )?;
        }
        Ok(())
    }
}
