//! Converts recorded rates to delivery opportunities.

use super::trace::{DeliveryTrace, MAX_OPPORTUNITIES, OPPORTUNITY_BYTES, TraceError};

/// Format of a line, as error messages state it.
const LINE: &str = "a time in seconds above the one before it, up to 10 days after the first, and 0 to 1000000 Mb/s, \
                    such as '12.5 48.2'; at least two lines, of which one has a rate";
/// Size of an opportunity, billionths of a bit.
const OPPORTUNITY: u128 = 8_000_000_000 * OPPORTUNITY_BYTES as u128;
/// The longest recording, seconds, and the largest rate, Mb/s.
const LONGEST: f64 = 864_000.0;
const FASTEST: f64 = 1e6;

/// Reads a text whose lines have a time in seconds and a rate in Mb/s.
pub(super) fn rates(text: &str) -> Result<DeliveryTrace, TraceError> {
    // The start of each rate in nanoseconds, and the rate in bits per second.
    let mut steps: Vec<(u64, u64)> = Vec::new();
    let (mut start, mut last) = (None, (0, ""));
    for (i, line) in text.lines().enumerate() {
        let entry = line.split('#').next().unwrap_or_default().trim();
        if entry.is_empty() {
            continue;
        }
        let read = numbers(entry).and_then(|(time, rate)| {
            let seconds = time - *start.get_or_insert(time);
            let at = (seconds * 1e9).round() as u64;
            let rises = seconds >= 0.0 && steps.last().is_none_or(|(before, _)| *before < at);
            (rises && seconds <= LONGEST).then_some((at, (rate * 1e6).round() as u64))
        });
        steps.push(read.ok_or_else(|| TraceError::new(i + 1, entry, LINE))?);
        last = (i + 1, entry);
    }
    let refuse = || TraceError::new(last.0, last.1, LINE);
    let [.., (before, _), (end, _)] = steps.as_slice() else { return Err(refuse()) };
    let period = 2 * end - before;
    let nanos = opportunities(&steps, period).filter(|nanos| !nanos.is_empty());
    Ok(DeliveryTrace::from_parts(nanos.ok_or_else(refuse)?, period))
}

/// The time of each opportunity, nanoseconds; `None` if there are too many.
fn opportunities(steps: &[(u64, u64)], period: u64) -> Option<Vec<u64>> {
    let mut nanos = Vec::new();
    // Billionths of a bit that are still missing until the next opportunity.
    let mut lacking = OPPORTUNITY;
    let ends = steps.iter().skip(1).map(|(start, _)| *start).chain([period]);
    for ((start, rate), end) in steps.iter().zip(ends) {
        let (mut at, rate) = (*start, u128::from(*rate));
        while rate * u128::from(end - at) >= lacking {
            let step = lacking.div_ceil(rate);
            at += step as u64;
            nanos.push(at);
            lacking = OPPORTUNITY - (rate * step - lacking);
            if nanos.len() > MAX_OPPORTUNITIES {
                return None;
            }
        }
        lacking -= rate * u128::from(end - at);
    }
    Some(nanos)
}

/// Parses a line: a time in seconds, and a rate in Mb/s.
fn numbers(entry: &str) -> Option<(f64, f64)> {
    let mut parts = entry.split_whitespace().map(|part| part.parse::<f64>().ok());
    let (time, rate) = (parts.next()??, parts.next()??);
    let good = parts.next().is_none() && time.is_finite() && (0.0..=FASTEST).contains(&rate);
    good.then_some((time, rate))
}
