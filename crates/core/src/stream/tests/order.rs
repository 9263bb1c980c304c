//! Tests of the order in which streams fill symbols.

use super::*;

fn ids(symbol: &[u8]) -> Vec<u64> {
    frames(symbol)
        .iter()
        .map(|frame| match frame {
            SymbolFrame::Stream { stream, .. } => stream.0,
            SymbolFrame::Datagram(_) => u64::MAX,
        })
        .collect()
}

#[test]
fn urgent_classes_first() {
    let mut streams = initiator();
    let bulk = streams.open(TrafficClass::Bulk).unwrap();
    let live = streams.open(TrafficClass::Live).unwrap();
    let interactive = streams.open(TrafficClass::Interactive).unwrap();
    for id in [bulk, live, interactive] {
        streams.write(id, b"some data").unwrap();
    }
    for (class, id) in [
        (TrafficClass::Interactive, interactive),
        (TrafficClass::Live, live),
        (TrafficClass::Bulk, bulk),
    ] {
        assert_eq!(streams.pending().class, Some(class));
        let symbol = fill(&mut streams, class, 0, 100);
        assert_eq!(ids(&symbol), [id.0], "classes do not share symbols");
    }
    assert_eq!(streams.pending().class, None);
}

#[test]
fn streams_of_a_class_take_turns() {
    let mut streams = initiator();
    let ids_open: Vec<_> = (0..3).map(|_| streams.open(TrafficClass::Bulk).unwrap()).collect();
    for id in &ids_open {
        streams.write(*id, &[1; 150]).unwrap();
    }
    let firsts: Vec<_> =
        (0..6).map(|symbol| ids(&fill(&mut streams, TrafficClass::Bulk, symbol, 64))[0]).collect();
    assert_eq!(firsts, [0, 4, 8, 0, 4, 8]);
}

#[test]
fn a_higher_priority_goes_first_within_its_class() {
    let mut streams = initiator();
    let [low, first, second] = [0; 3].map(|_| streams.open(TrafficClass::Bulk).unwrap());
    streams.set_priority(low, -1).unwrap();
    for id in [low, first, second] {
        streams.write(id, &[1; 240]).unwrap();
    }
    let next =
        |streams: &mut Streams, symbol| ids(&fill(streams, TrafficClass::Bulk, symbol, 64))[0];
    let order: Vec<_> = (0..3).map(|symbol| next(&mut streams, symbol)).collect();
    assert_eq!(order, [first.0, second.0, first.0], "equals take turns");
    // A new priority applies also to data that is already waiting.
    streams.set_priority(low, 7).unwrap();
    assert_eq!(streams.urgency(low), Some((TrafficClass::Bulk, 7)));
    let order: Vec<_> = (3..9).map(|symbol| next(&mut streams, symbol)).collect();
    // The rest of the fifth symbol used up the second stream's turn.
    assert_eq!(order, [low.0, low.0, low.0, low.0, low.0, first.0]);
}

#[test]
fn a_symbol_is_filled_from_several_streams() {
    let mut streams = initiator();
    for _ in 0..3 {
        let id = streams.open(TrafficClass::Bulk).unwrap();
        streams.write(id, b"short").unwrap();
        streams.finish(id).unwrap();
    }
    let symbol = fill(&mut streams, TrafficClass::Bulk, 0, 100);
    assert_eq!(ids(&symbol), [0, 4, 8]);
    assert_eq!(streams.pending().blocked, Some(Blocked::Application));
}

#[test]
fn crumbs_are_not_sent() {
    let mut streams = initiator();
    let first = streams.open(TrafficClass::Bulk).unwrap();
    let second = streams.open(TrafficClass::Bulk).unwrap();
    streams.write(first, &[1; 40]).unwrap();
    streams.write(second, &[1; 40]).unwrap();
    let symbol = fill(&mut streams, TrafficClass::Bulk, 0, 44 + 4 + 15);
    assert_eq!(ids(&symbol), [first.0]);
    let symbol = fill(&mut streams, TrafficClass::Bulk, 1, 44 + 4 + 15);
    assert_eq!(ids(&symbol), [second.0]);
    streams.write(first, &[1; 40]).unwrap();
    assert_eq!(fill(&mut streams, TrafficClass::Bulk, 2, 6).len(), 6, "unless nothing else fits");
    assert_eq!(fill(&mut streams, TrafficClass::Bulk, 3, 4).len(), 0);
}

#[test]
fn a_class_can_change() {
    let mut streams = initiator();
    let id = streams.open(TrafficClass::Bulk).unwrap();
    streams.write(id, b"data").unwrap();
    streams.set_class(id, TrafficClass::Interactive).unwrap();
    audit(&streams);
    assert_eq!(streams.pending().class, Some(TrafficClass::Interactive));
    assert_eq!(fill(&mut streams, TrafficClass::Bulk, 0, 100), []);
    assert_eq!(ids(&fill(&mut streams, TrafficClass::Interactive, 0, 100)), [id.0]);
    assert_eq!(streams.set_class(StreamId(40), TrafficClass::Live), Err(StreamError::Unknown));
}

#[test]
fn datagrams_and_streams_alternate() {
    let mut streams = initiator();
    let id = streams.open(TrafficClass::Live).unwrap();
    streams.write(id, &[1; 300]).unwrap();
    for _ in 0..4 {
        streams.send_datagram(&[2; 30], TrafficClass::Live).unwrap();
    }
    let firsts: Vec<_> =
        (0..4).map(|symbol| ids(&fill(&mut streams, TrafficClass::Live, symbol, 36))[0]).collect();
    assert_eq!(firsts, [u64::MAX, 0, u64::MAX, 0]);
}
