use super::*;
use anabranch_policy::Scheduler;
use anabranch_policy::scheduler;

#[test]
fn every_profile_can_be_built() {
    for profile in Profile::all() {
        let mut copy = profile.clone();
        for axis in Axis::ALL {
            let value = profile.policy(axis).to_string();
            copy.set(axis, &value).unwrap_or_else(|e| panic!("{}: {axis}: {e}", profile.name));
        }
        assert_eq!(copy, profile);
    }
}

#[test]
fn unknown_policies_name_what_exists() {
    let mut profile = Profile::named("anabranch").unwrap();
    let before = profile.clone();
    let error = profile.set(Axis::Code, "parity").unwrap_err().to_string();
    assert!(error.contains("reed-solomon"), "{error}");
    assert_eq!(profile, before);
    assert!(Profile::named("tcp").is_none());
}

#[test]
fn a_registered_policy_is_chosen_by_name() {
    const OWN: Entry = Entry { name: "own", summary: "", source: "", options: &[] };
    let mut profile = Profile::named("anabranch").unwrap();
    assert!(profile.set(Axis::Scheduler, "own").is_err());
    let make = |_: &Options<'_>| scheduler::build(&PolicySpec::new("min-rtt"));
    profile.register(&OWN, make).unwrap();
    assert_eq!(profile.policy(Axis::Scheduler).name, "earliest", "it waits to be chosen");
    profile.set(Axis::Scheduler, "own").unwrap();
    assert!(profile.make::<dyn Scheduler>().is_ok());
    assert!(Profile::named("anabranch").unwrap().set(Axis::Scheduler, "own").is_err());
}

#[test]
fn a_path_can_be_controlled_by_a_registered_policy() {
    const OWN: Entry = Entry { name: "own", summary: "", source: "", options: &[] };
    let mut profile = Profile::named("uncoded").unwrap();
    let cubic = |options: &Options<'_>| {
        anabranch_policy::congestion::build(&PolicySpec::new("cubic"), options.packet_size() / 2)
    };
    profile.register(&OWN, cubic).unwrap();
    profile.set_path_congestion(PathId(1), PolicySpec::new("own")).unwrap();
    let cwnd = |path| profile.make_congestion(PathId(path), 1000).unwrap().cwnd();
    assert_eq!(cwnd(0), 2 * cwnd(1));
}

#[test]
fn a_registry_that_lacks_a_choice_is_refused() {
    const OWN: Entry = Entry { name: "own", summary: "", source: "", options: &[] };
    let make = |_: &Options<'_>| scheduler::build(&PolicySpec::new("min-rtt"));
    let mut registry = Registry::new();
    registry.register(&OWN, make).unwrap();
    let mut profile = Profile::named("anabranch").unwrap();
    profile.set_registry(registry).unwrap();
    profile.set(Axis::Scheduler, "own").unwrap();
    let before = profile.clone();
    let error = profile.set_registry(Registry::new()).unwrap_err().to_string();
    assert!(error.contains("no scheduler policy 'own'"), "{error}");
    assert_eq!(profile, before);
}
