//! Creates the symbolic links of an offer. Their targets were checked with the offer: each is another entry of it.

use anabranch_files::Facts;
use anabranch_transfer::{Code, Target};

use super::error::TransferError;
use super::partial::Beside;
use super::store::exists;
use super::target::Place;

/// Makes a link. What exists under its name is replaced only if that is allowed and it is not a
/// directory.
pub(super) fn make(place: &Place, target: &Target, overwrite: bool) -> Result<(), TransferError> {
    let failed = |error| place.failed(&error);
    let there = place.look()?;
    if there.as_ref().is_some_and(|facts| is_link(facts) && leads_to(place, target)) {
        return Ok(());
    }
    match there {
        None => place.directory.link(target.as_str(), &place.name).map_err(|error| match error
            .kind()
        {
            std::io::ErrorKind::AlreadyExists => changed(place),
            _ => failed(error),
        })?,
        Some(old) if overwrite && !old.is_directory => replace(place, target, &old)?,
        Some(_) => return Err(exists(place)),
    }
    place.directory.sync().map_err(failed)
}

/// Replaces what is there in one step, so that the name always exists.
fn replace(place: &Place, target: &Target, old: &Facts) -> Result<(), TransferError> {
    let failed = |error| place.failed(&error);
    let beside = Beside::new(place);
    place.directory.remove(&beside.new).map_err(failed)?;
    place.directory.link(target.as_str(), &beside.new).map_err(failed)?;
    if place.look()?.as_ref() != Some(old) {
        // If removal fails, the earlier error is still the one to report.
        let _ = place.directory.remove(&beside.new);
        return Err(changed(place));
    }
    place.directory.rename(&beside.new, &place.name).map_err(failed)
}

fn is_link(facts: &Facts) -> bool {
    !facts.is_file && !facts.is_directory
}

fn leads_to(place: &Place, target: &Target) -> bool {
    place.directory.target(&place.name).is_ok_and(|there| there == target.as_str())
}

fn changed(place: &Place) -> TransferError {
    place.wrong(Code::TargetChanged, |what| {
        format!("{what} was changed by somebody else; run the same command again")
    })
}
