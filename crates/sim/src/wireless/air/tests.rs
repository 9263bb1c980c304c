//! Timelines computed by hand, in nanoseconds. Light takes 3⅓ ns per metre. At the default rates, a
//! data frame of 1000 bytes lasts 192 000 + 1028·8/11 Mb/s = 939 637, an RTS 352 000, and a CTS or
//! an ACK 304 000.

mod timelines;

use anabranch_types::Bitrate;

use super::super::{EifsRule, Fixed, IdleAccess, MacConfig, Position, Priority};
use super::*;

const DATA: u64 = 939_637;
const SIFS: u64 = 10_000;
const DIFS: u64 = 50_000;
const SLOT: u64 = 20_000;

/// A medium with stations on a line at these positions in metres.
fn line(places: &[f64], config: &AirConfig) -> Air {
    let places = places.iter().map(|x| Position::new(*x, 0.0)).collect();
    Air::new(config, Box::new(Fixed(places)), 1).unwrap()
}

/// A MAC whose back-off is always zero slots.
fn hasty() -> MacConfig {
    MacConfig { window_min: 1, window_max: 1, window_inclusive: false, ..MacConfig::default() }
}

/// A radio whose sensing range equals its reception range, so that stations 400 m apart are hidden
/// from each other.
fn short_sighted() -> Radio {
    let radio = Radio::default();
    Radio { sense_threshold: radio.reception_threshold, ..radio }
}

fn data(token: u32, to: u32) -> Message {
    let to = Destination::Station(to);
    Message { token, to, bytes: 1000, priority: Priority::Data }
}

/// All reports up to `nanos`, with their times.
fn reports(air: &mut Air, nanos: u64) -> Vec<(u64, Report)> {
    let limit = Time::from_nanos(nanos);
    core::iter::from_fn(|| air.poll(limit).map(|report| (air.now, report))).collect()
}

/// The time, sender and kind of all frames sent.
fn frames(air: &Air) -> Vec<(u64, u32, FrameKind)> {
    air.log.iter().map(|(time, frame)| (*time, frame.from, frame.kind)).collect()
}

fn starts(air: &Air, station: u32) -> Vec<u64> {
    let own = air.log.iter().filter(|(_, frame)| frame.from == station);
    own.map(|(time, _)| *time).collect()
}
