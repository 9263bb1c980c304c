//! Tests of the application's operations, and of the resulting events and control frames.

use super::*;

const BULK: TrafficClass = TrafficClass::Bulk;

#[test]
fn a_stream_from_end_to_end() {
    let mut a = initiator();
    let mut b = responder();
    let id = a.open(BULK).unwrap();
    a.write(id, b"question").unwrap();
    a.finish(id).unwrap();
    assert_eq!(a.write(id, b"more"), Err(StreamError::Ended));
    assert_eq!(a.finish(id), Err(StreamError::Ended));
    b.on_symbol(&fill(&mut a, BULK, 0, 100)).unwrap();
    assert_eq!(events(&mut b), [StreamEvent::Opened(id), StreamEvent::Readable(id)]);
    assert_eq!(read(&mut b, id), (b"question".to_vec(), true));
    assert_eq!(
        b.read(id, &mut [0], &mut Shelf::default()),
        Err(StreamError::Ended),
        "the end is said once"
    );

    b.write(id, b"answer").unwrap();
    b.finish(id).unwrap();
    a.on_symbol(&fill(&mut b, BULK, 0, 100)).unwrap();
    assert_eq!(events(&mut a), [StreamEvent::Readable(id)]);
    a.on_floor(SymbolId(0));
    assert_eq!(events(&mut a), []);
    a.on_floor(SymbolId(1));
    assert_eq!(events(&mut a), [StreamEvent::Acked(id)]);
    assert_eq!(a.count(), 1, "there is something to read");
    assert_eq!(read(&mut a, id), (b"answer".to_vec(), true));
    assert_eq!(a.count(), 0);
    assert_eq!(a.read(id, &mut [0], &mut Shelf::default()), Err(StreamError::Unknown));
    b.on_floor(SymbolId(1));
    assert_eq!(events(&mut b), [StreamEvent::Acked(id)]);
    assert_eq!(b.count(), 0);
    assert_eq!(b.on_symbol(&stream_symbol(id.0, 0, true, b"question")), Ok(()), "a late copy");
    assert_eq!((b.count(), events(&mut b)), (0, vec![]));
}

#[test]
fn writable_after_a_short_write() {
    let mut streams = initiator();
    let id = streams.open(BULK).unwrap();
    assert_eq!(streams.write(id, &[1; 600]), Ok(500));
    assert_eq!(streams.write(id, &[1; 600]), Ok(0));
    assert_eq!(streams.writable(id), Some(0));
    fill(&mut streams, BULK, 0, 200);
    assert_eq!(events(&mut streams), [], "not worth a wake-up yet");
    fill(&mut streams, BULK, 1, 200);
    assert_eq!(events(&mut streams), [StreamEvent::Writable(id)]);
    fill(&mut streams, BULK, 2, 200);
    assert_eq!(events(&mut streams), []);
    assert_eq!(streams.writable(StreamId(40)), None);
}

#[test]
fn an_application_with_more_to_write_is_known() {
    let mut streams = initiator();
    let id = streams.open(BULK).unwrap();
    streams.write(id, &[1; 600]).unwrap();
    assert!(streams.pending().more);
    fill(&mut streams, BULK, 0, 300);
    assert!(streams.pending().more, "that it is told of space changes nothing");
    streams.write(id, &[1; 100]).unwrap();
    assert!(!streams.pending().more, "this was the rest, as far as is known");
    streams.write(id, &[1; 600]).unwrap();
    streams.finish(id).unwrap();
    assert!(!streams.pending().more);
}

#[test]
fn readable_is_merged_and_withdrawn() {
    let mut streams = responder();
    let id = StreamId(0);
    streams.on_symbol(&stream_symbol(0, 3, false, b"def")).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Opened(id)], "a hole comes first");
    assert_eq!(streams.readable(id), Some(0));
    streams.on_symbol(&stream_symbol(0, 0, false, b"abc")).unwrap();
    streams.on_symbol(&stream_symbol(0, 6, false, b"ghi")).unwrap();
    assert_eq!(streams.readable(id), Some(9));
    assert_eq!(events(&mut streams), [StreamEvent::Readable(id)]);
    streams.on_symbol(&stream_symbol(0, 9, false, b"j")).unwrap();
    assert_eq!(read(&mut streams, id), (b"abcdefghij".to_vec(), false));
    assert_eq!(events(&mut streams), [], "read before it was said");
    assert_eq!(read(&mut streams, id), (vec![], false));
    streams.on_symbol(&stream_symbol(0, 10, true, b"")).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Readable(id)], "the end is news");
    assert_eq!(read(&mut streams, id), (vec![], true));
}

#[test]
fn later_streams_open_the_earlier() {
    let mut streams = responder();
    streams.on_symbol(&stream_symbol(8, 0, false, b"x")).unwrap();
    let opened = [0, 4, 8].map(|id| StreamEvent::Opened(StreamId(id)));
    assert_eq!(events(&mut streams), [&opened[..], &[StreamEvent::Readable(StreamId(8))]].concat());
}

#[test]
fn reset_tells_the_peer_and_frees_the_credit() {
    let mut a = initiator();
    let mut b = responder();
    let id = a.open(BULK).unwrap();
    a.write(id, &[1; 300]).unwrap();
    let symbol = fill(&mut a, BULK, 0, 100);
    a.reset(id, 77).unwrap();
    assert_eq!(a.reset(id, 78), Err(StreamError::Ended));
    assert_eq!(a.write(id, b"x"), Err(StreamError::Ended));
    assert_eq!((a.unsent(), a.pending().class), (0, None));
    let frame = ControlFrame::ResetStream { stream: id, code: 77, final_size: 95 };
    assert_eq!(controls(&mut a), [frame]);
    a.on_control_lost(&frame);
    assert_eq!(controls(&mut a), [frame]);

    b.on_symbol(&symbol).unwrap();
    b.on_reset(id, 77, 95).unwrap();
    audit(&b);
    assert_eq!(b.read(id, &mut [0], &mut Shelf::default()), Err(StreamError::Reset(77)));
    let told = StreamEvent::Reset { id, code: 77 };
    assert_eq!(events(&mut b), [StreamEvent::Opened(id), told]);
    b.on_reset(id, 77, 95).unwrap();
    assert_eq!(events(&mut b), [], "a copy is no news");
    assert_eq!(b.on_reset(id, 77, 96), Err(Violation::FinalSize(id)));
    assert_eq!(b.consumed, 95);
}

#[test]
fn a_reset_outlives_its_stream() {
    let mut streams = initiator();
    let id = streams.open(BULK).unwrap();
    streams.reset(id, 5).unwrap();
    streams.on_reset(id, 6, 0).unwrap();
    events(&mut streams);
    let frame = ControlFrame::ResetStream { stream: id, code: 5, final_size: 0 };
    assert_eq!(controls(&mut streams), [frame]);
    assert_eq!(streams.count(), 0);
    streams.on_control_lost(&frame);
    assert_eq!(controls(&mut streams), [frame]);
    assert_eq!(controls(&mut streams), []);
}

#[test]
fn a_reset_after_everything_arrived_changes_nothing() {
    let mut streams = responder();
    streams.on_symbol(&stream_symbol(0, 0, true, b"all")).unwrap();
    streams.on_reset(StreamId(0), 9, 3).unwrap();
    assert_eq!(read(&mut streams, StreamId(0)), (b"all".to_vec(), true));
}

#[test]
fn a_reset_forestalls_the_acknowledgement() {
    let mut streams = initiator();
    let id = streams.open(BULK).unwrap();
    streams.write(id, b"data").unwrap();
    streams.finish(id).unwrap();
    fill(&mut streams, BULK, 0, 100);
    streams.reset(id, 1).unwrap();
    streams.on_floor(SymbolId(1));
    assert_eq!(events(&mut streams), []);
    let frame = ControlFrame::ResetStream { stream: id, code: 1, final_size: 4 };
    assert_eq!(controls(&mut streams), [frame]);
}

#[test]
fn stop_sending_drops_what_comes_and_resets_the_peer() {
    let mut a = initiator();
    let mut b = responder();
    let id = a.open(BULK).unwrap();
    a.write(id, &[1; 300]).unwrap();
    b.on_symbol(&fill(&mut a, BULK, 0, 100)).unwrap();
    b.stop_sending(id, 3).unwrap();
    assert_eq!(b.stop_sending(id, 3), Err(StreamError::Ended));
    assert_eq!(b.read(id, &mut [0], &mut Shelf::default()), Err(StreamError::Ended));
    assert_eq!(events(&mut b), [StreamEvent::Opened(id)]);
    let stop = ControlFrame::StopSending { stream: id, code: 3 };
    assert_eq!(controls(&mut b), [stop]);
    b.on_control_lost(&stop);
    assert_eq!(controls(&mut b), [stop]);
    b.on_symbol(&fill(&mut a, BULK, 1, 100)).unwrap();
    assert_eq!((b.readable(id), b.consumed), (Some(0), 189));

    a.on_stop_sending(id, 3).unwrap();
    assert_eq!(events(&mut a), [StreamEvent::Stopped { id, code: 3 }]);
    assert_eq!(a.write(id, b"x"), Err(StreamError::Stopped(3)));
    assert_eq!(a.finish(id), Err(StreamError::Stopped(3)));
    let reset = ControlFrame::ResetStream { stream: id, code: 3, final_size: 189 };
    assert_eq!(controls(&mut a), [reset]);
    b.on_reset(id, 3, 189).unwrap();
    assert_eq!(events(&mut b), [], "it asked for it");
    b.on_control_lost(&stop);
    assert_eq!(controls(&mut b), [], "the end is known");
    b.reset(id, 0).unwrap();
    controls(&mut b);
    assert_eq!(b.count(), 0);
}

#[test]
fn stop_sending_lets_a_sent_end_stand() {
    let mut streams = initiator();
    let id = streams.open(BULK).unwrap();
    streams.write(id, b"data").unwrap();
    streams.finish(id).unwrap();
    fill(&mut streams, BULK, 0, 100);
    streams.on_stop_sending(id, 3).unwrap();
    streams.on_stop_sending(id, 4).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Stopped { id, code: 3 }]);
    assert_eq!(controls(&mut streams), []);
    streams.on_floor(SymbolId(1));
    assert_eq!(events(&mut streams), [StreamEvent::Acked(id)]);
}

/// A stream whose class changed has symbols in two spaces. The peer has the whole stream once it
/// has all symbols up to the last one in each space.
#[test]
fn a_stream_in_two_spaces_is_acknowledged_when_both_are() {
    let live = SymbolSpace::Live.symbol(0);
    for live_first in [true, false] {
        let mut streams = initiator();
        let id = streams.open(BULK).unwrap();
        streams.write(id, &[1; 150]).unwrap();
        fill(&mut streams, BULK, 0, 100);
        fill(&mut streams, BULK, 1, 100);
        streams.set_class(id, TrafficClass::Live).unwrap();
        streams.write(id, b"end").unwrap();
        streams.finish(id).unwrap();
        fill(&mut streams, TrafficClass::Live, live.0, 100);
        let floors = [SymbolId(2), SymbolSpace::Live.symbol(1)];
        streams.on_floor(SymbolId(1));
        streams.on_floor(floors[usize::from(live_first)]);
        assert_eq!(events(&mut streams), []);
        streams.on_floor(floors[usize::from(!live_first)]);
        assert_eq!(events(&mut streams), [StreamEvent::Acked(id)]);
    }
}

/// A stream does not wait for a space if the peer had all its symbols of this space before the end
/// was written.
#[test]
fn a_stream_waits_for_no_space_of_which_the_peer_has_all() {
    let mut streams = initiator();
    let id = streams.open(BULK).unwrap();
    streams.write(id, b"bulk").unwrap();
    fill(&mut streams, BULK, 0, 100);
    streams.on_floor(SymbolId(1));
    streams.set_class(id, TrafficClass::Live).unwrap();
    streams.finish(id).unwrap();
    fill(&mut streams, TrafficClass::Live, SymbolSpace::Live.symbol(0).0, 100);
    assert_eq!(events(&mut streams), []);
    streams.on_floor(SymbolSpace::Live.symbol(1));
    assert_eq!(events(&mut streams), [StreamEvent::Acked(id)]);
}

#[test]
fn unknown_streams() {
    let mut streams = initiator();
    let id = StreamId(0);
    assert_eq!(streams.write(id, b"x"), Err(StreamError::Unknown));
    assert_eq!(streams.finish(id), Err(StreamError::Unknown));
    assert_eq!(streams.reset(id, 0), Err(StreamError::Unknown));
    assert_eq!(streams.stop_sending(id, 0), Err(StreamError::Unknown));
    assert_eq!(streams.read(id, &mut [0], &mut Shelf::default()), Err(StreamError::Unknown));
    assert_eq!(streams.readable(id), None);
}
