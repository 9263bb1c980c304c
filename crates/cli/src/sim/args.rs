//! Options of `sim`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};

const HELP: &str = "\
Examples:
  anabranch sim check scenarios/bonding.toml         is it right, and what would run?
  anabranch sim run scenarios/bonding.toml --seeds 10 --out bonded
  anabranch sim plot bonded                         figures in bonded/figures

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
    /// Draw figures of results
    Plot(PlotArgs),
}

const RUN_HELP: &str = "\
Examples:
  anabranch sim run scenarios/bonding.toml
  anabranch sim run scenarios/bonding.toml --seeds 20 --jobs 8 --out bonded
  anabranch sim run scenarios/bonding.toml --set duration=30s --set flow.bulk.count=3

Finished runs are kept one by one: after an interruption the same command continues, and with more
seeds it adds them. Results do not depend on the number of jobs. docs/results.md describes them.

Exit codes:
  0    every run was made and no claim of the scenario fails
  1    a claim fails, or a run or a file did: the reason is on standard error
  2    usage error: a mistake in the scenario, a directory of other results, an unknown option
  130  interrupted; what was finished is kept";

/// Options of `sim run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub struct RunArgs {
    /// The scenario
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// So many seeds, from 1 on, instead of those of the scenario
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000),
        allow_hyphen_values = true)]
    pub seeds: Option<u64>,
    /// Shorter, as the scenario's [quick] says
    #[arg(long)]
    pub quick: bool,
    /// Another value for a key of the scenario, such as duration=30s
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Runs at once; as many as there are cores if left out
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub jobs: Option<NonZeroUsize>,
    /// Directory for the results; results/NAME-HASH if left out
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

const CHECK_HELP: &str = "\
Examples:
  anabranch sim check scenarios/bonding.toml
  anabranch sim check --schema > scenario.schema.json

Exit codes: 0 it can be run, 1 a file cannot be read, 2 it has mistakes";

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

The figures of the scenario come first, in files figure-1.svg and so on. What else is drawn follows from
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
    /// Only these metrics; every one there is if left out
    #[arg(long = "metric", value_name = "M")]
    pub metrics: Vec<String>,
    /// The sweep's key along the horizontal axis; the first if left out
    #[arg(long, value_name = "KEY")]
    pub x: Option<String>,
    /// Directory for the figures; DIR/figures if left out
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the files' names as JSON
    #[arg(long)]
    pub json: bool,
}
