use proptest::prelude::*;

use super::fuzzing::{by_name, socks};
use super::message::{
    Asked, MAX_MESSAGE, Reply, SocksError, Step, datagram, datagram_head, greeting, request,
};
use crate::Target;

fn target(text: &str) -> Result<Step<Asked>, SocksError> {
    Ok(Step::Done(Asked::Connect(text.parse().unwrap())))
}

#[test]
fn a_greeting_is_good_if_no_password_is_needed() {
    assert_eq!(greeting(&[]), Ok(Step::More(2)));
    assert_eq!(greeting(&[5, 3, 2]), Ok(Step::More(2)));
    assert_eq!(greeting(&[5, 2, 2, 0]), Ok(Step::Done(())));
    assert_eq!(greeting(&[5, 2, 2, 1]), Err(SocksError::Method));
    assert_eq!(greeting(&[5, 0]), Err(SocksError::Method));
    assert_eq!(SocksError::Method.answer(), [5, 255]);
    assert_eq!(greeting(b"GET /"), Err(SocksError::Version(b'G')));
    assert!(SocksError::Version(b'G').answer().is_empty());
    assert!(greeting(&[4, 1]).unwrap_err().to_string().contains("--socks5-hostname"));
}

#[test]
fn a_request_names_its_target_in_three_ways() {
    assert_eq!(request(&[5, 1, 0, 1, 127, 0, 0, 1, 0x1f, 0x90]), target("127.0.0.1:8080"));
    let mut six = [&[5, 1, 0, 4][..], &[0x20, 1, 0xd, 0xb8], &[0; 11], &[1, 0, 80]].concat();
    assert_eq!(request(&six), target("[2001:db8::1]:80"));
    assert_eq!(request(b"\x05\x01\0\x03\x03abc\0\x50"), target("abc:80"));
    assert_eq!(request(b"\x05\x01\0\x03\x0fabcdefghijklmno\0\x50"), target("abcdefghijklmno:80"));
    // The reserved byte may be anything.
    assert_eq!(request(b"\x05\x01\x07\x03\x05[::1]\0\x50"), target("[::1]:80"));
    six.truncate(19);
    assert_eq!(request(&six), Ok(Step::More(3)));
    assert_eq!(request(&[5, 1, 0, 3]), Ok(Step::More(1)));
}

#[test]
fn other_requests_are_answered_with_their_number() {
    for (bytes, error, answer) in [
        (&[5, 2, 0, 1, 1, 1, 1, 1, 0, 80][..], SocksError::Command(2), 7),
        (&[5, 4, 0, 3, 1, b'a', 0, 80], SocksError::Command(4), 7),
        (&[5, 1, 0, 2], SocksError::AddressType(2), 8),
        (&[5, 1, 0, 3, 0, 0, 80], SocksError::Target, 4),
        (&[5, 1, 0, 3, 3, b'a', b' ', b'b', 0, 80], SocksError::Target, 4),
        (&[5, 1, 0, 3, 2, 0xc3, 0x28, 0, 80], SocksError::Target, 4),
        (&[5, 1, 0, 1, 1, 1, 1, 1, 0, 0], SocksError::Target, 4),
    ] {
        assert_eq!(request(bytes), Err(error));
        assert_eq!(error.answer(), [5, answer, 0, 1, 0, 0, 0, 0, 0, 0]);
    }
    // A command is judged when the whole request has come, so that the answer is not lost to a reset.
    assert_eq!(request(&[5, 2, 0, 1]), Ok(Step::More(6)));
}

#[test]
fn an_association_is_asked_for_with_or_without_an_address() {
    let asked = |bytes: &[u8]| request(bytes).unwrap();
    let associate =
        |address: Option<&str>| Step::Done(Asked::Associate(address.map(|it| it.parse().unwrap())));
    assert_eq!(asked(&[5, 3, 0, 1, 0, 0, 0, 0, 0, 0]), associate(Some("0.0.0.0:0")));
    assert_eq!(asked(&[5, 3, 0, 1, 10, 0, 0, 1, 0x1f, 0x90]), associate(Some("10.0.0.1:8080")));
    assert_eq!(asked(&[5, 3, 0, 3, 1, b'a', 0, 80]), associate(None));
    let local = "[::1]:8080".parse().unwrap();
    let reply = [&[5, 0, 0, 4][..], &[0; 15], &[1, 0x1f, 0x90]].concat();
    assert_eq!(Reply::Succeeded.encode_with(local), reply);
}

#[test]
fn a_datagram_says_where_it_shall_go() {
    let read = |bytes: &[u8]| datagram(bytes).map(|(to, what)| (to.to_string(), what.to_vec()));
    let good = |to: &str, what: &[u8]| Ok((to.to_owned(), what.to_vec()));
    assert_eq!(read(b"\0\0\0\x01\x7f\0\0\x01\0\x35ask"), good("127.0.0.1:53", b"ask"));
    assert_eq!(read(b"\x07\x07\0\x03\x03abc\0\x35"), good("abc:53", b""));
    let six = [&[0, 0, 0, 4, 0x20, 1, 0xd, 0xb8], &[0; 11][..], &[1, 0, 53, 9]].concat();
    assert_eq!(read(&six), good("[2001:db8::1]:53", &[9]));
    for (bytes, error) in [
        (&b""[..], SocksError::Short),
        (&[0, 0, 0, 1, 127, 0, 0, 1, 0], SocksError::Short),
        (&[0, 0, 0, 3], SocksError::Short),
        (&[0, 0, 0, 2, 1, 1], SocksError::AddressType(2)),
        (&[0, 0, 1, 1, 127, 0, 0, 1, 0, 53], SocksError::Fragment),
        (&[0, 0, 0x81, 1, 127, 0, 0, 1, 0, 53], SocksError::Fragment),
        (&[0, 0, 0, 1, 127, 0, 0, 1, 0, 0], SocksError::Target),
        (&[0, 0, 0, 3, 3, b'a', b' ', b'b', 0, 53], SocksError::Target),
    ] {
        assert_eq!(datagram(bytes), Err(error), "{bytes:?}");
        assert!(
            !matches!(error, SocksError::Short | SocksError::Fragment) || error.answer().is_empty()
        );
    }
    for to in ["127.0.0.1:53", "abc:53", "[2001:db8::1]:53"] {
        let head = datagram_head(&to.parse().unwrap());
        assert_eq!(read(&[&head, &b"x"[..]].concat()), good(to, b"x"));
    }
}

#[test]
fn a_failed_connection_has_its_reply() {
    use std::io::ErrorKind;
    for (kind, reply) in [
        (ErrorKind::PermissionDenied, Reply::NotAllowed),
        (ErrorKind::ConnectionRefused, Reply::Refused),
        (ErrorKind::HostUnreachable, Reply::HostUnreachable),
        (ErrorKind::NotFound, Reply::HostUnreachable),
        (ErrorKind::NetworkUnreachable, Reply::NetworkUnreachable),
        (ErrorKind::NotConnected, Reply::NetworkUnreachable),
        (ErrorKind::TimedOut, Reply::Failure),
    ] {
        assert_eq!(Reply::to_failed(&kind.into()), reply, "{kind:?}");
    }
}

/// Every cut of a message asks for more, and never for what is not the message's.
fn grows<T>(whole: &[u8], parse: impl Fn(&[u8]) -> Result<Step<T>, SocksError>) -> bool {
    (0..whole.len()).all(|cut| match parse(&whole[..cut]) {
        Ok(Step::More(count)) => count > 0 && cut + count <= whole.len(),
        _ => false,
    })
}

proptest! {
    #[test]
    fn bytes_of_any_kind_are_a_message_or_a_typed_error(bytes: Vec<u8>) {
        socks(&bytes);
        socks(&[&[5, 1, 0][..], &bytes].concat());
        socks(&[&[5, 1, 0, 5, 1, 0][..], &bytes].concat());
        socks(&[&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &bytes].concat());
    }

    #[test]
    fn messages_are_asked_for_to_their_end_and_no_further(
        methods in proptest::collection::vec(any::<u8>(), 0..255),
        host in "[a-z0-9.-]{1,255}",
        port in 1_u16..,
    ) {
        let hello = [&[5, methods.len() as u8 + 1, 0][..], &methods].concat();
        prop_assert!(grows(&hello, greeting) && greeting(&hello) == Ok(Step::Done(())));
        let target = Target::new(&host, port).unwrap();
        let whole = by_name(&target);
        prop_assert!(hello.len() <= MAX_MESSAGE && whole.len() <= MAX_MESSAGE);
        prop_assert!(grows(&whole, request));
        prop_assert_eq!(request(&whole), Ok(Step::Done(Asked::Connect(target))));
    }
}
