//! Options of `repro`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anabranch_results::Shard;
use clap::Args;

const HELP: &str = "\
Examples:
  anabranch repro --list                       every item and whether it is checked
  anabranch repro mplot-tab2 late-fig1         these two
  anabranch repro --paper mplot --quick        one paper, with fewer seeds and shorter runs
  anabranch repro --all --out repro --jobs 8   everything, with runs and a page in repro/

On several machines:
  anabranch repro --all --plan --shards 7
  anabranch repro --all --shard 3/7 --out part-3
  anabranch repro --all --merge part-1 --merge part-2 … --out repro

Verdicts:
  reproduced   every bound holds for what was measured
  differs      a bound does not hold, and an ablation shows why
  not-yet      not checked yet, or outside its bounds for reasons not shown

Exit codes:
  0    every item asked for was looked at, whatever its verdict
  1    a run or a file failed, or merged parts lack runs: the reason is on standard error
  2    usage error: unknown item, paper or option
  130  interrupted; with --out, runs that were finished are kept and used again";

/// Options of `repro`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub struct ReproArgs {
    /// Items, as --list names them
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Every item of a paper: mplot, fmtcp, late, mtcp or ptcp
    #[arg(long, value_name = "NAME")]
    pub paper: Vec<String>,
    /// Every item
    #[arg(long)]
    pub all: bool,
    /// List the items instead of checking them
    #[arg(long)]
    pub list: bool,
    /// Fewer seeds and shorter runs
    #[arg(long)]
    pub quick: bool,
    /// List the runs and their estimated cost instead of making them
    #[arg(long, conflicts_with_all = ["list", "shard", "merge", "out"])]
    pub plan: bool,
    /// With --plan: show how the runs divide into N parts
    #[arg(long, value_name = "N", requires = "plan", conflicts_with = "json",
        allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub shards: Option<u32>,
    /// Only make the Kth of N parts of the runs, and keep them in the directory of --out
    #[arg(long, value_name = "K/N", requires = "out", conflicts_with_all = ["list", "merge"],
        allow_hyphen_values = true)]
    pub shard: Option<Shard>,
    /// Merge the runs that a part kept in this directory; give it once for each part; nothing is run
    #[arg(long, value_name = "DIR", requires = "out", conflicts_with = "list")]
    pub merge: Vec<PathBuf>,
    /// Runs at a time (default: one for each core)
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Keep runs, report.json and report.html in this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Report as JSON on standard output; progress stays on standard error
    #[arg(long)]
    pub json: bool,
}
