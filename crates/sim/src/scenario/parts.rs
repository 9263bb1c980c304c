//! Reads the parts of a link from the keys of a section.

use anabranch_types::{Bitrate, Probability, parse_duration};

use super::reader::{Part, Section};
use super::tree::{Node, Value};
use crate::delay::{DelayCourse, DelayTrace};
use crate::link::{FaultConfig, LinkConfig};
use crate::loss::{LossConfig, LossTrace, LossTraceForm, MarkovConfig, MarkovState};
use crate::queue::{CodelConfig, Discipline, QueueConfig, RedConfig, RedThresholds};
use crate::rate::{DeliveryTrace, Fluctuation, TraceError};

/// Reads the link that `section` describes. Keys that are left out keep their values from `base`.
pub(super) fn link_config(section: &Section<'_>, base: LinkConfig) -> LinkConfig {
    let mut config = base;
    rate(section, &mut config);
    delay(section, &mut config);
    for key in ["jitter", "jitter-law", "jitter-correlation", "clumps", "policer"] {
        set(section, key, &mut config);
    }
    if let Some(reorder) = section.flag("reorder") {
        config.jitter.reorder = reorder;
    }
    if let Err(error) = config.check_jitter(|key| section.has(key)) {
        section.complain(&error.key, error.given, error.allowed);
    }
    for key in ["buffer", "blackout", "mtu"] {
        set(section, key, &mut config);
    }
    if section.has("faults")
        && let Some(table) = section.table("faults")
    {
        config.faults = faults(&table);
    }
    match section.part("loss") {
        Some(Part::Text(text, _)) => {
            set_to(section, "loss", &text, &mut config);
        }
        Some(Part::Table(table)) => {
            if let Some(loss) = loss_table(&table) {
                config.loss = loss;
            }
        }
        None => {}
    }
    if let Some(discipline) = discipline(section) {
        config.queue = QueueConfig { discipline, ..config.queue };
    }
    config
}

fn faults(table: &Section<'_>) -> FaultConfig {
    let share = |key| table.share(key).map_or(0.0, Probability::get);
    FaultConfig {
        flip: share("flip"),
        truncate: share("truncate"),
        duplicate: share("duplicate"),
        replay: share("replay"),
        inject: share("inject"),
        hold: share("hold"),
        thin_acks: table.count("thin-acks").and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
    }
}

fn delay(section: &Section<'_>, config: &mut LinkConfig) {
    match given(section, "delay", DelayTrace::parse) {
        Some(Given::Text(text)) => {
            set_to(section, "delay", &text, config);
        }
        Some(Given::Trace(trace)) => config.set_delay_trace(trace),
        None => {}
    }
    let traced = matches!(config.delay_course, DelayCourse::Trace(_));
    if set(section, "delay-steps", config) && traced {
        section.complain("delay-steps", "given beside a trace", "one of the two");
    }
}

/// A value that changes with time, given in the text form or recorded in a file.
enum Given<T> {
    Text(String),
    Trace(T),
}

/// Reads the value of `key`. A text that begins with `trace:`, or the key `trace` of a table, names
/// a file. Mistakes are reported.
fn given<T>(
    section: &Section<'_>,
    key: &str,
    parse: impl Fn(&str) -> Result<T, TraceError>,
) -> Option<Given<T>> {
    let trace = match section.part(key)? {
        Part::Table(table) => trace(&table, "trace", table.text("trace")?.as_str(), parse),
        Part::Text(text, _) => match text.trim().strip_prefix("trace:") {
            Some(path) => trace(section, key, path, parse),
            None => return Some(Given::Text(text)),
        },
    };
    trace.map(Given::Trace)
}

/// Reads the file at `path`, which `key` names, with `parse`. Mistakes are reported.
fn trace<T>(
    section: &Section<'_>,
    key: &str,
    path: &str,
    parse: impl Fn(&str) -> Result<T, TraceError>,
) -> Option<T> {
    let content = section.content(key, path)?;
    let complain = |error| section.complain(key, format!("{path}: {error}"), "");
    parse(&content).map_err(complain).ok()
}

fn rate(section: &Section<'_>, config: &mut LinkConfig) {
    match given(section, "rate", DeliveryTrace::parse) {
        Some(Given::Text(text)) => {
            let read = set_to(section, "rate", &text, config);
            if read {
                config.fluctuation = Fluctuation::None;
            }
        }
        Some(Given::Trace(trace)) => config.set_rate_trace(trace),
        None => {}
    }
    let traced = matches!(config.fluctuation, Fluctuation::Trace(_));
    if set(section, "fluctuation", config) && traced {
        section.complain("fluctuation", "given beside a trace", "one of the two");
    }
}

/// Applies a key of the text form. Returns whether the key is present and valid.
fn set(section: &Section<'_>, key: &str, config: &mut LinkConfig) -> bool {
    section.text(key).is_some_and(|text| set_to(section, key, &text, config))
}

/// Like [`set`], but for a key that is known to hold `text`.
fn set_to(section: &Section<'_>, key: &str, text: &str, config: &mut LinkConfig) -> bool {
    let (text, mut alone) = (text.trim(), blank());
    let outcome = if text.contains(',') {
        Err((text.to_owned(), "no comma".to_owned()))
    } else {
        let set = alone.set(key, text).and_then(|()| alone.validate());
        let set = set.and_then(|()| config.set(key, text));
        set.map_err(|error| (error.given, error.allowed))
    };
    if let Err((given, allowed)) = &outcome {
        section.refuse_value(key, given, allowed);
    }
    outcome.is_ok()
}

fn discipline(section: &Section<'_>) -> Option<Discipline> {
    let red = |ecn| Discipline::Red(RedConfig { ecn, ..RedConfig::default() });
    let codel = |ecn| Discipline::Codel(CodelConfig { ecn, ..CodelConfig::default() });
    match section.part("queue")? {
        Part::Text(text, place) => match text.as_str() {
            "drop-tail" => Some(Discipline::DropTail),
            "red" => Some(red(false)),
            "red-ecn" => Some(red(true)),
            "codel" => Some(codel(false)),
            "codel-ecn" => Some(codel(true)),
            _ => {
                let given = format!("'{text}' is not accepted");
                section.refuse("queue", place, &given);
                None
            }
        },
        Part::Table(table) => queue_table(&table),
    }
}

fn queue_table(table: &Section<'_>) -> Option<Discipline> {
    let kind = table.word("kind")?;
    let ecn = table.flag("ecn").unwrap_or(false);
    let only = |kinds: &str, keys: &[&str]| {
        for key in keys.iter().filter(|key| table.has(key)) {
            table.complain(key, format!("given for a queue of kind '{kind}'"), kinds.to_owned());
        }
    };
    let red_keys = ["min", "max", "weight", "max-probability", "gentle"];
    let codel_keys = ["target", "interval"];
    match kind {
        "red" => {
            only("this key only with kind = \"codel\"", &codel_keys);
            red_table(table, ecn)
        }
        "codel" => {
            only("this key only with kind = \"red\"", &red_keys);
            codel_table(table, ecn)
        }
        _ => {
            only("this key only with kind = \"red\"", &red_keys);
            only("this key only with kind = \"codel\"", &codel_keys);
            only("this key only with red and codel", &["ecn"]);
            Some(Discipline::DropTail)
        }
    }
}

fn codel_table(table: &Section<'_>, ecn: bool) -> Option<Discipline> {
    let mut codel = CodelConfig { ecn, ..CodelConfig::default() };
    for (key, field) in [("target", &mut codel.target), ("interval", &mut codel.interval)] {
        if let Some(time) = table.time(key) {
            *field = time;
        }
    }
    let config = QueueConfig { limit: None, discipline: Discipline::Codel(codel) };
    if let Err(error) = config.validate() {
        let key = if table.has("target") { "target" } else { "interval" };
        table.complain(key, error.to_string(), "");
        return None;
    }
    Some(config.discipline)
}

fn red_table(table: &Section<'_>, ecn: bool) -> Option<Discipline> {
    let mut red = RedConfig { ecn, ..RedConfig::default() };
    match (table.real("min"), table.real("max")) {
        (Some(min), Some(max)) if min < max => red.thresholds = RedThresholds::Packets { min, max },
        (Some(_), Some(max)) => {
            table.refuse_value("max", &max.to_string(), "a number above min");
            return None;
        }
        (None, None) => {}
        _ => {
            let key = if table.has("min") { "min" } else { "max" };
            table.complain(key, "one threshold without the other", "min and max together");
            return None;
        }
    }
    if let Some(weight) = table.real("weight") {
        if weight <= 0.0 {
            table.refuse_value("weight", &weight.to_string(), "a number above 0, at most 1");
        }
        red.weight = weight;
    }
    if let Some(probability) = table.share("max-probability") {
        red.max_probability = probability;
    }
    if let Some(gentle) = table.flag("gentle") {
        red.gentle = gentle;
    }
    Some(Discipline::Red(red))
}

fn loss_trace(table: &Section<'_>) -> Option<LossConfig> {
    for key in ["states", "dwell", "jumps"].into_iter().filter(|key| table.has(key)) {
        table.complain(key, "given beside a trace", "trace, form and repeat, or states");
    }
    let form = match table.word("form") {
        Some("indices") => LossTraceForm::Indices,
        Some("times") => LossTraceForm::Times,
        _ => LossTraceForm::Outcomes { repeat: table.flag("repeat").unwrap_or(true) },
    };
    let path = table.text("trace")?;
    trace(table, "trace", &path, |text| LossTrace::parse(text, form)).map(LossConfig::Trace)
}

fn loss_table(table: &Section<'_>) -> Option<LossConfig> {
    if table.has("trace") {
        return loss_trace(table);
    }
    let states = list(table, "states", |text| {
        text.trim().ends_with('%').then(|| text.parse::<Probability>().ok())?
    })?;
    let dwells = list(table, "dwell", |text| parse_duration(text).ok())?;
    let every = match dwells.as_slice() {
        [one] => vec![*one; states.len()],
        many => many.to_vec(),
    };
    if every.len() != states.len() {
        let given = format!("{} durations for {} states", every.len(), states.len());
        table.complain("dwell", given, "one, or one for each state");
        return None;
    }
    let states = states.into_iter().zip(every);
    let states = states.map(|(loss, mean_dwell)| MarkovState { loss, mean_dwell }).collect();
    let jumps = if table.has("jumps") { Some(matrix(table, "jumps")?) } else { None };
    let config = LossConfig::Markov(MarkovConfig { states, jumps });
    match config.validate() {
        Ok(()) => Some(config),
        Err(error) => {
            let key = if table.has("jumps") { "jumps" } else { "states" };
            table.complain(key, error.to_string(), "");
            None
        }
    }
}

/// Reads the list under `key` and parses each item with `parse`. A single value counts as a list of
/// one.
fn list<T>(table: &Section<'_>, key: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let Some(items) = table.names(key) else {
        table.refuse(key, table.place, "missing");
        return None;
    };
    let mut read = Vec::new();
    for (text, place) in items {
        match parse(&text) {
            Some(value) => read.push(value),
            None => {
                let given = format!("'{text}' is not accepted");
                table.refuse(key, place, &given);
                return None;
            }
        }
    }
    Some(read)
}

/// Reads a list of rows of numbers.
fn matrix(table: &Section<'_>, key: &str) -> Option<Vec<Vec<f64>>> {
    let number = |node: &Node| match node.value {
        Value::Whole(number) => Some(number as f64),
        Value::Real(number) => Some(number),
        _ => None,
    };
    let row = |node: &Node| match &node.value {
        Value::List(items) => items.iter().map(number).collect::<Option<Vec<f64>>>(),
        _ => None,
    };
    let rows = match &table.node(key)?.value {
        Value::List(rows) => rows.iter().map(row).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    if rows.is_none() {
        table.refuse(key, table.place_of(key), "not a list of rows of numbers");
    }
    rows
}

/// The values of a link before its section is read.
pub(super) fn blank() -> LinkConfig {
    LinkConfig::new(Bitrate::from_bps(1_000_000), core::time::Duration::ZERO)
}
