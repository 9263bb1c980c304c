use anabranch_policy::code;
use anabranch_policy::registry::Entry;

use super::*;

const BUILT_IN: Registry = Registry::new();

#[test]
fn what_is_supposed_of_everybody_is_not_announced() {
    assert_eq!(announcement(&BUILT_IN, "reed-solomon"), None);
    assert_eq!(announcement(&BUILT_IN, "none"), None);
    let names = announcement(&BUILT_IN, "random-linear").unwrap();
    assert_eq!(names, "random-linear reed-solomon lt raptorq sliding-window");
}

#[test]
fn a_side_codes_only_with_what_the_other_decodes() {
    for name in ["reed-solomon", "random-linear", "lt", "raptorq", "sliding-window"] {
        let announced = announcement(&BUILT_IN, name);
        assert!(is_decoded(None, name) && is_decoded(announced.as_deref(), name));
    }
    assert!(!is_decoded(None, "none") && !is_decoded(Some("mirror reed"), "reed-solomon"));
    assert!(of_peer(&BUILT_IN, None).limits().any_symbols_suffice);
    let random = of_peer(&BUILT_IN, Some("random-linear reed-solomon"));
    assert!(!random.limits().any_symbols_suffice);
    for strange in ["", "mirror", " reed-solomon"] {
        assert!(!of_peer(&BUILT_IN, Some(strange)).limits().repairs, "{strange:?}");
    }
}

#[test]
fn codes_that_a_program_brings_are_announced_and_decoded() {
    const OWN: Entry = Entry { name: "own", summary: "", source: "", options: &[] };
    let mut registry = Registry::new();
    registry.register(&OWN, |_| code::build(&PolicySpec::new("random-linear"))).unwrap();
    let usual = "reed-solomon random-linear lt raptorq sliding-window own";
    for name in ["none", "reed-solomon"] {
        assert_eq!(announcement(&registry, name).as_deref(), Some(usual));
    }
    let own = announcement(&registry, "own");
    assert_eq!(own.as_deref(), Some("own reed-solomon random-linear lt raptorq sliding-window"));
    assert!(of_peer(&registry, own.as_deref()).limits().repairs);
    assert!(!of_peer(&BUILT_IN, own.as_deref()).limits().repairs);
    assert!(is_decoded(Some(usual), "own") && !is_decoded(None, "own"));
}

#[test]
fn announcements_are_cut_between_names() {
    let mut registry = Registry::new();
    for letter in 'a'..='z' {
        let name: &'static str = String::from(letter).repeat(60).leak();
        let entry = Box::leak(Box::new(Entry { name, summary: "", source: "", options: &[] }));
        registry.register(entry, |_| Ok(none())).unwrap();
    }
    let own = "z".repeat(60);
    let names = announcement(&registry, &own).unwrap();
    assert!(names.len() <= MAX_CODE_NAMES && names.len() + 61 > MAX_CODE_NAMES, "{names}");
    assert!(names.starts_with(&own) && names.ends_with(&"b".repeat(60)), "{names}");
}
