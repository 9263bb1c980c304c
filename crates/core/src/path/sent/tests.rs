use anabranch_types::Time;

use super::*;

fn packet(number: u64, ack_eliciting: bool) -> SentPacket {
    let sent = SentPacket::unwatched(Time::from_millis(number), 1000);
    SentPacket { fate: Fate::InFlight, ack_eliciting, ..sent }
}

/// Returns reproducible pseudo-random numbers below `n` (Knuth's MMIX constants).
fn draw(state: &mut u64, n: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % n
}

/// The count of [`SentPackets::open_up_to`] for one packet, computed from each packet above it.
fn acked_above(sent: &SentPackets, number: u64, largest: u64) -> u64 {
    let acked =
        |above: &u64| sent.get(*above).is_some_and(|p| p.ack_eliciting && p.fate == Fate::Acked);
    (number + 1..=largest).filter(acked).count() as u64
}

#[test]
fn one_pass_counts_what_was_acknowledged_above_every_open_packet() {
    let mut state = 7;
    let mut seen = 0;
    for _ in 0..200 {
        let mut sent = SentPackets::default();
        for number in 0..60 {
            sent.push(packet(number, number == 0 || draw(&mut state, 8) > 0));
        }
        for step in 0..40 {
            let number = draw(&mut state, 60);
            let fate = [Fate::Acked, Fate::Lost, Fate::WrittenOff][draw(&mut state, 3) as usize];
            sent.resolve(number, fate);
            sent.prune(Time::from_millis(step));
            let largest = draw(&mut state, 60);
            let expected: Vec<(u64, u64)> = sent
                .open()
                .map(|(number, _)| number)
                .filter(|number| *number <= largest)
                .map(|number| (number, acked_above(&sent, number, largest)))
                .collect();
            let mut found: Vec<(u64, u64)> =
                sent.open_up_to(largest).map(|(number, _, above)| (number, above)).collect();
            found.reverse();
            assert_eq!(found, expected);
            seen += expected.iter().filter(|(_, above)| *above > 0).count();
        }
    }
    assert!(seen > 10_000, "{seen}");
}

#[test]
fn symbols_are_known_by_packet_until_it_is_forgotten() {
    let mut state = 3;
    let mut sent = SentPackets::default();
    let mut model = Vec::new();
    let mut several = 0;
    for number in 0..2000 {
        let count = draw(&mut state, 5);
        let symbols: Vec<Carried> =
            (0..count).map(|n| Carried::Source(BlockId(n), SymbolId(number * 10 + n))).collect();
        for symbol in symbols.iter().skip(1) {
            sent.carry_beside(*symbol);
        }
        let carried = symbols.first().copied();
        sent.push(SentPacket { carried, ..packet(number, count > 0 || draw(&mut state, 2) > 0) });
        model.push(symbols);
        let fate = [Fate::Acked, Fate::Lost, Fate::WrittenOff][draw(&mut state, 3) as usize];
        let old = number.saturating_sub(draw(&mut state, 40));
        sent.resolve(old, fate);
        sent.prune(Time::from_millis(number.saturating_sub(60)));
        for number in sent.oldest()..sent.next_number() {
            let packet = *sent.get(number).unwrap();
            let found: Vec<Carried> =
                (0..).map_while(|nth| sent.symbol(number, &packet, nth)).collect();
            assert_eq!(found, model[number as usize]);
            several += u64::from(found.len() > 1);
        }
    }
    assert!(several > 10_000, "{several}");
    for number in sent.oldest()..sent.next_number() {
        sent.resolve(number, Fate::Acked);
    }
    sent.prune(Time::from_millis(5000));
    assert_eq!((sent.packets.len(), sent.beside.len()), (0, 0));
}

#[test]
fn packets_are_overtaken_once_by_the_first_of_those_sent_later() {
    let mut sent = SentPackets::default();
    (0..6).for_each(|number| sent.push(packet(number, true)));
    let at = |sent: &SentPackets, number| sent.get(number).unwrap().overtaken;
    for (ms, number) in [(10, 2), (20, 0), (30, 5)] {
        sent.resolve(number, Fate::Acked);
        sent.on_acked(Time::from_millis(ms), number);
    }
    assert_eq!(sent.largest_acked(), Some(5));
    let (first, second) = (Some(Time::from_millis(10)), Some(Time::from_millis(30)));
    let overtaken: Vec<Option<Time>> = (0..6).map(|number| at(&sent, number)).collect();
    assert_eq!(overtaken, [first, first, None, second, second, None]);
}

#[test]
fn only_losses_of_packets_in_flight_are_counted() {
    let mut sent = SentPackets::default();
    (0..3).for_each(|number| sent.push(packet(number, true)));
    sent.resolve(0, Fate::Lost);
    sent.resolve(1, Fate::WrittenOff);
    sent.resolve(1, Fate::Lost);
    let counted = |number| sent.get(number).unwrap().counted_lost;
    assert_eq!([counted(0), counted(1), counted(2)], [true, false, false]);
}

#[test]
fn packets_that_wait_for_an_answer_are_counted_by_age() {
    let mut sent = SentPackets::default();
    for number in 0..6 {
        let at = Time::from_millis(number);
        sent.push(SentPacket {
            sent: at,
            probe: (number == 1).then_some(Probe::Mtu),
            ..packet(number, number != 2)
        });
    }
    sent.resolve(0, Fate::Acked);
    sent.resolve(3, Fate::WrittenOff);
    let counts = [2, 3, 4, 9].map(|ms| sent.sent_before(Time::from_millis(ms)));
    assert_eq!(
        counts,
        [0, 1, 2, 3],
        "neither what is acknowledged, asks for nothing, or probes the MTU"
    );
}

#[test]
fn losses_of_many_packets_do_not_clog_a_path() {
    let mut sent = SentPackets::default();
    for number in 0..3 * MOST_UNWATCHED as u64 {
        sent.push(packet(number, true));
        if number % 32 != 0 {
            sent.resolve(number, Fate::Lost);
        }
        sent.prune(Time::ZERO);
        assert!(!sent.is_clogged(), "{number}");
    }
}

#[test]
fn answers_after_an_open_packet_clog_a_path_until_it_is_given_up() {
    let mut sent = SentPackets::default();
    sent.push(packet(0, true));
    for number in 1..=MOST_UNWATCHED as u64 {
        sent.push(packet(number, false));
        assert!(!sent.is_clogged(), "{number}");
    }
    sent.push(packet(MOST_UNWATCHED as u64 + 1, false));
    assert!(sent.is_clogged());
    sent.resolve(0, Fate::Lost);
    sent.prune(Time::from_nanos(u64::MAX));
    assert!(!sent.is_clogged());
    assert_eq!(sent.oldest(), sent.next_number());
}
