//! The erasure codes by name, and which of them two ends use.

mod none;
mod random_linear;
mod reed_solomon;
mod sliding_window;

use anabranch_policy::code::{Build, ErasureCode};
use anabranch_policy::registry::{self, PolicyError, PolicySpec, Row};

/// The codes. The first is the one of a peer that names none; every code here is decoded by both ends of
/// such a connection (wire format, transport parameter 11).
pub const TABLE: &[Row<Build>] = &[
    (&reed_solomon::ENTRY, reed_solomon::build),
    (&random_linear::ENTRY, random_linear::build),
    (&sliding_window::ENTRY, sliding_window::build),
    (&none::ENTRY, none::build),
];

/// The code that `spec` names.
pub fn build(spec: &PolicySpec) -> Result<Box<dyn ErasureCode>, PolicyError> {
    let (build, options) = registry::find("code", TABLE, spec)?;
    build(&options)
}

/// No code: for sides of which one codes nothing, or nothing that the other decodes.
pub fn none() -> Box<dyn ErasureCode> {
    Box::new(none::Uncoded)
}

/// What a side that uses the code `own` announces: the codes that it decodes, its own first. `None` where
/// that is what is supposed of it anyway.
pub fn announcement(own: &str) -> Option<String> {
    let first = TABLE.first().map(|(entry, _)| entry.name);
    if Some(own) == first || own == none::ENTRY.name {
        return None;
    }
    let mut names = own.to_owned();
    for other in coding_names().filter(|name| *name != own) {
        names.push(' ');
        names.push_str(other);
    }
    Some(names)
}

/// The code that a side with the `announcement` uses for what it sends. A name that is not in the
/// table stands for no code: nothing in it will be sent, since this side does not announce it.
pub fn of_peer(announcement: Option<&str>) -> Box<dyn ErasureCode> {
    let name = match announcement {
        Some(names) => names.split(' ').next(),
        None => TABLE.first().map(|(entry, _)| entry.name),
    };
    name.and_then(|name| build(&PolicySpec::new(name)).ok()).unwrap_or_else(none)
}

/// Whether a side with the `announcement` decodes the code called `name`.
pub fn is_decoded(announcement: Option<&str>, name: &str) -> bool {
    match announcement {
        Some(names) => names.split(' ').any(|known| known == name),
        None => coding_names().any(|known| known == name),
    }
}

fn coding_names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(entry, _)| entry.name).filter(|name| *name != none::ENTRY.name)
}

#[cfg(test)]
mod tests;
