//! Limits per second on the work that unauthenticated senders can cause.

use super::*;

#[test]
fn a_flood_is_held_to_the_rate_and_asked_for_cookies() {
    let mut server = Server::open();
    let (mut accepted, mut cookies) = (0, 0);
    for stranger in 0..1000_u64 {
        let now = Time::from_millis(stranger / 10);
        let mut key = [0; 32];
        key[..8].copy_from_slice(&stranger.to_be_bytes());
        let bytes = Client::keyed(key, 100, now).send(WIFI, now);
        match server.receive(now, host(stranger as u16), &bytes, false) {
            Ok(reply) if Response::parse(&reply).is_ok() => accepted += 1,
            Ok(reply) => {
                CookieReply::parse(&reply).unwrap();
                cookies += 1;
            }
            Err(reason) => panic!("{reason:?}"),
        }
    }
    // 50 messages are accepted at once and 4 in 99 ms at 50/s; all others need a cookie.
    assert_eq!(accepted, 50 + 4);
    assert_eq!(accepted + cookies, 1000);
    assert_eq!(server.accepted.len(), accepted);
}

#[test]
fn cookies_are_held_to_a_rate() {
    let config = ResponderConfig { permitted: Permitted::Anyone, cookies: 7, ..Default::default() };
    let mut server = Server::new(config);
    let outcomes = (1..=9).map(|key| {
        let initiation = Client::new(key, 100, Time::ZERO).send(WIFI, Time::ZERO);
        server.receive(Time::ZERO, host(key.into()), &initiation, true).map(|_| ())
    });
    let [sent, refused] = [Ok(()), Err(DropReason::Rate)];
    assert_eq!(outcomes.collect::<Vec<_>>(), [[sent; 7].as_slice(), &[refused; 2]].concat());
}

#[test]
fn holders_of_cookies_are_held_to_the_rate_too() {
    let config =
        ResponderConfig { permitted: Permitted::Anyone, rate: 1, burst: 2, ..Default::default() };
    let mut server = Server::new(config);
    let mut outcomes = Vec::new();
    for key in 1..=4 {
        let mut client = Client::new(key, 100, Time::ZERO);
        let initiation = client.send(WIFI, Time::ZERO);
        let reply = server.receive(Time::ZERO, address(1), &initiation, true).unwrap();
        client.attempt.on_cookie_reply(&client.crypto, WIFI, Time::ZERO, &reply).unwrap();
        let proven = client.send(WIFI, Time::ZERO);
        outcomes.push(server.receive(Time::ZERO, address(1), &proven, true).map(|_| ()));
    }
    assert_eq!(outcomes, [Ok(()), Ok(()), Err(DropReason::Rate), Err(DropReason::Rate)]);
}

/// Beyond its allowance, a source needs a cookie, and with a cookie it only has the same allowance
/// again. Other sources are not affected.
#[test]
fn one_source_is_held_to_its_allowance() {
    let mut server = Server::open();
    let mut outcomes = [0; 3];
    for key in 1..=100 {
        let mut client = Client::new(key, 100, Time::ZERO);
        let initiation = client.send(WIFI, Time::ZERO);
        let mut outcome = server.receive(Time::ZERO, address(1), &initiation, false);
        if let Ok(reply) = &outcome
            && CookieReply::parse(reply).is_ok()
        {
            client.attempt.on_cookie_reply(&client.crypto, WIFI, Time::ZERO, reply).unwrap();
            let proven = client.send(WIFI, Time::ZERO);
            outcome = server.receive(Time::ZERO, address(1), &proven, false);
            outcomes[1] += usize::from(outcome.is_ok());
        } else {
            outcomes[0] += usize::from(outcome.is_ok());
        }
        outcomes[2] += usize::from(outcome == Err(DropReason::Source));
    }
    assert_eq!(outcomes, [20, 20, 60]);
    let initiation = Client::new(200, 100, Time::ZERO).send(WIFI, Time::ZERO);
    let answer = server.receive(Time::ZERO, host(2), &initiation, false).unwrap();
    Response::parse(&answer).unwrap();
}
