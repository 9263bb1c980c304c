//! Tests a server that announces addresses of third parties and then falls silent, so that its
//! client probes these addresses. The client must not send more than three times the bytes received
//! from the server to them.

use std::net::SocketAddr;

use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent};
use anabranch_types::Time;
use core::time::Duration;

const STEP: Duration = Duration::from_millis(1);
/// Bytes of IP and UDP headers.
const HEADERS: u64 = 28;

/// A path of 5 ms, on which the server's packets can be dropped.
#[derive(Default)]
struct Road {
    silent: bool,
    /// Bytes of payload received from the server.
    came: u64,
    /// Bytes (with headers) and number of datagrams sent to other addresses.
    strayed: u64,
    strays: u64,
}

impl Network for Road {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        if sent.side == 1 {
            if self.silent {
                return None;
            }
            self.came += sent.payload.len() as u64;
        }
        Some((sent.now + Duration::from_millis(5), sent.ecn))
    }

    fn stray(&mut self, sent: &Sent<'_>) {
        assert_eq!(sent.side, 0, "the server looks for its client at its own addresses");
        self.strayed += sent.payload.len() as u64 + HEADERS;
        self.strays += 1;
    }
}

fn run(pair: &mut Pair<Road>, millis: u32) {
    for _ in 0..millis {
        pair.round(STEP);
    }
}

#[test]
fn other_peoples_addresses_get_at_most_three_times_what_the_server_sent() {
    let mut pair = Pair::new(&Profile::named("anabranch").unwrap(), 1, Road::default());
    pair.ends[0].unwritten = 1000;
    run(&mut pair, 200);
    for round in 0..200_u32 {
        for host in 0..16 {
            let [_, _, high, low] = (round * 16 + host).to_be_bytes();
            let victim = SocketAddr::from(([192, 0, high, low], 53));
            assert!(pair.ends[1].connection().unwrap().announce_address(victim));
        }
        pair.network.silent = false;
        run(&mut pair, 20);
        pair.ends[0].unwritten = 1;
        pair.network.silent = true;
        run(&mut pair, 600);
    }
    let Road { came, strayed, strays, .. } = pair.network;
    assert!(strays > 10, "the test makes it look elsewhere");
    let most = 3 * came;
    assert!(strayed <= most, "{strayed} bytes in {strays} datagrams elsewhere, for {came}");
}
