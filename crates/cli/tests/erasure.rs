//! The text of a ticket that is kept, and that of its key, are erased before the memory that held them is given back.

#[path = "../../core/tests/allocator/mod.rs"]
mod allocator;

use allocator::search::left_by;
use anabranch::SecretKey;
use anabranch_cli::keep_and_take_up;
use anabranch_transfer::{Role, Ticket};

#[test]
fn nothing_of_a_kept_ticket_stays_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let key = SecretKey::generate().unwrap();
    let address = ([192, 0, 2, 1], 4433).into();
    let ticket = Ticket::new(Role::Takes, key.public_key(), 4_000_000_000, vec![address]).unwrap();
    let (text, text_of_key) = (ticket.to_text(), key.to_base64());
    let secrets = [
        // After the prefix, a byte and the public key.
        ("text of the ticket's secret", &text.as_bytes()[10 + 44..][..16]),
        ("text of the key", &text_of_key.as_bytes()[..32]),
    ];
    let (found, _) = left_by(&secrets, || {
        keep_and_take_up(directory.path(), &ticket, &key, &["recv", "send"]);
    });
    assert!(found.is_empty(), "{found:?}");
}
