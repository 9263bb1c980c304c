//! The keys of probes, results, claims, figures, sweeps and variants.

use super::INFINITE;
use crate::scenario::spec::{KeySpec, Kind, needed, optional};

/// The keys of `[[probe]]`.
pub const PROBE: &[KeySpec] = &[
    optional("of", Kind::Names("flows, loads, link.NAME"), "all flows", "the subjects to record"),
    optional("series", Kind::Names("metrics"), "none", "figures over time"),
    optional("samples", Kind::Names("metrics"), "none", "every single value"),
    optional(
        "figures",
        Kind::Names("metrics"),
        "none",
        "figures that are only measured on request",
    ),
    optional("interval", Kind::Time, "1s", "time between two points of a series"),
    optional(
        "slice",
        Kind::Size,
        "64KiB",
        "length of the stream slices that figures of blocks are about",
    ),
    optional(
        "coding-blocks",
        Kind::Flag,
        "false",
        "whether figures of blocks are about coding blocks instead of slices, for flows that code",
    ),
];

/// The keys of `[[result]]`.
pub const RESULT: &[KeySpec] = &[
    needed("item", Kind::Text, "id in the catalogue of published results"),
    needed("title", Kind::Text, "what is measured, for somebody who does not know the paper"),
    optional("source", Kind::Text, "none", "where it is published, such as Figure 11"),
    optional("paper", Kind::Text, "none", "what the paper states"),
    optional("note", Kind::Text, "none", "what a reader should know beside the figures"),
    optional("explanation", Kind::Text, "none", "why the results differ, if they do"),
    optional(
        "readings",
        Kind::Names("variants"),
        "none",
        "variants that read the paper differently, each with a verdict of its own: the first is the item's. Claims about \
         NAME or a variant NAME-… are one reading's, all others are everyone's",
    ),
];

/// Keys that select a figure of the results. Used in [`CLAIM`], [`MEASURE`] and [`CURVE`].
macro_rules! figure_parts {
    ($($more:expr),* $(,)?) => {
        &[
            $($more,)*
            optional("of", Kind::Text, "all", "the subject"),
            optional("at", Kind::Free("sweep keys with values"), "every point", "where"),
            optional(
                "average",
                Kind::Names("seed, sweep keys"),
                "none",
                "keys over which figures are averaged first; with seed, a ratio is that of the averages",
            ),
        ]
    };
}

const METRIC: &str = "a metric, or arithmetic with metrics: goodput_mbps / M, link.a.marks, \
                      goodput_mbps[M=1], mean(cwnd_bytes, 20)";

/// Keys that claims and measures have in common.
macro_rules! claim_parts {
    ($($more:expr),* $(,)?) => {
        figure_parts!(
            $($more,)*
            needed("metric", Kind::Form(METRIC), "the quantity"),
            optional("item", Kind::Text, "the file's", "id of the published result that it is about"),
            optional("name", Kind::Text, "made from the rest", "its name in reports; {M} is a sweep's value"),
            optional("kind", Kind::Word(crate::scenario::claims::KINDS), "value, or ratio beside over or relative-to", "the statistic: over seeds, or over a curve of the means along a sweep"),
            optional("relative-to", Kind::Text, "none", "another subject to divide by or subtract, seed by seed"),
            optional("over", Kind::Free("sweep keys with values"), "none", "another point to divide by or subtract, seed by seed"),
            optional("along", Kind::Text, "none", "the sweep's key that a curve or an order runs along"),
            optional("values", Kind::List("values of that key, in the order to look at"), "all of them", "where the curve is evaluated"),
            optional("less", Kind::Free("sweep keys with values"), "none", "point whose value is subtracted from all the rest"),
            optional("for-each", Kind::Each, "every point that at leaves", "sweep keys, or a table of keys with lists of values"),
            optional("paper", Kind::Text, "none", "the paper's value"),
            optional("reading", Kind::Text, "none", "the reading of the paper that this depends on"),
            optional("ablation", Kind::Flag, "true beside a base", "whether this shows why the others differ"),
        )
    };
}

/// The keys of `[[measure]]`.
pub const MEASURE: &[KeySpec] = claim_parts!();

/// The keys of `[[claim]]`.
pub const CLAIM: &[KeySpec] = claim_parts!(
    optional("min", Kind::Real(-INFINITE, INFINITE), "none", "the least value allowed"),
    optional("max", Kind::Real(-INFINITE, INFINITE), "none", "the largest value allowed"),
    optional(
        "direction",
        Kind::Word(&["rising", "falling"]),
        "none",
        "order: the direction of every step, by more than 0, or than min or max says",
    ),
);

/// The keys of `[[figure]]`.
pub const FIGURE: &[KeySpec] = &[
    needed("title", Kind::Text, "what it shows"),
    optional("item", Kind::Text, "the file's", "id of the published result that it is about"),
    needed("x", Kind::Text, "a sweep's key, variant for bars, or time for a series"),
    optional("x-label", Kind::Text, "x", "the abscissa, with its unit"),
    needed("y", Kind::Text, "the ordinate, with its unit"),
    optional("until", Kind::Time, "the end", "time: how much of the run is shown"),
    needed("curve", Kind::Tables(CURVE), "the curves"),
];

/// The keys of `[[figure.curve]]`.
pub const CURVE: &[KeySpec] = figure_parts!(
    optional("name", Kind::Text, "the metric", "its name in the legend; {M} is a sweep's value"),
    optional("metric", Kind::Form(METRIC), "none", "what is drawn"),
    optional("paper", Kind::List("points [x, y]"), "none", "the paper's points instead"),
);

/// The keys of `[[sweep]]`.
pub const SWEEP: &[KeySpec] = &[
    needed("key", Kind::Names("keys such as vars.M or link.a.loss"), "what is varied"),
    needed("values", Kind::List("values of that key"), "its values, in this order"),
    optional("name", Kind::Name, "the last part of the key", "its name in results"),
    optional("zip", Kind::Text, "none", "sweeps with the same word advance together"),
];

/// The keys of `[[variant]]`.
pub const VARIANT: &[KeySpec] = &[
    needed("name", Kind::Name, "its name in results, at and only"),
    optional("title", Kind::Text, "the name", "its name in figures"),
    optional("set", Kind::Settings, "none", "keys such as flow.bulk.profile, with their values"),
];
