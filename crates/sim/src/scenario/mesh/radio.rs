//! Reads the keys of the radio and of medium access.

use core::time::Duration;

use anabranch_types::{Bitrate, DataSize};

use crate::scenario::reader::Section;
use crate::wireless::{AirConfig, FrameLoss, MacConfig, Radio};

/// The longest slot time and interframe space, and the longest preamble.
const MOST_GAP: Duration = Duration::from_millis(1);
const MOST_PREAMBLE: Duration = Duration::from_millis(10);

/// Reads the settings that all stations share: radio, medium access and frame loss.
pub(super) fn read(section: &Section<'_>) -> AirConfig {
    let share = |key| section.share(key).unwrap_or_default();
    let loss = FrameLoss { above: share("loss"), below: share("frame-loss") };
    let config = AirConfig { radio: radio(section), mac: mac(section), loss };
    if let Err(error) = config.validate() {
        section.complain("mac", error.to_string(), "constants that go together");
    }
    config
}

fn radio(section: &Section<'_>) -> Radio {
    let standard = Radio::default();
    let threshold = |key, usual| section.real(key).map_or(usual, |reach| standard.received(reach));
    Radio {
        reception_threshold: threshold("reach", standard.reception_threshold),
        sense_threshold: threshold("sense-reach", standard.sense_threshold),
        capture_ratio: section.real("capture").unwrap_or(standard.capture_ratio),
        ..standard
    }
}

fn mac(section: &Section<'_>) -> MacConfig {
    let rules = match section.word("mac") {
        Some("ns2") => MacConfig::ns2(),
        _ => MacConfig::default(),
    };
    let time = |key, most, usual| {
        let time = section.time(key).unwrap_or(usual);
        if time > most {
            section.refuse_value(key, &format!("{time:?}"), &format!("at most {most:?}"));
        }
        time.min(most)
    };
    let count = |key, usual: u32| section.count(key).map_or(usual, |count| count as u32);
    MacConfig {
        data_rate: section.rate("rate").unwrap_or(Bitrate::from_mbps(2.0)),
        basic_rate: section.rate("basic-rate").unwrap_or(Bitrate::from_mbps(1.0)),
        rts_threshold: rts(section).unwrap_or(rules.rts_threshold),
        slot: time("slot", MOST_GAP, rules.slot),
        sifs: time("sifs", MOST_GAP, rules.sifs),
        preamble: time("preamble", MOST_PREAMBLE, rules.preamble),
        window_min: count("least-window", rules.window_min),
        window_max: count("most-window", rules.window_max),
        short_retry_limit: count("short-retries", rules.short_retry_limit),
        long_retry_limit: count("long-retries", rules.long_retry_limit),
        queue: section.count("queue").map_or(rules.queue, |queue| queue as usize),
        ..rules
    }
}

/// Reads the length above which an RTS/CTS exchange precedes a frame, bytes.
fn rts(section: &Section<'_>) -> Option<u32> {
    let text = section.text("rts")?;
    match text.as_str() {
        "never" => Some(u32::MAX),
        "always" => Some(0),
        size => {
            let size: Option<DataSize> = size.parse().ok();
            let bytes = size.and_then(|size| u32::try_from(size.as_bytes()).ok());
            if bytes.is_none() {
                section.refuse_value("rts", &text, "never, always, or a size such as 500B");
            }
            bytes
        }
    }
}
