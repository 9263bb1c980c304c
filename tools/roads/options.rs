//! The command's options.

use crate::arguments::{LONGEST, number};

pub const HELP: &str = "\
Runs transfers over links as on the road, in virtual time, and prints what they came to

Usage: cargo xtask roads [OPTIONS]

  --only NAME        only this road, such as wifi; `links/NAME` and `pairs/NAME` where both files have
                     it, `links` or `pairs` for all of one file; may be repeated
  --congestion NAME  compare with this congestion control of the profile anabranch instead of cubic and
                     bbr; may be repeated
  --set KEY=VALUE    another value for a key of the scenarios, such as flow.bulk.policy.redundancy=none
  --seeds N          seeds 1 to N (3)
  --seconds S        measure S seconds (20) after a warm-up of 5
  --jobs N           runs at once; as many as there are cores if left out
  --json             print JSON, with the value of each seed
  --list             name the roads

Exit codes: 0, or 1 if a flow ends before its time, or 2 if something was asked wrongly. docs/roads.md tells how to read
the table.
";

/// Options of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Roads, files, or roads of a file; all if empty.
    pub only: Vec<String>,
    /// Congestion controls beside the profile's own.
    pub congestion: Vec<String>,
    /// Assignments to keys of the scenarios.
    pub settings: Vec<String>,
    pub seeds: u64,
    pub seconds: u64,
    pub jobs: usize,
    pub json: bool,
    /// Only name the roads.
    pub list: bool,
}

impl Options {
    /// Reads the arguments; none if they ask for help.
    ///
    /// # Errors
    /// The error says what was given and what is allowed.
    pub fn read(arguments: &[String]) -> Result<Option<Options>, String> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Options {
            only: Vec::new(),
            congestion: Vec::new(),
            settings: Vec::new(),
            seeds: 3,
            seconds: 20,
            jobs,
            json: false,
            list: false,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().cloned().ok_or(format!("{argument} takes a value"));
            let number = |text: String, most| number(argument, &text, most);
            match argument.as_str() {
                "--only" => options.only.push(value()?),
                "--congestion" => options.congestion.push(value()?),
                "--set" => options.settings.push(value()?),
                "--seeds" => options.seeds = number(value()?, 1000)?,
                "--seconds" => options.seconds = number(value()?, LONGEST)?,
                "--jobs" => options.jobs = number(value()?, 256)? as usize,
                "--json" => options.json = true,
                "--list" => options.list = true,
                "--help" | "-h" => return Ok(None),
                other => return Err(format!("unknown argument `{other}`\n\n{HELP}")),
            }
        }
        if options.congestion.is_empty() {
            options.congestion = vec!["cubic".to_owned(), "bbr".to_owned()];
        }
        Ok(Some(options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Option<Options>, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::read(&words)
    }

    #[test]
    fn arguments_are_read_or_refused() {
        let options =
            read("--only wifi --only pairs --seeds 5 --congestion vegas --json --seconds 7")
                .expect("valid")
                .expect("no help");
        assert_eq!((options.seeds, options.seconds, options.json), (5, 7, true));
        assert_eq!((options.only.len(), options.congestion), (2, vec!["vegas".to_owned()]));
        assert_eq!(read("").expect("valid").expect("no help").congestion, ["cubic", "bbr"]);
        assert_eq!(read("--help"), Ok(None));
        for wrong in ["--seeds 0", "--seeds x", "--only", "--seconds 3601", "--jobs 0", "wifi"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
