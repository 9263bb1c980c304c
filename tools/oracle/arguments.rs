//! The command line.

use std::path::{Path, PathBuf};

pub const HELP: &str = "\
Compare the simulator with measurements of other simulators

Usage: cargo xtask oracle [FILE] [OPTIONS]

  FILE          a table of measurements; its columns say which experiment it holds
                (default: crates/sim/tests/data/oracle/item1_tcp_single.csv)
  --item N      the project's own table N: 1 single flows, 2 RED and ECN, 3 fairness, 4 two-state loss,
                5 saturated radio cells, 6 TCP over DSR on a ring, 7 among moving stations
  --seeds N     runs of each point (default 10)
  --jobs N      threads (default: one for each core)
  --quick       three runs, and only points up to 10 Mb/s; of tables 6 and 7 one flow at 11 Mb/s
  --all         every sender that can be imitated, not the two reference senders alone
  --sim NAME    only this sender of the table
  --as NAME     run another sender of ours at the points of table 1: rfc6675, rfc6675-ts, prr-ts, linux
  --json        print {points, inside, rows}
";

/// Options of the command line.
pub struct Arguments {
    pub file: PathBuf,
    pub seeds: u64,
    pub jobs: usize,
    pub quick: bool,
    pub all: bool,
    pub sim: Option<String>,
    pub substitute: Option<String>,
    pub json: bool,
}

impl Arguments {
    /// Reads the arguments; `None` if help was asked for.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut arguments = Arguments {
            file: own_table(1)?,
            seeds: 10,
            jobs,
            quick: false,
            all: false,
            sim: None,
            substitute: None,
            json: false,
        };
        let (mut file_given, mut seeds_given) = (false, false);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--json" => arguments.json = true,
                "--quick" => arguments.quick = true,
                "--all" => arguments.all = true,
                "--sim" => arguments.sim = Some(value()?),
                "--as" => arguments.substitute = Some(value()?),
                "--seeds" => {
                    arguments.seeds = number("--seeds", &value()?, 1000)?;
                    seeds_given = true;
                }
                "--jobs" => arguments.jobs = number("--jobs", &value()?, 1024)? as usize,
                "--item" => arguments.file = own_table(number("--item", &value()?, 7)?)?,
                other if other.starts_with('-') => return Err(format!("unknown option {other}")),
                other if file_given => return Err(format!("a second file is given: {other}")),
                other => {
                    arguments.file = PathBuf::from(other);
                    file_given = true;
                }
            }
        }
        if arguments.quick && !seeds_given {
            arguments.seeds = 3;
        }
        Ok(Some(arguments))
    }
}

fn number(option: &str, text: &str, most: u64) -> Result<u64, String> {
    let range = 1..=most;
    let value = text.parse().ok().filter(|value| range.contains(value));
    value.ok_or_else(|| format!("{option}: '{text}' is not a whole number from 1 to {most}"))
}

fn own_table(item: u64) -> Result<PathBuf, String> {
    let names = [
        "crates/sim/tests/data/oracle/item1_tcp_single.csv",
        "crates/sim/tests/data/oracle/item2_red_ecn_ns2.csv",
        "crates/sim/tests/data/oracle/item3_fairshare_summary.csv",
        "crates/sim/tests/data/oracle/item4_twostate.csv",
        "crates/sim/tests/data/dcf_sim.csv",
        "crates/sim/tests/data/oracle/item6_mesh_ring.csv",
        "crates/sim/tests/data/oracle/item7_mesh_mobile.csv",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no repository")?;
    let name = names.get(item as usize - 1).ok_or("no such table")?;
    Ok(root.join(name))
}
