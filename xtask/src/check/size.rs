//! Files and functions stay small enough to read in one go.

use super::functions::functions;
use super::{Finding, SourceFile};

/// Lines past which a file gets a warning.
pub const FILE_WARNING: usize = 490;
/// Lines past which a file breaks the rule.
pub const FILE_LIMIT: usize = 500;
/// Lines past which a function breaks the rule.
pub const FUNCTION_LIMIT: usize = 60;

/// Findings of the size rule in a set of files.
#[derive(Debug, Default)]
pub struct Sizes {
    /// Places past a limit.
    pub errors: Vec<Finding>,
    /// Files that come close.
    pub warnings: Vec<Finding>,
    /// Lines of the longest function.
    pub longest_function: usize,
}

/// Measures every file and function.
pub fn check(files: &[SourceFile]) -> Sizes {
    let mut sizes = Sizes::default();
    for file in files {
        let finding = |line, what| Finding { path: file.path.clone(), line, what };
        let lines = file.text.lines().count();
        if lines > FILE_LIMIT {
            let what = format!("the file has {lines} lines, {FILE_LIMIT} are allowed");
            sizes.errors.push(finding(FILE_LIMIT + 1, what));
        } else if lines > FILE_WARNING {
            let what = format!("the file has {lines} lines, more than {FILE_WARNING}");
            sizes.warnings.push(finding(FILE_WARNING + 1, what));
        }
        for function in functions(&file.text) {
            sizes.longest_function = sizes.longest_function.max(function.lines);
            if function.lines > FUNCTION_LIMIT {
                let what = format!(
                    "`{}` has {} lines, {FUNCTION_LIMIT} are allowed",
                    function.name, function.lines
                );
                sizes.errors.push(finding(function.line, what));
            }
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: String) -> [SourceFile; 1] {
        [SourceFile { path: "a.rs".into(), text }]
    }

    #[test]
    fn files_warn_near_the_limit_and_fail_past_it() {
        let counts = |lines: usize| {
            let sizes = check(&file("//\n".repeat(lines)));
            (sizes.warnings.len(), sizes.errors.len())
        };
        assert_eq!([490, 491, 500, 501].map(counts), [(0, 0), (1, 0), (1, 0), (0, 1)]);
    }

    #[test]
    fn functions_fail_past_60() {
        let sizes = |inner: usize| check(&file(format!("\nfn a() {{\n{}}}", "x;\n".repeat(inner))));
        assert!(sizes(58).errors.is_empty());
        let long = sizes(59);
        assert_eq!(long.longest_function, 61);
        assert_eq!(long.errors[0].to_string(), "a.rs:2: `a` has 61 lines, 60 are allowed");
    }
}
