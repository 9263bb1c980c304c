//! Generates the tables of keys in the documentation from the descriptions of the keys.

use core::fmt::Write as _;

use super::keys;
use super::spec::{KeySpec, Kind};
use crate::probe::{About, METRICS};

/// Title and keys of each table, in the order of the page.
const TABLES: &[(&str, &[KeySpec])] = &[
    ("The file", keys::SCENARIO),
    ("`[[link]]`", keys::LINK),
    ("`[[path]]`", keys::PATH),
    ("`reverse`", keys::REVERSE),
    ("`[mesh]`", keys::MESH),
    ("`rate` as a table", keys::RATE_TABLE),
    ("`delay` as a table", keys::DELAY_TABLE),
    ("`loss` as a table", keys::LOSS_TABLE),
    ("`faults`", keys::FAULTS),
    ("`queue` as a table", keys::QUEUE_TABLE),
    ("`[[correlation]]`", keys::CORRELATION),
    ("`[[flow]]`", keys::FLOW),
    ("`traffic` as a table", keys::TRAFFIC),
    ("`policy`", keys::POLICY),
    ("`transport`", keys::TRANSPORT),
    ("`tcp`", keys::TCP),
    ("`[[load]]`", keys::LOAD),
    ("`[[probe]]`", keys::PROBE),
    ("`[[sweep]]`", keys::SWEEP),
    ("`[[variant]]`", keys::VARIANT),
    ("`[[claim]]`", keys::CLAIM),
    ("`[[measure]]`", keys::MEASURE),
    ("`[[figure]]`", keys::FIGURE),
    ("`[[figure.curve]]`", keys::CURVE),
    ("`[[result]]`", keys::RESULT),
];

/// Tables of all keys and all metrics, in Markdown.
pub(super) fn markdown() -> String {
    let mut page = String::new();
    for (title, keys) in TABLES {
        let _ =
            writeln!(page, "### {title}\n\n| key | holds | default | means |\n|---|---|---|---|");
        for spec in *keys {
            let (key, what) = (spec.key, spec.what);
            let default = spec.default.unwrap_or("required");
            let _ = writeln!(page, "| `{key}` | {} | {default} | {what} |", holds(&spec.kind));
        }
        page.push('\n');
    }
    page.push_str("### Figures\n\n| metric | about | forms | definition |\n|---|---|---|---|\n");
    for metric in METRICS {
        let about = match metric.about {
            About::Flow => "flows",
            About::Path => "flows, paths",
            About::Link => "links",
            About::Mesh => "mesh",
        };
        let forms = [
            (metric.scalar && !metric.on_request, "figure"),
            (metric.scalar && metric.on_request, "figure on request"),
            (metric.series, "series"),
            (metric.samples, "samples"),
        ];
        let forms: Vec<&str> =
            forms.iter().filter(|(has, _)| *has).map(|(_, form)| *form).collect();
        let (name, forms) = (metric.name, forms.join(", "));
        let _ = writeln!(page, "| `{name}` | {about} | {forms} | {} |", metric.what);
    }
    page
}

fn holds(kind: &Kind) -> String {
    let text = match kind {
        Kind::Part(form, _) => format!("{form}; or a table, below"),
        Kind::Table(_) => "a table, below".to_owned(),
        Kind::Tables(_) => "tables, below".to_owned(),
        other => other.allowed(),
    };
    text.replace('|', "\\|")
}
