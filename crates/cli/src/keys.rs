//! `keygen`, `pubkey` and `genpsk`: keys as text, as `wg` writes them.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use anabranch::crypto::keys::{KeyError, SecretKey};
use anabranch::{PresharedKey, PublicKey};
use serde::Serialize;

use crate::args::{GenpskArgs, KeygenArgs, PubkeyArgs};
use crate::failure::Failure;
use crate::output;

/// Longest input that is read as a key, bytes; a key with blank space around it is far shorter.
const MAX_INPUT: u64 = 1024;

#[derive(Serialize)]
struct Keys<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_key: Option<&'a str>,
    public_key: &'a str,
}

#[derive(Serialize)]
struct Preshared<'a> {
    preshared_key: &'a str,
}

/// Reads this machine's secret key from a file.
pub fn load(path: &Path) -> Result<SecretKey, Failure> {
    SecretKey::load(path)
        .map_err(|error| unusable(path, &error, "; `anabranch keygen --out FILE` makes a key"))
}

/// Reads a secret that is shared with a peer from a file.
pub fn load_preshared(path: &Path) -> Result<PresharedKey, Failure> {
    let advice = "; `anabranch genpsk --out FILE` makes a secret for both machines";
    PresharedKey::load(path).map_err(|error| unusable(path, &error, advice))
}

/// The failure for a key file that cannot be used. If it does not exist or is a directory, the usage is wrong.
fn unusable(path: &Path, error: &KeyError, advice: &str) -> Failure {
    let text = format!("{}: {error}{advice}", path.display());
    match error {
        KeyError::Io(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) =>
        {
            Failure::usage(text)
        }
        _ => Failure::failed(text),
    }
}

/// The secret in `file`, if one is named, for each of `peers`.
pub fn shared_with(
    peers: &[PublicKey],
    file: Option<&Path>,
) -> Result<BTreeMap<PublicKey, PresharedKey>, Failure> {
    let Some(file) = file else { return Ok(BTreeMap::new()) };
    let secret = load_preshared(file)?;
    Ok(peers.iter().map(|peer| (*peer, secret.clone())).collect())
}

/// Makes a secret for two peers; prints or saves it.
pub fn genpsk(args: &GenpskArgs) -> Result<(), Failure> {
    let key = PresharedKey::generate().map_err(Failure::failed)?;
    if let Some(path) = &args.out {
        return key.save(path, args.force).map_err(|error| not_saved(path, error));
    }
    let text = key.to_base64();
    if args.json {
        return output::print_json(&Preshared { preshared_key: &text });
    }
    output::print(&format!("{}\n", &*text))
}

fn not_saved(path: &Path, error: KeyError) -> Failure {
    match error {
        KeyError::Exists => Failure::failed(format!(
            "{} exists already; name another file, or give --force to replace it",
            path.display()
        )),
        KeyError::Io(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            let directory = path.parent().unwrap_or(Path::new(".")).display();
            Failure::usage(format!(
                "cannot write {}: {directory} is no directory; make it with mkdir -p, or name another file",
                path.display()
            ))
        }
        error => Failure::cannot_write(path, error),
    }
}

/// Makes a secret key; prints it, or saves it and prints the public one.
pub fn keygen(args: &KeygenArgs) -> Result<(), Failure> {
    let key = SecretKey::generate().map_err(Failure::failed)?;
    let public = key.public_key().to_string();
    if let Some(path) = &args.out {
        key.save(path, args.force).map_err(|error| not_saved(path, error))?;
        return print_keys(args.json, None, &public);
    }
    let secret = key.to_base64();
    print_keys(args.json, Some(&secret), &public)
}

/// Prints the public key of a secret one, read from a file or standard input.
pub fn pubkey(args: &PubkeyArgs) -> Result<(), Failure> {
    let key =
        match &args.file {
            Some(path) if path != Path::new("-") => {
                SecretKey::load(path).map_err(|error| unusable(path, &error, ""))?
            }
            _ => {
                let mut text = String::new();
                io::stdin().lock().take(MAX_INPUT).read_to_string(&mut text).map_err(|error| {
                    Failure::failed(format!("cannot read standard input: {error}"))
                })?;
                text.parse::<SecretKey>()
                    .map_err(|error| Failure::failed(format!("standard input: {error}")))?
            }
        };
    print_keys(args.json, None, &key.public_key().to_string())
}

/// Text holds the secret key if there is one, else the public one; JSON holds both.
fn print_keys(json: bool, secret: Option<&str>, public: &str) -> Result<(), Failure> {
    if json {
        return output::print_json(&Keys { secret_key: secret, public_key: public });
    }
    output::print(&format!("{}\n", secret.unwrap_or(public)))
}
