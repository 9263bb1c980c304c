use super::*;

#[test]
fn whole_and_in_order() {
    let mut sender = initiator();
    let mut receiver = responder();
    for text in ["one", "two", ""] {
        sender.send_datagram(text.as_bytes(), TrafficClass::Live).unwrap();
    }
    assert_eq!(sender.pending().class, Some(TrafficClass::Live));
    receiver.on_symbol(&fill(&mut sender, TrafficClass::Live, 0, 100)).unwrap();
    assert_eq!(sender.pending().blocked, Some(Blocked::Application));
    assert_eq!(events(&mut receiver), [StreamEvent::Datagram]);
    let mut buffer = [0; 2];
    assert_eq!(receiver.recv_datagram(&mut buffer), Some(3));
    assert_eq!(&buffer, b"on", "cut to the buffer");
    assert_eq!(receiver.recv_datagram(&mut buffer), Some(3));
    assert_eq!(receiver.recv_datagram(&mut buffer), Some(0));
    assert_eq!(receiver.recv_datagram(&mut buffer), None);
}

#[test]
fn the_send_queue_is_bounded() {
    let mut streams = initiator();
    for _ in 0..4 {
        streams.send_datagram(&[1; 34], TrafficClass::Bulk).unwrap();
    }
    assert_eq!(streams.send_datagram(&[], TrafficClass::Bulk), Err(StreamError::Full));
    assert_eq!(streams.send_datagram(&[], TrafficClass::Live), Ok(()), "a queue of its own");
    assert_eq!(events(&mut streams), []);
    fill(&mut streams, TrafficClass::Bulk, 0, 40);
    assert_eq!(events(&mut streams), [StreamEvent::DatagramSpace]);
    assert_eq!(streams.send_datagram(&[], TrafficClass::Bulk), Ok(()));
}

#[test]
fn too_long_is_said_at_once() {
    let mut streams = initiator();
    assert_eq!(streams.send_datagram(&[1; 185], TrafficClass::Bulk), Err(StreamError::TooLong));
    streams.set_datagram_limit(50);
    assert_eq!(streams.send_datagram(&[1; 51], TrafficClass::Bulk), Err(StreamError::TooLong));
    assert_eq!(streams.send_datagram(&[1; 50], TrafficClass::Bulk), Ok(()));
}

#[test]
fn what_no_symbol_holds_any_more_is_dropped() {
    let mut streams = initiator();
    streams.send_datagram(&[1; 100], TrafficClass::Bulk).unwrap();
    streams.send_datagram(&[2; 20], TrafficClass::Bulk).unwrap();
    let symbol = fill(&mut streams, TrafficClass::Bulk, 0, 60);
    assert_eq!(frames(&symbol), [SymbolFrame::Datagram(&[2; 20])]);
    assert_eq!(streams.datagrams_dropped(), 1);
}

#[test]
fn the_oldest_makes_room_at_the_receiver() {
    let mut streams = responder();
    for n in 0..10 {
        streams.on_symbol(&[0x22, 4, n, n, n, n]).unwrap();
    }
    assert_eq!(events(&mut streams), [StreamEvent::Datagram], "merged");
    let mut buffer = [0; 4];
    assert_eq!(streams.recv_datagram(&mut buffer), Some(4));
    assert_eq!((buffer, streams.datagrams_dropped()), ([0; 4], 0));
    streams.on_symbol(&[0x22, 4, 10, 10, 10, 10]).unwrap();
    streams.on_symbol(&[0x22, 4, 11, 11, 11, 11]).unwrap();
    streams.recv_datagram(&mut buffer);
    assert_eq!((buffer, streams.datagrams_dropped()), ([2; 4], 1));
    let huge = [&[0x22, 0x40, 190][..], &[1; 190]].concat();
    streams.on_symbol(&huge).unwrap();
    assert_eq!(streams.datagrams_dropped(), 2, "others stay where the queue could never hold it");
}
