//! Table 4: one flow, loss that alternates between two rates or stays at a high one.

use anabranch_sim::loss::{LossConfig, MarkovConfig, MarkovState};
use anabranch_types::Probability;
use core::time::Duration;
use serde_json::json;
use std::collections::BTreeMap;

use crate::arguments::Arguments;
use crate::bottleneck::{Bottleneck, Outcome};
use crate::report::Line;
use crate::senders::imitate;
use crate::statistics::Estimate;
use crate::table::{Row, Table};
use crate::workers;

/// Rows of one experiment, seed by seed.
#[derive(Default)]
struct Group {
    goodput: Vec<f64>,
    timeouts: Vec<f64>,
    cuts: Vec<f64>,
}

type Key = (String, String, bool);

/// `p` or `low:high:hold` as a loss process.
fn loss(row: &Row<'_>) -> Result<LossConfig, String> {
    let text = row.text("loss_lo:hi:hold_s")?;
    let bad = || row.error(&format!("loss: '{text}' is neither a loss nor low:high:hold"));
    let numbers: Result<Vec<f64>, String> =
        text.split(':').map(|part| part.parse().map_err(|_| bad())).collect();
    let chance =
        |p: f64| if (0.0..=1.0).contains(&p) { Ok(Probability::clamped(p)) } else { Err(bad()) };
    match *numbers?.as_slice() {
        [p] => Ok(LossConfig::Bernoulli(chance(p)?)),
        [low, high, hold] if hold > 1e-6 && hold < 1e4 => {
            let mean_dwell = Duration::from_nanos((hold * 1e9) as u64);
            let state = |loss| MarkovState { loss, mean_dwell };
            let states = vec![state(chance(low)?), state(chance(high)?)];
            Ok(LossConfig::Markov(MarkovConfig { states, jumps: None }))
        }
        _ => Err(bad()),
    }
}

/// Runs every experiment of the table and sets ours beside it.
pub fn compare(table: &Table, arguments: &Arguments) -> Result<Vec<Line>, String> {
    let mut groups: BTreeMap<Key, (Group, Bottleneck)> = BTreeMap::new();
    for row in table.rows() {
        let sim = row.text("sim")?.to_owned();
        let delayed = row.number("delack", 0.0, 1.0)? > 0.5;
        let bottleneck = Bottleneck {
            mbps: row.number("bw_mbps", 0.001, 1e6)?,
            one_way_ms: row.number("owd_ms", 0.0, 60_000.0)?,
            queue_packets: row.number("queue_pkts", 1.0, 1e6)?,
            loss: loss(&row)?,
        };
        let goodput = row.number("goodput_mbps", 0.0, 1e6)?;
        // ns-3 rows have no count of timeouts and cuts.
        let count = |column| row.text(column).map(|text| text.parse().unwrap_or(f64::NAN));
        let (timeouts, cuts) = (count("timeouts")?, count("cwnd_cuts")?);
        // A minimum timeout other than the common one makes another experiment.
        let usual = (row.number("minrto_s", 0.0, 60.0)? - 0.2).abs() < 1e-9;
        let wanted = imitate(&sim, delayed).is_some_and(|i| i.reference || arguments.all)
            && arguments.sim.as_ref().is_none_or(|name| *name == sim);
        if usual && wanted {
            let key = (sim, row.text("loss_lo:hi:hold_s")?.to_owned(), delayed);
            let group = &mut groups.entry(key).or_insert((Group::default(), bottleneck)).0;
            group.goodput.push(goodput);
            group.timeouts.push(timeouts);
            group.cuts.push(cuts);
        }
    }
    let groups: Vec<(Key, (Group, Bottleneck))> = groups.into_iter().collect();
    let seeds = arguments.seeds as usize;
    let outcomes = workers::map(groups.len() * seeds, arguments.jobs, |index| {
        let ((sim, _, delayed), (_, bottleneck)) = &groups[index / seeds];
        let sender = imitate(sim, *delayed).ok_or("no such sender")?;
        bottleneck.run(&sender, (index % seeds) as u64 + 1)
    })?;
    let lines = groups.iter().zip(outcomes.chunks(seeds));
    Ok(lines.map(|((key, (group, _)), outcomes)| line(key, group, outcomes)).collect())
}

fn line(key: &Key, group: &Group, outcomes: &[Outcome]) -> Line {
    let of =
        |field: fn(&Outcome) -> f64| Estimate::of(&outcomes.iter().map(field).collect::<Vec<_>>());
    let reference = Estimate::of(&group.goodput);
    let (goodput, timeouts, cuts) = (of(|o| o.goodput_mbps), of(|o| o.timeouts), of(|o| o.cuts));
    let their_timeouts = Estimate::of(&group.timeouts);
    let inside =
        goodput.agrees(&reference, 0.15) && timeouts.within_factor(&their_timeouts, 1.5, 20.0);
    Line {
        fields: vec![
            ("sim", json!(key.0)),
            ("loss", json!(key.1)),
            ("delack", json!(u8::from(key.2))),
            ("reference_mbps", json!(reference.mean)),
            ("reference_se_mbps", json!(reference.error)),
            ("ours_mean_mbps", json!(goodput.mean)),
            ("ours_se_mbps", json!(goodput.error)),
            ("reference_timeouts", json!(their_timeouts.mean)),
            ("ours_timeouts", json!(timeouts.mean)),
            ("reference_cuts", json!(Estimate::of(&group.cuts).mean)),
            ("ours_cuts", json!(cuts.mean)),
        ],
        counted: imitate(&key.0, key.2).is_some_and(|imitation| imitation.reference),
        inside,
    }
}
