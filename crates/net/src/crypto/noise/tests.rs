use super::*;
use proptest::prelude::*;
use snow::{Builder, HandshakeState};

const PSK_PLACE: u8 = 2;

/// Keys and payloads of both ends of a handshake.
#[derive(Clone, Debug)]
struct Ends {
    initiator: SecretKey,
    responder: SecretKey,
    preshared: [u8; 32],
    prologue: Vec<u8>,
    payloads: (Vec<u8>, Vec<u8>),
}

fn ends() -> impl Strategy<Value = Ends> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..80);
    let keys = any::<([u8; 32], [u8; 32], [u8; 32])>();
    (keys, bytes(), bytes(), bytes()).prop_map(|(keys, prologue, first, second)| Ends {
        initiator: SecretKey::from_bytes(keys.0),
        responder: SecretKey::from_bytes(keys.1),
        preshared: keys.2,
        prologue,
        payloads: (first, second),
    })
}

const PATTERNS: [Pattern; 2] = [Pattern::Ik, Pattern::Kk];

/// The `snow` implementation, as one of the ends.
fn snow(pattern: Pattern, ends: &Ends, is_initiator: bool) -> HandshakeState {
    let name = core::str::from_utf8(pattern.name()).unwrap();
    let (own, peer) = match is_initiator {
        true => (&ends.initiator, &ends.responder),
        false => (&ends.responder, &ends.initiator),
    };
    let peer = peer.public_key().0;
    let builder = Builder::new(name.parse().unwrap()).prologue(&ends.prologue).unwrap();
    let builder = builder.local_private_key(own.as_bytes()).unwrap();
    let mut builder = builder.psk(PSK_PLACE, &ends.preshared).unwrap();
    if is_initiator || pattern == Pattern::Kk {
        builder = builder.remote_public_key(&peer).unwrap();
    }
    if is_initiator { builder.build_initiator() } else { builder.build_responder() }.unwrap()
}

fn write(state: &mut HandshakeState, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 1000];
    let len = state.write_message(payload, &mut message).unwrap();
    message.truncate(len);
    message
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; 1000];
    let len = state.read_message(message, &mut payload).unwrap();
    payload.truncate(len);
    payload
}

fn start(pattern: Pattern, ends: &Ends, message: &mut Vec<u8>) -> Initiated {
    let peer = ends.responder.public_key();
    initiate(pattern, &ends.prologue, &ends.initiator, &peer, &ends.payloads.0, message).unwrap()
}

fn read_first(
    pattern: Pattern,
    ends: &Ends,
    message: &[u8],
) -> Result<(Received, Vec<u8>), CryptoError> {
    let peer = (pattern == Pattern::Kk).then(|| ends.initiator.public_key());
    receive(&ends.prologue, &ends.responder, peer, message)
}

fn check(finished: &Finished, state: &mut HandshakeState) {
    assert_eq!(finished.hash, state.get_handshake_hash());
    let (initiator, responder) = state.dangerously_get_raw_split();
    assert_eq!(*finished.initiator.as_bytes(), initiator);
    assert_eq!(*finished.responder.as_bytes(), responder);
}

proptest! {
    #[test]
    fn our_initiator_and_the_other_implementation_agree(ends in ends()) {
        for pattern in PATTERNS {
            let mut message = Vec::new();
            let initiated = start(pattern, &ends, &mut message);
            let mut state = snow(pattern, &ends, false);
            prop_assert_eq!(&read(&mut state, &message), &ends.payloads.0);
            let answer = write(&mut state, &ends.payloads.1);
            let (payload, finished) =
                initiated.finish(&ends.initiator, &ends.preshared, &answer).unwrap();
            prop_assert_eq!(&payload, &ends.payloads.1);
            check(&finished, &mut state);
        }
    }

    #[test]
    fn our_responder_and_the_other_implementation_agree(ends in ends()) {
        for pattern in PATTERNS {
            let mut state = snow(pattern, &ends, true);
            let message = write(&mut state, &ends.payloads.0);
            let (mut received, payload) = read_first(pattern, &ends, &message).unwrap();
            prop_assert_eq!(&payload, &ends.payloads.0);
            prop_assert_eq!(received.peer, ends.initiator.public_key());
            let mut answer = Vec::new();
            let finished =
                received.respond(&ends.preshared, &ends.payloads.1, &mut answer).unwrap();
            prop_assert_eq!(&read(&mut state, &answer), &ends.payloads.1);
            check(&finished, &mut state);
        }
    }

    #[test]
    fn no_other_key_prologue_or_byte_will_do(ends in ends(), flip in any::<(usize, u8)>()) {
        for pattern in PATTERNS {
            let mut message = Vec::new();
            let initiated = start(pattern, &ends, &mut message);
            let other = SecretKey::from_bytes([0x5a; 32]);
            let strangers = [
                Ends { responder: other.clone(), ..ends.clone() },
                Ends { prologue: [&ends.prologue[..], b"more"].concat(), ..ends.clone() },
            ];
            for stranger in &strangers {
                prop_assert!(read_first(pattern, stranger, &message).is_err());
            }
            let impostor = Ends { initiator: other.clone(), ..ends.clone() };
            if pattern == Pattern::Kk {
                prop_assert!(read_first(pattern, &impostor, &message).is_err());
            }
            let mut damaged = message.clone();
            damaged[flip.0 % message.len()] ^= flip.1 | 0x80 >> (flip.0 % 7);
            // X25519 ignores the highest bit of a public key, but it is part of the hash.
            prop_assert!(read_first(pattern, &ends, &damaged).is_err());
            let answered = |preshared| {
                let (mut received, _) = read_first(pattern, &ends, &message).unwrap();
                let mut answer = Vec::new();
                received.respond(preshared, b"", &mut answer).unwrap();
                answer
            };
            let answer = answered(&[1; 32]);
            prop_assert!(initiated.finish(&ends.initiator, &[2; 32], &answer).is_err());
            prop_assert!(initiated.finish(&other, &[1; 32], &answer).is_err());
            prop_assert!(initiated.finish(&ends.initiator, &[1; 32], &answer).is_ok());
        }
    }
}

/// A peer cannot choose the shared secret by a public key of low order.
#[test]
fn public_keys_of_low_order_are_refused() {
    let secret = SecretKey::from_bytes([3; 32]);
    let one = core::array::from_fn(|at| u8::from(at == 0));
    for low in [[0; 32], one] {
        assert!(agree(&secret, &low).is_err());
        let mut message = Vec::new();
        assert!(initiate(Pattern::Ik, b"", &secret, &PublicKey(low), b"", &mut message).is_err());
    }
}
