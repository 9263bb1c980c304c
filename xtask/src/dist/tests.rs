//! Packages are made, installed and run, with a stand-in for the program; where a tool is missing, the test says so.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::{self, Content};
use super::{image, installer, tools};

/// A directory that is removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("anabranch-dist-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let program = path.join("tree/bin/anabranch");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::create_dir_all(path.join("tree/share/man/man1")).unwrap();
        fs::write(&program, "#!/bin/sh\necho anabranch 1.2.3\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(path.join("tree/share/man/man1/anabranch.1"), ".TH ANABRANCH 1\n").unwrap();
        Place(path)
    }

    fn content<'a>(&self, tree: &'a Path) -> Content<'a> {
        Content { tree, version: "1.2.3", time: "1700000000" }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn runs(root: &Path) {
    let mut program = Command::new(root.join("usr/bin/anabranch"));
    assert_eq!(output(program.arg("--version")), "anabranch 1.2.3\n");
    assert!(root.join("usr/share/man/man1/anabranch.1").is_file());
}

#[test]
fn a_deb_is_made_unpacked_and_run() {
    let place = Place::new("deb");
    let tree = place.0.join("tree");
    let made = packages::deb(place.content(&tree), &place.0).unwrap();
    let Some(package) = made else { return };
    let told = output(Command::new("dpkg-deb").arg("--info").arg(&package));
    for part in ["Package: anabranch", "Version: 1.2.3", "Architecture: amd64", "postinst"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let listed = output(Command::new("dpkg-deb").arg("--contents").arg(&package));
    assert!(
        listed.contains("-rwxr-xr-x root/root") && listed.contains("./usr/bin/anabranch"),
        "{listed}"
    );
    let root = place.0.join("installed");
    output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
    runs(&root);
    // Equal content gives equal bytes.
    let first = fs::read(&package).unwrap();
    packages::deb(place.content(&tree), &place.0).unwrap();
    assert!(fs::read(&package).unwrap() == first, "the package is not reproducible");
}

#[test]
fn an_rpm_is_made_unpacked_and_run() {
    let place = Place::new("rpm");
    let tree = place.0.join("tree");
    let made = packages::rpm(place.content(&tree), &place.0).unwrap();
    let Some(package) = made else { return };
    let told = output(Command::new("rpm").args(["-qip", "--nosignature"]).arg(&package));
    assert!(told.contains("1.2.3") && told.contains("MIT OR Apache-2.0"), "{told}");
    let listed = output(Command::new("rpm").args(["-qlp", "--nosignature"]).arg(&package));
    assert!(listed.lines().any(|line| line == "/usr/bin/anabranch"), "{listed}");
    if !tools::answers("cpio") {
        return println!("not unpacked: cpio is not installed");
    }
    let root = place.0.join("installed");
    fs::create_dir_all(&root).unwrap();
    let unpack = "rpm2cpio \"$1\" | cpio --quiet -idm";
    output(Command::new("sh").current_dir(&root).args(["-c", unpack, "sh"]).arg(&package));
    runs(&root);
}

/// Every file below a directory.
fn files(below: &Path) -> Vec<String> {
    let listed = output(Command::new("find").arg(below).args(["-type", "f", "-printf", "%P\\n"]));
    let mut files: Vec<String> = listed.lines().map(str::to_owned).collect();
    files.sort();
    files
}

#[test]
fn an_installer_installs_renews_and_removes() {
    let place = Place::new("installer");
    let (tree, root) = (place.0.join("tree"), place.0.join("opt"));
    let unit = tree.join("lib/systemd/system/anabranch-serve@.service");
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    fs::write(&unit, "ExecStart=/usr/bin/anabranch serve\n").unwrap();
    let made = installer::make(place.content(&tree), &place.0).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new("sh");
        command.arg(&made).arg(format!("--prefix={}", root.join("usr").display())).args(args);
        command
    };
    // Files that were there before stay, and an earlier version's files go.
    let (own, old) = (root.join("usr/share/doc/own"), "share/doc/anabranch/OLD");
    fs::create_dir_all(root.join("usr/share/doc/anabranch")).unwrap();
    fs::write(&own, "").unwrap();
    fs::write(root.join("usr").join(old), "").unwrap();
    fs::write(root.join("usr/share/doc/anabranch/INSTALLED"), format!("{old}\n")).unwrap();
    for _ in 0..2 {
        let told = output(&mut run(&[]));
        assert!(told.starts_with("Installed anabranch 1.2.3 below /"), "{told}");
        assert!(told.contains("export PATH="), "{told}");
        runs(&root);
    }
    let mut expected = vec![
        "bin/anabranch",
        "share/doc/anabranch/INSTALLED",
        "share/doc/own",
        "share/man/man1/anabranch.1",
    ];
    let installed = root.join("usr/lib/systemd/system/anabranch-serve@.service");
    if let Ok(unit) = fs::read_to_string(installed) {
        // Only root's installation has the unit.
        expected.insert(1, "lib/systemd/system/anabranch-serve@.service");
        assert_eq!(unit, format!("ExecStart={}/usr/bin/anabranch serve\n", root.display()));
    }
    assert_eq!(files(&root.join("usr")), expected);
    output(&mut run(&["--uninstall"]));
    assert_eq!(files(&root), ["usr/share/doc/own"]);

    let told = |command: &mut Command| {
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = told(&mut run(&["--uninstall"]));
    assert!(code == Some(1) && error.starts_with("installer: nothing is installed"), "{error}");
    for wrong in [&["--prefx"][..], &["--prefix"], &["--prefix", ""], &["--prefix", "/a b"]] {
        let (code, error) = told(&mut run(wrong));
        assert!(code == Some(2) && error.lines().count() == 1, "{wrong:?}: {error}");
    }
    let mut bytes = fs::read(&made).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&made, bytes).unwrap();
    let (code, error) = told(&mut run(&[]));
    assert!(code == Some(1) && error.ends_with("is damaged: get it again\n"), "{error}");
    assert_eq!(files(&root), ["usr/share/doc/own"]);
}

#[test]
fn a_failed_renewal_removes_nothing_and_can_be_removed() {
    let place = Place::new("renewal");
    let (tree, prefix) = (place.0.join("tree"), place.0.join("opt"));
    let made = installer::make(place.content(&tree), &place.0).unwrap();
    let run = |options: &[&str]| {
        let mut command = Command::new("sh");
        command.arg(&made).arg("--prefix").arg(&prefix).args(options);
        command
    };
    let (old, list) = (prefix.join("share/OLD"), prefix.join("share/doc/anabranch/INSTALLED"));
    fs::create_dir_all(list.parent().unwrap()).unwrap();
    fs::write(&old, "").unwrap();
    fs::write(&list, "share/OLD\n").unwrap();
    // A file in place of a directory makes copying fail.
    fs::write(prefix.join("share/man"), "").unwrap();
    assert!(!run(&[]).output().unwrap().status.success());
    assert!(old.is_file() && prefix.join("bin/anabranch").is_file());
    output(&mut run(&["--uninstall"]));
    assert_eq!(files(&prefix), ["share/man"]);
}

#[test]
fn an_image_has_what_its_manifests_name() {
    let place = Place::new("image");
    let tree = place.0.join("tree");
    let made = image::make(place.content(&tree), &place.0).unwrap();
    let layout = place.0.join("unpacked");
    fs::create_dir_all(&layout).unwrap();
    output(Command::new("tar").current_dir(&layout).arg("-xf").arg(&made));
    let read = |path: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(layout.join(path)).unwrap()).unwrap()
    };
    let blob = |described: &serde_json::Value| {
        let digest = described["digest"].as_str().unwrap();
        let path = format!("blobs/{}", digest.replace(':', "/"));
        let sum = output(Command::new("sha256sum").arg(layout.join(&path)));
        assert_eq!(sum.split(' ').next(), digest.strip_prefix("sha256:"), "{path}");
        assert_eq!(
            fs::metadata(layout.join(&path)).unwrap().len(),
            described["size"].as_u64().unwrap()
        );
        path
    };
    let manifest = read(&blob(&read("index.json")["manifests"][0]));
    let config_path = blob(&manifest["config"]);
    let (config, layer) = (read(&config_path), blob(&manifest["layers"][0]));
    assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/anabranch");
    let old = read("manifest.json");
    assert_eq!(old[0]["Config"], config_path.as_str());
    assert_eq!(old[0]["Layers"][0], layer.as_str());
    let listed = output(Command::new("tar").arg("-tvf").arg(layout.join(&layer)));
    let program = listed.lines().find(|line| line.ends_with("usr/bin/anabranch"));
    assert!(program.is_some_and(|line| line.starts_with("-rwxr-xr-x 0/0")), "{listed}");
    let docker = Command::new("docker").arg("load").arg("-i").arg(&made).output();
    match docker {
        Ok(loaded) if loaded.status.success() => {
            output(Command::new("docker").args(["image", "rm", "anabranch:1.2.3"]));
        }
        Ok(loaded) => println!("not loaded: {}", String::from_utf8_lossy(&loaded.stderr).trim()),
        Err(error) => println!("not loaded: docker: {error}"),
    }
}
