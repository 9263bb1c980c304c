//! Tests of the thinning of acknowledgements that arrive at one instant.

use anabranch_tcp::{Flags, Segment};
use anabranch_types::{Ecn, Time};

use crate::engine::PortId;
use crate::engine::packet::{Packet, Payload, Slab};
use crate::engine::thinning::Thinning;
use crate::link::{Delivery, LinkOutput};

fn acknowledgement(ack: u64) -> Segment {
    Segment { ack, flags: Flags::ACK, ..Segment::EMPTY }
}

/// Indices of the packets that are not dropped. Each packet is given as a connection, a time in
/// milliseconds and a payload.
fn staying(one_in: u32, sent: Vec<(u32, u64, Payload)>) -> Vec<usize> {
    let mut slab = Slab::new();
    let deliver = |(stream, millis, payload): (u32, u64, Payload)| {
        let time = Time::from_millis(millis);
        let packet =
            Packet { sent: time, to: PortId(0), stream, size: 40, ecn: Ecn::NotEct, hop: 0 };
        let token = slab.insert(packet, payload);
        LinkOutput::Delivered(Delivery { time, token, size: 40, ecn: Ecn::NotEct })
    };
    let mut outputs: Vec<_> = sent.into_iter().map(deliver).collect();
    if let Some(mut thinning) = Thinning::new(one_in) {
        thinning.pass(&mut outputs, &mut slab);
    }
    let stays = |(index, output): (usize, &LinkOutput<u32>)| {
        matches!(output, LinkOutput::Delivered(_)).then_some(index)
    };
    outputs.iter().enumerate().filter_map(stays).collect()
}

#[test]
fn of_a_clump_one_in_so_many_stays_and_the_last() {
    let clump = |millis| (0..10).map(move |i| (0, millis, Payload::Segment(acknowledgement(i))));
    assert_eq!(staying(4, clump(5).collect()), [1, 5, 9]);
    assert_eq!(staying(100, clump(5).collect()), [9]);
    assert_eq!(staying(1, clump(5).collect()).len(), 10);
    // Each of two clumps keeps its last acknowledgement. Acknowledgements that arrive alone stay.
    assert_eq!(staying(100, clump(5).chain(clump(6)).collect()), [9, 19]);
    let alone = (0..10).map(|i| (0, i, Payload::Segment(acknowledgement(i)))).collect();
    assert_eq!(staying(100, alone).len(), 10);
}

#[test]
fn connections_are_thinned_apart() {
    let both = (0..6).map(|i| (i as u32 % 2, 5, Payload::Segment(acknowledgement(i)))).collect();
    assert_eq!(staying(100, both), [4, 5]);
}

#[test]
fn what_says_more_than_progress_stays() {
    let plain = || Payload::Segment(acknowledgement(9_000));
    let mut selective = acknowledgement(9_000);
    selective.sack.push(9_000, 10_000, 11_000);
    let with = |flag| Segment { flags: Flags::ACK.with(flag), ..acknowledgement(9_000) };
    for telling in [
        Payload::Segment(selective),
        Payload::Segment(with(Flags::FIN)),
        Payload::Segment(with(Flags::SYN)),
        Payload::Segment(with(Flags::ECE)),
        Payload::Segment(with(Flags::PROBE)),
        Payload::Segment(Segment { len: 1, ..acknowledgement(9_000) }),
        Payload::Datagram(vec![0; 12]),
        Payload::Filler,
    ] {
        let label = format!("{telling:?}");
        assert_eq!(staying(2, vec![(0, 5, telling), (0, 5, plain())]), [0, 1], "{label}");
    }
    let mapped = Payload::Segment(with(Flags::MAPPED));
    assert_eq!(staying(2, vec![(0, 5, mapped), (0, 5, plain())]), [1]);
}
