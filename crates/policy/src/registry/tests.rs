use super::*;

const ENTRY: Entry = Entry {
    axis: "test",
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
    let table: &[Row<u8>] = &[(&ENTRY, 0)];
    let (_, options) = find("test", table, spec)?;
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
    assert_eq!(message(PolicySpec::new("other")), "there is no test policy 'other'; known: thing");
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
fn names_are_unique_on_their_axis_and_described() {
    let mut seen = std::collections::BTreeSet::new();
    for entry in entries() {
        assert!(seen.insert((entry.axis, entry.name)), "{} twice", entry.name);
        assert!(!entry.summary.is_empty() && !entry.source.is_empty(), "{}", entry.name);
        assert!(is_word(entry.name), "{}", entry.name);
    }
}

#[test]
fn every_policy_is_built_with_its_defaults() {
    for entry in entries() {
        let spec = PolicySpec::new(entry.name);
        let result = match entry.axis {
            "congestion" => congestion::build(&spec, 1200).map(drop),
            "loss detector" => loss::build_detector(&spec).map(drop),
            "loss estimator" => loss::build_estimator(&spec).map(drop),
            "scheduler" => scheduler::build(&spec).map(drop),
            "redundancy" => redundancy::build(&spec).map(drop),
            "recovery" => recovery::build(&spec).map(drop),
            "ack" => ack::build(&spec).map(drop),
            other => panic!("no axis {other}"),
        };
        assert_eq!(result, Ok(()), "{}", entry.name);
    }
}
