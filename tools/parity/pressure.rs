//! Measures how busy the machine's processors are.

use std::time::Duration;

/// The file in which Linux reports how long some runnable thread had to wait.
const FILE: &str = "/proc/pressure/cpu";

/// Time since the machine started during which some thread waited for a processor; none where the
/// system does not tell.
pub fn waited() -> Option<Duration> {
    parse(&std::fs::read_to_string(FILE).ok()?)
}

fn parse(text: &str) -> Option<Duration> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total = line.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_some_is_read() {
        let text = "some avg10=99.54 avg60=99.55 avg300=90.30 total=1270825\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(parse(text), Some(Duration::from_micros(1_270_825)));
        assert_eq!(parse(""), None);
        assert_eq!(parse("some avg10=0.00"), None);
    }
}
