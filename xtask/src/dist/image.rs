//! A container image with nothing but the static program, made without a daemon.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::packages::Content;
use super::{copy, failed, tools, write};
use crate::process;

/// Makes the image as a tar file in `out`, in the layout of the Open Container Initiative and, for older versions of
/// docker, with the manifest that `docker load` reads.
///
/// # Errors
/// If it cannot be made.
pub fn make(content: Content<'_>, out: &Path) -> Result<PathBuf, String> {
    let Content { tree, version, time } = content;
    let work = out.join("image");
    if work.exists() {
        fs::remove_dir_all(&work).map_err(|error| failed(&work, &error))?;
    }
    let (root, layout) = (work.join("root"), work.join("layout"));
    copy(&tree.join("bin/anabranch"), &root.join("usr/bin/anabranch"))?;
    let layer_file = work.join("layer.tar");
    tools::tar(&root, "usr", &layer_file, time)?;
    let layer = blob(&layout, &layer_file)?;
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/anabranch"],
            "User": "65534:65534",
            "ExposedPorts": { "4433/udp": {} },
            "Labels": {
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
    });
    let config = text(&work, &layout, &config)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.described("application/vnd.oci.image.config.v1+json"),
        "layers": [layer.described("application/vnd.oci.image.layer.v1.tar")],
    });
    let manifest = text(&work, &layout, &manifest)?;
    let tag = format!("anabranch:{version}");
    let mut described = manifest.described("application/vnd.oci.image.manifest.v1+json");
    described["annotations"] =
        json!({ "io.containerd.image.name": tag, "org.opencontainers.image.ref.name": version });
    let index = json!({ "schemaVersion": 2, "manifests": [described] });
    write(&layout.join("index.json"), &index.to_string())?;
    write(&layout.join("oci-layout"), &json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
    let old = json!([{ "Config": config.path(), "RepoTags": [tag], "Layers": [layer.path()] }]);
    write(&layout.join("manifest.json"), &old.to_string())?;
    let image = out.join(format!("anabranch-{version}-image.tar"));
    tools::tar(&layout, ".", &image, time)?;
    Ok(image)
}

/// A file that is named by its content.
struct Blob {
    /// `sha256:` and the sum.
    digest: String,
    size: u64,
}

impl Blob {
    fn path(&self) -> String {
        format!("blobs/{}", self.digest.replace(':', "/"))
    }

    fn described(&self, kind: &str) -> Value {
        json!({ "mediaType": kind, "digest": self.digest, "size": self.size })
    }
}

fn blob(layout: &Path, file: &Path) -> Result<Blob, String> {
    let sum = process::capture(Command::new("sha256sum").arg(file))?;
    let sum = sum.split_whitespace().next().unwrap_or_default();
    let size = fs::metadata(file).map_err(|error| failed(file, &error))?.len();
    let blob = Blob { digest: format!("sha256:{sum}"), size };
    copy(file, &layout.join(blob.path()))?;
    Ok(blob)
}

fn text(work: &Path, layout: &Path, value: &Value) -> Result<Blob, String> {
    let file = work.join("blob.json");
    write(&file, &value.to_string())?;
    blob(layout, &file)
}
