//! Which protocols a flow can run, by name.

use anabranch_core::profiles::{AXES, Profile};

use super::error::Flaw;
use super::reader::Section;

/// A protocol with every option.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// The transport itself, both endpoints of it, with these policies.
    Core(Profile),
}

/// Names of all profiles with a line about each, in the order that messages list them.
pub fn all() -> Vec<(String, String)> {
    Profile::all().into_iter().map(|profile| (profile.name, profile.summary)).collect()
}

/// The protocol that a flow's section names, with the section's changes.
pub(super) fn read(section: &Section<'_>) -> Option<Protocol> {
    let name = section.text("profile")?;
    if let Some(profile) = Profile::named(&name) {
        if section.has("tcp") {
            section.complain("tcp", format!("given for profile '{name}'"), "policy, transport");
        }
        return Some(Protocol::Core(policies(section, profile)));
    }
    let known: Vec<String> = all().into_iter().map(|(name, _)| name).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let path = section.path_of("profile");
    section.report(Flaw::unknown(section.place_of("profile"), path, "profile", &name, &known));
    None
}

fn policies(section: &Section<'_>, mut profile: Profile) -> Profile {
    let Some(table) = section.table("policy").filter(|_| section.has("policy")) else {
        return profile;
    };
    for axis in AXES {
        let Some(value) = table.text(axis) else { continue };
        if let Err(error) = profile.set(axis, &value) {
            table.complain(axis, error.to_string(), "");
        }
    }
    profile
}
