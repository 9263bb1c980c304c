//! How long a receiver takes to check the largest offers, beside sorting their names.

use std::hint::black_box;
use std::time::Duration;

use anabranch_transfer::{Entry, Kind, Manifest, Modified, Name, Target};
use criterion::Criterion;

/// Links on the way to a file, as many as are followed.
const CHAIN: u32 = 8;

/// An entry in the directory `above`: the file `0`, or, if there are links, a link to the entry before, where a file
/// begins each chain.
fn entry(above: &str, number: u32, links: bool) -> Entry {
    let is_link = links && !number.is_multiple_of(CHAIN + 1);
    let target = || Target::new((number - 1).to_string()).expect("a number is a target");
    Entry {
        name: Name::new(format!("{above}{number}")).expect("a name"),
        kind: if is_link { Kind::Link } else { Kind::File },
        mode: 0,
        size: 0,
        modified: Modified::default(),
        target: is_link.then(target),
    }
}

/// Entries in the directory `above`, as many as there may be.
fn offer(above: &str, links: bool) -> Manifest {
    let mut offer = Manifest::default();
    let _full = (0..u32::MAX).try_for_each(|number| offer.push(&entry(above, number, links)));
    offer
}

/// A directory of this many levels, each with a name of this length.
fn deep(levels: usize, length: usize) -> String {
    ("d".repeat(length) + "/").repeat(levels)
}

fn main() {
    let mut criterion = Criterion::default()
        .configure_from_args()
        .measurement_time(Duration::from_secs(10))
        .sample_size(10);
    let offers = [
        ("files", offer("", false)),
        ("links to links", offer("", true)),
        ("files far down", offer(&deep(63, 63), false)),
        ("links to links far down", offer(&deep(63, 63), true)),
        ("links to links in short directories", offer(&deep(63, 1), true)),
    ];
    for (name, offer) in &offers {
        let entries = offer.len();
        println!("{name}: {entries} entries, {:?}", offer.check());
        criterion.bench_function(&format!("check/{name}"), |bencher| {
            bencher.iter(|| black_box(offer).check());
        });
        let names: Vec<String> =
            offer.entries().map(|entry| entry.name.as_str().to_owned()).collect();
        criterion.bench_function(&format!("sort/{name}"), |bencher| {
            bencher.iter_batched(
                || names.iter().rev().collect::<Vec<_>>(),
                |mut names| names.sort_unstable(),
                criterion::BatchSize::LargeInput,
            );
        });
    }
    criterion.final_summary();
}
