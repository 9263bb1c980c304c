use anabranch_types::{Bitrate, Time};

use super::Schedule;

/// A period in which a link carries no packet: `[start, end)`.
///
/// Packets offered to the link are dropped, and packets that wait or are being serialised at `start` are lost
/// (pTCP's blackout). Packets already propagating arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blackout {
    /// First instant without service.
    pub start: Time,
    /// First instant at which the link works again; later than `start`.
    pub end: Time,
}

/// The schedule `rate`, but zero during every blackout. Blackouts may overlap and come in any
/// order.
pub fn darken(rate: &Schedule<Bitrate>, blackouts: &[Blackout]) -> Schedule<Bitrate> {
    let mut times: Vec<Time> = rate.steps().iter().map(|(time, _)| *time).collect();
    times.extend(blackouts.iter().flat_map(|b| [b.start, b.end]));
    times.sort_unstable();
    times.dedup();
    let mut steps: Vec<(Time, Bitrate)> = Vec::with_capacity(times.len());
    for time in times {
        let dark = blackouts.iter().any(|b| b.start <= time && time < b.end);
        let value = if dark { Bitrate::ZERO } else { rate.at(time) };
        if steps.last().is_none_or(|(_, last)| *last != value) {
            steps.push((time, value));
        }
    }
    Schedule::from_steps(steps).unwrap_or_else(|| rate.clone())
}
