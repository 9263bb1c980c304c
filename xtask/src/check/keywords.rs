//! Checks that `unsafe` is used only in the erasure kernels and in a few files with a reason.

use super::mask::{Literals, line_of, mask, words};
use super::{Finding, SourceFile};

/// Files besides the kernels that may say `unsafe`, each with its reason.
pub const ALLOWED: [(&str, &str); 2] = [
    ("tools/wasm-digest/src/export.rs", "an exported symbol name is an unsafe attribute"),
    ("crates/core/tests/allocator/mod.rs", "an allocator that counts is an unsafe trait"),
];

/// Every `unsafe` outside `crates/fec/src/…kernel…` and the allowed files.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !may_be_unsafe(&file.path)) {
        let code = mask(&file.text, Literals::Blank);
        for (at, _) in words(&code).filter(|(_, word)| *word == "unsafe") {
            let what = String::from("`unsafe` outside the erasure kernels");
            findings.push(Finding { path: file.path.clone(), line: line_of(&code, at), what });
        }
    }
    findings
}

fn may_be_unsafe(path: &str) -> bool {
    let in_fec = path.strip_prefix("crates/fec/src/");
    in_fec.is_some_and(|rest| rest.split('/').any(|part| part.starts_with("kernel")))
        || ALLOWED.iter().any(|(allowed, _)| *allowed == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = SourceFile { path: path.into(), text: text.into() };
        check(&[file]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn only_the_keyword_counts() {
        let text = "#![deny(unsafe_code)]\n// unsafe\nlet s = \"unsafe\";\nunsafe { f() }\n";
        assert_eq!(lines("crates/net/src/lib.rs", text), [4]);
        assert_eq!(lines("crates/fec/src/gf256.rs", "unsafe fn f() {}"), [1]);
    }

    #[test]
    fn kernels_and_listed_files_may() {
        for path in ["crates/fec/src/kernel.rs", "crates/fec/src/kernels/avx2.rs", ALLOWED[0].0] {
            assert!(lines(path, "unsafe fn f() {}").is_empty(), "{path}");
        }
    }
}
