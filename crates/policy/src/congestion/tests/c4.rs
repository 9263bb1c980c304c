//! C4: its specification's rules for states, the longest round trip and congestion.

use anabranch_types::Bitrate;
use core::time::Duration;

use super::*;
use crate::congestion::RateSample;

/// Acknowledges a window each round trip of 100 ms, at a given rate.
struct Rounds {
    control: Box<dyn CongestionController>,
    number: u64,
    /// Bytes per second that arrive.
    rate: f64,
}

impl Rounds {
    fn new(rate: f64) -> Self {
        Rounds { control: controller("c4"), number: 0, rate }
    }

    /// Acknowledges `packets` packets that left just after the last call, `millis` later; `lost`
    /// others are lost.
    fn acknowledge(&mut self, millis: u64, packets: u32, lost: u32) -> &'static str {
        self.number += 1;
        let now = 1000 * self.number;
        let arrived = (self.rate * 0.1) as u64;
        let sample = RateSample {
            delivered: arrived,
            lost: 0,
            departure: Duration::from_millis(100),
            arrival: Duration::from_millis(100),
            app_limited: false,
            prior_delivered: 0,
        };
        let event = AckEvent {
            rate: Some(sample),
            rtt: rtt(millis),
            lost_packets: lost,
            largest_lost_sent: ms(now - 990),
            ..ack(now, now - 990, packets)
        };
        self.control.on_ack(&event, &[]);
        self.control.phase()
    }

    fn round(&mut self) -> &'static str {
        self.acknowledge(100, 10, 0)
    }

    fn bandwidth(&self) -> f64 {
        self.control.bandwidth().map_or(0, Bitrate::as_bps) as f64 / 8.0
    }

    /// Runs rounds until the controller cruises.
    fn cruising(rate: f64) -> Self {
        let mut rounds = Rounds::new(rate);
        while rounds.round() != "cruising" {
            assert!(rounds.number < 20);
        }
        rounds
    }
}

#[test]
fn it_goes_through_its_states() {
    let mut rounds = Rounds::new(500e3);
    let states: Vec<_> = (0..13).map(|_| rounds.round()).collect();
    // Three eras without growth, one of recovery, four of cruising and one of pushing, and so on.
    assert_eq!(states[..5], ["initial", "initial", "initial", "recovery", "cruising"]);
    assert_eq!(
        states[5..11],
        ["cruising", "cruising", "cruising", "pushing", "recovery", "cruising"]
    );
}

#[test]
fn its_window_is_the_rate_times_the_longest_round_trip_by_state() {
    let mut rounds = Rounds::new(500e3);
    let mut seen = Vec::new();
    for _ in 0..9 {
        let state = rounds.round();
        let pacing = rounds.control.pacing_rate().unwrap().as_bps() as f64 / 8.0;
        let alpha = match state {
            "initial" => 2.0,
            "recovery" => 15.0 / 16.0,
            "cruising" => 1.0,
            _ => 1.25,
        };
        seen.push(state);
        assert!((pacing / (alpha * 500e3) - 1.0).abs() < 1e-3, "{state}: {pacing}");
        let window = rounds.control.cwnd() as f64;
        assert!((window / (alpha * 50e3) - 1.0).abs() < 1e-3, "{state}: {window}");
    }
    assert!(seen.contains(&"pushing"));
}

#[test]
fn pushes_that_bring_more_in_a_row_lead_back_to_the_first_state_and_vain_ones_are_timid() {
    let mut rounds = Rounds::cruising(500e3);
    let mut states = Vec::new();
    for _ in 0..30 {
        let state = rounds.round();
        if state == "pushing" {
            // Everything that the push adds arrives.
            rounds.rate *= 1.25;
        }
        states.push(state);
    }
    assert!(states.contains(&"initial"), "{states:?}");
    let mut rounds = Rounds::cruising(500e3);
    for _ in 0..10 {
        rounds.round();
    }
    let pacing = rounds.control.pacing_rate().unwrap().as_bps() as f64 / 8.0;
    assert!(
        (pacing / (17.0 / 16.0 * 500e3) - 1.0).abs() < 1e-3,
        "{} {pacing}",
        rounds.control.phase()
    );
}

#[test]
fn fast_paths_take_less_delay_for_congestion_than_slow_ones() {
    for (rate, millis, congested) in [
        // Sensitivity 0: a quarter of 100 ms.
        (40e3, 124, false),
        (40e3, 126, true),
        // Sensitivity 0.92 at 1 MB/s: 7.75 ms.
        (1e6, 107, false),
        (1e6, 109, true),
        // Sensitivity 1: 6.25 ms.
        (20e6, 106, false),
        (20e6, 107, true),
    ] {
        let mut rounds = Rounds::cruising(rate);
        let state = rounds.acknowledge(millis, 10, 0);
        assert_eq!(state == "recovery", congested, "{rate} {millis}: {state}");
        assert_eq!(rounds.bandwidth() < 0.999 * rate, congested, "{rate} {millis}");
    }
}

#[test]
fn losses_cut_a_quarter_where_they_exceed_the_threshold() {
    // Two of ten packets exceed the threshold of 2 % at 20 MB/s, but not that of 52 % at 40 kB/s.
    for (rate, kept) in [(20e6, 0.75), (40e3, 1.0)] {
        let mut rounds = Rounds::cruising(rate);
        rounds.acknowledge(100, 8, 2);
        assert!((rounds.bandwidth() / rate - kept).abs() < 1e-3, "{rate}: {}", rounds.bandwidth());
        // Packets sent before are lost too. This is the same congestion, and it measures no rate.
        rounds.acknowledge(100, 8, 2);
        assert!((rounds.bandwidth() / rate - kept).abs() < 1e-3, "{rate}: {}", rounds.bandwidth());
    }
}

#[test]
fn the_longest_round_trip_grows_at_once_is_capped_and_decays_by_an_eighth() {
    let mut rounds = Rounds::cruising(40e3);
    // The delay is below the threshold of a quarter, so it is jitter.
    rounds.acknowledge(120, 10, 0);
    let window = |rounds: &Rounds| rounds.control.cwnd() as f64;
    assert!((window(&rounds) / (40e3 * 0.120) - 1.0).abs() < 1e-3, "{}", window(&rounds));
    rounds.round();
    assert!((window(&rounds) / (40e3 * 0.1175) - 1.0).abs() < 1e-3, "{}", window(&rounds));
    // A round trip that exceeds the least by more than 250 ms counts as 250 ms longer.
    for _ in 0..3 {
        rounds.acknowledge(900, 10, 0);
    }
    assert!(window(&rounds) <= 40e3 * 0.36, "{}", window(&rounds));
}

#[test]
fn only_timeouts_in_a_row_begin_anew() {
    let mut rounds = Rounds::cruising(1e6);
    let before = rounds.control.cwnd();
    rounds.control.on_timeout(&timeout(50_000, 10, 2));
    assert_eq!(rounds.control.cwnd(), before);
    rounds.control.on_timeout(&timeout(51_000, 10, 3));
    assert_eq!((rounds.control.cwnd(), rounds.control.phase()), (10 * PACKET, "initial"));
    assert_eq!(rounds.control.pacing_rate(), None);
}
