//! Options of `sim`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anabranch_results::Shard;
use clap::{Args, Subcommand};

use super::drawing::Format;
use super::seeds::Seeds;

const HELP: &str = "\
Examples:
  anabranch sim check scenarios/bonding.toml         finds mistakes, and shows what would run
  anabranch sim run scenarios/bonding.toml --seeds 10 --out bonded
  anabranch sim plot bonded                         figures in bonded/figures

On several machines:
  anabranch sim plan scenarios/bonding.toml --seeds 1000 --shards 7
  anabranch sim run scenarios/bonding.toml --seeds 1000 --shard 3/7 --out part-3
  anabranch sim merge part-* --out bonded

A scenario is a TOML file; docs/scenarios.md explains it.";

/// Options of `sim`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct SimArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SimCommand,
}

/// The commands below `sim`.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Run every point of a scenario with every seed, and keep what was measured
    Run(RunArgs),
    /// Say what is wrong with a scenario, or what would run
    Check(CheckArgs),
    /// List the runs of a scenario with what each may cost, to share them out
    Plan(PlanArgs),
    /// Merge runs from several results directories
    Merge(MergeArgs),
    /// Draw figures of results
    Plot(PlotArgs),
}

const RUN_HELP: &str = "\
Examples:
  anabranch sim run scenarios/bonding.toml
  anabranch sim run scenarios/bonding.toml --seeds 20 --jobs 8 --out bonded
  anabranch sim run scenarios/bonding.toml --set duration=30s --set flow.bulk.count=3
  anabranch sim run scenarios/bonding.toml --seeds 1-1000 --shard 3/7 --out part-3

Finished runs are kept one by one: after an interruption the same command continues, and with more
seeds it adds them. Results do not depend on the number of jobs, nor on the machines that made them:
`anabranch sim merge` brings parts together. docs/results.md describes them.

Exit codes:
  0    every run was made and no claim of the scenario fails
  1    a claim fails, or a run or a file did: the reason is on standard error
  2    usage error: a mistake in the scenario, a file that does not exist, a directory of other
       results, an unknown option
  130  interrupted; what was finished is kept";

/// A scenario, and what is changed of it.
#[derive(Args, Debug)]
pub struct ScenarioArgs {
    /// The scenario
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Seeds in place of the scenario's: N for 1 to N, or A-B
    #[arg(long, value_name = "SEEDS", allow_hyphen_values = true)]
    pub seeds: Option<Seeds>,
    /// Shorten the runs as the scenario's [quick] says
    #[arg(long)]
    pub quick: bool,
    /// Another value for a key of the scenario, such as duration=30s
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

/// Options of `sim run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub struct RunArgs {
    /// The scenario, and what is changed of it
    #[command(flatten)]
    pub scenario: ScenarioArgs,
    /// Only the Kth of N parts of the runs, which take about the same time
    #[arg(long, value_name = "K/N", conflicts_with = "runs", allow_hyphen_values = true)]
    pub shard: Option<Shard>,
    /// Only the runs in this file: one a line, or JSON as `sim plan` prints it; - for standard input
    #[arg(long, value_name = "FILE")]
    pub runs: Option<PathBuf>,
    /// Runs at once; as many as there are cores if left out
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<NonZeroUsize>,
    /// Directory for the results; results/NAME-HASH if left out, and of a part
    /// results/NAME-HASH.shards/K-of-N
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the summary as JSON; progress stays on standard error
    #[arg(long)]
    pub json: bool,
    /// Also write the decisions of anabranch connections as qlog, one file a path, in DIR/traces
    #[arg(long)]
    pub qlog: bool,
    /// Also write every packet on every link for Wireshark, one file a run, in DIR/traces
    #[arg(long)]
    pub pcapng: bool,
}

const PLAN_HELP: &str = "\
Examples:
  anabranch sim plan scenarios/bonding.toml --seeds 1000
  anabranch sim plan scenarios/bonding.toml --seeds 1000 --shards 7
  anabranch sim plan scenarios/bonding.toml --json > plan.json

Each run's id is a hash of the scenario with its settings, of the point, the seed, the version and the
commit. Costs are estimates made from rates and sizes, as if every flow filled its links: good for
sharing runs out. Flows slowed down by losses cost less, so far by a factor of twenty at most.

Exit codes: 0 done, 1 a file cannot be read, 2 it does not exist, a mistake in it, or an unknown
option";

/// Options of `sim plan`.
#[derive(Args, Debug)]
#[command(after_help = PLAN_HELP)]
pub struct PlanArgs {
    /// The scenario, and what is changed of it
    #[command(flatten)]
    pub scenario: ScenarioArgs,
    /// Show how the runs divide into N parts
    #[arg(long, value_name = "N", allow_hyphen_values = true,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub shards: Option<u32>,
    /// Print every run as JSON: its id, point, seed and estimated cost
    #[arg(long, conflicts_with = "shards")]
    pub json: bool,
}

const MERGE_HELP: &str = "\
Examples:
  anabranch sim merge part-* --out bonded
  anabranch sim merge results/bonding-1234abcd.shards/*

The directories hold runs of one scenario, with the same settings and version, made with `sim run
--shard`, `--runs`, `--seeds` or interrupted; none of them is changed. Tables and summary are the same
bytes that one process would have written. If runs are missing, they are named, tables and summary hold
what is there, and the exit code is 1; `anabranch sim run FILE --out DIR` makes them.

Exit codes:
  0    every run is there and no claim of the scenario fails
  1    runs are missing, a claim fails, or a file did: the reason is on standard error
  2    usage error: a directory that does not exist or has no results, or has those of another
       scenario or version";

/// Options of `sim merge`.
#[derive(Args, Debug)]
#[command(after_help = MERGE_HELP)]
pub struct MergeArgs {
    /// Results directories, complete or not
    #[arg(value_name = "DIR", required = true)]
    pub directories: Vec<PathBuf>,
    /// Directory for the results; results/NAME-HASH if left out
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

const CHECK_HELP: &str = "\
Examples:
  anabranch sim check scenarios/bonding.toml
  anabranch sim check --schema > scenario.schema.json

Exit codes: 0 it can be run, 1 a file cannot be read, 2 it does not exist or has mistakes";

/// Options of `sim check`.
#[derive(Args, Debug)]
#[command(after_help = CHECK_HELP)]
pub struct CheckArgs {
    /// The scenario
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    pub file: Option<PathBuf>,
    /// Another value for a key of the scenario
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Print the JSON schema of scenarios, for editors
    #[arg(long, conflicts_with_all = ["file", "settings", "json"])]
    pub schema: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const PLOT_HELP: &str = "\
Examples:
  anabranch sim plot bonded
  anabranch sim plot bonded --metric goodput_mbps --x loss
  anabranch sim plot bonded --metric packet_delay_s --out figures
  anabranch sim plot bonded --format pdf --format png

The figures of the scenario come first, in files figure-1.svg and so on; index.html beside them shows
all there are. PNG and PDF are written beside the SVG, and the page links them; their texts need fonts on this machine. What else is drawn follows from
the data: a figure over a sweep is lines with 95 % intervals, without a
sweep bars; what was recorded over time is drawn over time, rates of a flow's paths as shares of their
sum too; what was kept value by value is drawn as distributions.

Exit codes: 0 done, 1 a file failed, 2 usage error: no results there, an unknown metric or key";

/// Options of `sim plot`.
#[derive(Args, Debug)]
#[command(after_help = PLOT_HELP)]
pub struct PlotArgs {
    /// A results directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Only these metrics; all of them if left out
    #[arg(long = "metric", value_name = "M")]
    pub metrics: Vec<String>,
    /// The sweep's key along the horizontal axis; the first if left out
    #[arg(long, value_name = "KEY")]
    pub x: Option<String>,
    /// Directory for the figures; DIR/figures if left out
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What else each figure is written as, beside the SVG; once for each
    #[arg(long = "format", value_name = "FORMAT", value_enum)]
    pub formats: Vec<Format>,
    /// Print the files' names as JSON
    #[arg(long)]
    pub json: bool,
}
