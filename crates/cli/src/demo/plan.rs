//! The demo's settings: the arguments, checked and with defaults filled in.

use std::path::PathBuf;
use std::time::Duration;

use anabranch_core::config::TransportConfig;
use anabranch_core::profiles::Profile;
use anabranch_emulate::PathConfig;
use anabranch_policy::view::MAX_PATHS;
use anabranch_policy::{Axis, PolicySpec};
use anabranch_sim::link::LinkConfig;
use anabranch_sim::loss::LossConfig;
use anabranch_sim::queue::Discipline;
use anabranch_types::{Bitrate, PathId};

use crate::args::DemoArgs;
use crate::catalog;
use crate::failure::Failure;
use crate::links;

/// The paths of a demo that names none.
const DEFAULT_PATHS: [&str; 3] = [
    "name=sat,rate=20mbit,delay=30ms,loss=2%",
    "name=lte,rate=12mbit,delay=40ms,loss=5%",
    "name=wifi,rate=30mbit,delay=5ms,loss=markov:5%/35%@250ms",
];
const DEFAULT_TIME: Duration = Duration::from_secs(20);
/// Longest time by which a timed demo may overrun.
const GRACE: Duration = Duration::from_secs(60);
/// The policy that `--max-overhead` configures.
const BUDGET: &str = "budget";
/// The congestion control that needs links with ECN.
const MARKS_ONLY: &str = "ecn-reno";

/// When the sender stops.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Goal {
    /// After a time.
    Time(Duration),
    /// After a number of bytes.
    Size(u64),
    /// At the end of a file.
    File(PathBuf),
}

/// The settings of a demo, checked.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) paths: Vec<PathConfig>,
    pub(super) goal: Goal,
    /// Time after which the demo has failed.
    pub(super) limit: Option<Duration>,
    pub(super) profile: Profile,
    /// Name of the profile as the user gave it.
    pub(super) profile_name: String,
    pub(super) transport: TransportConfig,
    pub(super) seed: u64,
}

impl Plan {
    /// Checks the options against each other, and fills in defaults.
    pub(super) fn new(args: &DemoArgs) -> Result<Self, Failure> {
        let mut profile = profile(args)?;
        let paths = paths(args, &profile)?;
        for (number, path) in args.paths.iter().enumerate() {
            if let Some(policy) = &path.congestion {
                let path = PathId(number as u32);
                profile.set_path_congestion(path, policy.clone()).map_err(Failure::usage)?;
            }
        }
        let goal = match (&args.size, &args.file) {
            (Some(size), _) => Goal::Size(size.as_bytes()),
            (None, Some(file)) => Goal::File(file.clone()),
            (None, None) => Goal::Time(args.time.unwrap_or(DEFAULT_TIME)),
        };
        let limit = match &goal {
            Goal::Time(time) => Some(*time + GRACE),
            _ => args.time,
        };
        let profile_name = args.profile.clone();
        Ok(Plan {
            transport: transport(&paths),
            paths,
            goal,
            limit,
            profile,
            profile_name,
            seed: args.seed,
        })
    }

    /// Warning if congestion control needs ECN marks and its path makes none.
    pub(super) fn warning(&self) -> Option<String> {
        let overflows = |(number, path): &(usize, &PathConfig)| {
            needs_marks(self.profile.congestion_of(PathId(*number as u32))) && !marks(&path.forward)
        };
        let (_, path) = self.paths.iter().enumerate().find(overflows)?;
        Some(format!(
            "congestion control '{MARKS_ONLY}' slows down only for ECN marks, but path '{}' makes none, so its queue will overflow; add ecn to the path",
            path.forward.name
        ))
    }

    /// The profile for the path with this number if it were the only one.
    pub(super) fn profile_alone(&self, number: usize) -> Profile {
        let own = self.profile.congestion_of(PathId(number as u32)).clone();
        let mut profile = self.profile.clone();
        // The policy was checked when it was given.
        let _ = profile.set_path_congestion(PathId(0), own);
        profile
    }

    /// Whether any path loses packets at random.
    pub(super) fn is_lossy(&self) -> bool {
        self.paths.iter().any(|path| path.forward.loss != LossConfig::None)
    }
}

/// Whether the congestion control ignores losses and needs ECN marks. MPLOT's does: coding repairs
/// the losses.
fn needs_marks(congestion: &PolicySpec) -> bool {
    congestion.name == MARKS_ONLY
}

fn marks(link: &LinkConfig) -> bool {
    match &link.queue.discipline {
        Discipline::Red(red) => red.ecn,
        Discipline::Codel(codel) => codel.ecn,
        Discipline::DropTail => false,
    }
}

fn paths(args: &DemoArgs, profile: &Profile) -> Result<Vec<PathConfig>, Failure> {
    let mut paths: Vec<PathConfig> = args.paths.iter().map(|path| path.links.clone()).collect();
    if paths.is_empty() {
        for text in DEFAULT_PATHS {
            let mut path: PathConfig = text.parse().map_err(Failure::usage)?;
            if needs_marks(profile.policy(Axis::Congestion)) {
                path.forward = path.forward.with_ecn();
            }
            paths.push(path);
        }
    }
    if paths.len() > MAX_PATHS {
        return Err(Failure::usage(format!("at most {MAX_PATHS} paths can be given")));
    }
    links::name(&mut paths)?;
    for path in &mut paths {
        path.reverse.name = path.forward.name.clone();
        if let Some(loss) = &args.ack_loss {
            path.reverse.loss = loss.clone();
        }
    }
    Ok(paths)
}

fn profile(args: &DemoArgs) -> Result<Profile, Failure> {
    let mut profile = catalog::profile(&args.profile, &args.settings)?;
    if let Some(overhead) = args.max_overhead {
        if profile.policy(Axis::Redundancy).name != BUDGET {
            return Err(Failure::usage(format!(
                "--max-overhead needs redundancy policy '{BUDGET}', but profile '{}' has '{}' here; \
                 use --profile anabranch, or omit --max-overhead",
                args.profile,
                profile.policy(Axis::Redundancy).name
            )));
        }
        let policy =
            profile.policy(Axis::Redundancy).clone().with("overhead", &overhead.to_string());
        profile.set(Axis::Redundancy, &policy.to_string()).map_err(Failure::usage)?;
    }
    if !args.settings.is_empty() {
        // A peer asks for acknowledgements by the name of a profile. If no built-in profile has
        // that name, the receiver uses its own profile, which here is the changed one.
        profile.name = format!("{}, changed", profile.name);
    }
    Ok(profile)
}

/// Limits the bytes written ahead, which remain to be sent when the time is up: slow paths get fewer.
fn transport(paths: &[PathConfig]) -> TransportConfig {
    const AHEAD: Duration = Duration::from_secs(2);
    const LEAST_AHEAD: u64 = 64 << 10;
    let peak = |path: &PathConfig| path.forward.rate.steps().iter().map(|(_, rate)| *rate).max();
    let rate = paths.iter().filter_map(peak).fold(Bitrate::ZERO, |sum, rate| sum + rate);
    let mut transport = TransportConfig::default();
    let ahead = rate.bytes_in(AHEAD).max(LEAST_AHEAD);
    transport.streams.send_buffer = transport.streams.send_buffer.min(ahead);
    transport.max_paths = transport.max_paths.max(paths.len().min(MAX_PATHS) as u8);
    transport
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn plan(line: &str) -> Result<Plan, Failure> {
        let words = ["anabranch", "demo"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| Failure::from_clap(&error))?.command {
            Command::Demo(args) => Plan::new(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_default_is_three_lossy_links_for_twenty_seconds() {
        let plan = plan("").unwrap();
        let names: Vec<&str> = plan.paths.iter().map(|path| path.forward.name.as_str()).collect();
        assert_eq!(names, ["sat", "lte", "wifi"]);
        assert_eq!(plan.goal, Goal::Time(Duration::from_secs(20)));
        assert_eq!(plan.limit, Some(Duration::from_secs(80)));
        assert!(plan.is_lossy());
        assert_eq!(plan.profile_name, "anabranch");
    }

    #[test]
    fn controllers_that_need_marks_get_them_or_a_warning() {
        let marked = |plan: &Plan| plan.paths.iter().all(|path| marks(&path.forward));
        let mplot = plan("--profile mplot").unwrap();
        assert!(marked(&mplot) && mplot.warning().is_none());
        let mplot = plan("--profile mplot --path name=a,rate=1mbit,delay=1ms").unwrap();
        assert!(!marked(&mplot) && mplot.warning().unwrap().contains("'a'"));
        let other = plan("").unwrap();
        assert!(!marked(&other) && other.warning().is_none());
    }

    #[test]
    fn paths_without_a_name_get_one() {
        let plan =
            plan("--path rate=300kbit,delay=1ms --path rate=500kbit,delay=1ms --ack-loss 5%");
        let plan = plan.unwrap();
        assert_eq!(plan.paths[1].forward.name, "path2");
        assert!(!plan.is_lossy());
        assert!(matches!(plan.paths[0].reverse.loss, LossConfig::Bernoulli(_)));
        assert_eq!(plan.transport.streams.send_buffer, 200_000);
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        for (line, part) in [
            ("--profile tcp", "known: anabranch"),
            ("--set scheduler=best", "known:"),
            ("--set colour=red", "scheduler"),
            ("--set redundancy=budget:overhead=x", "overhead"),
            ("--path name=a", "rate"),
            ("--path rate=1mbit,delay=1ms,colour=red", "colour"),
            ("--path rate=1mbit,delay=1ms,loss=101%", "loss"),
            ("--path rate=-1mbit,delay=1ms", "rate"),
            ("--path rate=1,delay=1ms", "rate"),
            ("--path rate=1mbit,delay=1", "delay"),
            ("--path rate=99999gbit,delay=1ms", "rate"),
            ("--path name=a,rate=1mbit,delay=1ms --path name=a,rate=1mbit,delay=1ms", "'a'"),
            ("--time -5", "seconds"),
            ("--time forever", "seconds"),
            ("--size 50", "unit"),
            ("--size 5MB --file x", "--file"),
            ("--ack-loss 101%", "5%"),
            ("--ack-loss -5%", "5%"),
            ("--max-overhead 20", "20%"),
            ("--profile mplot --max-overhead 20%", "budget"),
            ("--seed -1", "seed"),
            ("--colour red", "--colour"),
        ] {
            let failure = plan(line).expect_err(line);
            let text = failure.to_string();
            assert!(matches!(failure, Failure::Usage(_)), "{line}");
            assert!(text.contains(part), "{line}: {text}");
            assert_eq!(text.lines().count(), 1, "{line}: {text}");
        }
    }

    #[test]
    fn the_overhead_goes_to_the_budget() {
        let plan = plan("--max-overhead 15% --set redundancy=budget:sources=64").unwrap();
        assert_eq!(plan.profile.policy(Axis::Redundancy).options["overhead"], "0.15");
        assert_eq!(plan.profile.policy(Axis::Redundancy).options["sources"], "64");
        assert!(Profile::named(&plan.profile.name).is_none());
    }
}
