//! The computations whose digests must agree everywhere.
//!
//! A case takes nothing and gives a 64-bit digest of integers, or of floating-point numbers bit by
//! bit. It runs in an interpreter too, ten to fifty times slower than natively: keep a case below
//! a hundred milliseconds or so of optimised native time.

use std::time::Duration;

use anabranch_core::profiles::Profile;
use anabranch_fec::reed_solomon::{self, Decoder};
use anabranch_sim::link::{Link, LinkConfig, LinkOutput};
use anabranch_sim::scenario::{FlowPlan, Plan};
use anabranch_types::{Bitrate, DataSize, Ecn, Rng, Time, math};

use crate::{Digest, engine};

/// One computation.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name of the case, without spaces.
    pub name: &'static str,
    /// Computes the digest of the case.
    pub run: fn() -> u64,
}

/// All cases, in the order of the golden file.
pub const CASES: &[Case] = &[
    Case { name: "types.rng", run: random_streams },
    Case { name: "types.math", run: mathematics },
    Case { name: "types.units", run: units },
    Case { name: "fec.reed_solomon", run: reed_solomon },
    Case { name: "sim.links", run: links },
    Case { name: "sim.anabranch", run: || transfer("anabranch") },
    Case { name: "sim.mplot", run: || transfer("mplot") },
    Case { name: "sim.uncoded", run: || transfer("uncoded") },
    Case { name: "engine.tcp", run: engine::tcp },
    Case { name: "engine.core", run: engine::core },
    Case { name: "engine.mixed", run: engine::mixed },
];

/// Draws of every kind from two named streams.
fn random_streams() -> u64 {
    let mut digest = Digest::default();
    for name in ["link.lte.loss", "link.satellite.loss"] {
        let mut rng = Rng::substream(1, name);
        for bound in 1..1000 {
            digest.integer(rng.next_u64());
            digest.integer(u64::from(rng.next_u32()));
            digest.integer(rng.below(bound));
            digest.integer(u64::from(rng.chance(0.3)));
            digest.float(rng.exponential(0.25));
        }
        let mut bytes = [0; 37];
        rng.fill(&mut bytes);
        digest.bytes(&bytes);
    }
    digest.finish()
}

/// Every pinned function over twelve decades, each bit of the results.
fn mathematics() -> u64 {
    let mut digest = Digest::default();
    let mut rng = Rng::substream(1, "math");
    for _ in 0..1000 {
        let x = math::pow(10.0, rng.uniform() * 12.0 - 6.0);
        let y = rng.uniform() * 8.0 - 4.0;
        for value in [math::ln(x), math::exp(y), math::pow(x, y), math::cbrt(x), math::sqrt(x)] {
            digest.float(value);
        }
        digest.float(math::ln_gamma(x));
    }
    for k in 0..=255 {
        digest.float(math::binomial(255, 0.07, k));
        digest.float(math::binomial_below(255, 0.07, k));
    }
    digest.finish()
}

/// Rates, sizes and times, where pointer width or rounding might show.
fn units() -> u64 {
    let mut digest = Digest::default();
    let mut rng = Rng::substream(1, "units");
    let mut time = Time::ZERO;
    for _ in 0..1000 {
        let rate = Bitrate::from_mbps(0.001 + rng.exponential(50.0));
        let size = DataSize::from_bytes(1 + rng.below(1 << 40));
        let duration = rate.time_to_send(size.as_bytes());
        time += duration;
        digest.integer(rate.mul_f64(1.25).as_bps());
        digest.integer(time.as_nanos());
        digest.integer(rate.bytes_in(duration));
        digest.integer(Bitrate::from_transfer(size.as_bytes(), duration).as_bps());
    }
    digest.finish()
}

/// Repairs of blocks of many shapes, and the sources rebuilt from them. Natively the vector kernels
/// run, in wasm the portable one.
fn reed_solomon() -> u64 {
    let mut digest = Digest::default();
    let mut decoder = Decoder::new();
    let mut rng = Rng::substream(1, "blocks");
    for (sources, repairs) in [(1, 1), (7, 3), (20, 5), (50, 13), (128, 127)] {
        let length = 1 + rng.below(300) as usize;
        let sources: Vec<Vec<u8>> = (0..sources)
            .map(|_| {
                let mut source = vec![0; rng.below(length as u64 + 1) as usize];
                rng.fill(&mut source);
                source
            })
            .collect();
        let views: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut repairs = vec![vec![0; length]; repairs];
        let mut buffers: Vec<&mut [u8]> = repairs.iter_mut().map(Vec::as_mut_slice).collect();
        reed_solomon::encode(0, &views, &mut buffers).expect("the block is within the limits");
        repairs.iter().for_each(|repair| digest.bytes(repair));

        let lost = repairs.len().min(sources.len());
        let known = (0..).zip(views.iter().copied()).skip(lost);
        let repairs = (0..).zip(repairs.iter().map(Vec::as_slice));
        let recovered = decoder
            .decode(sources.len(), length, known, repairs)
            .expect("there are as many symbols as sources");
        for (index, symbol) in recovered {
            digest.integer(u64::from(index));
            digest.bytes(symbol);
        }
    }
    digest.finish()
}

/// Every arrival and drop on links that differ in loss, queue, jitter and rate changes.
fn links() -> u64 {
    let mut digest = Digest::default();
    for text in [
        "rate=10mbit,delay=20ms,loss=2%,jitter=3ms",
        "rate=8mbit,delay=40ms,loss=markov:5%/35%@25ms,ecn",
        "rate=9mbit,delay=5ms,loss=ge:1%/20%,red,blackout=100ms-200ms",
        "rate=12mbit/3mbit@150ms,delay=30ms,loss=1%/20%@250ms,jitter=9ms,reorder,buffer=20p",
    ] {
        let config: LinkConfig = text.parse().expect("the description is valid");
        let link = Link::new(&config, 1, text).expect("the description is valid");
        drive(link, &mut digest);
    }
    digest.finish()
}

/// A transfer between two endpoints over two lossy links: every packet, and how long it took.
fn transfer(profile: &str) -> u64 {
    let links = [
        "rate=8mbit,delay=20ms,loss=5%,ecn",
        "rate=5mbit,delay=35ms,loss=markov:2%/20%@50ms,jitter=2ms,ecn",
    ];
    let links = links.map(|text| text.parse().expect("the description is valid"));
    let profile = Profile::named(profile).expect("the profile is built in");
    let plan = Plan::parallel(links).flow(FlowPlan::core(profile).of(300_000));
    let report = plan.run(1).expect("no byte is wrong");
    let mut digest = Digest::default();
    digest.integer(report.digest);
    digest.integer(report.bytes());
    digest.integer(report.packets());
    digest.integer(report.elapsed().as_nanos() as u64);
    digest.float(report.efficiency());
    digest.finish()
}

/// Offers packets of random size every millisecond for half a second, then lets the link run dry.
fn drive(mut link: Link<u64>, digest: &mut Digest) {
    let mut rng = Rng::substream(1, "traffic");
    let mut now = Time::ZERO;
    for token in 0..500 {
        let size = 40 + rng.below(1461) as u32;
        if let Err(drop) = link.enqueue(now, size, Ecn::Ect0, token) {
            record(LinkOutput::Dropped(drop), digest);
        }
        now += Duration::from_millis(1);
        link.advance(now, |output| record(output, digest));
    }
    while let Some(next) = link.next_event() {
        link.advance(next, |output| record(output, digest));
    }
}

fn record(output: LinkOutput<u64>, digest: &mut Digest) {
    match output {
        LinkOutput::Delivered(delivery) => {
            digest.integer(delivery.token);
            digest.integer(delivery.time.as_nanos());
            digest.bytes(&[delivery.ecn.bits()]);
        }
        LinkOutput::Dropped(drop) => {
            digest.integer(drop.token);
            digest.integer(drop.time.as_nanos());
            digest.bytes(format!("{:?}", drop.cause).as_bytes());
        }
    }
}
