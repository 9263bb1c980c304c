//! Packages of the archive's files for Debian, Fedora and the systems derived from them. They are
//! made by the systems' own programs, where these are installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{copy, failed, tools, write};
use crate::process;

/// Content of a package.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// The directory laid out as below `/usr`.
    pub tree: &'a Path,
    /// The program's version.
    pub version: &'a str,
    /// Time of the commit, seconds since 1970.
    pub time: &'a str,
}

const MAINTAINER: &str = "The Anabranch contributors <anabranch@users.noreply.github.com>";
const HOMEPAGE: &str = "https://github.com/anabranch/anabranch";
const SUMMARY: &str = "One connection over several lossy, unequal paths at once";
const DESCRIPTION: &str = "Moves files and carries TCP connections over all links that a machine has, \
repairs losses by erasure coding, and simulates and measures multipath protocols.";
/// Adds the user that the units name, unless it exists.
const ADD_USER: &str = "getent passwd anabranch >/dev/null || \
useradd --system --no-create-home --shell /usr/sbin/nologin anabranch";

/// Makes a package for Debian in `out`; `None`, with the reason printed, where dpkg-deb is not installed.
///
/// # Errors
/// If it cannot be made.
pub fn deb(content: Content<'_>, out: &Path) -> Result<Option<PathBuf>, String> {
    if !tools::answers("dpkg-deb") {
        println!("no deb: dpkg-deb is not installed (package dpkg)");
        return Ok(None);
    }
    let Content { version, time, .. } = content;
    let root = out.join("deb");
    let files = stage(content, &root)?;
    let bytes: u64 =
        files.iter().map(|file| fs::metadata(root.join(file)).map_or(0, |it| it.len())).sum();
    let control = format!(
        "Package: anabranch\nVersion: {version}\nArchitecture: amd64\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {}\nSection: net\nPriority: optional\nHomepage: {HOMEPAGE}\n\
         Description: {SUMMARY}\n {DESCRIPTION}\n",
        bytes.div_ceil(1024)
    );
    write(&root.join("DEBIAN/control"), &control)?;
    let script = root.join("DEBIAN/postinst");
    write(&script, &format!("#!/bin/sh\nset -e\n{ADD_USER}\n"))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
        .map_err(|error| failed(&script, &error))?;
    let package = out.join(format!("anabranch_{version}_amd64.deb"));
    let mut build = Command::new("dpkg-deb");
    build.env("SOURCE_DATE_EPOCH", time).args(["--root-owner-group", "--build"]);
    process::run(build.arg(&root).arg(&package))?;
    Ok(Some(package))
}

/// Makes a package for Fedora in `out`; `None`, with the reason printed, where rpmbuild is not installed.
///
/// # Errors
/// If it cannot be made.
pub fn rpm(content: Content<'_>, out: &Path) -> Result<Option<PathBuf>, String> {
    if !tools::answers("rpmbuild") {
        println!("no rpm: rpmbuild is not installed (package rpm-build, on Debian rpm)");
        return Ok(None);
    }
    let Content { version, time, .. } = content;
    let root = out.join("rpm");
    let staged = root.join("staged");
    let files = stage(content, &staged)?;
    let listed: String = files.iter().map(|file| format!("\"/{}\"\n", file.display())).collect();
    let spec = format!(
        "Name: anabranch\nVersion: {version}\nRelease: 1\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\n\
         URL: {HOMEPAGE}\nAutoReqProv: no\nRequires(pre): shadow-utils\n\
         %global __os_install_post %{{nil}}\n%global debug_package %{{nil}}\n\
         %global use_source_date_epoch_as_buildtime 1\n%global clamp_mtime_to_source_date_epoch 1\n\
         %description\n{DESCRIPTION}\n%install\nmkdir -p %{{buildroot}}\n\
         cp -a '{}'/. %{{buildroot}}\n%pre\n{ADD_USER}\n%files\n%defattr(-,root,root,-)\n{listed}",
        staged.display()
    );
    let recipe = root.join("anabranch.spec");
    write(&recipe, &spec)?;
    let top = root.join("build");
    let mut build = Command::new("rpmbuild");
    build.env("SOURCE_DATE_EPOCH", time).args(["-bb", "--quiet", "--target", "x86_64"]);
    build.args(["--define", "_buildhost localhost", "--define"]);
    build.arg(format!("_topdir {}", top.display())).arg(&recipe);
    process::run(&mut build)?;
    let name = format!("anabranch-{version}-1.x86_64.rpm");
    let package = out.join(&name);
    copy(&top.join("RPMS/x86_64").join(&name), &package)?;
    Ok(Some(package))
}

/// Lays the tree out below `usr` of an empty `root`; returns the files' paths from there, sorted.
fn stage(content: Content<'_>, root: &Path) -> Result<Vec<PathBuf>, String> {
    if root.exists() {
        fs::remove_dir_all(root).map_err(|error| failed(root, &error))?;
    }
    let mut files = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        let from = content.tree.join(&directory);
        for item in fs::read_dir(&from).map_err(|error| failed(&from, &error))? {
            let item = item.map_err(|error| failed(&from, &error))?;
            let name = directory.join(item.file_name());
            if item.path().is_dir() {
                directories.push(name);
            } else {
                files.push(Path::new("usr").join(name));
            }
        }
    }
    files.sort();
    for file in &files {
        let to = root.join(file);
        copy(&content.tree.join(file.strip_prefix("usr").unwrap_or(file)), &to)?;
        let mode = if file.starts_with("usr/bin") { 0o755 } else { 0o644 };
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))
            .map_err(|error| failed(&to, &error))?;
    }
    Ok(files)
}
