//! Formats figures as people read them.

use std::time::Duration;

/// `118.2 MB`: decimal units, three or four digits.
pub fn bytes(count: u64) -> String {
    const UNITS: [(&str, f64); 3] = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let value = count as f64;
    match UNITS.iter().find(|(_, scale)| value >= *scale) {
        Some((unit, scale)) => format!("{:.1} {unit}", value / scale),
        None if count == 1 => "1 byte".to_owned(),
        None => format!("{count} bytes"),
    }
}

/// `86 %`, with one decimal below ten and two below one; an exact zero is `0 %`.
/// For shares that are not negative.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let size = percent.abs();
    if size == 0.0 {
        "0 %".to_owned()
    } else if size < 0.005 {
        "<0.01 %".to_owned()
    } else if size < 0.995 {
        format!("{percent:.2} %")
    } else if size < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// `47.3`: megabits per second, without the unit; a second decimal below one.
pub fn mbps(value: f64) -> String {
    if value >= 999.5 {
        format!("{value:.0}")
    } else if (0.005..0.995).contains(&value) {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}

/// `62 ms`, with a decimal below ten.
pub fn millis(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 9.95 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

/// `62 ms`, from a second on `1.5 s`.
pub fn duration(time: Duration) -> String {
    if time < Duration::from_micros(999_500) {
        millis(time)
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

/// `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 packet`, `2 packets`: a count with its noun, which takes an s.
pub fn counted(value: u64, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(value))
}

/// `one`, `two`, … up to twelve, digits beyond.
pub fn number_word(value: usize) -> String {
    const WORDS: [&str; 12] = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    match value.checked_sub(1).and_then(|index| WORDS.get(index)) {
        Some(word) => (*word).to_owned(),
        None => value.to_string(),
    }
}

/// `text` in lines of at most `width` characters, as far as its words allow.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut lines = String::with_capacity(text.len());
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            lines.push('\n');
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines
}

/// For JSON: three decimals, as no figure here is more exact.
pub fn three_decimals<S: serde::Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64((value * 1e3).round() / 1e3)
}

/// Variant of [`three_decimals`] for values that may be unknown.
pub fn maybe_three_decimals<S: serde::Serializer>(
    value: &Option<f64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => three_decimals(value, to),
        None => to.serialize_none(),
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(118_244_000), "118.2 MB");
        assert_eq!(percent(0.864), "86 %");
        assert_eq!(percent(0.0212), "2.1 %");
        assert_eq!(percent(0.0001), "0.01 %");
        assert_eq!(percent(0.00001), "<0.01 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.0999), "10 %");
        assert_eq!(mbps(47.26), "47.3");
        assert_eq!((mbps(0.0), mbps(0.084)), ("0.0".to_owned(), "0.08".to_owned()));
        assert_eq!(millis(Duration::from_micros(62_400)), "62 ms");
        assert_eq!(duration(Duration::from_micros(999_499)), "999 ms");
        assert_eq!(duration(Duration::from_micros(999_500)), "1.0 s");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
        assert_eq!(counted(1, "packet"), "1 packet");
        assert_eq!(counted(2_000, "packet"), "2,000 packets");
        assert_eq!(wrapped("over both links at once", 10), "over both\nlinks at\nonce");
        assert_eq!(wrapped("over both links", usize::MAX), "over both links");
        assert_eq!(number_word(3), "three");
        assert_eq!(number_word(13), "13");
        assert_eq!(hex(&[0, 255]), "00ff");
    }
}
