//! Checks the width of pages, so that their prose can be read in a terminal.

use super::{Finding, SourceFile};

/// Most characters of a line of prose.
pub const WIDTH: usize = 100;

/// Every line longer than [`WIDTH`], except code, tables and lines that cannot be broken.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let mut fence = None;
        for (number, line) in file.text.lines().enumerate() {
            let start = line.trim_start();
            if let Some(mark) = fence {
                if start.starts_with(mark) {
                    fence = None;
                }
                continue;
            }
            fence = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
            let length = line.chars().count();
            let breaks = start.char_indices().any(|(at, c)| c == ' ' && at > 3);
            if length > WIDTH && breaks && !start.starts_with(['|', '`', '<']) {
                let what = format!("the line has {length} characters, {WIDTH} are allowed");
                findings.push(Finding { path: file.path.clone(), line: number + 1, what });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let file = SourceFile { path: "docs/a.md".into(), text: text.into() };
        check(&[file]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn prose_keeps_to_the_width() {
        let (fits, long) = ("é".repeat(49) + " " + &"x".repeat(50), "word ".repeat(21));
        assert_eq!(lines(&format!("{fits}\n{long}\n- {long}")), [2, 3]);
        assert!(crate::check::found(check, "a.rs", &long).is_empty());
    }

    #[test]
    fn code_tables_and_addresses_may_be_longer() {
        let long = "word ".repeat(21);
        assert_eq!(lines(&format!("```text\n{long}\n```\n| {long} |\n{long}")), [5]);
        assert_eq!(lines(&format!("- https://example.org/{}", "x".repeat(100))), [0; 0]);
    }
}
