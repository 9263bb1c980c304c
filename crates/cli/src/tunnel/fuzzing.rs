//! Body of the fuzz target for configuration files, and seeds for it; see `fuzz/README.md`.

use std::ffi::OsString;
use std::fmt::{Debug, Display};

use anabranch_core::wire::fuzzing::with_mutants;
use anabranch_forward::{Forward, Permit, UdpForward};
use clap::{Args, FromArgMatches};

use super::args::{ConnectArgs, ServeArgs};
use super::config::{connect, serve};
use super::file::{File, Peer, Text, parse};
use crate::failure::Failure;
use crate::values::Memory;

/// Reads a configuration file. Checks that an error names a place in the text, and that what is accepted
/// means the same as the corresponding options.
pub fn config(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let file = match parse(text) {
        Ok(file) => file,
        Err(why) => return check_place(text, &why),
    };
    if file.interface.private_key_file.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
        return; // options cannot express this
    }
    // Options give all peers the same permits: one peer at a time.
    for peer in &file.peers {
        let file = File { peers: vec![peer.clone()], ..file.clone() };
        let options = parsed::<ServeArgs>(serve_options(&file));
        same(serve(&parsed([].into()), file.clone()), serve(&options, File::default()));
        let options = parsed::<ConnectArgs>(connect_options(&file));
        same(connect(&parsed([].into()), file), connect(&options, File::default()));
    }
    if let Ok(settings) = serve(&parsed([].into()), file) {
        assert!(!settings.listen.is_empty() && !settings.peers.is_empty());
        assert!(settings.peers.iter().all(|(_, permits)| !permits.connect.is_empty()));
    }
}

/// `:LINE:COLUMN: ` at the beginning of `why` is a place of `text`, or just after its end.
fn check_place(text: &str, why: &str) {
    let mut parts = why.splitn(4, ':').skip(1).map(str::trim);
    let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok());
    let (line, column) = (number().expect("a line"), number().expect("a column"));
    assert!(!parts.next().expect("a reason").is_empty(), "{why}");
    let found = text.split('\n').nth(line.wrapping_sub(1)).expect("a line of the text");
    assert!((1..=found.chars().count() + 1).contains(&column), "{why}");
}

fn same<T: Debug>(by_file: Result<T, Failure>, by_options: Result<T, Failure>) {
    assert_eq!(format!("{by_file:?}"), format!("{by_options:?}"));
}

/// The command's arguments, as the program reads these options.
pub(super) fn parsed<T: Args + FromArgMatches>(options: Vec<OsString>) -> T {
    let command = T::augment_args(clap::Command::new("fuzzed").no_binary_name(true));
    let matches = command.try_get_matches_from(options);
    let matches = matches.unwrap_or_else(|error| panic!("what a file may say: {error}"));
    T::from_arg_matches(&matches).unwrap_or_else(|error| panic!("{error}"))
}

fn option(name: &str, value: impl Display) -> OsString {
    format!("{name}={value}").into()
}

fn common_options(File { interface, peers, .. }: &File) -> Vec<OsString> {
    let mut options = Vec::new();
    options.extend(interface.private_key_file.iter().map(|file| option("--key", file.display())));
    options.extend(interface.metrics.iter().map(|address| option("--metrics", address)));
    options.extend(interface.max_forwarded.iter().map(|most| option("--max-forwarded", most)));
    let memory = interface.max_memory.iter();
    options.extend(
        memory.map(|Text(Memory(size))| option("--max-memory", format!("{}B", size.as_bytes()))),
    );
    let keepalive = peers.iter().find_map(|peer| peer.persistent_keepalive);
    options.extend(keepalive.map(|seconds| option("--persistent-keepalive", seconds)));
    options.extend(interface.profile.iter().map(|profile| option("--profile", &profile.name)));
    options
}

fn serve_options(file: &File) -> Vec<OsString> {
    let mut options = common_options(file);
    options.extend(file.interface.listen.iter().map(|address| option("--listen", address)));
    let announce = file.interface.announce.iter();
    options.extend(announce.map(|Text(address)| option("--announce", address)));
    for Peer { public_key, permit, permit_listen, permit_udp, .. } in &file.peers {
        options.push(option("--allow", public_key.to_string()));
        options.extend(permit.iter().map(|Text(permit)| option("--permit", permit)));
        let listen = |Text(permit): &Text<Permit>| option("--permit-listen", permit);
        options.extend(permit_listen.iter().map(listen));
        let udp = |Text(permit): &Text<Permit>| option("--permit-udp", permit);
        options.extend(permit_udp.iter().map(udp));
    }
    options
}

fn connect_options(file: &File) -> Vec<OsString> {
    let mut options = common_options(file);
    options.extend(file.paths.iter().map(|path| option("--path", &path.0)));
    for peer in &file.peers {
        let Peer { public_key, endpoint, local_forward, remote_forward, udp_forward, .. } = peer;
        options.push(option("--peer", public_key.to_string()));
        let forward = |name, Text(Forward { bind, target }): &Text<Forward>| {
            option(name, format_args!("{bind}:{target}"))
        };
        let udp = |Text(UdpForward { bind, target, class }): &Text<UdpForward>| {
            option("-U", format_args!("{bind}:{target},class={}", class.name()))
        };
        options.extend(local_forward.iter().map(|it| forward("-L", it)));
        options.extend(remote_forward.iter().map(|it| forward("-R", it)));
        options.extend(udp_forward.iter().map(udp));
        options.extend(peer.dynamic_forward.iter().map(|Text(it)| option("-D", it)));
        if let Some(Text(endpoint)) = endpoint {
            options.extend(["--".into(), endpoint.to_string().into()]);
        }
    }
    options
}

/// Inputs for [`config`].
pub fn config_seeds() -> Vec<Vec<u8>> {
    let key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    let other = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let peer = format!("[[peer]]\npublic-key = \"{key}\"\n");
    with_mutants(
        [
            format!(
                "[interface]\nprivate-key-file = \"a.key\"\nlisten = [\"0.0.0.0:4433\", \"[::1]:1\"]\n\
                 announce = [\"192.0.2.7\", \"[2001:db8::7]:443\"]\n\
                 metrics = \"127.0.0.1:9469\"\nmax-forwarded = 9\nmax-memory = \"2GB\"\nprofile = \"uncoded\"\n{peer}\
                 permit = [\"loopback\", \"any\", \"db.internal:5432\", \"[2001:db8::1]:*\"]\n\
                 [[peer]]\npublic-key = \"{other}\"\n"
            ),
            format!(
                "[interface]\nprivate-key-file = \"a.key\"\n{peer}endpoint = \"home.example:4433\"\n\
                 persistent-keepalive = 0\nlocal-forward = [\"5432:db:5432\", \"*:80:[::1]:80\"]\n\
                 remote-forward = [\"0:localhost:22\"]\ndynamic-forward = [\"1080\", \"[::1]:0\"]\n\
                 udp-forward = [\"53:[::1]:53\"]\n[[path]]\nlocal = \"wlan0\"\n\
                 [[path]]\nlocal = \"192.0.2.7\"\nremote = \"other.example\"\nusage = \"metered\"\n"
            ),
            format!(
                "{peer}permit = [\"/run/app.sock\", \"sockets/*\"]\npermit-listen = [\"a.sock\"]\n\
                 local-forward = [\"8080:/run/app.sock\", \"a.sock:b.sock\", \"./a:h:1\"]\n\
                 remote-forward = [\"*:80:/a b/c\"]\nendpoint = \"h:1\"\n"
            ),
            format!("{peer}endpoint = \"-x:1\"\npermit = [\"=:2\", \"-:*\", \"none\"]\npermit-listen = [\"loopback\", \"-:1\"]\npermit-udp = [\"any\"]\n"),
            "interface = { listen = ['127.0.0.1:1'] }\npeer = []".to_owned(),
        ]
        .map(String::into_bytes)
        .into(),
    )
}
