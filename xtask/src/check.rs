//! Rules about the source that no compiler enforces: who imports whom, which words and keywords
//! appear where, how long files and functions are.

pub mod functions;
pub mod imports;
pub mod keywords;
pub mod links;
pub mod mask;
pub mod pages;
pub mod retired;
pub mod size;
pub mod words;

use std::fmt;
use std::fs;
use std::path::Path;

/// One text file of the repository.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Path of the file, from the top directory, with `/` between the parts.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, from the top directory.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// Description of the fault.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Every `.rs` file below `root`, as [`files`] gives them.
///
/// # Errors
/// As [`files`].
pub fn source_files(root: &Path) -> Result<Vec<SourceFile>, String> {
    files(root, &[".rs"])
}

/// Every file below `root` whose name ends in one of `endings`, ordered by path. Build directories
/// (`target`) and hidden directories are left out.
///
/// # Errors
/// If a directory or file cannot be read, or a file is not UTF-8.
pub fn files(root: &Path, endings: &[&str]) -> Result<Vec<SourceFile>, String> {
    let mut files = Vec::new();
    let mut pending = vec![(root.to_path_buf(), String::new())];
    while let Some((directory, prefix)) = pending.pop() {
        let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().map_err(failed)?;
            let path = format!("{prefix}{name}");
            if kind.is_dir() && !name.starts_with('.') && name != "target" {
                pending.push((entry.path(), format!("{path}/")));
            } else if kind.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
                let text = fs::read_to_string(entry.path()).map_err(|e| format!("{path}: {e}"))?;
                files.push(SourceFile { path, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Turns findings into the result of a step: all of them as the error, or `note` if there are none.
pub fn conclude(findings: &[impl fmt::Display], note: String) -> Result<String, String> {
    if findings.is_empty() {
        return Ok(note);
    }
    for finding in findings {
        eprintln!("error: {finding}");
    }
    Err(format!("{} found", findings.len()))
}

/// Findings of `check` in a file that holds `text`.
#[cfg(test)]
fn found(check: fn(&[SourceFile]) -> Vec<Finding>, path: &str, text: &str) -> Vec<String> {
    let file = SourceFile { path: path.into(), text: text.into() };
    check(&[file]).iter().map(ToString::to_string).collect()
}
