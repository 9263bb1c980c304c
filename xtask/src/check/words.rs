//! Checks that the code of the core names no protocol outside its profiles.

use super::mask::{Literals, line_of, mask, words};
use super::{Finding, SourceFile};

/// Names of protocols that the core may speak of in comments only.
pub const PROTOCOLS: [&str; 5] = ["mplot", "fmtcp", "mptcp", "ptcp", "mtcp"];

const SCOPE: &str = "crates/core/src/";
const PROFILES: [&str; 2] = ["crates/core/src/profiles/", "crates/core/src/profiles.rs"];

/// Every use of a protocol's name in the core outside its profiles, in identifiers and in literals.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let in_scope = |file: &&SourceFile| {
        file.path.starts_with(SCOPE) && !PROFILES.iter().any(|part| file.path.starts_with(part))
    };
    let mut findings = Vec::new();
    for file in files.iter().filter(in_scope) {
        let code = mask(&file.text, Literals::Keep);
        for (at, word) in words(&code) {
            if let Some(protocol) = protocol_in(word) {
                let what = format!("`{word}` names the protocol {protocol}; only profiles may");
                findings.push(Finding { path: file.path.clone(), line: line_of(&code, at), what });
            }
        }
    }
    findings
}

/// The protocol an identifier speaks of as a word of its own: `is_mplot`, `MplotRank` and `pTCP` do,
/// `exempted` does not.
fn protocol_in(identifier: &str) -> Option<&'static str> {
    for part in identifier.split('_') {
        let humps = humps(part);
        for first in 0..humps.len() {
            let mut joined = String::new();
            for hump in &humps[first..] {
                joined.push_str(&hump.to_ascii_lowercase());
                let bare = joined.trim_end_matches(|c: char| c.is_ascii_digit());
                if let Some(name) = PROTOCOLS.iter().find(|&&name| name == bare) {
                    return Some(name);
                }
            }
        }
    }
    None
}

/// Splits `MPLOTRank2` into `MPLOT` and `Rank2`.
fn humps(part: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = part.char_indices().collect();
    let mut humps = Vec::new();
    let mut start = 0;
    for window in 1..chars.len() {
        let (at, this) = chars[window];
        let after_small = !chars[window - 1].1.is_uppercase();
        let before_small = chars.get(window + 1).is_some_and(|(_, next)| next.is_lowercase());
        if this.is_uppercase() && (after_small || before_small) {
            humps.push(&part[start..at]);
            start = at;
        }
    }
    humps.push(&part[start..]);
    humps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        crate::check::found(check, path, text)
    }

    #[test]
    fn words_are_told_from_parts_of_words() {
        for yes in
            ["mplot", "MPTCP", "is_mplot", "MplotRank", "pTCP", "PTcp", "mptcp2", "run_fmTCP"]
        {
            assert!(protocol_in(yes).is_some(), "{yes}");
        }
        for no in ["exempted", "tcp", "stcp", "mplots", "prompt_cp", "MplottedLine", "symptcpx", ""]
        {
            assert!(protocol_in(no).is_none(), "{no}");
        }
    }

    #[test]
    fn code_and_literals_count_and_comments_do_not() {
        let text = "/// As MPLOT does.\nfn a() {\n  // mptcp\n  if name == \"fmtcp\" {}\n}\n";
        let what = "`fmtcp` names the protocol fmtcp; only profiles may";
        assert_eq!(
            found("crates/core/src/a.rs", text),
            [format!("crates/core/src/a.rs:4: {what}")]
        );
    }

    #[test]
    fn profiles_and_other_crates_may() {
        assert!(found("crates/core/src/profiles/mplot.rs", "fn mplot() {}").is_empty());
        assert!(found("crates/core/src/profiles.rs", "mod mplot;").is_empty());
        assert!(found("crates/tcp/src/meta.rs", "fn mptcp() {}").is_empty());
        assert_eq!(found("crates/core/src/lib.rs", "fn mptcp() {}").len(), 1);
    }
}
