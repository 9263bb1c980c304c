//! Two senders that hold the same ticket and connect at the same time.

use super::process::Running;
use super::{Sides, text};

const BYTES: usize = 20_000_000;
const ROUNDS: usize = 4;

/// Both senders send a file of the same name and length, so that nothing but the bytes tells whose it is.
#[test]
fn of_two_who_come_with_one_ticket_one_wins_and_the_other_is_told_why() {
    for _ in 0..ROUNDS {
        let sides = Sides::new();
        let mut receiver = Running::start("recv --json --listen 127.0.0.1 --out", &[&sides.to()]);
        let (ticket, _) = receiver.ticket();
        let files = [b'a', b'b'].map(|byte| {
            let name = format!("{}/film", char::from(byte));
            sides.write(&name, &vec![byte; BYTES])
        });
        let senders = files
            .each_ref()
            .map(|file| Running::start(&format!("send {} {ticket}", text(file)), &[]));
        let [first, second] = senders.map(Running::end);
        receiver.end().succeeded();
        let (byte, loser) = if first.code == Some(0) { (b'a', second) } else { (b'b', first) };
        let why = loser.failed(1);
        assert!(why.contains("the ticket is in use"), "{why}");
        assert!(sides.arrived("film") == vec![byte; BYTES], "bytes of both, or of the loser");
        assert_eq!(sides.names(), ["film"]);
    }
}
