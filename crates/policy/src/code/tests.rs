use super::*;

#[test]
fn every_code_states_limits_that_agree() {
    for (entry, _) in TABLE {
        let limits = build(&PolicySpec::new(entry.name)).unwrap().limits();
        assert!(limits.sources > 0 && limits.symbols >= limits.sources.into(), "{}", entry.name);
        assert_eq!(limits.keys(1) > 0, limits.repairs, "{}", entry.name);
        assert!(limits.keys(1) <= MAX_KEY, "{}", entry.name);
    }
}
