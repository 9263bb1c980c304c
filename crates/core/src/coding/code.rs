//! The erasure code of each direction, as the two ends announce it (wire format, transport parameter 11).

use anabranch_policy::Axis;
use anabranch_policy::code::{ErasureCode, TABLE, none, sliding_window};
use anabranch_policy::registry::{PolicySpec, Registry};

use crate::wire::MAX_CODE_NAMES;

/// No code, for a direction whose sender uses no code that the receiver decodes.
pub fn none() -> Box<dyn ErasureCode> {
    Box::new(none::Uncoded)
}

/// The code of live data that has its own symbol space.
pub fn of_live_data() -> Box<dyn ErasureCode> {
    Box::new(sliding_window::SlidingWindow)
}

/// Whether a side with the `announcement` decodes the code of live data.
pub fn live_data_is_decoded(announcement: Option<&str>) -> bool {
    is_decoded(announcement, sliding_window::ENTRY.name)
}

/// The announcement of a side that uses the code `own`: the codes that it decodes, its own first,
/// as many as fit. `None` if the peer assumes the same without an announcement.
pub fn announcement(registry: &Registry, own: &str) -> Option<String> {
    let codes = registry.entries(Axis::Code);
    let usual = codes.first().is_some_and(|entry| entry.name == own) || own == none::ENTRY.name;
    if usual && codes.len() == TABLE.len() {
        return None;
    }
    let coding = codes.iter().map(|entry| entry.name).filter(|name| *name != none::ENTRY.name);
    let (mut names, others): (Vec<&str>, Vec<&str>) = coding.partition(|name| *name == own);
    names.extend(others);
    let mut length = 0;
    let room = names.iter().take_while(|name| {
        length += name.len() + 1;
        length <= MAX_CODE_NAMES + 1
    });
    Some(room.copied().collect::<Vec<&str>>().join(" "))
}

/// The code that a side with the `announcement` uses for what it sends. A name that is not in the
/// registry stands for no code: the peer does not use such a code, since this side does not
/// announce it.
pub fn of_peer(registry: &Registry, announcement: Option<&str>) -> Box<dyn ErasureCode> {
    let name = match announcement {
        Some(names) => names.split(' ').next(),
        None => supposed().next(),
    };
    name.and_then(|name| registry.build(&PolicySpec::new(name)).ok()).unwrap_or_else(none)
}

/// Whether a side with the `announcement` decodes the code called `name`.
pub fn is_decoded(announcement: Option<&str>, name: &str) -> bool {
    match announcement {
        Some(names) => names.split(' ').any(|known| known == name),
        None => supposed().any(|known| known == name),
    }
}

/// Codes that a side without an announcement is assumed to decode.
fn supposed() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(entry, _)| entry.name).filter(|name| *name != none::ENTRY.name)
}

#[cfg(test)]
mod tests;
