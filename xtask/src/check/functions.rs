//! How long each function is.

use super::mask::{Literals, is_word, line_of, mask, words};

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name of the function.
    pub name: String,
    /// The line of the function's `fn`, counted from 1.
    pub line: usize,
    /// Lines from the function's `fn` to its closing brace, both included.
    pub lines: usize,
}

/// The functions of a source file in the order of their `fn`. Nested functions are listed and count
/// towards their parents too; declarations without a body and `fn` pointer types are left out.
pub fn functions(source: &str) -> Vec<Function> {
    let code = mask(source, Literals::Blank);
    let mut found = Vec::new();
    let mut all = words(&code).peekable();
    while let Some((start, word)) = all.next() {
        let raw = start > 0 && code.as_bytes().get(start - 1) == Some(&b'#');
        let Some(&(name_start, name)) = all.peek() else { break };
        // `fn(u8)` is a type; between the keyword and a name lie spaces or a macro's `$`.
        let named = code
            .get(start + word.len()..name_start)
            .is_some_and(|gap| gap.bytes().all(|byte| b" \t\r\n$".contains(&byte)));
        if word != "fn" || raw || !named {
            continue;
        }
        let (name_end, name) = if name == "r" && code[name_start..].starts_with("r#") {
            (name_start + 2, raw_name(&code, name_start + 2))
        } else {
            (name_start + name.len(), name)
        };
        let Some(open) = body(code.as_bytes(), name_end) else { continue };
        let close = closing_brace(code.as_bytes(), open);
        let line = line_of(&code, start);
        found.push(Function { name: name.into(), line, lines: line_of(&code, close) - line + 1 });
    }
    found
}

fn raw_name(code: &str, start: usize) -> &str {
    let name = code.get(start..).unwrap_or_default();
    name.split(|c: char| c.is_ascii() && !is_word(c as u8)).next().unwrap_or_default()
}

/// The offset of the brace that opens the body, or `None` if a semicolon comes first.
fn body(code: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = from;
    let mut last = b' ';
    while let Some(&byte) = code.get(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b';' if depth == 0 => return None,
            // An expression as a const argument, `Ring<{ N + 1 }>`, is not the body.
            b'{' if last == b'<' || depth > 0 => at = closing_brace(code, at),
            b'{' => return Some(at),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = byte;
        }
        at += 1;
    }
    None
}

/// The offset of the brace that closes the one at `open`, or of the last byte.
fn closing_brace(code: &[u8], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, &byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return at;
        }
    }
    code.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn measured(source: &str, expected: &[(&str, usize, usize)]) {
        let found = functions(source);
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_run_from_the_keyword_to_the_closing_brace() {
        measured("fn a() {}", &[("a", 1, 1)]);
        measured(
            "/// Doc.\n#[inline]\npub fn a(\n    x: u8,\n) -> u8 {\n    x\n}\n",
            &[("a", 3, 5)],
        );
    }

    #[test]
    fn braces_in_text_and_comments_do_not_count() {
        let body =
            "{\n  // }\n  /* } */\n  f(\"}\", r#\"}\"#, '}', b'}', '\\'');\n  let x: &'a u8;\n}";
        measured(&format!("fn a<'a>() {body}\nfn b() {{}}"), &[("a", 1, 6), ("b", 7, 1)]);
    }

    #[test]
    fn nested_functions_count_twice() {
        measured("fn a() {\n  fn b() {\n  }\n}\n", &[("a", 1, 4), ("b", 2, 2)]);
    }

    #[test]
    fn declarations_types_and_text_are_no_functions() {
        measured("trait T {\n  fn a(&self, b: [u8; 4]);\n  fn c() {\n  }\n}", &[("c", 3, 2)]);
        measured("struct S { f: fn(u8) -> u8 }\n// fn no() {}\nlet s = \"fn no() {}\";", &[]);
        measured("fn_call!(fn);\nlet r#fn = { 1 };", &[]);
    }

    #[test]
    fn signatures_may_hold_semicolons_and_braces() {
        measured("fn a() -> [u8; 2] {\n}", &[("a", 1, 2)]);
        measured("fn a<T>() -> Ring<{ N + 1 }>\nwhere\n  T: X,\n{\n}", &[("a", 1, 5)]);
        measured("fn r#type() {\n}", &[("type", 1, 2)]);
        measured("macro_rules! m { ($n:ident) => { fn $n() {\n} } }", &[("n", 1, 2)]);
    }

    #[test]
    fn an_unclosed_body_ends_with_the_file() {
        measured("fn a() {\n  {\n  }\n", &[("a", 1, 3)]);
    }
}
