use core::fmt;

/// The most characters that are shown.
const MOST: usize = 4096;
/// The most combining marks shown on one letter; more would run into neighbouring lines.
const MARKS: usize = 4;

/// Text that a peer has chosen, such as a reason, a refusal or an error message.
///
/// `Display` and `Debug` escape the text, so that it cannot control a terminal, start a new line,
/// reverse the direction of neighbouring text or fill a screen. The unescaped text is available
/// only from [`as_untrusted`](Self::as_untrusted), for sending and comparing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PeerText(String);

impl PeerText {
    /// The text as received, not escaped.
    pub fn as_untrusted(&self) -> &str {
        &self.0
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for PeerText {
    fn from(text: String) -> Self {
        PeerText(text)
    }
}

impl From<&str> for PeerText {
    fn from(text: &str) -> Self {
        PeerText(text.to_owned())
    }
}

impl PartialEq<str> for PeerText {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for PeerText {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(&self.0).fmt(f)
    }
}

impl fmt::Debug for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", escaped(&self.0))
    }
}

/// Shows `text` on one line. Characters that are not printed on their own (control characters, line
/// ends, direction overrides, zero-width spaces, private and unassigned characters) are written
/// like `\u{1b}`. A long text is cut after 4096 characters.
pub fn escaped(text: &str) -> impl fmt::Display {
    Escaped(text)
}

struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut marks = MARKS;
        for (at, character) in self.0.chars().enumerate() {
            if at == MOST {
                return write!(f, "… ({} bytes in all)", self.0.len());
            }
            let mark = is_mark(character);
            // A combining mark at the start of the text has no letter to combine with, so it is
            // escaped.
            marks = if mark { marks + 1 } else { 0 };
            if is_printed(character) || (mark && marks <= MARKS) {
                fmt::Write::write_char(f, character)?;
            } else {
                write!(f, "{}", character.escape_unicode())?;
            }
        }
        Ok(())
    }
}

/// Whether a character is printed on its own.
fn is_printed(character: char) -> bool {
    matches!(character, '\'' | '"' | '\\') || character.escape_debug().eq([character])
}

/// Whether a character is printed only in combination with another, as combining accents are.
fn is_mark(character: char) -> bool {
    let mut buffer = [0; 5];
    let Some((letter, rest)) = buffer.split_first_mut() else { return false };
    *letter = b'a';
    let len = character.encode_utf8(rest).len();
    let pair = buffer.get(..=len).and_then(|pair| core::str::from_utf8(pair).ok());
    !is_printed(character) && pair.is_some_and(|pair| pair.escape_debug().eq(['a', character]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_shown_and_not_done() {
        for (text, shown) in [
            ("plain text, 'quoted' \"so\" or \\so", "plain text, 'quoted' \"so\" or \\so"),
            ("größer 写真 фото 🎬", "größer 写真 фото 🎬"),
            ("\u{1b}[2J\u{1b}]0;owned\u{7}", "\\u{1b}[2J\\u{1b}]0;owned\\u{7}"),
            ("one\r\nanabranch: two\t", "one\\u{d}\\u{a}anabranch: two\\u{9}"),
            ("a\u{202e}gpj.exe", "a\\u{202e}gpj.exe"),
            ("\u{2066}\u{200f}\u{61c}", "\\u{2066}\\u{200f}\\u{61c}"),
            ("\u{9b}31m\u{85}\u{2028}\u{0}", "\\u{9b}31m\\u{85}\\u{2028}\\u{0}"),
            ("a\u{200b}b\u{feff}\u{e0041}\u{ad}", "a\\u{200b}b\\u{feff}\\u{e0041}\\u{ad}"),
            ("e\u{301}", "e\u{301}"),
            ("\u{301}e", "\\u{301}e"),
            ("\u{a0}\u{3000}", "\\u{a0}\\u{3000}"),
        ] {
            assert_eq!(PeerText::from(text).to_string(), shown);
            assert_eq!(format!("{:?}", PeerText::from(text)), format!("\"{shown}\""));
            assert_eq!(PeerText::from(text).as_untrusted(), text);
        }
        let piled = format!("a{}", "\u{301}".repeat(50));
        assert_eq!(escaped(&piled).to_string().matches('\u{301}').count(), MARKS);
    }

    #[test]
    fn a_long_text_fills_no_screen() {
        for character in ["A", "\u{1b}", "\u{301}", "写"] {
            let text = PeerText::from(character.repeat(1 << 20));
            let shown = text.to_string();
            assert!(shown.len() <= 8 * MOST + 40, "{}", shown.len());
            assert!(shown.ends_with(&format!("… ({} bytes in all)", text.as_untrusted().len())));
        }
    }
}
