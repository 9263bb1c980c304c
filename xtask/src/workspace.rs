//! Where the workspace is, and what `cargo metadata` says about it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process;

/// The workspace this program belongs to.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
}

/// A workspace member with its dependencies inside the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The package name, such as `anabranch-core`.
    pub name: String,
    /// Imports from the workspace; crates from a registry are left out.
    pub imports: Vec<Import>,
}

/// One dependency on another workspace member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The imported package's name.
    pub name: String,
    /// True if only tests, examples and benchmarks see it.
    pub dev: bool,
}

impl Workspace {
    /// Finds the workspace above this program's own manifest.
    ///
    /// # Errors
    /// If that directory holds no `Cargo.toml`: the repository moved after compilation.
    pub fn locate() -> Result<Self, String> {
        let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        match manifest_dir.parent() {
            Some(root) if root.join("Cargo.toml").is_file() => {
                Ok(Workspace { root: root.to_path_buf() })
            }
            _ => Err(format!("no workspace above {}", manifest_dir.display())),
        }
    }

    /// The repository's top directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A `cargo` command run from the top directory, with the toolchain that runs us.
    pub fn cargo(&self, args: &[&str]) -> Command {
        let mut command = self.command(cargo_program());
        command.args(args);
        command
    }

    /// A command run from the top directory.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        // `cargo run` describes *this* package to us; a nested build must not see it.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command
    }

    /// A `git` command run from the top directory.
    pub fn git(&self, args: &[&str]) -> Command {
        let mut command = self.command("git");
        command.args(args);
        command
    }

    /// The members and their imports among each other.
    ///
    /// # Errors
    /// If `cargo metadata` fails or its answer is not of the expected shape.
    pub fn packages(&self) -> Result<Vec<Package>, String> {
        parse_packages(&self.metadata()?)
    }

    /// The directory builds go to.
    ///
    /// # Errors
    /// If `cargo metadata` fails or its answer is not of the expected shape.
    pub fn target_dir(&self) -> Result<PathBuf, String> {
        let metadata = self.metadata()?;
        let path = metadata.get("target_directory").and_then(Value::as_str);
        path.map(PathBuf::from).ok_or_else(|| "cargo metadata names no target directory".into())
    }

    fn metadata(&self) -> Result<Value, String> {
        let args = ["metadata", "--format-version=1", "--no-deps"];
        let text = process::capture(&mut self.cargo(&args))?;
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
    }
}

/// The `cargo` of the toolchain that runs us.
pub fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Reads the packages out of `cargo metadata --no-deps`.
///
/// # Errors
/// If `packages`, or a package's `name` or `dependencies`, is missing.
pub fn parse_packages(metadata: &Value) -> Result<Vec<Package>, String> {
    let list = |value: &Value, key: &str| {
        let entries = value.get(key).and_then(Value::as_array).cloned();
        entries.ok_or_else(|| format!("cargo metadata: no `{key}`"))
    };
    let name_of = |value: &Value| {
        let name = value.get("name").and_then(Value::as_str).map(String::from);
        name.ok_or_else(|| String::from("cargo metadata: an entry has no `name`"))
    };
    let mut packages = Vec::new();
    for package in list(metadata, "packages")? {
        let mut imports = Vec::new();
        for dependency in list(&package, "dependencies")? {
            // With --no-deps every path dependency is a member; registry crates have no path.
            if dependency.get("path").is_some_and(|path| !path.is_null()) {
                let dev = dependency.get("kind").and_then(Value::as_str) == Some("dev");
                imports.push(Import { name: name_of(&dependency)?, dev });
            }
        }
        packages.push(Package { name: name_of(&package)?, imports });
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_yields_members_and_kinds() {
        let metadata = serde_json::json!({ "packages": [{
            "name": "a",
            "dependencies": [
                { "name": "b", "path": "/w/b", "kind": null },
                { "name": "c", "path": "/w/c", "kind": "dev" },
                { "name": "libm", "kind": null },
            ],
        }]});
        let imports =
            vec![Import { name: "b".into(), dev: false }, Import { name: "c".into(), dev: true }];
        assert_eq!(parse_packages(&metadata), Ok(vec![Package { name: "a".into(), imports }]));
    }

    #[test]
    fn metadata_of_another_shape_is_an_error() {
        assert!(parse_packages(&serde_json::json!({})).is_err());
        assert!(parse_packages(&serde_json::json!({ "packages": [{ "name": "a" }] })).is_err());
    }
}
