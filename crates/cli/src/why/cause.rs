//! Finds what kept a recorded sender from being faster.
//!
//! The share of a cause is the part of what the sender could have sent that the cause cost, as far
//! as the events show. For pauses and for waits with a recorded reason, it is their share of the
//! time; for repairs, their share of the symbols; for a path that was down or held back, what the
//! path would have carried at the rate that it had in the rest of the time. Causes overlap, so
//! their shares do not add up to 100 %.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_core::observe::waits;
use serde::Serialize;

use super::summary::{SECOND, path_name};
use crate::format::{counted, duration, percent};
use crate::record::{Entry, Header, Line};

/// Shortest pause that counts, nanoseconds: shorter ones may be the wait for an acknowledgement.
const PAUSE: u64 = SECOND / 5;
/// Causes with a smaller share are left out.
pub(super) const LEAST: f64 = 0.05;

/// Something that made the sender slower.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Cause {
    /// `no-data`, `slow-reader`, `credit`, `late-acknowledgements`, `pause`, `no-answer`, `path-down`, `path-held` or
    /// `overhead`.
    pub(super) kind: &'static str,
    /// Share of the possible sending that was lost to the cause, 0 to 1.
    pub(super) share: f64,
    /// A sentence about the cause, with its figures.
    pub(super) sentence: String,
}

/// Running totals. Times are nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Causes {
    /// By name, since a path that comes back may have another identifier.
    paths: BTreeMap<String, Path>,
    /// When the first and the last symbol were sent.
    sent: Option<(u64, u64)>,
    /// Pauses in which no probe timer fired, and those in which some did, without the waits below.
    pauses: [Pauses; 2],
    /// Waits by what was waited for, and the part of them since the last symbol.
    waits: BTreeMap<String, Pauses>,
    explained: u64,
    /// The wait for acknowledgements since the last symbol.
    unacknowledged: u64,
    late: Pauses,
    /// Probe timeouts since the last symbol.
    timeouts: u64,
    repairs: u64,
    again: u64,
    lost: u64,
}

#[derive(Debug, Default)]
struct Pauses {
    total: u64,
    longest: u64,
    timeouts: u64,
}

impl Pauses {
    fn add(&mut self, pause: u64, timeouts: u64) {
        self.total = self.total.saturating_add(pause);
        self.longest = self.longest.max(pause);
        self.timeouts += timeouts;
    }

    /// In words: the total time, its share of `span`, and the longest wait.
    fn spent(&self, span: u64) -> String {
        let (share, longest) = (percent(self.share(span)), time(self.longest));
        format!("{} ({share}), at most {longest} at once", of(self.total, span))
    }

    fn share(&self, span: u64) -> f64 {
        // A damaged file can hold any times.
        (self.total as f64 / span as f64).min(1.0)
    }
}

#[derive(Debug, Default)]
struct Path {
    symbols: u64,
    down: Spell,
    held: Spell,
    held_for: BTreeMap<String, u64>,
}

/// Time in a state: the total of earlier stays, and the start and latest known end of the present
/// stay.
#[derive(Debug, Default)]
struct Spell {
    total: u64,
    now: Option<(u64, u64)>,
}

impl Spell {
    fn begin(&mut self, t: u64, until: u64) {
        self.end(t);
        self.now = Some((t, until));
    }

    fn end(&mut self, t: u64) {
        if let Some((since, until)) = self.now.take() {
            self.total = self.total.saturating_add(t.min(until).saturating_sub(since));
        }
    }
}

impl Causes {
    /// Counts one line.
    pub(super) fn add(&mut self, header: &Header, line: &Line) {
        let t = line.t;
        match &line.entry {
            Entry::Scheduled { path, what, .. } => {
                match what.as_ref() {
                    "source" => {}
                    "repair" => self.repairs += 1,
                    _ => self.again += 1,
                }
                self.end_pause(t);
                let path = self.path(header, *path);
                path.symbols += 1;
                path.down.end(t);
                path.held.end(t);
            }
            Entry::Held { path, until, reason } => {
                let path = self.path(header, *path);
                path.held.begin(t, *until);
                *path.held_for.entry(reason.to_string()).or_default() += 1;
            }
            Entry::PathState { path, state, .. } => {
                let path = self.path(header, *path);
                match state.as_ref() {
                    "suspect" | "closed" if path.down.now.is_none() => path.down.begin(t, u64::MAX),
                    "active" | "probation" => path.down.end(t),
                    _ => {}
                }
            }
            Entry::Waited { since, what } => self.waited(what, t.saturating_sub(*since)),
            Entry::Timeout { .. } => self.timeouts += 1,
            Entry::Lost { packets, .. } => self.lost += u64::from(*packets),
            _ => {}
        }
    }

    fn path(&mut self, header: &Header, path: u32) -> &mut Path {
        self.paths.entry(path_name(header, path)).or_default()
    }

    /// Adds a wait whose reason the sender has recorded. Every sender waits for acknowledgements now and then, so these
    /// waits count only where they make up a pause.
    fn waited(&mut self, what: &str, wait: u64) {
        if self.sent.is_none() {
            return;
        }
        if what == waits::ACKNOWLEDGEMENTS {
            self.unacknowledged = self.unacknowledged.saturating_add(wait);
        } else {
            self.explained = self.explained.saturating_add(wait);
            self.waits.entry(what.to_owned()).or_default().add(wait, 0);
        }
    }

    fn end_pause(&mut self, t: u64) {
        let timeouts = std::mem::take(&mut self.timeouts);
        let explained = std::mem::take(&mut self.explained);
        let unacknowledged = std::mem::take(&mut self.unacknowledged);
        let (_, last) = self.sent.get_or_insert((t, t));
        let pause = t.saturating_sub(*last).saturating_sub(explained);
        *last = t.max(*last);
        if pause < PAUSE {
            return;
        }
        if timeouts == 0 && unacknowledged >= pause / 2 {
            self.late.add(pause, 0);
        } else {
            self.pauses[usize::from(timeouts > 0)].add(pause, timeouts);
        }
    }

    /// The causes, the largest first; none if no symbol was sent.
    pub(super) fn finish(self) -> Vec<Cause> {
        let Some((first, last)) = self.sent else { return Vec::new() };
        let span = last.saturating_sub(first).max(1);
        let symbols: u64 = self.paths.values().map(|path| path.symbols).sum();
        let mut causes = self.pauses(span);
        causes.push(self.overhead(symbols));
        for (name, path) in self.paths {
            causes.extend(path.causes(&name, symbols, (span, last)));
        }
        causes.retain(|cause| cause.share >= LEAST);
        causes.sort_by(|a, b| b.share.total_cmp(&a.share));
        causes
    }

    fn pauses(&self, span: u64) -> Vec<Cause> {
        let [quiet, unanswered] = &self.pauses;
        let cause =
            |kind, pauses: &Pauses, sentence| Cause { kind, share: pauses.share(span), sentence };
        let pause = format!(
            "nothing was sent for {}: there was no data, the receiver had no room, or acknowledgements were late",
            quiet.spent(span)
        );
        let no_answer = format!(
            "the peer did not answer and nothing was sent for {}, with {}",
            unanswered.spent(span),
            counted(unanswered.timeouts, "probe timeout")
        );
        let late = format!(
            "acknowledgements were late: the congestion windows were full and nothing was sent for {}",
            self.late.spent(span)
        );
        let waits = self.waits.iter().map(|(what, pauses)| {
            let (kind, sentence) = awaited(what);
            cause(kind, pauses, format!("{sentence}: nothing was sent for {}", pauses.spent(span)))
        });
        let mut causes = vec![
            cause("pause", quiet, pause),
            cause("no-answer", unanswered, no_answer),
            cause("late-acknowledgements", &self.late, late),
        ];
        causes.extend(waits);
        causes
    }

    fn overhead(&self, symbols: u64) -> Cause {
        let share = (self.repairs + self.again) as f64 / symbols.max(1) as f64;
        let sentence = format!(
            "{} of the symbols were no new data: {} and {} sent again, while {} lost",
            percent(share),
            counted(self.repairs, "repair"),
            self.again,
            counted(self.lost, "packet") + if self.lost == 1 { " was" } else { " were" }
        );
        Cause { kind: "overhead", share, sentence }
    }
}

impl Path {
    /// The cost of the times in which the path was down or held back. `all` symbols were sent over all paths, in the
    /// `span` that ends at `last`.
    fn causes(mut self, name: &str, all: u64, (span, last): (u64, u64)) -> [Cause; 2] {
        self.down.end(last);
        self.held.end(last);
        let [down, held] = [self.down.total, self.held.total].map(|time| time.min(span));
        let rate = |away: u64| self.symbols as f64 / span.saturating_sub(away).max(1) as f64;
        let share = |away: u64| {
            let lacking = rate(away) * away as f64;
            lacking / (all as f64 + lacking).max(1.0)
        };
        let cause = |kind, what: &str, away: u64, why: String| Cause {
            kind,
            share: share(away),
            sentence: format!(
                "{name} was {what} for {}{why}; in that time it would have carried {} of what could have been sent",
                of(away, span),
                percent(share(away))
            ),
        };
        let most = self.held_for.iter().max_by_key(|(_, count)| **count);
        let why = most.map(|(reason, _)| format!(" (most often: {reason})"));
        [
            cause("path-down", "down", down, String::new()),
            cause("path-held", "held back", held, why.unwrap_or_default()),
        ]
    }
}

/// The kind of cause that a wait for `what` is, and how its sentence begins.
fn awaited(what: &str) -> (&'static str, String) {
    match what {
        waits::APPLICATION => ("no-data", "the application gave nothing to send".to_owned()),
        waits::READER => (
            "slow-reader",
            "the receiver's application reads more slowly than data arrives".to_owned(),
        ),
        waits::CREDIT => (
            "credit",
            "the receiver's credit is less than the paths hold: its buffers are too small for them"
                .to_owned(),
        ),
        other => ("pause", format!("the sender waited for {other}")),
    }
}

fn of(part: u64, whole: u64) -> String {
    format!("{} of {}", time(part), time(whole))
}

fn time(nanos: u64) -> String {
    duration(Duration::from_nanos(nanos))
}
