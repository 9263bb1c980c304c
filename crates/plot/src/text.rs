//! Text in figures: width, line breaks and escaping.

/// Approximate width of `text` in a sans-serif font of `size` pixels. The estimate errs on the wide
/// side, since the reader's font is not known.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '|' | '\'' | '.' | ',' | ':' | ';' | '!' => 0.30,
        ' ' | 'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | '/' | '-' => 0.39,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.95,
        c if c.is_ascii_uppercase() => 0.72,
        c if c.is_ascii() => 0.61,
        _ => 0.75,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// `text` broken into lines of at most `most` pixels. A single word may be wider.
pub(crate) fn wrap(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// `text` cut to `most` pixels, with an ellipsis if something is missing.
pub(crate) fn fit(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let mut cut = text.to_owned();
    while cut.pop().is_some() && width(&cut, size) + width("…", size) > most {}
    cut.push('…');
    cut
}

/// `text` escaped for HTML contents and attributes.
pub fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `text` escaped for SVG contents and attributes. Characters that XML forbids become spaces.
pub(crate) fn escape(text: &str) -> String {
    let is_forbidden = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    escape_html(&text.replace(is_forbidden, " "))
}
