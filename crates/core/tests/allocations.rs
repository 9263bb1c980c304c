//! In steady state, sending and receiving packets allocates nothing.

// A global allocator cannot be written without: every call is passed on unchanged, and counted.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};

use anabranch_core::connection::Event;
use anabranch_core::crypto::null::NullCrypto;
use anabranch_core::endpoint::{
    ConnectConfig, Datagram, Endpoint, EndpointConfig, EndpointEvent, Handle,
};
use anabranch_core::handshake::Permitted;
use anabranch_core::path::received::Ecn;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::profiles::Profile;
use anabranch_core::stream::StreamEvent;
use anabranch_core::wire::StreamId;
use anabranch_policy::view::TrafficClass;
use anabranch_types::{Rng, Time};
use core::time::Duration;

struct Counting;

thread_local! {
    /// Allocations and growths by this thread; tests run on threads of their own.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    COUNT.with(|count| count.set(count.get() + 1));
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One direction of one link: 12 Mb/s, 10 ms, a hundred packets of buffer.
const SPACING: Duration = Duration::from_micros(800);
const DELAY: Duration = Duration::from_millis(10);
const BUFFER: u64 = 100;
const PATHS: usize = 2;
const TICK: Duration = Duration::from_micros(400);

struct Flying {
    arrives: Time,
    ecn: Ecn,
    length: usize,
    bytes: [u8; 1500],
}

#[derive(Default)]
struct Link {
    free_at: Time,
    flying: std::collections::VecDeque<Flying>,
    sent: u64,
}

/// What a part of the work allocated.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sending: u64,
    receiving: u64,
    timeouts: u64,
    application: u64,
    packets: u64,
}

struct World {
    now: Time,
    ends: [Endpoint; 2],
    /// Client's and server's handle.
    handles: [Option<Handle>; 2],
    streams: [Option<StreamId>; 2],
    links: [[Link; PATHS]; 2],
    /// Every so many packets, one is lost.
    loss: u64,
    tally: Tally,
    read: u64,
    buffer: Vec<u8>,
}

fn endpoint(key: u8, profile: &Profile) -> Endpoint {
    let mut config = EndpointConfig::new(profile.clone());
    config.responder.permitted = Permitted::Anyone;
    Endpoint::new(config, Box::new(NullCrypto::new([key; 32])), Rng::new(key.into()), Time::ZERO)
}

fn address(end: usize, path: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, path as u8, end as u8), 1000))
}

/// Runs `work` and adds what it allocated to `tally`.
fn counted<T>(tally: &mut u64, work: impl FnOnce() -> T) -> T {
    let before = COUNT.get();
    let result = work();
    *tally += COUNT.get() - before;
    result
}

impl World {
    fn new(name: &str, loss: u64) -> Self {
        let profile = Profile::named(name).unwrap();
        let mut ends = [endpoint(0, &profile), endpoint(1, &profile)];
        let paths = (0..PATHS)
            .map(|path| PathAddress { socket: SocketId(path as u32), remote: address(1, path) });
        let config = ConnectConfig { peer: ends[1].public_key(), paths: paths.collect(), profile };
        ends[0].connect(Time::ZERO, config).unwrap();
        let mut links: [[Link; PATHS]; 2] = Default::default();
        links.iter_mut().flatten().for_each(|link| link.flying.reserve(2 * BUFFER as usize));
        World {
            now: Time::ZERO,
            ends,
            handles: [None; 2],
            streams: [None; 2],
            links,
            loss,
            tally: Tally::default(),
            read: 0,
            buffer: vec![0; 65_536],
        }
    }

    fn tick(&mut self) {
        self.now += TICK;
        self.deliver();
        for end in &mut self.ends {
            if end.next_timeout().is_some_and(|(time, _)| time <= self.now) {
                counted(&mut self.tally.timeouts, || end.handle_timeout(self.now));
            }
        }
        self.news();
        self.applications();
        self.send();
    }

    fn deliver(&mut self) {
        for from in 0..2 {
            for path in 0..PATHS {
                let link = &mut self.links[from][path];
                while link.flying.front().is_some_and(|flying| flying.arrives <= self.now) {
                    let Some(mut flying) = link.flying.pop_front() else { break };
                    self.tally.packets += 1;
                    let datagram = Datagram {
                        socket: SocketId(path as u32),
                        remote: address(from, path),
                        ecn: flying.ecn,
                        payload: &mut flying.bytes[..flying.length],
                    };
                    let (end, now) = (&mut self.ends[1 - from], self.now);
                    counted(&mut self.tally.receiving, || end.handle_datagram(now, datagram));
                }
            }
        }
    }

    fn send(&mut self) {
        for from in 0..2 {
            loop {
                let (end, now, buffer) = (&mut self.ends[from], self.now, &mut self.buffer);
                let sent =
                    counted(&mut self.tally.sending, || end.poll_transmit(now, &|_| true, buffer));
                let Some(transmit) = sent else { break };
                let link = &mut self.links[from][transmit.socket.0 as usize];
                link.sent += 1;
                let lost = link.sent.is_multiple_of(self.loss);
                if lost || link.flying.len() as u64 >= BUFFER {
                    continue;
                }
                link.free_at = link.free_at.max(now) + SPACING;
                // Marks come when a third of the buffer is full: some profiles heed nothing else.
                let ecn =
                    if link.flying.len() as u64 > BUFFER / 3 { Ecn::Ce } else { transmit.ecn };
                let (arrives, length) = (link.free_at + DELAY, transmit.len);
                let mut bytes = [0; 1500];
                bytes[..length].copy_from_slice(&buffer[..length]);
                link.flying.push_back(Flying { arrives, ecn, length, bytes });
            }
        }
    }

    fn news(&mut self) {
        for side in 0..2 {
            loop {
                let end = &mut self.ends[side];
                let event = counted(&mut self.tally.application, || end.poll_event());
                match event {
                    None => break,
                    Some(EndpointEvent::Connected(handle) | EndpointEvent::Accepted(handle)) => {
                        self.handles[side] = Some(handle);
                    }
                    Some(EndpointEvent::Connection(_, Event::Stream(StreamEvent::Opened(id)))) => {
                        self.streams[side] = Some(id);
                    }
                    Some(EndpointEvent::Connection(_, Event::Closed(why))) => panic!("{why:?}"),
                    Some(_) => {}
                }
            }
        }
    }

    fn applications(&mut self) {
        if let Some(client) = self.handles[0].and_then(|handle| self.ends[0].connection(handle)) {
            let open = || client.open_stream(TrafficClass::Bulk).unwrap();
            let stream = *self.streams[0].get_or_insert_with(open);
            let buffer = &self.buffer;
            counted(&mut self.tally.application, || {
                while client.write(stream, buffer).unwrap() > 0 {}
            });
        }
        if let Some(server) = self.handles[1].and_then(|handle| self.ends[1].connection(handle))
            && let Some(stream) = self.streams[1]
        {
            let buffer = &mut self.buffer;
            let read = counted(&mut self.tally.application, || {
                let mut read = 0;
                while let Ok(outcome) = server.read(stream, buffer)
                    && outcome.n > 0
                {
                    read += outcome.n;
                }
                read
            });
            self.read += read as u64;
        }
    }

    fn run(&mut self, seconds: u64) -> Tally {
        self.tally = Tally::default();
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end {
            self.tick();
        }
        self.tally
    }
}

/// After a warm-up, what a profile allocates in ten seconds.
fn steady(name: &str, loss: u64) -> Tally {
    let mut world = World::new(name, loss);
    world.run(30);
    let before = world.read;
    let tally = world.run(10);
    println!("{name}, one in {loss} lost: {} bytes, {tally:?}", world.read - before);
    assert!(tally.packets > 5_000, "{tally:?}");
    tally
}

/// Packets per allocation, at least: rings and pools grow when they are fuller than ever before.
const RARE: u64 = 1000;

#[test]
fn packets_allocate_nothing() {
    for name in ["anabranch", "uncoded"] {
        for loss in [u64::MAX, 50] {
            let tally = steady(name, loss);
            let all = tally.sending + tally.receiving + tally.timeouts + tally.application;
            assert!(all <= tally.packets / RARE, "{name}, one in {loss} lost: {tally:?}");
        }
    }
}

/// The block estimator of `mplot` keeps a record of each block; packets allocate nothing here either.
#[test]
fn blocks_may_allocate_but_packets_do_not() {
    for loss in [u64::MAX, 50] {
        let tally = steady("mplot", loss);
        assert!(tally.receiving <= tally.packets / 50, "{tally:?}");
        let rest = tally.sending + tally.timeouts + tally.application;
        assert!(rest <= tally.packets / RARE, "one in {loss} lost: {tally:?}");
    }
}
