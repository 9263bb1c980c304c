use super::*;

#[test]
fn every_profile_can_be_built() {
    for profile in Profile::all() {
        let mut copy = profile.clone();
        for axis in AXES {
            let value = profile.axis(axis).unwrap();
            copy.set(axis, &value).unwrap_or_else(|e| panic!("{}: {axis}: {e}", profile.name));
        }
        assert_eq!(copy, profile);
    }
}

#[test]
fn unknown_axes_and_policies_name_what_exists() {
    let mut profile = Profile::named("anabranch").unwrap();
    let error = profile.set("colour", "red").unwrap_err().to_string();
    assert!(error.contains("scheduler"), "{error}");
    let error = profile.set("code", "parity").unwrap_err().to_string();
    assert!(error.contains("reed-solomon"), "{error}");
    assert!(Profile::named("tcp").is_none());
}
