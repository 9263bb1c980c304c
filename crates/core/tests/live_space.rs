//! Tests that live data has its own symbol space if the peer offers one.

use anabranch_core::config::TransportConfig;
use anabranch_core::endpoint::EndpointConfig;
use anabranch_core::observe::{Observation, Observer};
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Rogue, Sent, written};
use anabranch_core::wire::{
    CloseCode, ControlFrame, Frame, Frames, RankEntry, RankFrame, RepairFrame, SourceFrame,
    StreamId, SymbolFrame, TransportParameters,
};
use anabranch_policy::Axis;
use anabranch_policy::view::{SymbolId, SymbolSpace, TrafficClass};
use anabranch_types::{Rng, Time};
use core::time::Duration;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

const DELAY: Duration = Duration::from_millis(10);
const BULK_AND_LIVE: &[TrafficClass] = &[TrafficClass::Bulk, TrafficClass::Live];
const LIVE: SymbolSpace = SymbolSpace::Live;

/// The sent symbols: their kind (source, repair or resend) and space.
#[derive(Clone, Debug, Default)]
struct Departures(Arc<Mutex<Vec<(&'static str, SymbolSpace)>>>);

impl Departures {
    fn count(&self, what: &str, space: SymbolSpace) -> usize {
        self.0.lock().unwrap().iter().filter(|departure| **departure == (what, space)).count()
    }
}

impl Observer for Departures {
    fn observe(&mut self, _: Time, observation: &Observation) {
        if let Observation::Scheduled { what, symbol, .. } = observation {
            self.0.lock().unwrap().push((what, symbol.space()));
        }
    }
}

/// Writes `bytes` bytes, with these classes in turn, and waits until the sender knows that all have
/// arrived.
fn transfer<N: Network>(
    pair: &mut Pair<N>,
    classes: &'static [TrafficClass],
    bytes: u64,
) -> Departures {
    (0..100).for_each(|_| pair.round(Duration::from_millis(1)));
    let departures = Departures::default();
    let connection = pair.ends[0].connection().expect("it has had time to open");
    connection.set_observer(Some(Box::new(departures.clone())));
    pair.ends[0].classes = classes;
    let end = pair.ends[1].read + bytes;
    let limit = pair.now + Duration::from_secs(120);
    let mut left = bytes;
    while pair.ends[1].read < end || !pair.ends[0].connection().unwrap().is_drained() {
        if left > 0 && pair.ends[0].unwritten == 0 {
            let piece = left.min(3_000);
            pair.ends[0].unwritten += piece;
            left -= piece;
        }
        pair.round(Duration::from_millis(1));
        assert!(pair.now < limit, "{} bytes arrived", pair.ends[1].read);
    }
    let held = pair.ends[0].connection().unwrap().symbols_held();
    assert!(held[0] <= 255, "{held:?}");
    departures
}

fn lossy(loss: f64, seed: u64) -> impl Network {
    let mut rng = Rng::new(seed);
    move |sent: &Sent<'_>| {
        let lost = sent.now > Time::from_millis(150) && rng.chance(loss);
        let late = Duration::from_micros(rng.below(3_000));
        (!lost).then(|| (sent.now + DELAY + late, sent.ecn))
    }
}

#[test]
fn live_data_is_coded_apart_from_the_rest() {
    let mut pair = Pair::new(&Profile::default(), 2, lossy(0.1, 1));
    let departures = transfer(&mut pair, BULK_AND_LIVE, 400_000);
    for space in SymbolSpace::ALL {
        let [sources, repairs] = ["source", "repair"].map(|what| departures.count(what, space));
        assert!(sources > 50, "{space:?}: {sources}");
        assert!(repairs > 0 && repairs < sources, "{space:?}: {repairs} for {sources}");
    }
}

#[test]
fn live_data_comes_among_the_rest_where_it_is_told_to_or_the_peer_offers_nothing_else() {
    let mut blocks = Profile::default();
    blocks.set(Axis::Redundancy, "budget:live=blocks").unwrap();
    let mut sliding = Profile::default();
    sliding.set(Axis::Code, "sliding-window").unwrap();
    let mut uncoded = Profile::default();
    uncoded.set(Axis::Code, "none").unwrap();
    for profile in [blocks, sliding, uncoded] {
        let mut pair = Pair::new(&profile, 2, lossy(0.1, 2));
        let departures = transfer(&mut pair, BULK_AND_LIVE, 200_000);
        assert_eq!(departures.count("source", LIVE), 0, "{profile:?}");
    }
    let mut config = EndpointConfig::new(Profile::default());
    config.transport.whole_blocks = true;
    let mut pair = Pair::with(config, 2, lossy(0.1, 3));
    let departures = transfer(&mut pair, BULK_AND_LIVE, 200_000);
    assert_eq!(departures.count("source", LIVE), 0);
}

/// The receiver grants credit for a small part of the data, and for live data a quarter of that
/// credit. Each space therefore has to wait for its own credit repeatedly.
#[test]
fn each_space_has_credit_of_its_own() {
    let mut config = EndpointConfig::new(Profile::default());
    config.transport.receive_symbols = 64;
    let mut pair = Pair::with(config, 2, lossy(0.05, 4));
    let departures = transfer(&mut pair, BULK_AND_LIVE, 2_000_000);
    for (space, credit) in SymbolSpace::ALL.into_iter().zip([64, 16]) {
        let sources = departures.count("source", space);
        assert!(sources > 6 * credit, "{space:?}: {sources}");
    }
}

/// After a live stream has ended, none of its symbols is kept, so a path whose MTU is too small for
/// them can carry other data.
#[test]
fn nothing_is_kept_of_a_live_stream_that_has_ended() {
    let mut pair = Pair::new(&Profile::default(), 1, lossy(0.0, 6));
    transfer(&mut pair, &[TrafficClass::Live], 100_000);
    assert_eq!(pair.ends[0].connection().unwrap().symbols_held()[0], 0);
}

/// Calls `each` with every frame of the victim's packets that the rogue has not taken yet.
fn hear(rogue: &mut Rogue, mut each: impl FnMut(Frame<'_>)) {
    while let Some(packet) = rogue.take() {
        Frames::new(&packet.frames).map_while(Result::ok).for_each(&mut each);
    }
}

/// A peer that grants credit for live symbols only now and then does not block other data.
#[test]
fn bulk_data_does_not_wait_for_credit_of_live_data() {
    let parameters = TransportParameters {
        max_live_symbols: 1,
        ..TransportConfig::default().parameters("anabranch")
    };
    let mut rogue = Rogue::connect(TransportConfig::default(), "anabranch", &parameters);
    let connection = rogue.connection().unwrap();
    for class in [TrafficClass::Live, TrafficClass::Bulk] {
        let stream = connection.open_stream(class).unwrap();
        connection.write(stream, &[7; 10_000]).unwrap();
    }
    rogue.listen();
    let mut symbols = Vec::new();
    hear(&mut rogue, |frame| {
        if let Frame::Symbol(symbol) = frame {
            symbols.push(symbol.symbol);
        }
    });
    let live = symbols.iter().filter(|symbol| symbol.space() == LIVE).count();
    assert!(live == 1 && symbols.len() > 5, "{symbols:?}");
}

/// A peer may request block ends and also accept live symbols. No live symbol is then marked as the
/// end of a block.
#[test]
fn no_live_symbol_is_told_as_the_last_of_a_block() {
    let parameters = TransportParameters {
        whole_blocks: true,
        ..TransportConfig::default().parameters("anabranch")
    };
    let mut rogue = Rogue::connect(TransportConfig::default(), "anabranch", &parameters);
    let connection = rogue.connection().unwrap();
    let stream = connection.open_stream(TrafficClass::Live).unwrap();
    connection.write(stream, &[7; 5_000]).unwrap();
    // Unacknowledged symbols are sent again after their block is closed.
    for _ in 0..10 {
        rogue.listen();
        rogue.advance(Duration::from_millis(100));
    }
    let mut live = 0;
    hear(&mut rogue, |frame| {
        if let Frame::Symbol(symbol) = frame {
            assert!(symbol.symbol.space() == LIVE && !symbol.last, "{:?}", symbol.symbol);
            live += 1;
        }
    });
    assert!(live > 4, "{live}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// All bytes of a stream whose class changes all the time arrive in order despite losses (which
    /// the pair checks).
    #[test]
    fn nothing_is_lost_between_the_spaces(
        loss in 0.0..0.5,
        credit in 20_u64..2000,
        bytes in 1_u64..200_000,
        seed in any::<u64>(),
    ) {
        let mut config = EndpointConfig::new(Profile::default());
        config.transport.receive_symbols = credit;
        let mut pair = Pair::with(config, 2, lossy(loss, seed));
        transfer(&mut pair, BULK_AND_LIVE, bytes);
    }
}

fn rogue(transport: TransportConfig) -> Rogue {
    let parameters = TransportConfig::default().parameters("anabranch");
    Rogue::connect(transport, "anabranch", &parameters)
}

fn source(id: SymbolId, payload: &[u8]) -> Vec<u8> {
    let frame = SourceFrame { symbol: id, floor: LIVE.symbol(0), payload, last: false };
    written(|writer| frame.encode(writer).unwrap())
}

fn stream(id: SymbolId, offset: u64, data: &[u8]) -> Vec<u8> {
    let frame = SymbolFrame::Stream { stream: StreamId(0), offset, fin: false, data };
    source(id, &written(|writer| frame.encode(writer).unwrap()))
}

fn repair(first: SymbolId, count: u16, payload: &[u8]) -> Vec<u8> {
    let frame = RepairFrame { first, floor: LIVE.symbol(0), count, key: 0, payload };
    written(|writer| frame.encode(writer).unwrap())
}

/// The credit for live symbols is a quarter of the credit for other symbols.
#[test]
fn what_is_beyond_the_credit_or_the_code_closes() {
    let transport = TransportConfig { receive_symbols: 400, ..TransportConfig::default() };
    let whole = TransportConfig { whole_blocks: true, ..transport.clone() };
    let cases = [
        (&transport, stream(LIVE.symbol(99), 0, b"x"), None),
        (&transport, stream(LIVE.symbol(100), 0, b"x"), Some(CloseCode::CODING)),
        (&transport, repair(LIVE.symbol(90), 10, &[1]), None),
        (&transport, repair(LIVE.symbol(90), 11, &[1]), Some(CloseCode::CODING)),
        (&transport, repair(LIVE.symbol(0), 256, &[1]), Some(CloseCode::CODING)),
        (&transport, source(LIVE.symbol(SymbolSpace::SYMBOLS - 1), &[0]), Some(CloseCode::CODING)),
        (&whole, stream(LIVE.symbol(0), 0, b"x"), Some(CloseCode::CODING)),
    ];
    for (transport, frames, code) in cases {
        let mut rogue = rogue(transport.clone());
        rogue.send(0, &frames);
        assert_eq!(rogue.closed().map(|reason| reason.code), code, "{frames:x?}");
    }
}

/// The peer reports on the live space although it never received a live symbol.
#[test]
fn reports_about_a_space_in_which_nothing_was_sent_say_nothing() {
    for classes in [&[TrafficClass::Bulk][..], BULK_AND_LIVE] {
        let mut rogue = rogue(TransportConfig::default());
        let connection = rogue.connection().unwrap();
        for class in classes {
            let id = connection.open_stream(*class).unwrap();
            connection.write(id, &[5; 5_000]).unwrap();
        }
        rogue.listen();
        for first in [0, 1, 7, SymbolSpace::SYMBOLS - 1] {
            let entry = RankEntry { first: LIVE.symbol(first), missing: u16::MAX };
            let rank = written(|writer| {
                RankFrame::encode_entries(entry.first, [entry], writer).unwrap();
            });
            rogue.send(0, &rank);
            let credit = ControlFrame::MaxSymbols { space: LIVE, limit: first };
            let abandon = ControlFrame::Abandon { first: LIVE.symbol(first), count: 1 };
            for frame in [credit, abandon] {
                rogue.send(0, &written(|writer| frame.encode(writer).unwrap()));
            }
            rogue.advance(Duration::from_millis(100));
            assert_eq!(rogue.closed(), None);
        }
    }
}

/// Live symbols and others are repaired and reported separately: a repair of live symbols does not
/// affect other symbols with the same ordinals.
#[test]
fn the_spaces_of_a_receiver_know_nothing_of_each_other() {
    let mut rogue = rogue(TransportConfig::default());
    let payload = written(|writer| {
        SymbolFrame::Stream { stream: StreamId(0), offset: 0, fin: false, data: b"live" }
            .encode(writer)
            .unwrap();
    });
    // A repair of a single symbol is the symbol times a coefficient, so only the right decoder
    // recovers it.
    let mut coded = vec![0; payload.len()];
    let coverage = anabranch_policy::code::Coverage { first: LIVE.symbol(3), count: 1 };
    anabranch_core::coding::code::of_live_data()
        .encoder()
        .repairs(coverage, 0, &[&payload], &mut [&mut coded])
        .unwrap();
    rogue.send(0, &repair(LIVE.symbol(3), 1, &coded));
    let mut buffer = [0; 20];
    let outcome = rogue.connection().unwrap().read(StreamId(0), &mut buffer).unwrap();
    assert_eq!(buffer[..outcome.n], *b"live");
    rogue.send(0, &source(LIVE.symbol(0), &[0]));
    rogue.advance(Duration::from_millis(100));
    rogue.listen();
    let mut ranks = Vec::new();
    hear(&mut rogue, |frame| {
        if let Frame::Rank(rank) = frame {
            ranks.push(rank.first);
        }
    });
    assert!(ranks.contains(&SymbolId(0)) && ranks.contains(&LIVE.symbol(1)), "{ranks:?}");
}
