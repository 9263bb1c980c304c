use std::collections::VecDeque;
use std::fs;

use anabranch::policy::congestion::{AckEvent, RateSample};
use anabranch_types::Time;

use super::*;
use crate::doctor::facts::{Measured, Outcome, Path};
use crate::sim::load::load_network;

/// A record of 20 s: 1 Mb/s, from the eleventh second twice as much, an empty queue every 5 s, a tenth lost in the
/// second half.
fn recorder() -> Recorder {
    let recorder = Recorder::default();
    let second = Time::from_millis;
    for tenth in 0_u64..=210 {
        let now = second(1_000 + 100 * tenth);
        let trip = Duration::from_millis(if tenth < 100 { 40 } else { 60 });
        if tenth.is_multiple_of(50) {
            recorder.lock().empty(now, trip);
            recorder.lock().blind(now, now + Duration::from_millis(150));
        }
        let mut event =
            AckEvent { now, acked_packets: 90, acked_bytes: 12_500, ..AckEvent::default() };
        if tenth > 100 {
            (event.acked_packets, event.acked_bytes, event.lost_packets) = (90, 22_500, 10);
        }
        recorder.lock().acked(&event, false);
        recorder.note_fates(0);
    }
    recorder
}

fn recording() -> Recording {
    Recording::of(&recorder().lock(), Duration::from_secs(20), 0.0).expect("enough")
}

#[test]
fn what_was_lost_had_passed_the_bottleneck() {
    let recording = recording();
    let near = |value: f64, expected: f64| assert!((value - expected).abs() < 0.02, "{value}");
    assert_eq!(recording.rates[0].0, 0.0);
    let at = |seconds| at_time(&recording.rates, seconds);
    near(at(3.0), 1.0);
    near(at(13.0), 2.0);
    assert_eq!(recording.delays, [(0.0, 20.0), (5.0, 20.0), (10.0, 30.0), (15.0, 30.0)]);
    let losses: Vec<f64> = recording.losses.iter().map(|(_, share)| *share).collect();
    assert_eq!(recording.losses.len(), 4);
    for (loss, expected) in losses.into_iter().zip([0.0, 0.0, 0.1, 0.1]) {
        near(loss, expected);
    }
    near(recording.loss, 0.05);
    // Two blind intervals in each five seconds.
    assert_eq!(recording.rates.len(), 200 - 4 * 2);
    let trace = recording.summary("here".to_owned());
    near(trace.mbps, 1.5);
    assert_eq!(trace.delay_ms, [20.0, 30.0]);
}

#[test]
fn nothing_is_recorded_of_a_link_on_which_nothing_arrives() {
    let time = Duration::from_secs(20);
    assert_eq!(Recording::of(&Recorder::default().lock(), time, 0.0), None);
    let recorder = Recorder::default();
    recorder.lock().empty(Time::from_secs(1), Duration::from_millis(1));
    recorder.lock().acked(&AckEvent { now: Time::from_secs(30), ..AckEvent::default() }, false);
    assert_eq!(Recording::of(&recorder.lock(), time, 0.0), None);
}

#[test]
fn scenarios_take_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| Path {
        name: name.to_owned(),
        local: "10.0.0.2".parse().unwrap(),
        remote: "203.0.113.5:4433".parse().unwrap(),
        outcome: Outcome::Answered,
        measured: Some(Measured { peer_sent: 200, peer_lost: 1, ..Measured::default() }),
    };
    let recording = recording();
    // Two have characters that a scenario does not allow, and one is the name of a namespace's loopback interface.
    let paths = [path("enp0s31f6.4094a"), path("enp0s31f6:4094b"), path("lo")];
    let links: Vec<_> = paths.iter().map(|path| (path, &recording)).collect();
    let scenario = write(directory.path(), "home.example:4433", &links).unwrap();
    let plan = load_network(scenario.as_ref(), &[]).unwrap();
    let names: Vec<&str> = plan.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["enp0s31f6-4094a", "enp0s31f6-4094b", "lo-2"]);
    let trace = |kind: &str| fs::read_to_string(directory.path().join(format!("lo-2.{kind}")));
    assert!(trace("rate").unwrap().starts_with("# seconds, Mb/s\n0.000 1.000\n0.300 1.000\n"));
    let delay = trace("delay").unwrap();
    // The last line holds as long as the one before it: 20 s in all.
    assert!(delay.ends_with("\n10000 30.000\n15000 30.000\n17500 30.000\n"), "{delay}");
    let text = fs::read_to_string(&scenario).unwrap();
    assert!(text.contains("loss = \"0%/0%@5s/") && text.contains("reverse = { loss = \"0.5%\" }"));
    // A directory holds one recording only.
    assert!(check(directory.path()).is_err());
}

#[test]
fn a_full_link_is_emptied_now_and_then() {
    let recorder = Recorder::default();
    let mut saturate = Saturate::new(recorder.clone(), 1_200);
    let (mut flight, mut delivered, mut phases) = (VecDeque::new(), 0, Vec::new());
    // A packet of 1200 bytes each millisecond, 20 ms there and back.
    for millis in 0_u64..12_000 {
        while (flight.len() as u64) < saturate.cwnd() / 1_200 {
            flight.push_back((millis, delivered));
        }
        let Some((sent, prior_delivered)) = flight.pop_front_if(|(sent, _)| *sent + 20 <= millis)
        else {
            continue;
        };
        delivered += 1_200;
        let step = Duration::from_millis(1);
        let rate = RateSample {
            delivered: 1_200,
            lost: 0,
            departure: step,
            arrival: step,
            app_limited: false,
            prior_delivered,
        };
        let mut event = AckEvent {
            now: Time::from_millis(millis),
            acked_bytes: 1_200,
            acked_packets: 1,
            total_delivered: delivered,
            bytes_in_flight: 1_200 * flight.len() as u64,
            rate: Some(rate),
            ..AckEvent::default()
        };
        event.rtt.latest = Duration::from_millis(millis - sent);
        event.rtt.smoothed = event.rtt.latest;
        saturate.on_ack(&event, &[]);
        if phases.last() != Some(&saturate.phase()) {
            phases.push(saturate.phase());
        }
        if saturate.phase() == "full" {
            let queue = event.rtt.latest.as_millis() - 20;
            assert!(queue <= 40, "{queue} ms of queue at {millis} ms");
        }
    }
    assert_eq!(phases, ["start", "empty", "full", "empty", "full", "empty", "full"]);
    let record = recorder.lock();
    let trips = record.trips.iter().map(|(_, trip)| trip.as_millis());
    assert!(trips.clone().all(|trip| (20..=21).contains(&trip)), "{:?}", trips.collect::<Vec<_>>());
    // In every interval that is not blind, the link is full.
    let full = record.whole().iter().filter(|step| !step.blind);
    assert!(full.clone().count() > 80 && full.clone().all(|step| step.bytes >= 118_000));
    assert_eq!(record.trips[0].0, Duration::ZERO);
}
