//! Passes the core's events of a connection on to those who wait for them.

use super::{ConnectionShared, ConnectionState, Phase};
use crate::connection::PathEvent;
use crate::log;
use anabranch_core::connection::{Connection, Event};
use anabranch_core::endpoint::Check;
use anabranch_core::wire::Role;
use anabranch_types::Time;
use std::sync::Arc;

/// Path events kept for an application that has not asked for them yet: the newest ones.
const MOST_PATH_EVENTS: usize = 64;

impl ConnectionShared {
    /// Passes the core's events on to those who wait for them.
    pub(crate) fn dispatch(self: &Arc<Self>, state: &mut ConnectionState, now: Time) {
        while let Some(event) = state.connection.as_mut().and_then(Connection::poll_event) {
            match event {
                Event::Stream(event) => state.on_stream_event(event, &self.wait),
                Event::Closed(reason) => {
                    state.on_closed(reason);
                    self.wait.notify_all();
                }
                Event::Established => self.on_established(state, now),
                Event::Drained => self.wait.drained.notify_waiters(),
                Event::PathUp(path) => self.on_path_event(state, PathEvent::Up(path)),
                Event::PathDown(path) => self.on_path_event(state, PathEvent::Down(path)),
                Event::PathMoved(path) => self.on_path_event(state, PathEvent::Moved(path)),
                Event::CheckDue => self.check(state, now),
                Event::Silent => self.on_silent(state, now),
                Event::Heard => {
                    state.silent = false;
                    state.tell(log::heard);
                    self.wait.hearing.notify_waiters();
                }
                Event::PeerAddresses => {
                    let addresses = state.connection.as_ref().map(Connection::peer_addresses);
                    state.peer_addresses = addresses.unwrap_or_default();
                    self.wait.paths.notify_waiters();
                }
                Event::ConnectionIds => self.exchange_ids(state),
                Event::PathClosed(path) => self.on_path_event(state, PathEvent::Closed(path)),
            }
        }
    }

    fn on_established(&self, state: &mut ConnectionState, now: Time) {
        let Some(connection) = &state.connection else { return };
        let (role, peer) = (connection.role(), connection.peer());
        if role == Role::Initiator {
            return;
        }
        self.endpoint.lock().router.on_established(connection);
        state.voice = Some(self.endpoint.voice(self.handle, &peer, "server"));
        state.tell(log::opened);
        state.phase = Phase::Open;
        if !state.referenced {
            state.close(now, 0, self.endpoint.reason_to_refuse());
        }
        self.wait.phase.notify_waiters();
    }

    /// If this side opened the connection, asks the peer whether the peer still has it.
    fn check(&self, state: &ConnectionState, now: Time) {
        let check = state.connection.as_ref().and_then(|held| Check::of(self.handle, held));
        if let Some(check) = check {
            self.endpoint.check(now, check);
        }
    }

    fn on_silent(&self, state: &mut ConnectionState, now: Time) {
        state.silent = true;
        let Some(connection) = &state.connection else { return };
        state.tell(|voice| log::silent(voice, connection, now));
        self.wait.hearing.notify_waiters();
    }

    fn exchange_ids(&self, state: &mut ConnectionState) {
        if let Some(connection) = &mut state.connection {
            self.endpoint.exchange_ids(self.handle, connection);
            // Wakes the task, which sends new ids to the peer.
            self.mailbox.ring();
        }
    }

    fn on_path_event(&self, state: &mut ConnectionState, event: PathEvent) {
        self.note_paths(state);
        log::path(state, event, |socket| self.endpoint.sockets.local_of(socket));
        if state.path_events.len() == MOST_PATH_EVENTS {
            state.path_events.pop_front();
        }
        state.path_events.push_back(event);
        state.path_changes += 1;
        self.wait.paths.notify_waiters();
    }
}
