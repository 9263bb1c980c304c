//! Blanks the parts of Rust source that are not code.

/// Treatment of the text of string and character literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literals {
    /// Leave the text as it is.
    Keep,
    /// Replace the text by spaces, quotes included.
    Blank,
}

/// `source` with comments, and literals if asked, replaced by spaces. Line breaks stay, so line
/// numbers and byte offsets are those of the original.
pub fn mask(source: &str, literals: Literals) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let (length, blank) = if rest.starts_with(b"//") {
            (line_comment(rest), true)
        } else if rest.starts_with(b"/*") {
            (block_comment(rest), true)
        } else if byte == b'"' {
            (quoted(rest), literals == Literals::Blank)
        } else if byte == b'\'' {
            match character(rest) {
                Some(length) => (length, literals == Literals::Blank),
                None => (1, false), // a lifetime or a label
            }
        } else if is_word(byte) {
            let word = word(rest);
            match raw_string(rest, word) {
                Some(length) => (length, literals == Literals::Blank),
                None => (word, false),
            }
        } else {
            (1, false)
        };
        if blank {
            for byte in out.iter_mut().skip(at).take(length) {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        at += length;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// True for the bytes identifiers, keywords and numbers are made of; all of non-ASCII counts.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The identifiers, keywords and numbers of `masked` source, with their byte offsets.
pub fn words(masked: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + masked.get(at..)?.bytes().position(is_word)?;
        let length = word(masked.get(start..)?.as_bytes());
        at = start + length;
        Some((start, masked.get(start..at)?))
    })
}

/// The line, counted from 1, of a byte offset.
pub fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

fn word(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len())
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of the character literal at the start of `rest`, or `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    let first = *rest.get(1)?;
    if first == b'\\' {
        // The escaped character itself may be a quote: '\''.
        return rest.iter().skip(3).position(|&byte| byte == b'\'').map(|end| end + 4);
    }
    let width = match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

/// The length of the raw string whose prefix (`r`, `br` or `cr`) is the word at the start of `rest`.
fn raw_string(rest: &[u8], word: usize) -> Option<usize> {
    if !matches!(rest.get(..word)?, b"r" | b"br" | b"cr") {
        return None;
    }
    let hashes = rest.iter().skip(word).take_while(|&&byte| byte == b'#').count();
    let open = word + hashes;
    if rest.get(open) != Some(&b'"') {
        return None; // a raw identifier such as r#fn
    }
    let mut close = vec![b'#'; hashes + 1];
    close[0] = b'"';
    let body = rest.get(open + 1..)?;
    let end = body.windows(close.len()).position(|window| window == close);
    Some(end.map_or(rest.len(), |end| open + 1 + end + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn blanked(source: &str, expected: &str) {
        let masked = mask(source, Literals::Blank);
        assert_eq!(masked.split_whitespace().collect::<Vec<_>>().join(" "), expected);
        assert_eq!(masked.len(), source.len());
        assert_eq!(masked.lines().count(), source.lines().count());
    }

    #[test]
    fn comments_go_and_nest() {
        blanked("a // b\nc /* d /* e */ f */ g", "a c g");
        blanked("a /* never closed", "a");
        blanked("a / b * c", "a / b * c");
    }

    #[test]
    fn strings_go_with_their_escapes() {
        blanked(r#"a "b \" // c" d"#, "a d");
        blanked("a r\"\\\" b", "a b");
        blanked("a br##\"b\"# c\"## d", "a d");
        blanked("r#fn(\"x\")", "r#fn( )");
        blanked("bar\"text\" tail", "bar tail");
    }

    #[test]
    fn character_literals_go_and_lifetimes_stay() {
        blanked(r"f::<'a>('{', '\'', '\\', b'}', 'é', '\u{7b}', 'x)", "f::<'a>( , , , b , , , 'x)");
    }

    #[test]
    fn literals_can_stay() {
        assert_eq!(mask("a \"b // c\" // d", Literals::Keep), "a \"b // c\"     ");
    }

    #[test]
    fn words_and_lines_are_found() {
        let found: Vec<_> = words("fn a_1(é)\n{r#x}").collect();
        assert_eq!(found, [(0, "fn"), (3, "a_1"), (7, "é"), (12, "r"), (14, "x")]);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }
}
