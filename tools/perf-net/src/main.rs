//! `cargo xtask perf net`: one stream over loopback through Anabranch and through quinn, alternately,
//! the packet cipher alone, and many connections at once. Only ratios of figures from one run mean anything on a shared machine.

mod aead;
mod crowd;
mod ours;
mod report;
mod roofline;
mod run;
mod theirs;

use std::process::ExitCode;

use report::{Report, Series};
use run::{Options, Sample};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).and_then(|options| measure(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("perf-net: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), Failure> {
    let mut series: Vec<Series> = options.series()?;
    for round in 0..options.rounds {
        for entry in &mut series {
            let sample: Sample = entry.subject.run(options)?;
            eprintln!("round {}: {:<32} {sample}", round + 1, entry.subject.name());
            entry.samples.push(sample);
        }
    }
    let aead = if options.aead { aead::measure(options.rounds)? } else { Vec::new() };
    let crowd = if options.crowd { Some(crowd::measure(options)?) } else { None };
    let report = Report::new(options, &series, aead, crowd);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}
