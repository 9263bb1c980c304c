//! Tests of credit in both directions.

use core::time::Duration;

use anabranch_types::Time;

use super::*;

#[test]
fn stream_credit_bounds_what_is_sent() {
    let mut streams = initiator();
    let id = streams.open(TrafficClass::Bulk).unwrap();
    assert_eq!(streams.write(id, &[1; 450]), Ok(450));
    let pending = streams.pending();
    assert_eq!((pending.class, pending.bytes), (Some(TrafficClass::Bulk), 400));
    assert_eq!(fill(&mut streams, TrafficClass::Bulk, 0, 1000).len(), 1 + 1 + 1 + 2 + 400);
    let blocked = streams.pending();
    assert_eq!((blocked.class, blocked.blocked), (None, Some(Blocked::FlowControl)));
    assert_eq!(fill(&mut streams, TrafficClass::Bulk, 1, 1000), []);

    streams.on_max_stream_data(id, 420).unwrap();
    assert_eq!(streams.pending().bytes, 20);
    streams.on_max_stream_data(id, 410).unwrap();
    assert_eq!(streams.pending().bytes, 20, "a late, lower limit changes nothing");
    fill(&mut streams, TrafficClass::Bulk, 1, 1000);
    streams.on_max_stream_data(id, 1000).unwrap();
    fill(&mut streams, TrafficClass::Bulk, 2, 1000);
    assert_eq!(streams.pending().blocked, Some(Blocked::Application));
}

#[test]
fn connection_credit_bounds_all_streams_together() {
    let mut streams = initiator();
    let ids: Vec<_> = (0..3).map(|_| streams.open(TrafficClass::Bulk).unwrap()).collect();
    for id in &ids {
        streams.write(*id, &[1; 400]).unwrap();
    }
    assert_eq!(streams.pending().bytes, 1000);
    for symbol in 0..3 {
        fill(&mut streams, TrafficClass::Bulk, symbol, 1000);
    }
    assert_eq!(streams.pending().blocked, Some(Blocked::FlowControl));
    assert_eq!(streams.unsent(), 200);
    streams.on_max_data(1100);
    assert_eq!(streams.pending().bytes, 100);
    fill(&mut streams, TrafficClass::Bulk, 3, 1000);
    streams.on_max_data(5000);
    assert_eq!(streams.pending().bytes, 100);
}

#[test]
fn a_bare_end_needs_no_credit() {
    let mut streams = initiator();
    let first = streams.open(TrafficClass::Bulk).unwrap();
    let second = streams.open(TrafficClass::Bulk).unwrap();
    streams.on_max_stream_data(first, 2000).unwrap();
    let mut symbol = 0;
    for _ in 0..4 {
        assert_eq!(streams.write(first, &[1; 250]), Ok(250));
        fill(&mut streams, TrafficClass::Bulk, symbol, 600);
        symbol += 1;
    }
    streams.write(first, &[1; 10]).unwrap();
    assert_eq!(streams.pending().blocked, Some(Blocked::FlowControl));
    streams.finish(second).unwrap();
    assert_eq!(streams.pending().bytes, 1);
    let bytes = fill(&mut streams, TrafficClass::Bulk, symbol, 600);
    let end = SymbolFrame::Stream { stream: second, offset: 0, fin: true, data: &[] };
    assert_eq!(frames(&bytes), [end]);
    assert_eq!(streams.pending().blocked, Some(Blocked::FlowControl));
}

#[test]
fn credit_comes_back_by_halves() {
    let mut streams = responder();
    let id = StreamId(0);
    streams.on_symbol(&stream_symbol(0, 0, false, &[1; 400])).unwrap();
    streams.read(id, &mut [0; 199], &mut Shelf::default()).unwrap();
    assert_eq!(controls(&mut streams), []);
    streams.read(id, &mut [0; 1], &mut Shelf::default()).unwrap();
    let max = ControlFrame::MaxStreamData { stream: id, limit: 600 };
    assert_eq!(controls(&mut streams), [max]);
    streams.on_symbol(&stream_symbol(0, 400, false, &[1; 200])).unwrap();
    streams.read(id, &mut [0; 400], &mut Shelf::default()).unwrap();
    let frames = controls(&mut streams);
    assert!(frames.contains(&ControlFrame::MaxData { limit: 1600 }));
    assert!(frames.contains(&ControlFrame::MaxStreamData { stream: id, limit: 1000 }));
}

/// Time of the first measurement, and the round-trip time.
const ROUND_TRIP: Duration = Duration::from_millis(20);

/// Delivers 100 bytes of the first stream and reads them.
fn pass_on(streams: &mut Streams, offset: u64) {
    streams.on_symbol(&stream_symbol(0, offset, false, &[1; 100])).unwrap();
    assert_eq!(streams.read(StreamId(0), &mut [0; 100], &mut Shelf::default()).unwrap().n, 100);
}

#[test]
fn credit_grows_while_a_quarter_of_it_is_read_in_a_round_trip() {
    let mut streams = responder();
    let time = |rounds: u32| Time::ZERO + rounds * ROUND_TRIP;
    assert!(streams.is_measurement_due(time(1)));
    assert_eq!(streams.measure_reading(time(1), ROUND_TRIP), None);
    pass_on(&mut streams, 0);
    assert!(!streams.is_measurement_due(time(2) - Duration::from_millis(1)));
    assert_eq!(streams.measure_reading(time(2), ROUND_TRIP), None, "just a quarter of 400 bytes");
    (1..=2).for_each(|piece| pass_on(&mut streams, 100 * piece));
    assert_eq!(streams.measure_reading(time(3), ROUND_TRIP), Some(2));
    let more = ControlFrame::MaxStreamData { stream: StreamId(0), limit: 300 + 800 };
    assert_eq!(controls(&mut streams), [more]);
    pass_on(&mut streams, 300);
    assert_eq!(controls(&mut streams), [ControlFrame::MaxData { limit: 400 + 2000 }]);
    assert!(!streams.is_measurement_due(time(9)), "it has grown as far as it may");
}

/// On a short path, a measurement lasts longer than a round trip, and the credit has to cover only
/// round trips.
#[test]
fn credit_does_not_grow_where_round_trips_are_short() {
    let mut streams = responder();
    let round_trip = Duration::from_micros(400);
    for piece in 0..40_u32 {
        for part in 0..2 {
            pass_on(&mut streams, 100 * u64::from(2 * piece + part));
            controls(&mut streams);
        }
        let now = Time::ZERO + (piece + 1) * Duration::from_millis(5);
        assert!(streams.is_measurement_due(now));
        assert_eq!(streams.measure_reading(now, round_trip), None);
    }
}

#[test]
fn credit_does_not_grow_for_a_reader_that_lags_behind() {
    let mut streams = responder();
    streams.on_symbol(&stream_symbol(0, 0, false, &[1; 400])).unwrap();
    for round in 1..=40_u32 {
        let n = streams.read(StreamId(0), &mut [0; 10], &mut Shelf::default()).unwrap().n;
        assert_eq!(n, 10);
        let now = Time::ZERO + round * ROUND_TRIP;
        assert_eq!(streams.measure_reading(now, ROUND_TRIP), None);
    }
}

#[test]
fn no_stream_credit_for_a_stream_whose_end_is_known() {
    let mut streams = responder();
    streams.on_symbol(&stream_symbol(0, 0, true, &[1; 400])).unwrap();
    read(&mut streams, StreamId(0));
    assert_eq!(controls(&mut streams), []);
}

#[test]
fn lost_credit_is_sent_again_if_it_is_the_newest() {
    let mut streams = responder();
    let id = StreamId(0);
    streams.on_symbol(&stream_symbol(0, 0, false, &[1; 400])).unwrap();
    read(&mut streams, id);
    let [old] = controls(&mut streams)[..] else { panic!("one frame") };
    streams.on_control_lost(&old);
    assert_eq!(controls(&mut streams), [old]);

    streams.on_symbol(&stream_symbol(0, 400, false, &[1; 400])).unwrap();
    read(&mut streams, id);
    let newer = controls(&mut streams);
    assert_eq!(newer.len(), 2);
    streams.on_control_lost(&old);
    assert_eq!(controls(&mut streams), [], "a newer limit is on its way");
    for frame in &newer {
        streams.on_control_lost(frame);
    }
    assert_eq!(controls(&mut streams), newer);

    streams.on_symbol(&stream_symbol(0, 800, true, &[])).unwrap();
    for frame in &newer {
        streams.on_control_lost(frame);
    }
    assert_eq!(controls(&mut streams), newer[..1], "the stream needs no more credit");
}

#[test]
fn closed_streams_make_room_for_new_ones() {
    let mut streams = responder();
    for ordinal in 0..2 {
        let id = StreamId::new(Role::Initiator, Direction::Bidirectional, ordinal);
        streams.on_symbol(&stream_symbol(id.0, 0, true, b"x")).unwrap();
        read(&mut streams, id);
        streams.finish(id).unwrap();
        fill(&mut streams, TrafficClass::Bulk, ordinal, 100);
        assert_eq!(controls(&mut streams), []);
        streams.on_floor(SymbolId(ordinal + 1));
        assert_eq!(events(&mut streams), [StreamEvent::Opened(id), StreamEvent::Acked(id)],);
        let count = 4 + ordinal;
        assert_eq!(controls(&mut streams), [ControlFrame::MaxStreams { count }]);
        assert_eq!(streams.count(), 0);
        streams.on_control_lost(&ControlFrame::MaxStreams { count: count - 1 });
        assert_eq!(controls(&mut streams), []);
        streams.on_control_lost(&ControlFrame::MaxStreams { count });
        assert_eq!(controls(&mut streams), [ControlFrame::MaxStreams { count }]);
    }
}

/// A peer keeps some streams open while it opens and closes others. It never reaches the limit
/// while fewer than `max_streams` are open, and gets few MAX_STREAMS frames while it is far from
/// the limit.
#[test]
fn streams_that_come_and_go_are_granted_again_early() {
    let limits = StreamLimits { max_streams: 100, ..LIMITS };
    for open in [0, 40, 65, 90, 99] {
        let mut streams = Streams::new(Role::Responder, limits);
        let (mut granted, mut told) = (limits.max_streams, 0);
        let arrive = |streams: &mut Streams, ordinal, granted| {
            assert!(ordinal < granted, "{open} open: no grant for stream {ordinal}");
            let id = StreamId::new(Role::Initiator, Direction::Bidirectional, ordinal);
            streams.on_symbol(&stream_symbol(id.0, 0, true, b"")).unwrap();
            id
        };
        for ordinal in 0..open {
            arrive(&mut streams, ordinal, granted);
        }
        for ordinal in open..open + 1000 {
            let id = arrive(&mut streams, ordinal, granted);
            read(&mut streams, id);
            streams.reset(id, 0).unwrap();
            events(&mut streams);
            for frame in controls(&mut streams) {
                if let ControlFrame::MaxStreams { count } = frame {
                    (granted, told) = (count, told + 1);
                }
            }
        }
        assert!(open >= 90 || told <= 250, "{open} open: told {told} times in 1000");
    }
}

#[test]
fn opening_waits_for_the_peer() {
    let mut streams = Streams::new(Role::Initiator, LIMITS);
    assert_eq!(streams.open(TrafficClass::Bulk), Err(StreamError::Limit));
    streams.set_peer_limits(10, 10, 1);
    assert_eq!(events(&mut streams), [StreamEvent::Openable]);
    assert_eq!(streams.open(TrafficClass::Bulk), Ok(StreamId(0)));
    streams.on_max_streams(2);
    assert_eq!(events(&mut streams), [], "nobody asked");
    assert_eq!(streams.open(TrafficClass::Bulk), Ok(StreamId(4)));
}

#[test]
fn violations_of_credit() {
    let over_stream = stream_symbol(0, 1, false, &[1; 400]);
    let error = responder().on_symbol(&over_stream).unwrap_err();
    assert_eq!(error, Violation::StreamCredit(StreamId(0)));
    assert_eq!(error.close_code(), CloseCode::FLOW_CONTROL);

    let mut streams = responder();
    streams.on_symbol(&stream_symbol(0, 399, false, &[1])).unwrap();
    streams.on_symbol(&stream_symbol(4, 399, false, &[1])).unwrap();
    streams.on_symbol(&stream_symbol(4, 0, false, &[1; 400])).unwrap();
    let over_all = streams.on_symbol(&stream_symbol(8, 0, false, &[1; 201])).unwrap_err();
    assert_eq!(over_all, Violation::ConnectionCredit);
    assert_eq!(over_all.close_code(), CloseCode::FLOW_CONTROL);
    assert_eq!(streams.on_reset(StreamId(8), 0, 201), Err(Violation::ConnectionCredit));
    assert_eq!(streams.on_reset(StreamId(8), 0, 401), Err(Violation::StreamCredit(StreamId(8))));
    streams.on_reset(StreamId(8), 0, 200).unwrap();
    audit(&streams);
}
