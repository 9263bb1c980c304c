//! One of two paths goes dark for a long time, as in figure 12 of the pTCP paper. Delivery pauses
//! no longer than it takes to notice the dark path, and the path is used again soon after its
//! return.
//!
//! Each random setting is made from its number. `DARK=1000` runs 1000 of them (`--nocapture` shows
//! them), `DARK_AFTER=5000` runs those after number 5000, and `DARK_PROFILE=uncoded` uses another
//! profile.

mod support;

use anabranch_policy::{Axis, loss};
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{FlowPlan, Plan};
use anabranch_sim::traffic::Traffic;
use anabranch_types::{Bitrate, Rng};
use core::fmt;
use core::time::Duration;

use support::{Dice, go, in_tenths, links, sent};

/// Number of random settings in a usual run.
///
/// Of the first 800 settings and the thousand from 9001 on, four pause longer than is allowed here:
/// 604 by 1 %, 9100 by 21 %, and, without random loss, 9588 by 4 % and 9903 by .2 %. In 604 the
/// dark path loses packets before the dark time, and they are sent again during it. In 9100 the
/// other path loses a packet twice in a row.
const USUAL: u64 = 12;
/// More bytes than probes take in a tenth of a second: a path that sends this many carries data.
const CARRIES: u64 = 700;

/// Two paths, one of which goes dark.
#[derive(Clone, Debug)]
struct Setting {
    links: [String; 2],
    /// Index of the link that goes dark.
    dark: usize,
    /// Start and end of each dark time, ms.
    times: Vec<(u64, u64)>,
    /// Rate at which the application writes, bits per second; 0: as fast as possible.
    offered: u64,
}

/// The effects of one dark time.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// Longest time without a delivery.
    pause: Duration,
    /// The longest pause that is allowed.
    allowed: Duration,
    /// Time from the end of the dark time until the path carried data again; `None` if it did not.
    back: Option<Duration>,
}

impl Outcome {
    fn is_good(&self) -> bool {
        self.pause <= self.allowed && self.back.is_some_and(|back| back <= Duration::from_secs(2))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { pause, allowed, back } = self;
        let verdict = if self.is_good() { "" } else { ", TOO LONG" };
        write!(f, "pause {pause:.3?} of {allowed:.3?}, back after {back:?}{verdict}")
    }
}

impl Setting {
    /// A setting of two `links`; the one with index `dark` goes dark at `times`, in ms.
    fn new(links: [&str; 2], dark: usize, times: &[(u64, u64)]) -> Self {
        let windows: Vec<_> =
            times.iter().map(|(start, end)| format!("{start}ms-{end}ms")).collect();
        let mut links = links.map(str::to_owned);
        links[dark] += &format!(",blackout={}", windows.join("+"));
        Setting { links, dark, times: times.to_vec(), offered: 0 }
    }

    fn survivor(&self) -> usize {
        1 - self.dark
    }

    fn plan(&self, profile: &str) -> Plan {
        let end = self.times.iter().map(|(_, end)| *end).max().unwrap_or_default();
        let texts = self.links.each_ref().map(String::as_str);
        let mut flow = FlowPlan::core(support::profile(profile));
        flow.stop = Some(Duration::from_millis(end + 4000));
        if self.offered > 0 {
            let [on, off] = [3600.0, 1e-6].map(Duration::from_secs_f64);
            flow.traffic = Traffic::OnOff { on, off, rate: Some(Bitrate::from_bps(self.offered)) };
        }
        let plan = Plan::parallel(links(&texts)).within(Duration::from_secs(900));
        let survivor = format!("flow/{}", self.survivor());
        in_tenths(plan.flow(flow)).record(&survivor, "srtt_s", Duration::from_millis(100))
    }

    /// Runs the setting and checks that everything arrives; returns the outcome of every dark time.
    fn look(&self, profile: &str, seed: u64) -> Vec<Outcome> {
        let plan = self.plan(profile);
        let whole = go(&plan, seed);
        let early = |until: u64, from: u64| {
            let plan = plan.clone().within(Duration::from_millis(until));
            plan.after(Duration::from_millis(from)).run(seed).expect("it runs")
        };
        self.times.iter().map(|times| self.outcome(profile, &whole, *times, &early)).collect()
    }

    /// The outcome of one dark time. `early(until, from)` gives the same run until `until`, with
    /// pauses counted from `from` on, both in ms.
    fn outcome(
        &self,
        profile: &str,
        whole: &RunReport,
        (start, end): (u64, u64),
        early: &dyn Fn(u64, u64) -> RunReport,
    ) -> Outcome {
        // A path that is dark from the start delays nothing until there is a connection.
        let from = start.max(if start == 0 { 2000 } else { 0 });
        // Three seconds later nothing more has been heard from the path, so its probe timeout is
        // still the one that applied.
        let noticed = early(from + 3000, from);
        let lossless = !self.links[self.survivor()].contains("loss");
        let whole_time = lossless.then(|| early(end, from));
        let pause = whole_time.as_ref().unwrap_or(&noticed).flows[0].longest_gap;
        let allowed = probe_timeout(profile, &noticed, self.dark)
            + self.round_trip(&noticed, start) * 2
            + Duration::from_millis(50);
        let bins = (end as usize).div_ceil(100)..(end as usize).div_ceil(100) + 30;
        let first = bins.clone().find(|bin| sent(whole, self.dark, *bin..bin + 1) >= CARRIES);
        let back = first.map(|bin| Duration::from_millis(100 * (bin - bins.start + 1) as u64));
        Outcome { pause, allowed, back }
    }

    /// The longest smoothed round-trip time of the other path since half a second before the dark
    /// time.
    fn round_trip(&self, report: &RunReport, start: u64) -> Duration {
        let subject = format!("flow/{}", self.survivor());
        let series = report.series(&subject, "srtt_s").expect("it was recorded");
        let points = series.times.iter().zip(&series.values);
        let lately = points.filter(|(at, _)| **at + 0.5 >= start as f64 / 1000.0);
        let stats = &report.flows[0].sender.as_ref().expect("of a core flow").paths;
        let last = stats[self.survivor()].rtt.smoothed;
        Duration::from_secs_f64(lately.map(|(_, value)| *value).fold(0.0, f64::max)).max(last)
    }
}

/// The sender's probe timeout on a path at the end of the run.
fn probe_timeout(profile: &str, report: &RunReport, path: usize) -> Duration {
    let detector =
        loss::build_detector(support::profile(profile).policy(Axis::LossDetector)).unwrap();
    detector.timeout(&report.flows[0].sender.as_ref().expect("of a core flow").paths[path].rtt)
}

impl Dice {
    /// A random path. With `slow`, it has a fifth of its rate, but at least 0.3 Mb/s, from 4 s to
    /// 30 s.
    fn link(&mut self, slow: bool) -> String {
        let (delay, rate) = (self.spread(10.0..400.0), self.spread(0.5..50.0));
        let mut text = format!("rate={rate:.3}mbit");
        if slow {
            text += &format!("/{:.3}mbit@4s/{rate:.3}mbit@30s", (rate / 5.0).max(0.3));
        }
        text += &format!(",delay={delay:.1}ms");
        if self.0.chance(0.5) {
            text += &format!(",loss={:.2}%", self.within(0.0..2.0));
        }
        text
    }

    fn setting(&mut self) -> Setting {
        let dark = self.0.below(2) as usize;
        let kind = self.0.below(5);
        let start = self.within(6000.0..12_000.0) as u64;
        let again = start + 27_000 + self.within(2000.0..8000.0) as u64;
        let times = match kind {
            0 => vec![(0, 25_000)],
            1 => vec![(start, start + 25_000), (again, again + 10_000)],
            _ => vec![(start, start + 25_000)],
        };
        let texts = [0, 1].map(|index| self.link(kind == 2 && index != dark));
        let offered = if kind == 3 { self.spread(1e5..1e6) as u64 } else { 0 };
        Setting { offered, ..Setting::new(texts.each_ref().map(String::as_str), dark, &times) }
    }
}

/// Start and end of the dark time in the paper's figure, ms.
const FIGURE: (u64, u64) = (25_000, 50_000);
/// Links of the two paths in the paper's figure.
const PAPER: [&str; 2] = ["rate=2mbit,delay=200ms", "rate=5mbit,delay=50ms"];

/// The links, the index of the one that goes dark, and the dark times in ms.
type Row = ([&'static str; 2], usize, &'static [(u64, u64)]);

/// Settings chosen by hand.
const TABLE: &[Row] = &[
    (PAPER, 0, &[FIGURE]),
    (PAPER, 1, &[FIGURE]),
    (PAPER, 0, &[(0, 25_000)]),
    (PAPER, 1, &[(0, 25_000)]),
    (PAPER, 0, &[(10_000, 35_000), (38_000, 63_000)]),
    (PAPER, 1, &[(10_000, 35_000), (38_000, 63_000)]),
    // The lowest and the highest rate, combined with the shortest and the longest delay.
    (["rate=500kbit,delay=10ms", "rate=50mbit,delay=400ms"], 0, &[(10_000, 35_000)]),
    (["rate=500kbit,delay=10ms", "rate=50mbit,delay=400ms"], 1, &[(10_000, 35_000)]),
    (["rate=500kbit,delay=400ms", "rate=50mbit,delay=10ms"], 0, &[(10_000, 35_000)]),
    (["rate=500kbit,delay=400ms", "rate=50mbit,delay=10ms"], 1, &[(10_000, 35_000)]),
    // The path that stays up is slow from before the dark time until near its end.
    (
        ["rate=5mbit/500kbit@4s/5mbit@30s,delay=50ms", "rate=5mbit,delay=50ms"],
        1,
        &[(10_000, 35_000)],
    ),
    // Both paths lose packets.
    (["rate=2mbit,delay=200ms,loss=0.5%", "rate=5mbit,delay=50ms,loss=1%"], 0, &[(10_000, 35_000)]),
    (["rate=2mbit,delay=200ms,loss=0.5%", "rate=5mbit,delay=50ms,loss=1%"], 1, &[(10_000, 35_000)]),
    (["rate=10mbit,delay=20ms,loss=2%", "rate=10mbit,delay=20ms,loss=2%"], 0, &[(10_000, 35_000)]),
];

#[test]
fn one_dark_path_pauses_the_other_briefly() {
    let rows = (1..).zip(TABLE).filter(|(number, (links, dark, times))| {
        !is_well(*number, &Setting::new(*links, *dark, times), "ptcp")
    });
    let bad: Vec<u64> = rows.map(|(number, _)| number).collect();
    assert!(bad.is_empty(), "rows {bad:?} of the table");
}

/// Runs a setting and returns whether all outcomes are good.
fn is_well(number: u64, setting: &Setting, profile: &str) -> bool {
    println!("setting {number}: {setting:?}");
    let outcomes = setting.look(profile, number);
    outcomes.iter().for_each(|outcome| println!("  {outcome}"));
    outcomes.iter().all(Outcome::is_good)
}

#[test]
fn random_darkness_pauses_briefly() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let profile = std::env::var("DARK_PROFILE").unwrap_or("ptcp".to_owned());
    let done = number("DARK_AFTER").unwrap_or(0);
    let all = done + 1..=done + number("DARK").unwrap_or(USUAL);
    let bad: Vec<u64> = all
        .filter(|number| {
            let setting = Dice(Rng::substream(*number, "dark")).setting();
            !is_well(*number, &setting, &profile)
        })
        .collect();
    assert!(bad.is_empty(), "settings {bad:?}");
}
