use super::FrameKind::{Ack, Cts, Data, Rts};
use super::*;
use anabranch_types::Probability;

#[test]
fn a_frame_with_its_ack_and_the_next_one() {
    let mut air = line(&[0.0, 100.0], &AirConfig { mac: hasty(), ..AirConfig::default() });
    assert!(air.send(Time::ZERO, 0, data(1, 1)) && air.send(Time::ZERO, 0, data(2, 1)));
    assert_eq!(air.backlog(0), 2);
    let got = reports(&mut air, 1_400_000);
    assert_eq!(
        got,
        [
            (989_970, Report::Received { at: 1, from: 0, token: 1 }),
            (1_304_303, Report::Sent { from: 0, token: 1 }),
        ]
    );
    // The ACK follows a SIFS after 50 000 + 939 637 plus 333 of propagation. The next frame follows
    // a DIFS after the ACK and another 333.
    let expected = [(50_000, 0, Data), (999_970, 1, Ack), (1_354_303, 0, Data)];
    assert_eq!(frames(&air), expected);
}

#[test]
fn a_message_that_finds_the_channel_idle_goes_at_once_or_backs_off() {
    let mac = MacConfig { idle_access: IdleAccess::BackOff, ..hasty() };
    for (mac, start) in [(hasty(), 2_000_000), (mac, 2_050_000)] {
        let mut air = line(&[0.0, 100.0], &AirConfig { mac, ..AirConfig::default() });
        air.send(Time::from_millis(2), 0, data(1, 1));
        reports(&mut air, 5_000_000);
        assert_eq!(starts(&air, 0), [start]);
    }
}

#[test]
fn rts_and_cts_reserve_the_channel_where_the_sender_is_not_heard() {
    let mac = MacConfig { rts_threshold: 0, ..hasty() };
    let config = AirConfig { mac, radio: short_sighted(), ..AirConfig::default() };
    let mut air = line(&[0.0, 200.0, 400.0], &config);
    air.send(Time::ZERO, 0, data(1, 1));
    assert!(reports(&mut air, 800_000).is_empty());
    // Station 2 does not hear the data, but it has heard the CTS, so it stays silent until the end
    // of the ACK.
    air.send(Time::from_micros(800), 2, data(2, 1));
    let got = reports(&mut air, 10_000_000);
    let expected = [
        (50_000, 0, Rts),
        (412_667, 1, Cts),
        (727_334, 0, Data),
        (1_677_638, 1, Ack),
        (1_982_305 + DIFS, 2, Rts),
    ];
    assert_eq!(frames(&air)[..5], expected);
    assert_eq!(got.iter().filter(|it| matches!(it.1, Report::Sent { .. })).count(), 2);
    assert_eq!(air.station(0).failures + air.station(2).failures, 0);
}

#[test]
fn the_reservation_holds_where_the_answer_is_not_heard_either() {
    // Station 2 hears only the sender. At 500 000, during the CTS, the channel would be idle for it
    // without the reservation of the RTS. From the end of the data on, at 1 667 771, SIFS and ACK
    // are reserved.
    let mac = MacConfig { rts_threshold: 0, ..hasty() };
    let config = AirConfig { mac, radio: short_sighted(), ..AirConfig::default() };
    let mut air = line(&[0.0, 200.0, -240.0, -440.0], &config);
    air.send(Time::ZERO, 0, data(1, 1));
    assert!(reports(&mut air, 500_000).is_empty());
    air.send(Time::from_micros(500), 2, data(2, 3));
    reports(&mut air, 10_000_000);
    assert_eq!(starts(&air, 2)[0], 1_667_771 + SIFS + 304_000 + DIFS);
}

#[test]
fn hidden_terminals_collide_without_rts() {
    let run = |rts_threshold| {
        let mac = MacConfig { rts_threshold, ..hasty() };
        let config = AirConfig { mac, radio: short_sighted(), ..AirConfig::default() };
        let mut air = line(&[0.0, 200.0, 400.0], &config);
        air.send(Time::ZERO, 0, data(1, 1));
        assert!(reports(&mut air, 500_000).is_empty());
        air.send(Time::from_micros(500), 2, data(2, 1));
        let got = reports(&mut air, 50_000_000);
        let count = |wanted: fn(&Report) -> bool| got.iter().filter(|it| wanted(&it.1)).count();
        let lost = count(|report| matches!(report, Report::GaveUp { .. }));
        (count(|report| matches!(report, Report::Sent { .. })), lost, air)
    };
    // Stations 0 and 2 start half a frame apart and have no back-off, so all their attempts
    // collide. Each retries every 939 637 + 318 000 + 50 000.
    let (sent, lost, air) = run(u32::MAX);
    assert_eq!((sent, lost), (0, 2));
    let period = DATA + SIFS + 304_000 + 4_000 + DIFS;
    let expected: Vec<u64> = (0..7).map(|at| 50_000 + at * period).collect();
    assert_eq!(starts(&air, 0), expected);
    let expected: Vec<u64> = (0..7).map(|at| 500_000 + at * period).collect();
    assert_eq!(starts(&air, 2), expected);
    assert_eq!(air.station(1).received, 0);
    let (sent, lost, air) = run(0);
    assert_eq!((sent, lost), (2, 0));
    assert_eq!(air.station(0).failures + air.station(2).failures, 0);
}

#[test]
fn the_first_of_two_frames_is_captured_when_it_is_ten_times_stronger() {
    let run = |near: f64, first: [(u32, u64); 2]| {
        let mac = MacConfig { short_retry_limit: 1, ..hasty() };
        let config = AirConfig { mac, radio: short_sighted(), ..AirConfig::default() };
        // Stations 0 and 2 do not hear each other.
        let mut air = line(&[-near, 0.0, 240.0], &config);
        for (station, micros) in first {
            reports(&mut air, micros * 1000);
            air.send(Time::from_micros(micros), station, data(station, 1));
        }
        let got = reports(&mut air, 10_000_000);
        let received = got.iter().filter_map(|(_, report)| match report {
            Report::Received { token, .. } => Some(*token),
            _ => None,
        });
        received.collect::<Vec<u32>>()
    };
    // A distance ratio of 240 / 120 = 2 makes a signal 16 times weaker, and 240 / 140 makes it 8.6
    // times weaker.
    assert_eq!(run(120.0, [(0, 100), (2, 400)]), [0]);
    assert!(run(140.0, [(0, 100), (2, 400)]).is_empty());
    // The stronger frame does not take over a receiver that is busy with a weaker one.
    assert!(run(120.0, [(2, 100), (0, 400)]).is_empty());
}

#[test]
fn an_exposed_terminal_waits_though_its_frame_would_arrive() {
    let config = AirConfig { mac: hasty(), radio: short_sighted(), ..AirConfig::default() };
    let mut air = line(&[0.0, -200.0, 200.0, 400.0], &config);
    air.send(Time::ZERO, 0, data(1, 1));
    assert!(reports(&mut air, 500_000).is_empty());
    air.send(Time::from_micros(500), 2, data(2, 3));
    let got = reports(&mut air, 5_000_000);
    // Station 2 hears the data, whose header reserves SIFS and ACK. It cannot hear the ACK.
    let end = 50_000 + DATA + 667;
    assert_eq!(starts(&air, 2), [end + SIFS + 304_000 + DIFS]);
    assert_eq!(got.iter().filter(|it| matches!(it.1, Report::Sent { .. })).count(), 2);
}

#[test]
fn an_eifs_follows_what_is_sensed_but_not_decoded() {
    let rules = [(EifsRule::InsteadOfDifs, 364_000), (EifsRule::BeforeDifs, 364_000 + DIFS)];
    for (eifs_rule, wait) in rules {
        let mac = MacConfig { eifs_rule, ..hasty() };
        let mut air = line(&[0.0, 100.0, 400.0, 500.0], &AirConfig { mac, ..AirConfig::default() });
        air.send(Time::ZERO, 0, data(1, 1));
        assert!(reports(&mut air, 500_000).is_empty());
        air.send(Time::from_micros(500), 2, data(2, 3));
        reports(&mut air, 5_000_000);
        // The last frame that station 2 senses is the ACK, which is sent from 999 970 on and
        // arrives 1000 later.
        assert_eq!(starts(&air, 2), [999_970 + 304_000 + 1000 + wait]);
        assert_eq!(air.station(2).garbled, 2);
    }
}

#[test]
fn a_decoded_frame_ends_an_eifs() {
    // At station 1, the broadcast of station 0 ends at 50 000 + 192 000 + 93 091 + 1333 = 336 424
    // and cannot be decoded. The shorter broadcast of station 2 ends there at 400 000 + 192 000 +
    // 20 364 + 667 = 613 031 and is decoded. Station 2 does not sense station 0.
    let (garbled, decoded) = (336_424, 613_031);
    let rules = [
        (EifsRule::InsteadOfDifs, decoded + DIFS),
        (EifsRule::BeforeDifs, garbled + 364_000 + DIFS),
    ];
    for (eifs_rule, start) in rules {
        let mac = MacConfig { eifs_rule, basic_rate: Bitrate::from_bps(11_000_000), ..hasty() };
        let mut air = line(&[0.0, 400.0, 600.0], &AirConfig { mac, ..AirConfig::default() });
        let broadcast =
            |token, bytes| Message { to: Destination::Broadcast, bytes, ..data(token, 0) };
        air.send(Time::ZERO, 0, broadcast(1, 100));
        reports(&mut air, 350_000);
        air.send(Time::from_micros(350), 1, data(2, 2));
        reports(&mut air, 400_000);
        air.send(Time::from_micros(400), 2, broadcast(3, 0));
        reports(&mut air, 5_000_000);
        assert_eq!(starts(&air, 2)[0], 400_000);
        assert_eq!(starts(&air, 1)[0], start, "{eifs_rule:?}");
    }
}

#[test]
fn back_off_freezes_while_the_channel_is_busy_and_goes_on_after_a_difs() {
    let seed = 1;
    let mut rng = Rng::substream(seed, "mac.0");
    let slots = rng.below(32);
    assert!(slots > 3, "{slots}: another seed is needed");
    let mut air = line(&[0.0, 100.0, 200.0], &AirConfig::default());
    air.send(Time::ZERO, 0, data(1, 1));
    air.send(Time::ZERO, 0, data(2, 1));
    // The ACK of the first message has been heard at 1 304 303. Slots are counted from a DIFS
    // later.
    let counting = 1_304_303 + DIFS;
    let busy = counting + 2 * SLOT + SLOT / 2;
    reports(&mut air, busy);
    air.send(Time::from_nanos(busy), 2, data(3, 1));
    reports(&mut air, 20_000_000);
    // Two slots have passed. Station 0 waits for the end of SIFS and ACK, which the data frame
    // reserves.
    assert_eq!(starts(&air, 2), [busy]);
    let ack = busy + DATA + 667 + SIFS + 304_000;
    assert_eq!(starts(&air, 0), [50_000, ack + DIFS + (slots - 2) * SLOT]);
}

#[test]
fn stations_collide_that_start_within_the_sense_time() {
    let run = |sense_micros, micros: u64| {
        let sense_time = core::time::Duration::from_micros(sense_micros);
        let mac = MacConfig { idle_access: IdleAccess::BackOff, sense_time, ..hasty() };
        let mut air = line(&[0.0, 100.0, 50.0], &AirConfig { mac, ..AirConfig::default() });
        air.send(Time::from_micros(1000), 0, data(1, 2));
        air.send(Time::from_micros(1000 + micros), 1, data(2, 2));
        reports(&mut air, 1_100_000);
        starts(&air, 1)
    };
    // Station 0 starts at 1 050 000, and station 1 could sense this at 1 050 333, before its own
    // DIFS ends.
    assert_eq!(run(15, 10), [1_060_000]);
    assert!(run(15, 16).is_empty());
    assert!(run(0, 10).is_empty());
    assert_eq!(run(0, 0), [1_050_000]);
}

#[test]
fn a_station_out_of_range_is_given_up_and_reported() {
    for (rts_threshold, kind) in [(u32::MAX, Data), (0, Rts)] {
        let mac = MacConfig { rts_threshold, ..hasty() };
        let mut air = line(&[0.0, 300.0], &AirConfig { mac, ..AirConfig::default() });
        air.send(Time::ZERO, 0, data(9, 1));
        let got = reports(&mut air, 100_000_000);
        let only: Vec<Report> = got.iter().map(|it| it.1).collect();
        assert_eq!(only, [Report::GaveUp { from: 0, to: 1, token: 9 }]);
        let sent = frames(&air);
        assert!(sent.len() == 7 && sent.iter().all(|it| it.2 == kind), "{sent:?}");
    }
}

#[test]
fn a_broadcast_reaches_all_in_range_once_at_the_basic_rate() {
    let mut air = line(&[0.0, 100.0, 200.0, 300.0], &AirConfig::default());
    air.send(Time::ZERO, 0, Message { to: Destination::Broadcast, ..data(5, 0) });
    let got = reports(&mut air, 100_000_000);
    let end = 50_000 + 192_000 + 1028 * 8 * 1000;
    assert_eq!(
        got,
        [
            (end + 333, Report::Received { at: 1, from: 0, token: 5 }),
            (end + 667, Report::Received { at: 2, from: 0, token: 5 }),
            (end + 1000, Report::Sent { from: 0, token: 5 }),
        ]
    );
    assert_eq!(frames(&air).len(), 1);
}

#[test]
fn loss_above_the_mac_is_acknowledged_and_loss_below_is_repeated() {
    let run = |above: f64, below: f64| {
        let probability = Probability::clamped;
        let loss = FrameLoss { above: probability(above), below: probability(below) };
        let mut air = line(&[0.0, 100.0], &AirConfig { loss, ..AirConfig::default() });
        let mut received = 0;
        for token in 0..1000 {
            air.send(Time::from_millis(u64::from(token) * 200), 0, data(token, 1));
            let got = reports(&mut air, (u64::from(token) + 1) * 200_000_000);
            received += got.iter().filter(|it| matches!(it.1, Report::Received { .. })).count();
        }
        (received, air.station(0), air.counters())
    };
    let (received, mac, air) = run(0.2, 0.0);
    assert_eq!((mac.failures, mac.given_up), (0, 0));
    assert_eq!(received as u64 + air.lost_above, 1000);
    // The tolerance is 4 standard deviations of 12.6 each.
    assert!((750..=850).contains(&received), "{received}");
    let (received, mac, air) = run(0.0, 0.2);
    assert_eq!(received, 1000);
    assert_eq!(air.lost_above, 0);
    // An exchange succeeds with probability 0.8·0.8, so 562.5 failures are expected, with a
    // standard deviation of 29.7.
    assert!((443..=682).contains(&mac.failures), "{}", mac.failures);
}

#[test]
fn a_link_fails_when_a_station_has_moved_out_of_range() {
    // The station starts at 100 m and moves at 50 m/s, so it leaves the range of 250 m after 3 s.
    let text = "$node_(0) set X_ 0.0\n$node_(1) set X_ 100.0\n\
        $ns_ at 0.0 \"$node_(1) setdest 600.0 0.0 50.0\"";
    let motion: crate::wireless::Waypoints = text.parse().unwrap();
    let mut air = Air::new(&AirConfig::default(), Box::new(motion), 1).unwrap();
    let mut last = Vec::new();
    for (token, millis) in [(0, 2990), (1, 3010)] {
        reports(&mut air, millis * 1_000_000);
        air.send(Time::from_millis(millis), 0, data(token, 1));
        last.extend(reports(&mut air, (millis + 15) * 1_000_000).pop().map(|it| it.1));
    }
    last.extend(reports(&mut air, 4_000_000_000).pop().map(|it| it.1));
    let gave_up = Report::GaveUp { from: 0, to: 1, token: 1 };
    assert_eq!(last, [Report::Sent { from: 0, token: 0 }, gave_up]);
}
