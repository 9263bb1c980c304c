use anabranch_core::connection::Connection;
use anabranch_core::endpoint::{EndpointEvent, Handle};
use anabranch_core::observe::Observer;
use anabranch_core::wire::StreamId;
use anabranch_types::Time;

use super::application::Application;
use super::{CoreConfig, Host, SENDER_KEY};
use crate::endpoint::{FlowFailure, PathChange};
use crate::engine::PortId;
use crate::engine::{Agent, Arrival, Outbox};
use crate::traffic::{Traffic, Transfer};

/// The sending end of flows. It connects over all its ports and sends for its applications, usually
/// one. Each application has a connection of its own.
#[derive(Debug)]
pub struct CoreSender {
    host: Host,
    pub(super) applications: Vec<Application>,
    /// Number of the next chunk, if several applications carry one stream.
    next_chunk: u64,
}

impl CoreSender {
    /// A sender with one application. Its random draws are substreams of `seed` named after `name`.
    pub fn new(config: &CoreConfig, traffic: Traffic, seed: u64, name: &str) -> Self {
        CoreSender {
            host: Host::new(config, seed, name, SENDER_KEY),
            applications: vec![Application::new(config, traffic, seed, name)],
            next_chunk: 0,
        }
    }

    /// Starts the newest application at `start` instead of when the agent starts.
    #[must_use]
    pub fn starting(mut self, start: Time) -> Self {
        if let Some(application) = self.applications.last_mut() {
            application.start = Some(start);
        }
        self
    }

    /// Adds an application that opens a connection of its own, from the same endpoint. The limits
    /// of the first application apply to the endpoint.
    #[must_use]
    pub fn with(mut self, config: &CoreConfig, traffic: Traffic, seed: u64, name: &str) -> Self {
        self.applications.push(Application::new(config, traffic, seed, name));
        self
    }

    /// Sets the observer of an application's decisions, from the beginning of its connection.
    pub fn set_observer(&mut self, application: usize, observer: Box<dyn Observer>) {
        if let Some(application) = self.applications.get_mut(application) {
            application.observer = Some(observer);
        }
    }

    /// An application's connection; `None` before its handshake is answered and once the endpoint
    /// has forgotten it.
    pub fn connection(&mut self, application: usize) -> Option<&mut Connection> {
        self.host.endpoint.connection(self.applications.get(application)?.handle?)
    }

    /// The number of an application's connection at this end.
    pub(super) fn handle(&self, application: usize) -> Option<Handle> {
        self.applications.get(application)?.handle
    }

    /// Every transfer that an application has opened so far, and the stream that carries it.
    pub fn transfers(&self, application: usize) -> &[(StreamId, Transfer)] {
        self.applications.get(application).map_or(&[], |application| &application.transfers)
    }

    /// When the first application began.
    pub fn started(&self) -> Option<Time> {
        self.applications.first()?.started
    }

    /// Bytes written by an application.
    pub fn written(&self, application: usize) -> u64 {
        self.applications.get(application).map_or(0, |application| application.written)
    }

    /// When the sender learned that all data of an application has arrived; `None` until then.
    pub fn finished(&self, application: usize) -> Option<Time> {
        self.applications.get(application)?.finished()
    }

    /// Why an application's flow failed, if it did.
    pub fn failure(&self, application: usize) -> Option<&FlowFailure> {
        let own = self.applications.get(application).and_then(|known| known.failure.as_ref());
        self.host.failure.as_ref().or(own)
    }

    /// Applies a change of a path's interface. The caller must wake the agent afterwards.
    pub fn change_path(&mut self, now: Time, path: usize, change: PathChange) {
        if let Some(version) = self.host.versions.get_mut(path) {
            match change {
                PathChange::Move => *version = version.wrapping_add(1 << 16),
                PathChange::Rebind => *version = *version & !0xffff | (*version + 1) & 0xffff,
                PathChange::Down | PathChange::Up | PathChange::Backup | PathChange::Regular => {}
                // UDP packets have no TCP options.
                PathChange::StripOptions | PathChange::PassOptions => {}
            }
        }
        for application in &self.applications {
            application.change_path(now, path, change, &mut self.host.endpoint);
        }
    }

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        let started = self.applications.iter().any(|application| application.started.is_some());
        if self.host.failure.is_some() || !started {
            return;
        }
        self.host.transmit(now, out);
        self.drain_events(now);
        for application in &mut self.applications {
            application.write(now, &mut self.host.endpoint, &mut self.next_chunk);
        }
        self.host.transmit(now, out);
        for application in &mut self.applications {
            application.note(now, &mut self.host.endpoint);
        }
    }

    fn drain_events(&mut self, now: Time) {
        while let Some(event) = self.host.endpoint.poll_event() {
            let (EndpointEvent::Connected(handle)
            | EndpointEvent::ConnectFailed(handle)
            | EndpointEvent::Connection(handle, _)) = event
            else {
                continue;
            };
            let host = &mut self.host;
            let mut applications = self.applications.iter_mut();
            let Some(application) = applications.find(|known| known.handle == Some(handle)) else {
                continue;
            };
            match event {
                EndpointEvent::Connected(_) => application.connected(now, host),
                EndpointEvent::ConnectFailed(_) => application.refused(now, host),
                EndpointEvent::Connection(_, event) => application.hear(now, event, host),
                _ => {}
            }
        }
    }
}

impl Agent for CoreSender {
    fn attach(&mut self, port: PortId) {
        self.host.ports.push(port);
        self.host.versions.push(0);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let now = arrival.now;
        self.host.receive(arrival);
        self.drive(now, out);
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        for application in &mut self.applications {
            application.start(now, &mut self.host);
        }
        self.host.handle_timeout(now);
        self.drive(now, out);
    }

    fn next_timer(&self) -> Option<Time> {
        if self.host.failure.is_some() {
            return None;
        }
        let events = self.applications.iter().filter_map(Application::next_event);
        events.chain(self.host.next_timer()).min()
    }
}
