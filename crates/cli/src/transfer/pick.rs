//! Selects which of the named files are sent.

use anabranch_transfer::Name;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Patterns to leave out, and whether links are sent.
#[derive(Clone, Debug)]
pub(super) struct Pick {
    exclude: Gitignore,
    /// Symbolic links are sent as such.
    pub(super) links: bool,
}

impl Pick {
    /// Leaves out what matches `exclude`, as if these were the lines of a `.gitignore` beside what was named: the last
    /// one that matches decides.
    ///
    /// # Errors
    /// If a line of `exclude` is not a pattern.
    pub(super) fn new(exclude: &[String], links: bool) -> Result<Self, String> {
        let mut lines = GitignoreBuilder::new("");
        for line in exclude {
            lines.add_line(None, line).map_err(|error| error.to_string())?;
        }
        let exclude = lines.build().map_err(|error| error.to_string())?;
        Ok(Pick { exclude, links })
    }

    /// Whether an entry is left out. Callers do not ask about entries of a directory that is left
    /// out.
    pub(super) fn excludes(&self, name: &Name, directory: bool) -> bool {
        self.exclude.matched(name.as_str(), directory).is_ignore()
    }
}

/// Reads a pattern of `--exclude`.
pub(super) fn glob(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.starts_with('#') {
        return Err(
            "write a pattern as in .gitignore, such as '*.tmp', '/photos/raw' or 'cache/'; \
                    a leading # is written \\#"
                .to_owned(),
        );
    }
    match Pick::new(&[text.to_owned()], false) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("{error}; write a pattern as in .gitignore, such as '*.tmp'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_gitignore() {
        let left_out = |patterns: &[&str], name: &str, directory| {
            let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
            Pick::new(&patterns, false).unwrap().excludes(&Name::new(name).unwrap(), directory)
        };
        for (pattern, name, directory, out) in [
            ("*.tmp", "a/b/c.tmp", false, true),
            ("*.tmp", "c.tmpl", false, false),
            ("cache", "a/cache", true, true),
            ("cache/", "a/cache", true, true),
            ("cache/", "a/cache", false, false),
            ("/cache", "a/cache", true, false),
            ("/cache", "cache", false, true),
            ("photos/raw", "photos/raw", true, true),
            ("photos/raw", "a/photos/raw", true, false),
            ("**/raw", "a/photos/raw", true, true),
            ("a/**/c", "a/b/b/c", false, true),
            ("[ab]?", "x/a1", false, true),
            ("*.{c,d}", "x.d", false, true),
            ("a[", "a[", false, true),
            ("x", "X", false, false),
        ] {
            assert_eq!(left_out(&[pattern], name, directory), out, "{pattern} {name}");
        }
        assert!(!left_out(&["*.log", "!keep.log"], "a/keep.log", false));
        assert!(left_out(&["!keep.log", "*.log"], "a/keep.log", false));
        assert!(!left_out(&[], "a", false));
    }

    #[test]
    fn a_wrong_pattern_is_told() {
        for good in ["*.tmp", "!keep", "\\#a", "a b"] {
            assert_eq!(glob(good), Ok(good.to_owned()));
        }
        for bad in ["", " ", "#a", "a{b", "[z-a]"] {
            assert!(glob(bad).is_err_and(|error| error.contains(".gitignore")), "{bad}");
        }
    }
}
