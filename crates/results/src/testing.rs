//! Sweeps for the tests of this crate.

use anabranch_sim::scenario::Scenario;

use crate::Sweep;

/// A sweep of one TCP flow for 0.3 s at each of these loss rates, with seeds from 1 to `seeds`.
pub(crate) fn sweep(losses: &[&str], seeds: u64) -> Sweep {
    let text = format!(
        "name = \"dumbbell\"\nduration = \"300ms\"\nseeds = {seeds}\n[[path]]\nname = \"p\"\n\
         rate = \"1mbit\"\ndelay = \"5ms\"\n[[flow]]\nname = \"bulk\"\nprofile = \"tcp:sack\"\n\
         paths = \"p\"\n[[sweep]]\nname = \"loss\"\nkey = \"path.p.loss\"\nvalues = {losses:?}\n\
         [[claim]]\nmetric = \"goodput_mbps\"\nof = \"bulk\"\nmin = 0\n"
    );
    let scenario = Scenario::parse(&text, "dumbbell.toml");
    Sweep::new(scenario.unwrap_or_else(|mistakes| panic!("{mistakes:?}")), None)
}
