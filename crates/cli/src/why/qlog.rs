//! Reads a qlog file that `--qlog` wrote as a recording.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anabranch_results::trace::Symbol;
use serde::Deserialize;
use serde_json::Value;

use crate::record::{Entry, FORMAT, Header, KIND, Line};

/// First byte of every text of the sequence (RFC 7464).
pub(super) const SEPARATOR: u8 = 0x1e;

/// State kept from event to event.
#[derive(Debug, Default)]
pub(super) struct Qlog {
    /// States of congestion control, by path. The file reports a change in an event before that of the window.
    phases: BTreeMap<u32, String>,
    /// Time of the first event, nanoseconds: times in the file count from the start of the program.
    begun: Option<u64>,
}

/// The header of a recording, made of the first text of a qlog file; `None` if this program did not write the file.
pub(super) fn header(text: &[u8]) -> Option<Header> {
    let value: Value = serde_json::from_slice(text).ok()?;
    let trace = value.get("trace")?;
    let by = trace.pointer("/vantage_point/name")?.as_str()?.strip_prefix("anabranch ")?;
    Some(Header {
        kind: KIND.to_owned(),
        format: FORMAT,
        version: by.to_owned(),
        profile: value.get("title")?.as_str()?.to_owned(),
        seed: None,
        paths: Vec::new(),
    })
}

/// Content of one JSON text of the file.
#[derive(Debug)]
pub(super) enum Said {
    /// An event.
    Event(Line),
    /// A path's name.
    Name(u32, String),
    /// Something that a summary does not need, such as a packet.
    Nothing,
}

impl Qlog {
    /// Reads an event; `None` if the text is not an event.
    pub(super) fn read(&mut self, text: &[u8]) -> Option<Said> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let time = value.get("time")?.as_f64().filter(|time| *time >= 0.0)?;
        let path =
            value.get("path_id").and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
        let t = (time * 1e6) as u64;
        let t = t.saturating_sub(*self.begun.get_or_insert(t));
        let (name, data) = (value.get("name")?.as_str()?, Data(value.get("data")?));
        let entry = match (name, path) {
            ("anabranch:path_named", Some(path)) => {
                return Some(Said::Name(path, data.word("name")?.into_owned()));
            }
            (_, Some(path)) => self.about(path, name, &data)?,
            ("anabranch:waited", None) => {
                let since = self.since(&data, "since")?;
                Some(Entry::Waited { since, what: data.word("for")? })
            }
            (_, None) => of_connection(name, &data)?,
        };
        Some(entry.map_or(Said::Nothing, |entry| Said::Event(Line { t, entry })))
    }

    /// The inner `None` means that a summary does not need the event.
    fn about(&mut self, path: u32, name: &str, data: &Data<'_>) -> Option<Option<Entry>> {
        Some(Some(match name {
            "anabranch:scheduled" => Entry::Scheduled {
                path,
                what: data.word("what")?,
                symbol: data.symbol("symbol")?,
                reason: data.word("reason")?,
            },
            "anabranch:held" => {
                let until = self.since(data, "until")?;
                Entry::Held { path, until, reason: data.word("reason")? }
            }
            "anabranch:packets_lost" => Entry::Lost { path, packets: data.small("packets")? },
            "anabranch:reinjected" => Entry::Reinjected { path, packets: data.small("packets")? },
            "connectivity:mtu_updated" | "quic:mtu_updated" => {
                Entry::PathMtu { path, bytes: data.small("new")?, reason: data.word("reason")? }
            }
            "anabranch:shared_bottleneck" => Entry::SharedBottleneck {
                path,
                with: data.small("with")?,
                shared: data.0.get("shared")?.as_bool()?,
            },
            "anabranch:path_state_updated" => {
                Entry::PathState { path, state: data.word("new")?, reason: data.word("reason")? }
            }
            "recovery:congestion_state_updated" | "quic:congestion_state_updated" => {
                self.phases.insert(path, data.word("new")?.into_owned());
                return Some(None);
            }
            "recovery:metrics_updated" | "quic:recovery_metrics_updated" => {
                return self.metrics(path, data);
            }
            _ => return Some(None),
        }))
    }

    /// Reads the event about windows and timeouts; others of its name are about round-trip times.
    fn metrics(&self, path: u32, data: &Data<'_>) -> Option<Option<Entry>> {
        Some(if data.0.get("pto_count").is_some() {
            Some(Entry::Timeout { path, consecutive: data.small("pto_count")? })
        } else if data.0.get("congestion_window").is_some() {
            Some(Entry::Congestion {
                path,
                cwnd: data.count("congestion_window")?,
                pacing_bps: data.count("pacing_rate").unwrap_or(0),
                phase: Cow::Owned(self.phases.get(&path).cloned().unwrap_or_default()),
            })
        } else {
            None
        })
    }

    /// A time of the file, from its first event on.
    fn since(&self, data: &Data<'_>, key: &str) -> Option<u64> {
        let time = (data.0.get(key)?.as_f64()? * 1e6) as u64;
        Some(time.saturating_sub(self.begun.unwrap_or(0)))
    }
}

fn of_connection(name: &str, data: &Data<'_>) -> Option<Option<Entry>> {
    let small = |key| u16::try_from(data.count(key)?).ok();
    Some(match name {
        "anabranch:block_closed" => Some(Entry::BlockClosed {
            first: data.symbol("first_symbol")?,
            sources: small("sources")?,
            repairs: small("repairs")?,
            loss_permille: (data.0.get("loss")?.as_f64()? * 1000.0).round() as u16,
        }),
        "anabranch:repairs_due" => {
            Some(Entry::RepairsDue { first: data.symbol("first_symbol")?, count: small("count")? })
        }
        _ => None,
    })
}

/// An event's `data`.
struct Data<'a>(&'a Value);

impl Data<'_> {
    fn word(&self, key: &str) -> Option<Cow<'static, str>> {
        self.0.get(key)?.as_str().map(|word| Cow::Owned(word.to_owned()))
    }

    fn symbol(&self, key: &str) -> Option<Symbol> {
        Symbol::deserialize(self.0.get(key)?).ok()
    }

    fn count(&self, key: &str) -> Option<u64> {
        self.0.get(key)?.as_u64()
    }

    fn small(&self, key: &str) -> Option<u32> {
        u32::try_from(self.count(key)?).ok()
    }
}
