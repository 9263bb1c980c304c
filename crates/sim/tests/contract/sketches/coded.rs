//! Helpers that the sketches of coded protocols share: a profile, losses, and the fates of blocks.

use std::collections::BTreeMap;

use anabranch_core::observe::Observation;
use anabranch_core::profiles::Profile;
use anabranch_policy::Axis;
use anabranch_types::{Rng, Time};

use crate::core::Core;
use crate::rig::Rig;

/// The uncoded profile with other policies on some axes.
pub fn profile(choices: &[(Axis, &str)]) -> Profile {
    let mut profile = Profile::named("uncoded").expect("built in");
    for (axis, value) in choices {
        profile.set(*axis, value).expect("it exists");
    }
    profile
}

/// Loses packets of path i independently with the probability `loss[i]`.
pub fn random(loss: &'static [f64]) -> impl FnMut(u32) -> bool {
    let mut rng = Rng::substream(7, "losses of a sketch");
    move |path| rng.chance(loss[path as usize])
}

/// Loses the listed packets with symbols. Each is given by its path and its position on that path,
/// counted from 0.
pub fn listed(lost: &'static [(u32, u64)]) -> impl FnMut(u32) -> bool {
    let mut places = BTreeMap::<u32, u64>::new();
    move |path| {
        let place = places.entry(path).or_default();
        *place += 1;
        lost.contains(&(path, *place - 1))
    }
}

/// A symbol or repair that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub at: Time,
    pub path: u32,
    /// "source", "repair" or "resend".
    pub what: &'static str,
    /// The first symbol that the symbol or repair covers.
    pub first: u64,
}

/// The fate of one block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub sources: u16,
    pub planned: u16,
    /// Number of repairs that became due for losses in each round.
    pub due: Vec<u16>,
    pub sent: Vec<Sent>,
}

/// All symbols and repairs that were sent, oldest first.
pub fn departures(observed: &[(Time, Observation)]) -> Vec<Sent> {
    let sent = |(at, observation): &(Time, Observation)| match observation {
        Observation::Scheduled { path, what, symbol, .. } => {
            Some(Sent { at: *at, path: path.0, what, first: symbol.ordinal() })
        }
        _ => None,
    };
    observed.iter().filter_map(sent).collect()
}

/// The blocks that were closed, by their first symbols, with all their symbols and repairs that
/// were sent. Not for sliding codes, whose repairs belong to no block.
pub fn blocks(observed: &[(Time, Observation)]) -> BTreeMap<u64, Block> {
    let mut blocks = BTreeMap::<u64, Block>::new();
    for (_, observation) in observed {
        match observation {
            Observation::BlockClosed { first, sources, repairs, .. } => {
                let block = blocks.entry(first.ordinal()).or_default();
                (block.sources, block.planned) = (*sources, *repairs);
            }
            Observation::RepairsDue { first, count } => {
                blocks.entry(first.ordinal()).or_default().due.push(*count);
            }
            _ => {}
        }
    }
    for sent in departures(observed) {
        if let Some((first, block)) = blocks.range_mut(..=sent.first).next_back()
            && sent.first < first + u64::from(block.sources)
        {
            block.sent.push(sent);
        }
    }
    blocks
}

/// Writes the bytes of `symbols` symbols, a few at a time as there is room, and waits until all
/// have arrived. Returns the time that this took, milliseconds.
pub fn transfer(rig: &mut Core, symbols: u64) -> u64 {
    let (mut written, before) = (0, rig.delivered());
    for milli in 0..60_000 {
        let waiting = before + written - rig.delivered();
        if written < symbols && waiting < 200 {
            let more = (symbols - written).min(20);
            rig.write(more);
            written += more;
        }
        rig.step();
        if rig.delivered() == before + symbols {
            return milli + 1;
        }
    }
    panic!("{} of {symbols} symbols arrived", rig.delivered() - before);
}
