//! Body and seeds of the fuzz target for messages of SOCKS clients; see `fuzz/README.md`.

use core::net::IpAddr;

use anabranch_core::wire::fuzzing::with_mutants;

use super::super::target::Target;
use super::message::{
    Asked, MAX_MESSAGE, SocksError, Step, datagram, datagram_head, greeting, request,
};

/// Reads what a client sends, in steps as from a socket: a greeting, then a request. No message exceeds the longest,
/// every step asks for at least a byte, and an accepted target can be asked for by its name. After the request of an
/// association comes a datagram; an answer with its target and its payload reads back as the same target and payload.
pub fn socks(data: &[u8]) {
    let Some((Ok(()), rest)) = fed(data, greeting) else { return };
    let Some((Ok(asked), rest)) = fed(rest, request) else { return };
    match asked {
        Asked::Connect(target) => {
            check(&target);
            assert_eq!(request(&by_name(&target)), Ok(Step::Done(Asked::Connect(target))));
        }
        Asked::Associate(_) => check_datagram(rest),
    }
}

fn check(target: &Target) {
    assert!(target.port != 0);
    assert_eq!(Target::new(&target.host, target.port).as_ref(), Some(target));
}

fn check_datagram(data: &[u8]) {
    let Ok((target, payload)) = datagram(data) else { return };
    check(&target);
    assert!(data.ends_with(payload) && data[2] == 0);
    let answer = [&datagram_head(&target), payload].concat();
    let Ok((again, same)) = datagram(&answer) else { panic!("{target} has no head") };
    assert!(same == payload && again.port == target.port);
    // An address that was written as a name comes back in its usual form.
    let address = |target: &Target| target.host.parse::<IpAddr>().ok();
    assert!(again == target || address(&again).is_some() && address(&again) == address(&target));
}

/// The message at the beginning of `data` and what follows it; nothing if `data` ends before.
fn fed<T: PartialEq + core::fmt::Debug>(
    data: &[u8],
    parse: impl Fn(&[u8]) -> Result<Step<T>, SocksError>,
) -> Option<(Result<T, SocksError>, &[u8])> {
    let mut len = 0;
    loop {
        let (message, rest) = data.split_at_checked(len)?;
        match parse(message) {
            Ok(Step::More(count)) => {
                assert!(count > 0 && len + count <= MAX_MESSAGE, "{count} after {len}");
                len += count;
            }
            Ok(Step::Done(value)) => {
                // Bytes that follow a message do not change it.
                let whole = parse(data);
                assert_eq!(whole.as_ref(), Ok(&Step::Done(value)));
                let Ok(Step::Done(value)) = whole else { return None };
                return Some((Ok(value), rest));
            }
            Err(error) => return Some((Err(error), rest)),
        }
    }
}

/// The request of a client that names its target.
pub(super) fn by_name(Target { host, port }: &Target) -> Vec<u8> {
    let length = u8::try_from(host.len()).expect("a host has at most 255 bytes");
    [&[5, 1, 0, 3, length], host.as_bytes(), &port.to_be_bytes()].concat()
}

/// Inputs for [`socks`].
pub fn socks_seeds() -> Vec<Vec<u8>> {
    let greeting = [5, 2, 0, 2].as_slice();
    let long = "n".repeat(255);
    let names = ["localhost", "[::1]", "192.0.2.7", "a b", &long];
    let named = names.map(|host| by_name(&Target { host: host.to_owned(), port: 443 }));
    let plain = [
        [&[5, 1, 0, 1, 127, 0, 0, 1][..], &[0, 80]].concat(),
        [&[5, 1, 0, 4][..], &[0; 15], &[1, 0, 80]].concat(),
        vec![5, 3, 0, 1, 0, 0, 0, 0, 0, 0],
        vec![5, 1, 0, 9, 0],
        vec![5, 1, 0, 3, 0, 0, 80],
    ];
    // Associations, each with a datagram.
    let associate = [5, 3, 0, 1, 0, 0, 0, 0, 0, 0].as_slice();
    let datagrams = [
        [&[0, 0, 0, 1, 127, 0, 0, 1, 0, 53][..], b"four"].concat(),
        [&[0, 0, 0, 4][..], &[0; 15], &[1, 0, 53], b"six"].concat(),
        [&[0, 0, 0, 3, 9][..], b"localhost", &[0, 53], b"name"].concat(),
        [&[0, 0, 0, 3, 4][..], b"0::1", &[0, 53]].concat(),
        [&[0, 0, 1, 1, 127, 0, 0, 1, 0, 53][..], b"part"].concat(),
        vec![0, 0, 0, 3, 0, 0, 53],
    ];
    let associated = datagrams.map(|datagram| [associate, &datagram].concat());
    let mut seeds: Vec<Vec<u8>> = named
        .into_iter()
        .chain(associated)
        .chain(plain)
        .map(|request| [greeting, &request].concat())
        .collect();
    seeds.extend([b"GET / HTTP/1.1\r\n\r\n".to_vec(), b"\x04\x01\0P\0\0\0\x01\0a\0".to_vec()]);
    with_mutants(seeds)
}
