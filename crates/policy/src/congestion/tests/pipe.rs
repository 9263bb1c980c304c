//! A closed loop for one controller: a bottleneck with a drop-tail queue, random loss and jitter.

use anabranch_types::{Bitrate, Rng};
use std::collections::VecDeque;

use super::*;
use crate::congestion::{RateSample, SentEvent};

/// One bottleneck link and the propagation delay behind it.
struct Pipe {
    rate: Bitrate,
    rtt: Duration,
    buffer: u64,
    /// Queue from which packets are marked, bytes.
    mark: u64,
    loss: f64,
    /// Mean of a packet's additional delay, which is exponentially distributed; packets behind it
    /// stay in order.
    jitter: Duration,
}

struct Flying {
    number: u64,
    sent: Time,
    /// When the packet's acknowledgement arrives, or would arrive if the packet were not lost.
    back: Time,
    lost: bool,
    marked: bool,
    delivered: u64,
    delivered_at: Time,
}

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// Bytes delivered in the second half of the run, as a share of capacity, per mille.
    utilisation: u64,
    /// Mean queueing delay in the second half, microseconds.
    queue: u64,
    /// Windows at ten equal intervals, bytes.
    cwnds: Vec<u64>,
    /// Phases in the order in which they were first seen.
    phases: Vec<&'static str>,
    /// Share of the time in which the controller assumed a competing flow, per mille.
    competing: u64,
}

/// A sender with endless data drives the controller over the pipe for `duration`.
struct Run<'a> {
    pipe: &'a Pipe,
    control: &'a mut dyn CongestionController,
    now: Time,
    busy_until: Time,
    /// When the acknowledgement of the newest packet comes back.
    last_back: Time,
    next_send: Time,
    flying: VecDeque<Flying>,
    number: u64,
    in_flight: u64,
    delivered: u64,
    delivered_at: Time,
    min_rtt: Duration,
    smoothed: Duration,
    rng: Rng,
}

impl Run<'_> {
    fn room(&self) -> bool {
        self.in_flight + PACKET <= self.control.cwnd()
    }

    fn jitter(&mut self) -> Duration {
        let mean = self.pipe.jitter;
        if mean.is_zero() { mean } else { mean.mul_f64(self.rng.exponential(1.0)) }
    }

    fn send(&mut self) {
        let start = self.busy_until.max(self.now);
        let backlog = self.pipe.rate.bytes_in(start.since(self.now));
        let dropped = backlog + PACKET > self.pipe.buffer;
        let serial = self.pipe.rate.time_to_send(PACKET);
        if !dropped {
            self.busy_until = start + serial;
        }
        self.last_back = self.last_back.max(start + serial + self.pipe.rtt + self.jitter());
        self.flying.push_back(Flying {
            number: self.number,
            sent: self.now,
            back: self.last_back,
            lost: dropped || self.rng.chance(self.pipe.loss),
            marked: backlog >= self.pipe.mark,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
        });
        self.number += 1;
        self.in_flight += PACKET;
        let (now, bytes_in_flight) = (self.now, self.in_flight);
        self.control.on_sent(&SentEvent { now, bytes: PACKET, bytes_in_flight });
        if let Some(rate) = self.control.pacing_rate() {
            self.next_send = self.next_send.max(self.now) + rate.time_to_send(PACKET);
        }
    }

    /// Acknowledges the packet at `index`, and declares lost those lost packets whose numbers are
    /// at least three below its own.
    fn receive(&mut self, index: usize) -> Option<Duration> {
        let packet = self.flying.remove(index)?;
        let prior_in_flight = self.in_flight;
        let mut lost = 0;
        let mut largest_lost_sent = Time::ZERO;
        self.flying.retain(|other| {
            let gone = other.lost && other.number + 3 <= packet.number;
            if gone {
                lost += 1;
                largest_lost_sent = largest_lost_sent.max(other.sent);
            }
            !gone
        });
        self.in_flight -= PACKET * (u64::from(lost) + 1);
        self.delivered += PACKET;
        let sample = self.now.since(packet.sent);
        self.min_rtt = self.min_rtt.min(sample);
        self.smoothed =
            if self.smoothed.is_zero() { sample } else { (self.smoothed * 7 + sample) / 8 };
        let departure = packet.sent.since(packet.delivered_at);
        let arrival = self.now.since(packet.delivered_at);
        self.delivered_at = self.now;
        let rate = RateSample {
            delivered: self.delivered - packet.delivered,
            lost: 0,
            departure,
            arrival,
            app_limited: false,
            prior_delivered: packet.delivered,
        };
        let rtt = RttView {
            latest: sample,
            smoothed: self.smoothed,
            variation: sample / 8,
            min: self.min_rtt,
            queue: sample - self.min_rtt,
            forward: 0,
            samples: self.number,
        };
        let event = AckEvent {
            now: self.now,
            acked_bytes: PACKET,
            acked_packets: 1,
            lost_bytes: PACKET * u64::from(lost),
            lost_packets: lost,
            ce_packets: u32::from(packet.marked),
            bytes_in_flight: self.in_flight,
            prior_in_flight,
            largest_acked_sent: packet.sent,
            largest_lost_sent,
            total_delivered: self.delivered,
            rate: Some(rate),
            rtt,
            loss: LossView { mean: self.pipe.loss, deviation: 0.0 },
            app_limited: false,
            path: None,
        };
        self.control.on_ack(&event, &[]);
        Some(sample.saturating_sub(self.pipe.rtt))
    }

    /// Processes the next event: a packet is sent or acknowledged, or everything in flight times out.
    fn step(&mut self) -> Option<Duration> {
        let arrival = self.flying.iter().position(|packet| !packet.lost);
        let back = arrival.map_or(Time::MAX, |index| self.flying[index].back);
        let paced = self.control.pacing_rate().is_some();
        let send_at = if paced { self.next_send.max(self.now) } else { self.now };
        if self.room() && send_at <= back {
            self.now = send_at;
            self.send();
            return None;
        }
        let Some(index) = arrival else {
            // Everything in flight is lost: the timer fires.
            self.now += Duration::from_secs(1);
            let bytes_in_flight = self.in_flight;
            self.flying.clear();
            self.in_flight = 0;
            self.control.on_timeout(&TimeoutEvent {
                now: self.now,
                bytes_in_flight,
                consecutive: 1,
            });
            return None;
        };
        self.now = back;
        self.receive(index)
    }
}

fn run(pipe: &Pipe, control: &mut dyn CongestionController, seconds: u64) -> Outcome {
    let mut run = Run {
        pipe,
        control,
        now: Time::ZERO,
        busy_until: Time::ZERO,
        last_back: Time::ZERO,
        next_send: Time::ZERO,
        flying: VecDeque::new(),
        number: 0,
        in_flight: 0,
        delivered: 0,
        delivered_at: Time::ZERO,
        min_rtt: Duration::MAX,
        smoothed: Duration::ZERO,
        rng: Rng::substream(1, "pipe"),
    };
    let (mut cwnds, mut half, mut queue, mut samples) = (Vec::new(), 0, Duration::ZERO, 0_u32);
    let (mut phases, mut competing) = (Vec::new(), Duration::ZERO);
    while run.now < Time::from_secs(seconds) {
        let before = run.now;
        let queued = run.step();
        let phase = run.control.phase();
        if phase == "compete" {
            competing += run.now.since(before);
        }
        if !phases.contains(&phase) {
            phases.push(phase);
        }
        if run.now >= Time::from_millis(cwnds.len() as u64 * seconds * 100) && cwnds.len() < 10 {
            cwnds.push(run.control.cwnd());
        }
        if run.now < Time::from_millis(seconds * 500) {
            half = run.delivered;
        } else if let Some(delay) = queued {
            queue += delay;
            samples += 1;
        }
    }
    let capacity = pipe.rate.bytes_in(Duration::from_millis(seconds * 500));
    Outcome {
        utilisation: (run.delivered - half) * 1000 / capacity,
        queue: (queue / samples.max(1)).as_micros() as u64,
        cwnds,
        phases,
        competing: competing.as_millis() as u64 / seconds,
    }
}

/// 10 Mb/s, 40 ms, one bandwidth-delay product (50 kB) of buffer.
fn broadband(loss: f64) -> Pipe {
    Pipe {
        rate: Bitrate::from_mbps(10.0),
        rtt: Duration::from_millis(40),
        buffer: 50_000,
        mark: u64::MAX,
        loss,
        jitter: Duration::ZERO,
    }
}

#[test]
fn clean_pipes_are_filled() {
    for spec in ["reno", "cubic", "bbr", "c4"] {
        let outcome = run(&broadband(0.0), &mut *controller(spec), 60);
        assert!(outcome.utilisation > 950, "{spec}: {outcome:?}");
    }
}

#[test]
fn bbr_keeps_the_queue_short_where_reno_fills_it() {
    let bbr = run(&broadband(0.0), &mut *controller("bbr"), 30);
    let reno = run(&broadband(0.0), &mut *controller("reno"), 30);
    assert!(bbr.queue < 8_000, "{bbr:?}");
    assert!(reno.queue > 15_000, "{reno:?}");
}

#[test]
fn a_window_ends_where_the_delivery_rate_grows_no_more() {
    // Ten bandwidth-delay products of buffer.
    let deep = Pipe { buffer: 500_000, ..broadband(0.0) };
    let filled = run(&deep, &mut *controller("reno"), 120);
    assert!(filled.queue > 200_000, "{filled:?}");
    for spec in ["reno:plateau=on", "reno:plateau=on,initial=2,growth=acks"] {
        let capped = run(&deep, &mut *controller(spec), 120);
        assert!(capped.queue < 30_000, "{spec}: {capped:?}");
        assert!(capped.utilisation > 980, "{spec}: {capped:?}");
    }
    // If losses keep the window short, the limit changes little.
    let lossy = |spec| run(&broadband(0.01), &mut *controller(spec), 120).utilisation as f64;
    assert!(lossy("reno:plateau=on") > 0.93 * lossy("reno"));
}

#[test]
fn bbr_carries_moderate_loss_and_falls_off_its_cliff_at_heavy_loss() {
    let moderate = run(&broadband(0.05), &mut *controller("bbr"), 30);
    assert!(moderate.utilisation > 850, "{moderate:?}");
    // Each probe measures less than the last, since 1.25 · (1 − 0.3) < 1.
    let heavy = run(&broadband(0.3), &mut *controller("bbr"), 60);
    assert!(heavy.utilisation < 400, "{heavy:?}");
}

#[test]
fn bbr_finds_the_rate_drains_its_queue_and_probes() {
    let outcome = run(&broadband(0.0), &mut *controller("bbr"), 30);
    assert_eq!(outcome.phases, ["startup", "drain", "probe-bw"]);
}

#[test]
fn ecn_reno_fills_pipes_that_lose_half_and_answers_marks() {
    for loss in [0.0, 0.1, 0.3, 0.5] {
        let pipe = Pipe { mark: 25_000, ..broadband(loss) };
        let outcome = run(&pipe, &mut *controller("ecn-reno"), 60);
        // The share 1 − loss of what the bottleneck carries arrives.
        let carried = outcome.utilisation as f64 / (1.0 - loss);
        assert!(carried > 850.0, "{loss}: {outcome:?}");
        assert!(outcome.queue < 25_000, "{loss}: {outcome:?}");
    }
}

/// The default controller sends less for a while to see whether the queue shrinks. Jitter must not
/// hide this; otherwise a flow without competitors would assume one and fill the buffer.
#[test]
fn jitter_is_nobodys_queue() {
    for (mbps, buffer) in [(5.0, 325_000), (10.0, 325_000), (40.0, 2_000_000)] {
        let (rate, jitter) = (Bitrate::from_mbps(mbps), Duration::from_millis(20));
        let pipe = Pipe { rate, jitter, buffer, ..broadband(0.0) };
        let outcome = run(&pipe, &mut *controller("compensated"), 60);
        assert!(outcome.competing < 50, "{mbps} Mb/s: {outcome:?}");
        assert!(outcome.utilisation > 900, "{mbps} Mb/s: {outcome:?}");
    }
}

#[test]
fn loss_alone_starves_reno_and_cubic() {
    for spec in ["reno", "cubic"] {
        let outcome = run(&broadband(0.05), &mut *controller(spec), 30);
        assert!(outcome.utilisation < 300, "{spec}: {outcome:?}");
    }
}

#[test]
fn closed_loops_repeat_to_the_byte() {
    for (spec, cwnds) in GOLDEN {
        let outcome = run(&broadband(0.01), &mut *controller(spec), 20);
        assert_eq!(outcome.cwnds, cwnds, "{spec}");
    }
}

/// The window, bytes, at ten equal intervals with 1 % loss.
const GOLDEN: [(&str, [u64; 10]); 3] = [
    ("reno", [12000, 11062, 6158, 16369, 7868, 9047, 7753, 17809, 14163, 19635]),
    ("cubic", [12000, 15911, 17449, 14472, 12374, 8613, 17591, 22491, 16550, 16667]),
    ("bbr", [12000, 51600, 106000, 51600, 93600, 63600, 106000, 61200, 106000, 106000]),
];
