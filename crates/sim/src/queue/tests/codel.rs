use super::*;

fn dropping() -> Codel {
    let mut codel = Codel::new(CodelConfig { ecn: false, ..CodelConfig::default() });
    codel.on_arrival(1500);
    codel
}

/// A packet departs each millisecond from `from` to `to`, after it has waited for `sojourn` (ms).
/// Returns the times of drops, in milliseconds.
fn drops(codel: &mut Codel, from: u64, to: u64, sojourn: u64) -> Vec<u64> {
    let sojourn = Duration::from_millis(sojourn);
    let mut dropped = Vec::new();
    for millis in from..to {
        let now = Time::from_millis(millis);
        while codel.on_departure(now, sojourn, 100_000, false) == CodelVerdict::Drop {
            dropped.push(millis);
        }
    }
    dropped
}

#[test]
fn drops_follow_the_inverse_square_root() {
    // The delay is above the target from time 0 on. The first drop follows after one interval, and
    // the next ones after 100, 70.7, 57.7, 50 and 44.7 ms.
    let mut codel = dropping();
    assert_eq!(drops(&mut codel, 0, 430, 20), [100, 200, 271, 329, 379, 424]);
    assert!(codel.is_dropping());
}

#[test]
fn a_delay_below_target_ends_it_and_a_soon_return_begins_near_the_old_rate() {
    let mut codel = dropping();
    assert_eq!(drops(&mut codel, 0, 400, 20).len(), 5);
    assert!(drops(&mut codel, 400, 401, 4).is_empty());
    assert!(!codel.is_dropping());
    // The first dropping state ended with a count of 5 and began with 1, so the next one begins
    // with 4, and its second drop comes 100/√4 ms after the first.
    assert_eq!(drops(&mut codel, 401, 560, 20), [501, 551]);
    // After 16 intervals, CoDel no longer uses the old drop rate.
    assert!(drops(&mut codel, 560, 2_500, 4).is_empty());
    assert_eq!(drops(&mut codel, 2_500, 2_750, 20), [2_600, 2_700]);
}

#[test]
fn a_queue_of_one_packet_never_stands() {
    let mut codel = dropping();
    let now = |millis| Time::from_millis(millis);
    let wait = Duration::from_millis(500);
    for millis in 0..1_000 {
        let verdict = codel.on_departure(now(millis), wait, 1500, false);
        assert_eq!(verdict, CodelVerdict::Pass);
    }
}

#[test]
fn a_queue_drops_at_its_head_or_marks_there() {
    let run = |ecn: Ecn| {
        let config = QueueConfig {
            limit: Some(QueueLimit::Packets(1000)),
            discipline: Discipline::Codel(CodelConfig::default()),
        };
        let mut queue = Queue::new(&config, QueueLimit::Packets(1000), Rng::new(1)).expect("valid");
        let (mut sent, mut marked, mut dropped) = (Vec::new(), 0, 0);
        for millis in 0..150_u64 {
            let now = Time::from_millis(millis);
            // Two packets arrive and one leaves.
            for token in [2 * millis, 2 * millis + 1] {
                let packet = Packet { token, size: 1500, ecn, arrived: now };
                queue.offer(packet, None).expect("room");
            }
            loop {
                match queue.depart(now).expect("packets wait") {
                    Departure::Dropped(packet) => {
                        dropped += 1;
                        sent.push(packet.token);
                        continue;
                    }
                    Departure::Marked(packet) => {
                        assert_eq!(packet.ecn, Ecn::Ce);
                        marked += 1;
                        sent.push(packet.token);
                    }
                    Departure::Sent(packet) => sent.push(packet.token),
                }
                break;
            }
        }
        assert!(sent.windows(2).all(|pair| pair[1] == pair[0] + 1), "in order from the head");
        (marked, dropped)
    };
    // The delay exceeds 5 ms after 10 ms. The first mark or drop follows 100 ms later.
    assert_eq!(run(Ecn::NotEct), (0, 1));
    assert_eq!(run(Ecn::Ect0), (1, 0));
    // A packet that arrives with a mark is not counted as marked.
    assert_eq!(run(Ecn::Ce), (0, 0));
}
