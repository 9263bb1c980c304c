//! A ticket's secret and its text are erased before the memory that held them is given back.

#[path = "../../core/tests/allocator/mod.rs"]
mod allocator;

use allocator::search::left_by;
use anabranch::SecretKey;
use anabranch_transfer::{Role, Ticket};
use base64::engine::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::net::{Ipv6Addr, SocketAddr};

/// A ticket with as many addresses as allowed, so that its text is as long as it can be.
fn ticket() -> Ticket {
    let address = |n| SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n), 4433));
    let key = SecretKey::from_bytes([9; 32]).public_key();
    Ticket::new(Role::Takes, key, 1_763_800_000, (1..=16).map(address).collect()).unwrap()
}

#[test]
fn nothing_of_a_ticket_stays_in_memory() {
    let ticket = ticket();
    let text = ticket.to_text();
    let (holder, preshared) = (ticket.holder(), ticket.preshared());
    // The secret follows the prefix, a byte and the public key.
    let text_of_secret = &text.as_bytes()[10 + 44..][..16];
    let bytes = URL_SAFE_NO_PAD.decode(&text[10..]).unwrap();
    let secret = &bytes[33..][..16];
    let secrets = [
        ("holder's key", &holder.as_bytes()[..]),
        ("pre-shared key", preshared.as_bytes()),
        ("secret", secret),
        ("text of the secret", text_of_secret),
    ];
    let (found, _) = left_by(&secrets, || {
        let again = Ticket::parse(&text).unwrap();
        assert_eq!(again.to_text(), text);
        // A growing list moves its elements.
        let (mut copies, mut keys) = (Vec::new(), Vec::new());
        for _ in 0..20 {
            copies.push(again.clone());
            keys.push((again.holder(), again.preshared()));
        }
        assert_eq!(keys[19].0.as_bytes(), holder.as_bytes());
    });
    assert!(found.is_empty(), "{found:?}");
}
