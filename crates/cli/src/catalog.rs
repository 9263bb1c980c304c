//! `profiles` and `policies`: lists of everything that can be chosen by name.

use std::collections::BTreeMap;
use std::fmt::Write;

use anabranch_core::profiles::Profile;
use anabranch_policy::Axis;
use anabranch_policy::registry::{Entry, Registry};
use serde::Serialize;

use crate::args::{PoliciesArgs, ProfilesArgs};
use crate::failure::Failure;
use crate::output;
use crate::values::Setting;

#[derive(Serialize)]
struct ProfileRow {
    name: String,
    default: bool,
    summary: String,
    axes: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
struct PolicyRow {
    #[serde(serialize_with = "name_of")]
    axis: Axis,
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    options: Vec<OptionRow>,
}

#[derive(Serialize)]
struct OptionRow {
    name: &'static str,
    what: &'static str,
    default: &'static str,
}

fn name_of<S: serde::Serializer>(axis: &Axis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(axis.name())
}

/// The profile called `name`, with the policies that `settings` replace.
pub fn profile(name: &str, settings: &[Setting]) -> Result<Profile, Failure> {
    let mut profile = Profile::named(name).ok_or_else(|| {
        let known: Vec<String> = Profile::all().into_iter().map(|profile| profile.name).collect();
        Failure::usage(format!("there is no profile '{name}'; known: {}", known.join(", ")))
    })?;
    for Setting { axis, policy } in settings {
        profile
            .set(*axis, policy)
            .map_err(|error| Failure::usage(format!("--set {axis}={policy}: {error}")))?;
    }
    Ok(profile)
}

/// Lists the profiles.
pub fn profiles(args: &ProfilesArgs) -> Result<(), Failure> {
    let row = |(index, profile): (usize, Profile)| ProfileRow {
        default: index == 0,
        axes: Axis::ALL.map(|axis| (axis.name(), profile.policy(axis).to_string())).into(),
        name: profile.name,
        summary: profile.summary,
    };
    let rows: Vec<ProfileRow> = Profile::all().into_iter().enumerate().map(row).collect();
    if args.json {
        return output::print_json(&rows);
    }
    output::print(&profile_text(&rows))
}

fn profile_text(rows: &[ProfileRow]) -> String {
    let mut text = String::new();
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in rows {
        let default = if row.default { " (the default)" } else { "" };
        let _ = writeln!(text, "{:width$}  {}{default}", row.name, row.summary);
        for axis in Axis::ALL {
            if let Some(policy) = row.axes.get(axis.name()) {
                let _ = writeln!(text, "{:width$}    {axis:<15} {policy}", "");
            }
        }
    }
    text
}

/// Lists the policies.
pub fn policies(args: &PoliciesArgs) -> Result<(), Failure> {
    let mut rows = policy_rows();
    if let Some(axis) = &args.axis {
        rows.retain(|row| row.axis.name() == axis);
    }
    if args.json {
        return output::print_json(&rows);
    }
    output::print(&policy_text(&rows, args.options))
}

/// Every policy, axis by axis.
fn policy_rows() -> Vec<PolicyRow> {
    let row = |axis: Axis, entry: &Entry| PolicyRow {
        axis,
        name: entry.name,
        summary: entry.summary,
        source: entry.source,
        options: entry
            .options
            .iter()
            .map(|option| OptionRow {
                name: option.key,
                what: option.what,
                default: option.default,
            })
            .collect(),
    };
    let registry = Registry::new();
    let on = |axis| registry.entries(axis).into_iter().map(move |entry| row(axis, entry));
    Axis::ALL.into_iter().flat_map(on).collect()
}

fn policy_text(rows: &[PolicyRow], options: bool) -> String {
    let mut text = String::new();
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut axis = None;
    for row in rows {
        if axis != Some(row.axis) {
            axis = Some(row.axis);
            let _ = writeln!(text, "{}: {}", row.axis, row.axis.summary());
        }
        let _ = writeln!(text, "  {:width$}  {}", row.name, row.summary);
        if !options {
            continue;
        }
        if !row.source.is_empty() {
            let _ = writeln!(text, "  {:width$}    follows {}", "", row.source);
        }
        for option in &row.options {
            let OptionRow { name, what, default } = option;
            let _ = writeln!(text, "  {:width$}    {name}={default}: {what}", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_has_policies_that_profiles_accept() {
        let rows = policy_rows();
        for axis in Axis::ALL {
            assert!(rows.iter().any(|row| row.axis == axis), "{axis}");
        }
        for row in rows {
            let mut profile = Profile::named("uncoded").unwrap();
            profile.set(row.axis, row.name).unwrap_or_else(|e| panic!("{}: {e}", row.name));
        }
    }
}
