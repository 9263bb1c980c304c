use super::*;

#[test]
fn every_row_is_of_this_axis_and_can_be_built() {
    for (entry, _) in TABLE {
        assert_eq!(entry.axis, "code");
        let limits = build(&PolicySpec::new(entry.name)).unwrap().limits();
        assert!(limits.sources > 0 && limits.symbols >= limits.sources.into(), "{}", entry.name);
        assert_eq!(limits.keys(1) > 0, limits.repairs, "{}", entry.name);
        assert!(limits.keys(1) <= crate::wire::MAX_REPAIR_KEY, "{}", entry.name);
    }
}

#[test]
fn what_is_supposed_of_everybody_is_not_announced() {
    assert_eq!(announcement("reed-solomon"), None);
    assert_eq!(announcement("none"), None);
    let names = announcement("random-linear").unwrap();
    assert!(names.starts_with("random-linear ") && names.contains(" reed-solomon"), "{names}");
}

#[test]
fn a_side_codes_only_with_what_the_other_decodes() {
    for name in ["reed-solomon", "random-linear"] {
        assert!(is_decoded(None, name) && is_decoded(announcement(name).as_deref(), name));
    }
    assert!(!is_decoded(None, "none") && !is_decoded(Some("mirror reed"), "reed-solomon"));
    assert!(of_peer(None).limits().any_symbols_suffice);
    assert!(!of_peer(Some("random-linear reed-solomon")).limits().any_symbols_suffice);
    for strange in ["", "mirror", " reed-solomon"] {
        assert!(!of_peer(Some(strange)).limits().repairs, "{strange:?}");
    }
}
