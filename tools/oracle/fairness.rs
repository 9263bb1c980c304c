//! Table 3: how even ten flows share the dumbbell, second by second.

use serde_json::json;
use std::collections::BTreeMap;

use crate::arguments::Arguments;
use crate::dumbbell::{Dumbbell, Outcome, WARM_UP, discipline};
use crate::report::Line;
use crate::senders::imitate;
use crate::statistics::{Estimate, jain};
use crate::table::Table;
use crate::workers;

#[derive(Default)]
struct Group {
    second: Vec<f64>,
    ten_seconds: Vec<f64>,
    whole: Vec<f64>,
}

/// Mean of Jain's index over bins of `width` seconds after the warm-up.
fn binned(outcome: &Outcome, width: usize) -> f64 {
    let edges: Vec<&Vec<u64>> = outcome.seconds.iter().skip(WARM_UP).step_by(width).collect();
    let bins = edges.windows(2).map(|pair| match pair {
        [from, to] => {
            jain(&to.iter().zip(from.iter()).map(|(t, f)| (t - f) as f64).collect::<Vec<_>>())
        }
        _ => 1.0,
    });
    Estimate::of(&bins.collect::<Vec<_>>()).mean
}

/// Runs the table's experiments and sets ours beside them.
pub fn compare(table: &Table, arguments: &Arguments) -> Result<Vec<Line>, String> {
    let mut groups: BTreeMap<&'static str, (Group, usize)> = BTreeMap::new();
    for row in table.rows() {
        let name = row.text("queue")?;
        let known = discipline(name)
            .ok_or_else(|| row.error(&format!("queue: '{name}' is not droptail, red or redecn")))?;
        let flows = row.number("n_flows", 1.0, 10_000.0)? as usize;
        let group = &mut groups.entry(known).or_insert((Group::default(), flows)).0;
        group.second.push(row.number("mean_jain_1s", 0.0, 1.0)?);
        group.ten_seconds.push(row.number("mean_jain_10s", 0.0, 1.0)?);
        group.whole.push(row.number("jain_20_200s", 0.0, 1.0)?);
    }
    let sender = imitate("ns2-sack1", false).ok_or("no such sender")?;
    let groups: Vec<(Dumbbell, Group)> = groups
        .into_iter()
        .map(|(discipline, (group, flows))| {
            let sender = sender.clone();
            (Dumbbell { mbps: 10.0, flows, queue_packets: 49, discipline, sender }, group)
        })
        .collect();
    let seeds = arguments.seeds as usize;
    let outcomes = workers::map(groups.len() * seeds, arguments.jobs, |index| {
        groups[index / seeds].0.run((index % seeds) as u64 + 1)
    })?;
    Ok(groups.iter().zip(outcomes.chunks(seeds)).map(|((d, g), o)| line(d, g, o)).collect())
}

fn line(dumbbell: &Dumbbell, group: &Group, outcomes: &[Outcome]) -> Line {
    let of = |measure: &dyn Fn(&Outcome) -> f64| {
        Estimate::of(&outcomes.iter().map(measure).collect::<Vec<_>>())
    };
    let second = of(&|outcome| binned(outcome, 1));
    let ten_seconds = of(&|outcome| binned(outcome, 10));
    let whole = of(&|outcome| jain(&outcome.rates()));
    let (their_second, their_ten) = (Estimate::of(&group.second), Estimate::of(&group.ten_seconds));
    let their_whole = Estimate::of(&group.whole);
    // Near one, the ratio of two indices says little: compare their difference.
    let near = |ours: &Estimate, theirs: &Estimate| (ours.mean - theirs.mean).abs() <= 0.02;
    Line {
        fields: vec![
            ("queue", json!(dumbbell.discipline)),
            ("reference_1s", json!(their_second.mean)),
            ("ours_1s", json!(second.mean)),
            ("reference_10s", json!(their_ten.mean)),
            ("ours_10s", json!(ten_seconds.mean)),
            ("reference_whole", json!(their_whole.mean)),
            ("ours_whole", json!(whole.mean)),
        ],
        counted: true,
        inside: near(&second, &their_second)
            && near(&ten_seconds, &their_ten)
            && near(&whole, &their_whole),
    }
}
