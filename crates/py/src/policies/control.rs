//! A congestion controller written in Python.

use core::time::Duration;

use anabranch_policy::CongestionController;
use anabranch_policy::congestion::{AckEvent as Ack, SentEvent as Sent, TimeoutEvent as Timeout};
use anabranch_policy::view;
use anabranch_types::{Bitrate, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{Python, intern};

use super::events::{AckEvent, SentEvent, TimeoutEvent};
use super::script::Script;
use super::values::{amount, kind, time, word, wrong};
use super::view::{PathView, bitrate};

/// The object's attributes as they were after its last call.
#[derive(Clone, Copy, Debug)]
struct State {
    cwnd: u64,
    ssthresh: u64,
    pacing_rate: Option<Bitrate>,
    bandwidth: Option<Bitrate>,
    own_queue: Option<Duration>,
    phase: &'static str,
}

impl State {
    fn read(object: &Bound<'_, PyAny>) -> PyResult<State> {
        let py = object.py();
        let cwnd = amount(object, &object.getattr(intern!(py, "cwnd"))?, CWND)?;
        if cwnd == 0 {
            return Err(PyValueError::new_err(format!("{}.{CWND} is 0", kind(object))));
        }
        let ssthresh = optional(
            object,
            &object.getattr(intern!(py, "ssthresh"))?,
            "ssthresh, bytes or None,",
        )?;
        let rate = optional(
            object,
            &object.getattr(intern!(py, "pacing_rate"))?,
            "pacing_rate, bits per second or None,",
        )?;
        let bandwidth = optional(
            object,
            &object.getattr(intern!(py, "bandwidth"))?,
            "bandwidth, bits per second or None,",
        )?;
        let queue = object.getattr(intern!(py, "own_queue"))?;
        let queue: Option<f64> =
            queue.extract().map_err(|_| wrong(object, &queue, "own_queue, seconds or None,"))?;
        let own_queue = queue.map(time).transpose()?.map(|time| time.since(Time::ZERO));
        let phase = object.getattr(intern!(py, "phase"))?;
        let phase = phase
            .extract::<&str>()
            .map_err(|_| wrong(object, &phase, "phase, a str,"))
            .map(word)?;
        let (pacing_rate, bandwidth) = (bitrate(rate), bitrate(bandwidth));
        let ssthresh = ssthresh.unwrap_or(u64::MAX);
        Ok(State { cwnd, ssthresh, pacing_rate, bandwidth, own_queue, phase })
    }
}

const CWND: &str = "cwnd, a number of bytes of 1 at least,";

fn optional(
    object: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    what: &str,
) -> PyResult<Option<u64>> {
    if value.is_none() { Ok(None) } else { amount(object, value, what).map(Some) }
}

/// Properties that a class declares for all its objects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traits {
    /// Whether the class's objects want to hear of packets that leave.
    pub on_sent: bool,
    pub governs_recovery: bool,
    pub reads_siblings: bool,
    pub couples: bool,
}

/// A controller whose windows and rates are read from the object's attributes after each call and constant in between.
#[derive(Debug)]
pub(super) struct Scripted {
    script: Script,
    state: State,
    traits: Traits,
}

impl Scripted {
    pub(super) fn new(object: &Bound<'_, PyAny>, traits: Traits) -> PyResult<Self> {
        let state = State::read(object)?;
        Ok(Scripted { script: Script::new(object.clone().unbind()), state, traits })
    }

    fn call(&mut self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        let state = self.script.call(|object| {
            call(object)?;
            State::read(object)
        });
        self.state = state.unwrap_or(self.state);
    }
}

fn siblings<'py>(py: Python<'py>, paths: &[view::PathView]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, paths.iter().map(|path| PathView(*path)))
}

impl CongestionController for Scripted {
    fn on_sent(&mut self, event: &Sent) {
        if self.traits.on_sent {
            self.call(|object| {
                let sent = (SentEvent(*event),);
                object.call_method1(intern!(object.py(), "on_sent"), sent).map(drop)
            });
        }
    }

    fn on_ack(&mut self, event: &Ack, paths: &[view::PathView]) {
        self.call(|object| {
            let told = (AckEvent(*event), siblings(object.py(), paths)?);
            object.call_method1(intern!(object.py(), "on_ack"), told).map(drop)
        });
    }

    fn on_timeout(&mut self, event: &Timeout) {
        self.call(|object| {
            let timeout = (TimeoutEvent(*event),);
            object.call_method1(intern!(object.py(), "on_timeout"), timeout).map(drop)
        });
    }

    fn penalise(&mut self) {
        self.call(|object| object.call_method0(intern!(object.py(), "penalise")).map(drop));
    }

    fn set_packet_size(&mut self, bytes: u64) {
        self.call(|object| {
            object.call_method1(intern!(object.py(), "set_packet_size"), (bytes,)).map(drop)
        });
    }

    fn cwnd(&self) -> u64 {
        self.state.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.state.ssthresh
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.state.pacing_rate
    }

    fn bandwidth(&self) -> Option<Bitrate> {
        self.state.bandwidth
    }

    fn own_queue(&self) -> Option<Duration> {
        self.state.own_queue
    }

    fn governs_recovery(&self) -> bool {
        self.traits.governs_recovery
    }

    fn reads_siblings(&self) -> bool {
        self.traits.reads_siblings || self.traits.couples
    }

    fn couples(&self) -> bool {
        self.traits.couples
    }

    fn phase(&self) -> &'static str {
        self.state.phase
    }
}
