use super::*;
use crate::crypto::Crypto;
use crate::crypto::null::NullCrypto;
use crate::endpoint::{EndpointConfig, RouterEvent};
use crate::handshake::{DropReason, Initiator, Opening, Permitted, Schedule, message};
use crate::path::SocketId;
use anabranch_policy::Axis;
use anabranch_policy::registry::{Entry, Options};
use anabranch_policy::scheduler::{Pick, Pull, Scheduler};
use anabranch_policy::view::SchedulerView;
use anabranch_types::PathId;
use core::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const FRAGILE: Entry = Entry { name: "fragile", summary: "", source: "", options: &[] };

/// A scheduler that sends nothing.
#[derive(Debug)]
struct Never;

impl Scheduler for Never {
    fn pull(&mut self, _: PathId, _: &SchedulerView<'_>, _: &mut Vec<Pick>) -> Pull {
        Pull::Idle("never")
    }
}

/// A peer that asks for a connection, with its own key and address.
struct Asker {
    crypto: NullCrypto,
    initiator: Initiator,
    from: PathAddress,
}

impl Asker {
    /// The first attempt of this peer.
    fn new(router: &Router, number: u64) -> Self {
        Self::at(router, number, (0, Time::ZERO))
    }

    /// An attempt with its number, begun at a time.
    fn at(router: &Router, number: u64, (attempt, now): (u64, Time)) -> Self {
        let mut key = [0xee; 32];
        key[..8].copy_from_slice(&number.to_be_bytes());
        let mut crypto = NullCrypto::new(key);
        for _ in 0..attempt {
            // Each attempt has its own ephemeral key.
            crypto.initiate(&router.public_key(), &[], &mut Vec::new()).unwrap();
        }
        let parameters = TransportConfig::default().parameters("anabranch").encode();
        let opening = Opening {
            peer: router.public_key(),
            local_id: number as u32,
            timestamp: (1 << 60) + number + attempt,
            parameters: &parameters,
        };
        let mut initiator = Initiator::new(&mut crypto, opening, Schedule::default(), now).unwrap();
        initiator.add_path(PathId(0), now);
        let [.., a, b, c] = number.to_be_bytes();
        let remote = SocketAddr::from(([127, a, b, c], 9));
        Asker { crypto, initiator, from: PathAddress { socket: SocketId(0), remote } }
    }

    /// Sends the first message, or one more copy of it.
    fn ask(&mut self, router: &mut Router, now: Time) {
        let mut bytes = Vec::new();
        assert!(self.initiator.poll(&self.crypto, PathId(0), now, &mut bytes), "it is not due");
        router.handle_datagram(now, self.from, &bytes);
    }

    /// Asks, and asks again with a cookie if the router sends one.
    fn insist(&mut self, router: &mut Router, now: Time) {
        self.ask(router, now);
        if let Some((_, cookie)) = reply(router, now) {
            self.initiator.on_cookie_reply(&self.crypto, PathId(0), now, &cookie).unwrap();
            self.ask(router, now);
        }
    }
}

fn router(change: impl FnOnce(&mut EndpointConfig)) -> Router {
    let mut config = EndpointConfig::new(Profile::default());
    config.responder.permitted = Permitted::Anyone;
    change(&mut config);
    Router::new(config, Box::new(NullCrypto::new([2; 32])), Time::ZERO)
}

fn default_config() -> AcceptConfig {
    AcceptConfig { profile: Profile::default(), transport: TransportConfig::default() }
}

fn events(router: &mut Router) -> Vec<RouterEvent> {
    core::iter::from_fn(|| router.poll_event()).collect()
}

/// The only event, which must be a peer that asks.
fn incoming(router: &mut Router) -> Incoming {
    match &events(router)[..] {
        [RouterEvent::Incoming(incoming)] => *incoming,
        other => panic!("{other:?}"),
    }
}

/// A router, and a peer that asks it for a connection.
fn one_asks() -> (Router, Asker, Incoming) {
    let mut router = router(|_| {});
    let mut asker = Asker::new(&router, 7);
    asker.ask(&mut router, Time::ZERO);
    let asked = incoming(&mut router);
    (router, asker, asked)
}

/// The router's next datagram, and its destination.
fn reply(router: &mut Router, now: Time) -> Option<(SocketAddr, Vec<u8>)> {
    let mut buffer = [0; 1500];
    let sent = router.poll_transmit(now, &|_| true, &mut buffer)?;
    Some((sent.remote, buffer[..sent.len].to_vec()))
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

#[test]
fn a_peer_has_no_answer_before_it_is_accepted_and_its_copies_the_same_one_afterwards() {
    let (mut router, mut asker, asked) = one_asks();
    assert_eq!((asked.peer, asked.address), (asker.crypto.public_key(), asker.from));
    assert!(!asked.validated);
    asker.ask(&mut router, ms(300));
    // Another copy arrives twice over another path.
    let (first, mut second) = (asker.from, asker.from);
    second.remote.set_port(10);
    asker.from = second;
    asker.ask(&mut router, ms(1500));
    asker.ask(&mut router, ms(3000));
    asker.from = first;
    assert!(events(&mut router).is_empty());
    assert_eq!(reply(&mut router, ms(3000)), None);

    router.accept(ms(5000), &asked, default_config()).unwrap();
    assert!(
        matches!(events(&mut router)[..], [RouterEvent::Begun(handle, _)] if handle == asked.handle)
    );
    let (_, response) = reply(&mut router, ms(5000)).unwrap();
    let (_, same) = reply(&mut router, ms(5000)).unwrap();
    assert!(same == response && reply(&mut router, ms(5000)).is_none(), "one for each path");
    let established = asker.initiator.on_response(&asker.crypto, &response).unwrap();
    assert_eq!(established.remote_id, asked.handle.0);
    asker.ask(&mut router, ms(6000));
    assert_eq!(reply(&mut router, ms(6000)), Some((first.remote, response)));
    assert!(events(&mut router).is_empty());
    let again = router.accept(ms(6000), &asked, default_config());
    assert_eq!(again, Err(AcceptError::Gone), "it is decided on once");
}

#[test]
fn a_connection_has_the_limits_and_the_profile_that_it_is_accepted_with() {
    let (mut router, mut asker, asked) = one_asks();
    let mut transport = TransportConfig { max_paths: 2, ..TransportConfig::default() };
    transport.streams.max_streams = 3;
    let profile = Profile::named("uncoded").unwrap();
    router.accept(ms(1), &asked, AcceptConfig { profile, transport }).unwrap();
    let (_, response) = reply(&mut router, ms(1)).unwrap();
    let established = asker.initiator.on_response(&asker.crypto, &response).unwrap();
    let told = TransportParameters::decode(&established.parameters).unwrap();
    assert_eq!((told.max_paths, told.max_streams, told.connection_ids.len()), (2, 3, 2));
    assert_eq!(told.ack_profile.as_deref(), Some("uncoded"));
}

#[test]
fn a_profile_that_cannot_be_built_leaves_nothing_behind() {
    let (mut router, _, asked) = one_asks();
    // A policy of the program that fails from some time on.
    let broken = Arc::new(AtomicBool::new(false));
    let (is_broken, mut config) = (Arc::clone(&broken), default_config());
    let make = move |_: &Options<'_>| match is_broken.load(Relaxed) {
        true => Err(PolicyError::Axis("broken".to_owned())),
        false => Ok(Box::new(Never) as Box<dyn Scheduler>),
    };
    config.profile.register::<dyn Scheduler>(&FRAGILE, make).unwrap();
    config.profile.set(Axis::Scheduler, "fragile").unwrap();
    broken.store(true, Relaxed);
    let refused = router.accept(ms(1), &asked, config);
    assert!(matches!(refused, Err(AcceptError::Policy(_))), "{refused:?}");
    assert_eq!(reply(&mut router, ms(1)), None);
    assert_eq!((router.half_open.len(), router.connections.len()), (0, 0));
    assert!(!router.path_ids.contains(asked.handle.0));
}

#[test]
fn one_who_is_ignored_gets_no_answer_however_often_he_asks() {
    let (mut router, mut asker, asked) = one_asks();
    router.ignore(ms(1), &asked);
    for turn in 1..15 {
        asker.ask(&mut router, Time::from_secs(2 * turn));
    }
    let told = events(&mut router);
    let silent =
        |event: &RouterEvent| matches!(event, RouterEvent::Refused(_, DropReason::Ignored));
    assert!(told.iter().all(silent) && told.len() == 14, "{told:?}");
    assert_eq!(reply(&mut router, Time::from_secs(29)), None);
    assert_eq!(router.accept(ms(1), &asked, default_config()), Err(AcceptError::Gone));
    // A new attempt of the same peer is processed.
    let mut again = Asker::at(&router, 7, (1, Time::from_secs(29)));
    again.ask(&mut router, Time::from_secs(29));
    assert_eq!(incoming(&mut router).peer, asked.peer);
}

#[test]
fn one_who_is_asked_for_his_address_asks_anew_and_has_shown_it() {
    let (mut router, mut asker, asked) = one_asks();
    assert!(router.retry(ms(1), &asked));
    assert_eq!(router.half_open.len(), 0, "nothing is kept of him meanwhile");
    let (to, cookie) = reply(&mut router, ms(1)).unwrap();
    assert_eq!((to, cookie.len()), (asker.from.remote, message::COOKIE_REPLY_LEN));
    asker.initiator.on_cookie_reply(&asker.crypto, PathId(0), ms(2), &cookie).unwrap();
    asker.ask(&mut router, ms(2));
    let again = incoming(&mut router);
    assert!(again.validated && again.peer == asked.peer);
    assert!(!router.retry(ms(3), &again), "he has shown it");
    router.accept(ms(3), &again, default_config()).unwrap();
    let (_, response) = reply(&mut router, ms(3)).unwrap();
    asker.initiator.on_response(&asker.crypto, &response).unwrap();
}

#[test]
fn one_who_waits_too_long_is_given_up() {
    let mut router = router(|_| {});
    Asker::new(&router, 7).ask(&mut router, Time::ZERO);
    let asked = incoming(&mut router);
    let due = router.next_timeout().unwrap();
    assert_eq!(due, Time::from_secs(30));
    router.handle_timeout(due);
    assert!(
        matches!(events(&mut router)[..], [RouterEvent::GivenUp(handle)] if handle == asked.handle)
    );
    assert_eq!(router.accept(due, &asked, default_config()), Err(AcceptError::Gone));
    assert!(router.waiting.is_empty() && router.next_timeout().is_none());
}

/// The application decides on no peer, while ten thousand peers ask, each with its own address and
/// key, and with a cookie if asked for one.
#[test]
fn a_crowd_that_nobody_decides_on_is_bounded_and_locks_nobody_out() {
    let mut router = router(|_| {});
    let (mut waiting, mut most) = (std::collections::BTreeSet::new(), 0);
    for number in 0..10_000 {
        // Two hundred peers ask per second.
        let now = ms(5 * number);
        let mut asker = Asker::at(&router, number, (0, now));
        asker.insist(&mut router, now);
        router.handle_timeout(now);
        for event in events(&mut router) {
            match event {
                RouterEvent::Incoming(incoming) => assert!(waiting.insert(incoming.handle)),
                RouterEvent::GivenUp(handle) => assert!(waiting.remove(&handle)),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((waiting.len(), router.waiting.len()), (router.half_open.len(), waiting.len()));
        most = most.max(waiting.len());
        // Every new peer is admitted, in the place of one that has waited long.
        assert!(router.waiting.values().any(|asked| asked.incoming.address == asker.from));
    }
    assert_eq!(most, 512);
    assert_eq!(router.connections.len(), 0);
}

/// A peer that was replaced by another may still be there, so its next copy is processed.
#[test]
fn one_whose_place_was_taken_asks_again_by_his_copies() {
    let mut router = router(|config| config.max_half_open = 1);
    let mut first = Asker::new(&router, 1);
    first.ask(&mut router, Time::ZERO);
    let asked = incoming(&mut router);
    let mut second = Asker::new(&router, 2);
    second.insist(&mut router, ms(2500));
    let told = events(&mut router);
    assert!(
        matches!(told[..], [RouterEvent::GivenUp(gone), RouterEvent::Incoming(new)]
            if gone == asked.handle && new.address == second.from),
        "{told:?}"
    );
    first.insist(&mut router, ms(5000));
    let told = events(&mut router);
    assert!(
        matches!(told[..], [RouterEvent::GivenUp(_), RouterEvent::Incoming(new)]
            if new.address == first.from && new.handle != asked.handle),
        "{told:?}"
    );
    assert_eq!(router.accept(ms(5000), &asked, default_config()), Err(AcceptError::Gone));
}

#[test]
fn one_source_and_one_key_have_few_places() {
    let mut router = router(|config| config.responder.source_burst = 100);
    for number in 0..40 {
        let mut asker = Asker::new(&router, number);
        asker.from.remote = SocketAddr::from(([127, 0, 0, 1], 1000 + number as u16));
        asker.ask(&mut router, Time::ZERO);
    }
    assert_eq!(router.waiting.len(), 16);
}
