use super::*;
use anabranch_types::{PathId, Time};
use core::time::Duration;

use crate::scheduler::{Pick, Pull};
use crate::view::SchedulerView;

const ENTRY: Entry = Entry {
    name: "thing",
    summary: "",
    source: "",
    options: &[
        option("rate", "a number", "1.5"),
        option("mode", "a word", "fast"),
        option("wait", "a duration", "25ms"),
    ],
};

fn read(spec: &PolicySpec) -> Result<(f64, bool, Duration), PolicyError> {
    let options = Options::new(&ENTRY, spec, PACKET_SIZE)?;
    Ok((
        options.real("rate", 0.0..=2.0)?,
        options.choice("mode", &[("fast", true), ("slow", false)])?,
        options.duration("wait", Duration::ZERO..=Duration::from_secs(1))?,
    ))
}

#[test]
fn specifications_are_read_and_written() {
    for text in ["reno", "mean-sigma:kappa1=1,kappa2=0", "a:b=0.5"] {
        assert_eq!(text.parse::<PolicySpec>().unwrap().to_string(), text);
    }
    let spaced: PolicySpec = " a: c = 1 , b = 2 ".parse().unwrap();
    assert_eq!(spaced.to_string(), "a:b=2,c=1");
}

#[test]
fn malformed_specifications_are_refused() {
    for text in ["", ":", "a:", "a:b", "a:b=", "a:=1", "A", "a b", "a:b=1,b=2", "a:b=1,"] {
        assert!(matches!(text.parse::<PolicySpec>(), Err(PolicyError::Syntax(_))), "{text}");
    }
}

#[test]
fn defaults_stand_in_for_options_not_given() {
    assert_eq!(read(&PolicySpec::new("thing")), Ok((1.5, true, Duration::from_millis(25))));
    let spec = PolicySpec::new("thing").with("mode", "slow").with("wait", "1s");
    assert_eq!(read(&spec), Ok((1.5, false, Duration::from_secs(1))));
}

#[test]
fn errors_say_what_is_allowed() {
    let message = |spec: PolicySpec| read(&spec).unwrap_err().to_string();
    assert_eq!(
        message(PolicySpec::new("thing").with("ratio", "1")),
        "policy 'thing' has no option 'ratio'; it takes rate, mode, wait"
    );
    assert_eq!(
        message(PolicySpec::new("thing").with("rate", "3")),
        "policy 'thing': rate=3 is not a number from 0 to 2"
    );
    assert_eq!(
        message(PolicySpec::new("thing").with("rate", "NaN")),
        "policy 'thing': rate=NaN is not a number from 0 to 2"
    );
    assert_eq!(
        message(PolicySpec::new("thing").with("mode", "odd")),
        "policy 'thing': mode=odd is not one of fast, slow"
    );
    assert_eq!(
        message(PolicySpec::new("thing").with("wait", "2s")),
        "policy 'thing': wait=2s is not a duration from 0ns to 1s"
    );
}

#[test]
fn axes_are_read_as_they_are_written() {
    for axis in Axis::ALL {
        assert_eq!(axis.to_string().parse(), Ok(axis));
        assert!(!axis.summary().is_empty());
    }
    let error = "colour".parse::<Axis>().unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no policy axis 'colour'; known: congestion, loss-detector, loss-estimator, \
         scheduler, code, redundancy, recovery, ack"
    );
}

#[test]
fn names_are_unique_on_their_axis_and_described() {
    for axis in Axis::ALL {
        let mut seen = std::collections::BTreeSet::new();
        for entry in Registry::new().entries(axis) {
            assert!(seen.insert(entry.name), "{axis}: {} twice", entry.name);
            assert!(!entry.summary.is_empty(), "{}", entry.name);
            let explained = !entry.source.is_empty() || entry.name == "none";
            assert!(explained, "{axis}: {} follows nothing", entry.name);
            assert_eq!(spec::check_name(entry.name), Ok(()));
        }
        assert!(!seen.is_empty(), "{axis}");
    }
}

#[test]
fn every_policy_is_built_with_its_defaults() {
    for axis in Axis::ALL {
        for entry in Registry::new().entries(axis) {
            let made = Registry::new().check(axis, &PolicySpec::new(entry.name));
            assert_eq!(made, Ok(()), "{axis}={}", entry.name);
        }
    }
}

/// Holds every path back for this many milliseconds.
#[derive(Debug)]
struct Holding(u64);

impl Scheduler for Holding {
    fn pull(&mut self, _: PathId, _: &SchedulerView<'_>, _: &mut Vec<Pick>) -> Pull {
        Pull::Hold(Time::from_millis(self.0), "holding")
    }
}

const HOLDING: Entry = Entry {
    name: "holding",
    summary: "holds every path back",
    source: "",
    options: &[option("until", "milliseconds from the start", "5")],
};

fn holding(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    Ok(Box::new(Holding(options.integer("until", 0..=1000)?)))
}

#[test]
fn what_a_program_brings_is_named_like_what_is_built_in() {
    let mut registry = Registry::new();
    registry.register(&HOLDING, holding).unwrap();
    let check = |text: &str| registry.check(Axis::Scheduler, &text.parse().unwrap());
    assert_eq!(check("holding:until=7"), Ok(()));
    assert_eq!(check("min-rtt"), Ok(()));
    let error = check("holding:till=7").unwrap_err().to_string();
    assert_eq!(error, "policy 'holding' has no option 'till'; it takes until");
    let error = check("holding:until=7000").unwrap_err().to_string();
    assert_eq!(error, "policy 'holding': until=7000 is not a whole number from 0 to 1000");
    let error = check("waiting").unwrap_err().to_string();
    assert!(error.starts_with("there is no scheduler policy 'waiting'; known: "), "{error}");
    assert!(error.ends_with(", holding"), "{error}");
    assert_eq!(registry.entries(Axis::Scheduler).last(), Some(&&HOLDING));

    let other = registry.check(Axis::Recovery, &PolicySpec::new("holding"));
    assert!(matches!(other, Err(PolicyError::Unknown { axis: Axis::Recovery, .. })), "{other:?}");
    let built_in = scheduler::build(&PolicySpec::new("holding"));
    assert!(matches!(built_in, Err(PolicyError::Unknown { axis: Axis::Scheduler, .. })));
}

#[test]
fn names_are_taken_once_and_can_be_written() {
    let mut registry = Registry::new();
    let named = |name| -> &'static Entry { Box::leak(Box::new(Entry { name, ..HOLDING })) };
    registry.register(&HOLDING, holding).unwrap();
    for taken in ["holding", "min-rtt"] {
        let error = registry.register(named(taken), holding).unwrap_err();
        assert_eq!(error, PolicyError::Taken { axis: Axis::Scheduler, name: taken.to_owned() });
    }
    let long: &str = "x".repeat(spec::MAX_NAME + 1).leak();
    for bad in ["", "Holding", "hold ing", "a:b", long] {
        let error = registry.register(named(bad), holding).unwrap_err();
        assert_eq!(error, PolicyError::Name(bad.to_owned()));
    }
    assert_eq!(registry.entries(Axis::Scheduler).len(), scheduler::TABLE.len() + 1);
}

#[test]
fn registries_are_equal_when_they_share_what_was_brought() {
    let mut registry = Registry::new();
    registry.register(&HOLDING, holding).unwrap();
    assert_eq!(registry.clone(), registry);
    let mut other = Registry::new();
    other.register(&HOLDING, holding).unwrap();
    assert_ne!(other, registry, "another function might make another policy");
}
