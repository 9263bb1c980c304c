//! Checks that names which the project has replaced do not come back.

use super::mask::words;
use super::{Finding, SourceFile};

/// A word that the project has replaced.
#[derive(Clone, Copy, Debug)]
pub struct Retired {
    /// The identifier, or a word of one if it is in small letters and has no underscore: `window`
    /// stands for `open_window`, `OpenWindow` and `windows` too.
    pub word: &'static str,
    /// The word to use instead.
    pub instead: &'static str,
    /// Beginnings of the paths where the word is retired; empty: everywhere.
    pub within: &'static [&'static str],
    /// Identifiers that contain the word and are allowed.
    pub except: &'static [&'static str],
}

impl Retired {
    const fn name(word: &'static str, instead: &'static str) -> Self {
        Retired { word, instead, within: &[], except: &[] }
    }

    fn is_in(&self, path: &str) -> bool {
        self.within.is_empty() || self.within.iter().any(|start| path.starts_with(start))
    }

    fn is_said_by(&self, identifier: &str) -> bool {
        if self.except.contains(&identifier) {
            return false;
        }
        let is_part = self.word.bytes().all(|byte| byte.is_ascii_lowercase());
        identifier == self.word || (is_part && identifier.to_ascii_lowercase().contains(self.word))
    }
}

/// The retired words.
pub const RETIRED: &[Retired] = &[
    Retired {
        word: "window",
        instead: "block; a window is a congestion window",
        within: &["crates/core/src/coding", "crates/policy/src/code"],
        // The erasure code whose window slides.
        except: &["sliding_window", "SlidingWindow"],
    },
    Retired::name("WindowId", "BlockId"),
    Retired::name("WindowView", "BlockView"),
    Retired::name("WindowShape", "BlockShape"),
    Retired::name("WindowCounts", "BlockCounts"),
    Retired::name("WindowClosed", "BlockClosed"),
    Retired::name("SendWindows", "SendBlocks"),
    Retired::name("ReceiveWindows", "ReceiveBlocks"),
    Retired::name("WindowCut", "CwndReduced"),
    Retired::name("window_cuts", "cwnd_reductions"),
    Retired::name("next_window", "next_block"),
    Retired::name("on_window_resolved", "on_block_resolved"),
    Retired::name("Tiding", "TunnelEvent"),
    Retired::name("Teller", "Reporter"),
    Retired::name("KeptPaths", "Manager"),
    Retired::name("Initiating", "Initiator"),
    Retired::name("Responding", "Responder"),
    Retired { within: &["crates/net/src/"], ..Retired::name("telling", "log") },
];

/// Files that may name retired words: this table and the changelog.
const TOLD: [&str; 2] = ["xtask/src/check/retired.rs", "CHANGELOG.md"];

/// Every use of a retired word, in code, comments and documents.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !TOLD.contains(&file.path.as_str())) {
        let here: Vec<&Retired> = RETIRED.iter().filter(|word| word.is_in(&file.path)).collect();
        for (line, text) in file.text.lines().enumerate() {
            // A word that follows a hyphen is half of a term, such as `sliding-window`.
            let halves =
                |at: &usize| at.checked_sub(1).is_some_and(|at| text.as_bytes()[at] == b'-');
            for (_, word) in words(text).filter(|(at, _)| !halves(at)) {
                if let Some(retired) = here.iter().find(|retired| retired.is_said_by(word)) {
                    let what = format!("`{word}` is not said any more: {}", retired.instead);
                    findings.push(Finding { path: file.path.clone(), line: line + 1, what });
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        crate::check::found(check, path, text)
    }

    #[test]
    fn a_retired_name_is_found_in_code_comments_and_documents() {
        let what = "`WindowView` is not said any more: BlockView";
        for (path, text) in [
            ("crates/a.rs", "\nstruct WindowView;"),
            ("crates/a.rs", "\n/// A [`WindowView`]."),
            ("docs/a.md", "\nA `WindowView` is old."),
        ] {
            assert_eq!(found(path, text), [format!("{path}:2: {what}")]);
        }
        assert!(found("crates/a.rs", "struct WindowViewer; fn window_view() {}").is_empty());
        assert!(found("CHANGELOG.md", "WindowView is now BlockView").is_empty());
    }

    #[test]
    fn a_retired_word_is_found_within_identifiers_and_only_where_it_means_something_else() {
        let path = "crates/core/src/coding/send.rs";
        for text in ["fn open_window() {}", "struct OpenWindow;", "const MAX_WINDOW: u8 = 1;"] {
            assert_eq!(found(path, text).len(), 1, "{text}");
            assert!(found("crates/core/src/path.rs", text).is_empty(), "{text}");
        }
        assert!(found(path, "mod sliding_window; // A sliding-window code.").is_empty());
    }
}
