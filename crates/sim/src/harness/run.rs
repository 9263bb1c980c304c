use std::collections::BTreeMap;

use anabranch_core::connection::Event;
use anabranch_core::crypto::null::NullCrypto;
use anabranch_core::endpoint::{
    ConnectConfig, ConnectError, Endpoint, EndpointConfig, EndpointEvent, Handle,
};
use anabranch_core::handshake::Permitted;
use anabranch_core::observe::Observer;
use anabranch_core::stream::StreamEvent;
use anabranch_policy::view::PathState;
use anabranch_types::{Rng, Time};
use core::fmt;

use super::app::{Pattern, Reader, Writer};
use super::network::{Network, Side};
use super::report::{FlowReport, Report};
use super::spec::{PathChange, PathEvent, Spec};
use crate::link::LinkConfigError;

/// Steps without virtual time moving that count as a hang.
const STUCK: u32 = 200_000;

/// Why a run did not reach its goal.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// A link cannot exist.
    Link(LinkConfigError),
    /// A connection could not be opened.
    Connect(ConnectError),
    /// A connection ended before its transfer was complete.
    Closed(String),
    /// The receiving application read something wrong.
    Corrupt(String),
    /// The goal was not reached by the time to give up, or nothing was left that could reach it.
    Timeout {
        /// Bytes read by then, by flow.
        read: Vec<u64>,
        /// When.
        at: Time,
    },
    /// Time stood still: something asks to be called again and again.
    Stuck(Time, String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Link(error) => error.fmt(f),
            Failure::Connect(error) => error.fmt(f),
            Failure::Closed(reason) => write!(f, "the connection closed: {reason}"),
            Failure::Corrupt(what) => write!(f, "the receiver read something wrong: {what}"),
            Failure::Timeout { read, at } => write!(f, "not done at {at}; bytes read: {read:?}"),
            Failure::Stuck(at, why) => write!(f, "time stands still at {at}: {why}"),
        }
    }
}

impl std::error::Error for Failure {}

#[derive(Debug)]
struct FlowState {
    client: Option<Handle>,
    server: Option<Handle>,
    writer: Writer,
    reader: Reader,
    started: bool,
    /// Everything has been written and is known to be at the receiver.
    drained: bool,
}

struct Run<'a> {
    spec: &'a Spec,
    now: Time,
    network: Network,
    client: Endpoint,
    server: Endpoint,
    flows: Vec<FlowState>,
    by_client: BTreeMap<Handle, usize>,
    by_server: BTreeMap<Handle, usize>,
    pattern: Pattern,
    events: Vec<PathEvent>,
    buffer: Vec<u8>,
    stuck: u32,
}

/// Runs `spec` to its goal. `observe` may attach an observer to each flow's sender.
///
/// # Errors
/// See [`Failure`]; print the seed with it, and the run can be repeated.
pub fn run(
    spec: &Spec,
    observe: &mut dyn FnMut(usize) -> Option<Box<dyn Observer>>,
) -> Result<Report, Failure> {
    let mut run = Run::new(spec)?;
    while !run.flows.iter().all(|flow| flow.reader.finished) {
        run.step(observe)?;
    }
    let written: u64 = run.flows.iter().map(|flow| flow.writer.written).sum();
    let read: u64 = run.flows.iter().map(|flow| flow.reader.read).sum();
    if read != written {
        return Err(Failure::Corrupt(format!("{read} bytes of {written}")));
    }
    Ok(run.report())
}

fn endpoint(spec: &Spec, key: u8, permitted: Permitted) -> Endpoint {
    let profile = spec.flows[0].profile.clone();
    let mut config = EndpointConfig::new(profile);
    config.transport = spec.transport.clone();
    config.responder.permitted = permitted;
    config.wall_clock = 1_700_000_000_000_000_000;
    let rng = Rng::substream(spec.seed, &format!("endpoint.{key}"));
    let limit = spec.key_limit.unwrap_or(u64::MAX);
    let crypto = Box::new(NullCrypto::new([key; 32]).with_key_limit(limit));
    Endpoint::new(config, crypto, rng, Time::ZERO)
}

impl<'a> Run<'a> {
    fn new(spec: &'a Spec) -> Result<Self, Failure> {
        let network = Network::new(&spec.links, &spec.reverse, spec.mangle, spec.seed)
            .map_err(Failure::Link)?;
        let flows = spec.flows.iter().map(|flow| FlowState {
            client: None,
            server: None,
            writer: Writer::new(flow),
            reader: Reader::new(spec.warm_up),
            started: false,
            drained: false,
        });
        Ok(Run {
            spec,
            now: Time::ZERO,
            network,
            client: endpoint(spec, 1, Permitted::Nobody),
            server: endpoint(spec, 2, Permitted::Anyone),
            flows: flows.collect(),
            by_client: BTreeMap::new(),
            by_server: BTreeMap::new(),
            pattern: Pattern::new(spec.seed),
            events: spec.events.clone(),
            buffer: vec![0; 65_536],
            stuck: 0,
        })
    }

    fn step(
        &mut self,
        observe: &mut dyn FnMut(usize) -> Option<Box<dyn Observer>>,
    ) -> Result<(), Failure> {
        self.start_flows()?;
        self.exchange()?;
        self.take_news(observe)?;
        self.pump()?;
        self.exchange()?;
        let next = self.next_event().filter(|at| *at <= Time::ZERO + self.spec.give_up);
        let Some(next) = next else {
            let read = self.flows.iter().map(|flow| flow.reader.read).collect();
            return Err(Failure::Timeout { read, at: self.now });
        };
        if next > self.now {
            self.stuck = 0;
            self.now = next;
        } else {
            self.stuck += 1;
            if self.stuck > STUCK {
                let timers = [self.client.next_timeout(), self.server.next_timeout()];
                return Err(Failure::Stuck(self.now, format!("timers {timers:?}")));
            }
        }
        self.apply_events();
        self.network.deliver(self.now, &mut self.client, &mut self.server);
        for endpoint in [&mut self.client, &mut self.server] {
            if endpoint.next_timeout().is_some_and(|(time, _)| time <= self.now) {
                endpoint.handle_timeout(self.now);
            }
        }
        Ok(())
    }

    fn next_event(&self) -> Option<Time> {
        let endpoints = [self.client.next_timeout(), self.server.next_timeout()];
        let timers = endpoints.into_iter().flatten().map(|(time, _)| time);
        let writers = self.flows.iter().filter_map(|flow| flow.writer.next_event());
        let starts = self.spec.flows.iter().zip(&self.flows);
        let starts = starts.filter(|(_, state)| !state.started).map(|(flow, _)| flow.start);
        let events = self.events.iter().map(|event| event.at);
        timers.chain(writers).chain(starts).chain(events).chain(self.network.next_event()).min()
    }

    fn apply_events(&mut self) {
        let now = self.now;
        while let Some(at) = self.events.iter().position(|event| event.at <= now) {
            let PathEvent { link, change, .. } = self.events.remove(at);
            match change {
                PathChange::Rebind => self.network.rebind(link),
                PathChange::Readdress => self.network.readdress(link),
                PathChange::Unplug | PathChange::Plug => {}
            }
            let address = self.network.path(link);
            for flow in &self.flows {
                let Some(connection) =
                    flow.client.and_then(|handle| self.client.connection(handle))
                else {
                    continue;
                };
                let paths = connection.stats().paths;
                let open = paths.iter().find(|path| {
                    path.address.socket == address.socket && path.state != PathState::Closed
                });
                match (change, open.map(|path| path.id)) {
                    (PathChange::Readdress, Some(path)) => connection.move_path(now, path, address),
                    (PathChange::Unplug, Some(path)) => connection.remove_path(now, path, 0),
                    (PathChange::Plug, None) => {
                        // Refused only while the peer remembers too many paths: then it stays unplugged.
                        let _ = connection.add_path(now, address);
                    }
                    _ => {}
                }
            }
        }
    }

    fn start_flows(&mut self) -> Result<(), Failure> {
        for (index, flow) in self.spec.flows.iter().enumerate() {
            if self.flows[index].started || flow.start > self.now {
                continue;
            }
            self.flows[index].started = true;
            let all: Vec<usize> = (0..self.spec.links.len()).collect();
            let links = if flow.links.is_empty() { &all } else { &flow.links };
            let config = ConnectConfig {
                peer: self.server.public_key(),
                paths: links.iter().map(|link| self.network.path(*link)).collect(),
                profile: flow.profile.clone(),
            };
            let handle = self.client.connect(self.now, config).map_err(Failure::Connect)?;
            self.flows[index].client = Some(handle);
            self.by_client.insert(handle, index);
        }
        Ok(())
    }

    fn exchange(&mut self) -> Result<(), Failure> {
        let (now, buffer) = (self.now, &mut self.buffer);
        for (side, endpoint) in [(Side::Client, &mut self.client), (Side::Server, &mut self.server)]
        {
            let mut sent = 0;
            while let Some(transmit) = endpoint.poll_transmit(now, &|_| true, buffer) {
                self.network.send(now, side, &transmit, &buffer[..transmit.len]);
                sent += 1;
                if sent > STUCK {
                    return Err(Failure::Stuck(now, "an endpoint sends without end".to_owned()));
                }
            }
        }
        Ok(())
    }

    fn take_news(
        &mut self,
        observe: &mut dyn FnMut(usize) -> Option<Box<dyn Observer>>,
    ) -> Result<(), Failure> {
        while let Some(event) = self.client.poll_event() {
            match event {
                EndpointEvent::Connected(handle) => {
                    let flow = self.by_client.get(&handle).copied().unwrap_or(0);
                    if let Some(connection) = self.client.connection(handle) {
                        connection.set_observer(observe(flow));
                    }
                }
                // As a patient application would: again, from the start.
                EndpointEvent::ConnectFailed(handle) => {
                    let flow = self.by_client.get(&handle).copied().unwrap_or(0);
                    self.flows[flow].started = false;
                }
                EndpointEvent::Connection(handle, Event::Closed(reason)) => {
                    let flow = self.by_client.get(&handle).copied().unwrap_or(0);
                    // A connection that has done its work may end, while others go on.
                    if !self.flows[flow].drained {
                        return Err(Failure::Closed(format!("sender: {reason:?}")));
                    }
                }
                _ => {}
            }
        }
        while let Some(event) = self.server.poll_event() {
            self.server_news(event)?;
        }
        Ok(())
    }

    fn server_news(&mut self, event: EndpointEvent) -> Result<(), Failure> {
        match event {
            EndpointEvent::Connection(handle, Event::Stream(StreamEvent::Opened(stream))) => {
                let flow = self.flow_of_server(handle);
                self.flows[flow].reader.opened(stream);
            }
            EndpointEvent::Accepted(handle) => {
                self.flow_of_server(handle);
            }
            EndpointEvent::Connection(handle, Event::Closed(reason)) => {
                // Without an entry, its handshake was never completed: the sender is still trying.
                let Some(flow) = self.by_server.get(&handle).copied() else { return Ok(()) };
                if !self.flows[flow].reader.finished {
                    return Err(Failure::Closed(format!("receiver: {reason:?}")));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Which flow a connection at the server belongs to: the one whose client receives under its id.
    fn flow_of_server(&mut self, handle: Handle) -> usize {
        if let Some(flow) = self.by_server.get(&handle) {
            return *flow;
        }
        let client = self.server.connection(handle).map(|connection| connection.remote_id());
        let flow = client.and_then(|id| self.by_client.get(&Handle(id.0))).copied().unwrap_or(0);
        self.flows[flow].server = Some(handle);
        self.by_server.insert(handle, flow);
        flow
    }

    fn pump(&mut self) -> Result<(), Failure> {
        for flow in &mut self.flows {
            if let Some(connection) = flow.client.and_then(|handle| self.client.connection(handle))
            {
                flow.writer.pump(self.now, connection, &self.pattern);
                flow.drained = flow.writer.finished && connection.is_drained();
            }
            if let Some(connection) = flow.server.and_then(|handle| self.server.connection(handle))
            {
                flow.reader.pump(self.now, connection, &self.pattern).map_err(Failure::Corrupt)?;
            }
        }
        Ok(())
    }

    fn report(mut self) -> Report {
        let last = self.flows.iter().map(|flow| flow.reader.last).max().unwrap_or_default();
        let first = self.spec.flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        let capacity_bits = self.network.capacity(first, last);
        let mut flows = Vec::new();
        for flow in &mut self.flows {
            let stats = |endpoint: &mut Endpoint, handle: Option<Handle>| {
                Some(endpoint.connection(handle?)?.stats())
            };
            flows.push(FlowReport {
                bytes: flow.reader.read,
                last: flow.reader.last,
                bytes_after_warm_up: flow.reader.after_warm_up,
                bins: core::mem::take(&mut flow.reader.bins),
                longest_gap: flow.reader.longest_gap,
                probes: flow.reader.probe_report(flow.writer.probes_sent),
                sender: stats(&mut self.client, flow.client),
                receiver: stats(&mut self.server, flow.server),
            });
        }
        Report {
            elapsed: last.since(first),
            capacity_bits,
            flows,
            links: self.network.reports(),
            digest: self.network.digest,
            datagrams: self.network.datagrams,
        }
    }
}
