//! Secrets are erased before the memory that held them is freed: all memory that is freed is
//! searched for them.
//!
//! Intermediate keys are recorded where they are made ([`learn`]), so that none is missed here. What is on the stack is
//! seen only by the test that copies it to the heap.

#[path = "../../../../core/tests/allocator/mod.rs"]
mod allocator;

use super::*;
use crate::tests::{Pair as Sockets, soon};
use crate::{Config, Permitted as May};
pub(in crate::crypto) use allocator::search::learn;
use allocator::search::left_by;
use anabranch_core::endpoint::{Endpoint, EndpointConfig};
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Pair, Sent};
use anabranch_core::wire::CloseCode;
use core::hint::black_box;
use core::mem::MaybeUninit;
use core::time::Duration;
use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use tokio::runtime::Builder;

/// The secrets of one test. Each test has its own, since a thread may get memory that still holds secrets of another
/// test, which must not be found here.
#[derive(Clone, Copy)]
struct Secrets(u8);

const OF_HELD: Secrets = Secrets(1);
const OF_MOVED: Secrets = Secrets(2);
const OF_CIPHER: Secrets = Secrets(3);
const OF_CONNECTION: Secrets = Secrets(4);
const OF_SOCKETS: Secrets = Secrets(5);
const OF_FILE: Secrets = Secrets(6);
const OF_STACK: Secrets = Secrets(7);

/// Pre-shared keys of this many peers besides the other end.
const OTHERS: u8 = 30;

impl Secrets {
    /// The key of this number, unlike any other.
    fn bytes(self, number: u8) -> [u8; 32] {
        core::array::from_fn(|at| {
            let at = at as u8;
            let mixed = at.wrapping_mul(73).wrapping_add(number.wrapping_mul(29)) ^ 0x5a;
            mixed ^ self.0.wrapping_mul(at | 1)
        })
    }

    /// The pre-shared keys of the end of this number: one with the other end, and one with each of [`OTHERS`] more
    /// peers.
    fn shared(self, number: u8) -> BTreeMap<PublicKey, PresharedKey> {
        let public = |number| SecretKey::from_bytes(self.bytes(number)).public_key();
        let others = (10..10 + OTHERS)
            .map(|other| (public(other), PresharedKey::from_bytes(self.bytes(other + 100))));
        others.chain([(public(3 - number), PresharedKey::from_bytes(self.bytes(200)))]).collect()
    }

    /// Every secret of both ends, with its name.
    fn known(self) -> Vec<(&'static str, Vec<u8>)> {
        apart(|| {
            let keys = [1, 2].map(|number| ("static key", self.bytes(number).to_vec()));
            let shared = (110..110 + OTHERS).chain([200]);
            keys.into_iter()
                .chain(shared.map(|number| ("pre-shared key", self.bytes(number).to_vec())))
                .collect()
        })
    }
}

#[test]
fn a_secret_that_is_not_erased_is_found() {
    let (name, secret) = ("a secret", OF_HELD.bytes(1));
    let (found, _) = left_by(&[(name, &secret)], || drop(black_box(Box::new(secret))));
    assert_eq!(found, [name]);
}

#[test]
fn a_secret_that_a_growing_buffer_leaves_behind_is_found() {
    let (name, secret) = ("a secret", OF_MOVED.bytes(1));
    let (found, _) = left_by(&[(name, &secret)], || {
        let mut buffer = black_box(secret.to_vec());
        buffer.reserve(1000);
        buffer.fill(0);
        drop(black_box(buffer));
    });
    assert_eq!(found, [name]);
}

/// A key expanded for the processor's AES instructions begins with the key itself, so that it can be searched for.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_packet_key_that_is_not_erased_is_found() {
    if !std::arch::is_x86_feature_detected!("aes") {
        return;
    }
    let (name, secret) = ("a key", OF_CIPHER.bytes(1));
    let (found, _) = left_by(&[(name, &secret)], || {
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &secret).unwrap());
        drop(black_box(Box::new(key)));
    });
    assert_eq!(found, [name]);
}

/// Makes something on another thread, so that the secrets in it leave no copies on the stack of this one. A value that
/// moves to the heap takes along what lies between its fields on the stack.
fn apart<T: Send>(make: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(make).join().unwrap())
}

/// Copies the stack below this frame to the heap and frees the copy, so that it is searched.
#[inline(never)]
fn free_copy_of_stack() {
    const LEN: usize = 24 << 10;
    drop(black_box(Box::new(black_box([const { MaybeUninit::<u8>::uninit() }; LEN]))));
}

#[test]
fn a_secret_that_is_left_on_the_stack_is_found() {
    let (name, secret) = ("a secret", OF_STACK.bytes(1));
    let (found, _) = left_by(&[(name, &secret)], || {
        #[inline(never)]
        fn leave(secret: &[u8; 32]) {
            black_box(*secret);
        }
        leave(&secret);
        free_copy_of_stack();
    });
    assert_eq!(found, [name]);
}

#[test]
fn nothing_secret_of_a_handshake_stays_on_the_stack() {
    let known = OF_STACK.known();
    let known: Vec<_> = known.iter().map(|(name, key)| (*name, key.as_slice())).collect();
    let (found, parts) = left_by(&known, || {
        let end = |number| NoiseCrypto::new(SecretKey::from_bytes(OF_STACK.bytes(number))).unwrap();
        let [mut client, mut server] = [1, 2].map(|number| apart(|| end(number)));
        let mut first = Vec::new();
        let mut initiator = client.initiate(&server.public_key(), b"", &mut first).unwrap();
        free_copy_of_stack();
        let accepted = server.accept(b"", &first).unwrap();
        free_copy_of_stack();
        let mut second = Vec::new();
        let mut server = accepted.responder.respond(b"", &mut second).unwrap();
        free_copy_of_stack();
        let (_, mut client) = initiator.finish(&second).unwrap();
        free_copy_of_stack();
        let first = client.rekey.ask().unwrap();
        free_copy_of_stack();
        let (second, _) = server.rekey.answer(&first).unwrap();
        free_copy_of_stack();
        client.rekey.finish(&second).unwrap();
        free_copy_of_stack();
    });
    assert!(found.is_empty(), "{found:?}");
    assert!(parts > 2 * (known.len() + 2 * 10), "{parts}");
}

/// Two endpoints connect, send each other bytes for seven minutes, in which their keys are renewed three times, close and
/// are dropped.
fn connect_renew_and_close() {
    let profile = Profile::named("anabranch").unwrap();
    let ends = [1, 2].map(|number| {
        let mut config = EndpointConfig::new(profile.clone());
        config.responder.permitted = Permitted::Anyone;
        config.transport.keepalive = Some(Duration::from_secs(5));
        let crypto = apart(|| {
            let crypto =
                NoiseCrypto::new(SecretKey::from_bytes(OF_CONNECTION.bytes(number))).unwrap();
            crypto.with_preshared(OF_CONNECTION.shared(number))
        });
        Endpoint::new(config, Box::new(crypto), Time::ZERO)
    });
    let network = |sent: &Sent<'_>| Some((sent.now + Duration::from_millis(10), sent.ecn));
    let mut pair = Pair::of(ends, &profile, network);
    pair.connect(2);
    let end = pair.now + Duration::from_secs(420);
    while pair.now < end {
        for side in 0..2 {
            pair.ends[side].unwritten = 1000;
        }
        pair.round(Duration::from_millis(100));
    }
    let renewals = pair.ends.each_mut().map(|end| end.connection().unwrap().stats().key_renewals);
    assert_eq!(renewals, [3, 3]);
    let now = pair.now;
    pair.ends[0].connection().unwrap().close(now, CloseCode::FIRST_APPLICATION.0, "");
    for _ in 0..100 {
        pair.round(Duration::from_millis(100));
    }
    assert!(pair.ends.iter().all(|end| end.closed.is_some()));
}

#[test]
fn nothing_secret_of_a_connection_stays_in_memory() {
    let known = OF_CONNECTION.known();
    let known: Vec<_> = known.iter().map(|(name, key)| (*name, key.as_slice())).collect();
    let (found, parts) = left_by(&known, connect_renew_and_close);
    assert!(found.is_empty(), "{found:?}");
    // Four handshakes, of which each side derives more than ten keys.
    assert!(parts > 2 * (known.len() + 4 * 2 * 10), "{parts}");
}

/// A connection over sockets, driven by tasks.
#[test]
fn nothing_secret_of_endpoints_on_sockets_stays_in_memory() {
    let known = OF_SOCKETS.known();
    let known: Vec<_> = known.iter().map(|(name, key)| (*name, key.as_slice())).collect();
    let (found, parts) = left_by(&known, || {
        let config = |number| {
            apart(|| {
                let mut config = Config::new(SecretKey::from_bytes(OF_SOCKETS.bytes(number)));
                config.preshared = OF_SOCKETS.shared(number);
                config.permitted = May::Anyone;
                config
            })
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let pair = Sockets::with(config(1), config(2));
            let (client, server) = soon(pair.connect()).await;
            client.close(0, "");
            soon(server.closed()).await;
            soon(pair.client.wait_idle()).await;
            soon(pair.server.wait_idle()).await;
            pair.server.set_preshared(BTreeMap::new());
        });
    });
    assert!(found.is_empty(), "{found:?}");
    assert!(parts > 2 * (known.len() + 2 * 10), "{parts}");
}

#[test]
fn nothing_of_a_key_that_is_written_and_read_stays_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    let text = SecretKey::from_bytes(OF_FILE.bytes(1)).to_base64();
    let known = [("key", &OF_FILE.bytes(1)[..]), ("text of a key", text.as_bytes())];
    let (found, _) = left_by(&known, || {
        SecretKey::from_bytes(OF_FILE.bytes(1)).save(&file, false).unwrap();
        // A growing list moves its elements.
        let mut keys = Vec::new();
        for _ in 0..20 {
            keys.push(SecretKey::load(&file).unwrap());
        }
        assert_eq!(keys[19].as_bytes(), &OF_FILE.bytes(1));
    });
    assert!(found.is_empty(), "{found:?}");
}
