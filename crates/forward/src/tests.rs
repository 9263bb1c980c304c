use super::wire::{Answer, HEAD_LEN, Head, Reason, Request, WireError};
use super::*;
use anabranch::{Config, Connection, Endpoint, Permitted, SecretKey};
use anabranch::{PathSpec, SendStream, StreamLimits, TrafficClass};
use core::time::Duration;
use proptest::prelude::*;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("within the time allowed")
}

#[test]
fn forwards_are_written_as_ssh_writes_them() {
    let read = |text: &str| text.parse::<Forward>().map(|forward| forward.to_string());
    assert_eq!(read("80:db:5432").unwrap(), "127.0.0.1:80 to db:5432");
    assert_eq!(read("*:80:[::1]:81").unwrap(), "0.0.0.0:80 to [::1]:81");
    assert_eq!(read("[::1]:0:h:1").unwrap(), "[::1]:0 to h:1");
    for wrong in ["", "80", "80:db", "80:db:0", "x:db:1", "1:2:3:4:5", "80::1", "65536:a:1"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    let read = |text: &str| text.parse::<Dynamic>().map(|dynamic| dynamic.to_string());
    assert_eq!(read("1080").unwrap(), "127.0.0.1:1080");
    assert_eq!(read("[::1]:0").unwrap(), "[::1]:0");
    assert_eq!(
        (read(":1").unwrap(), read("*:1").unwrap()),
        ("0.0.0.0:1".into(), "0.0.0.0:1".into())
    );
    for wrong in ["", ":", "a", "::1:1080", "65536", "1080:db:5432", "a b:1", "-1"] {
        assert!(read(wrong).unwrap_err().to_string().contains("0.0.0.0:1080"), "{wrong}");
    }
    for wrong in ["", "host", "host:0", "host:port", "a b:1", "::1:80"] {
        assert!(wrong.parse::<Target>().is_err(), "{wrong}");
    }
    let read = |text: &str| text.parse::<UdpForward>().map(|forward| forward.to_string());
    assert_eq!(read("53:[::1]:5353").unwrap(), "127.0.0.1:53 to [::1]:5353");
    assert_eq!(read("53:db:53,class=live").unwrap(), "127.0.0.1:53 to db:53, live");
    assert_eq!(read("53:db:53,class=bulk"), read("53:db:53"));
    for wrong in
        ["", "53", "53:db:0", "a.sock:db:53", "53:/run/a.sock", "53:db:53,live", "53:db:53,class="]
    {
        assert!(read(wrong).unwrap_err().to_string().contains("such as 5353:"), "{wrong}");
    }
}

#[test]
fn a_unix_socket_may_stand_for_either_side() {
    let read = |text: &str| text.parse::<Forward>().map(|forward| forward.to_string());
    assert_eq!(read("8080:/run/app.sock").unwrap(), "127.0.0.1:8080 to /run/app.sock");
    assert_eq!(read("*:0:b.socket").unwrap(), "0.0.0.0:0 to b.socket");
    assert_eq!(read("[::1]:80:./b").unwrap(), "[::1]:80 to ./b");
    assert_eq!(read("/run/a b/c:db:80").unwrap(), "/run/a b/c to db:80");
    assert_eq!(read("a.sock:[::1]:80").unwrap(), "a.sock to [::1]:80");
    assert_eq!(read("a.sock:b.sock").unwrap(), "a.sock to b.sock");
    let long = format!("80:/{}", "a".repeat(107));
    for wrong in [
        "a.sock",
        "a.sock:80",
        "app:b",
        "80:/",
        "80:/run/",
        "80:/run/../a",
        "80:/run/.",
        "127.0.0.1:a.sock:b.sock",
        "a.sock:80:b.sock",
        "80:b.sock:1",
        "80:/a\nb",
        "80:[/a]",
        "80:a.sock:",
        &long,
    ] {
        let text = read(wrong).unwrap_err().to_string();
        assert!(text.contains("8080:/run/app.sock"), "{text}");
    }
    assert!("/run/app.sock".parse::<Place>().is_ok() && "app.sock:1".parse::<Place>().is_ok());
    assert!("app".parse::<Place>().unwrap_err().to_string().contains("/run/app.sock"));
}

#[test]
fn sockets_are_permitted_by_path_and_by_directory_alone() {
    let covers = |permit: &str, path: &str| {
        permit.parse::<Permit>().unwrap().covers_socket(&SocketPath::new(path).unwrap())
    };
    for permit in ["any", "loopback", "none", "localhost:*"] {
        assert!(!covers(permit, "/run/app.sock"), "{permit}");
    }
    assert!(covers("/run/app.sock", "/run//./app.sock") && !covers("/run/app.sock", "/run/b.sock"));
    assert!(covers("/run/*", "/run/app.sock") && covers("./*", "app.sock"));
    assert!(!covers("/run/*", "/run/below/app.sock") && !covers("/run/*", "/run.sock"));
    // A permission for sockets does not cover a host.
    let target = "localhost:80".parse().unwrap();
    assert!(!"/run/*".parse::<Permit>().unwrap().covers(&target, ([127, 0, 0, 1], 80).into()));
    for text in ["/run/app.sock", "a.sock", "/run/a b/*"] {
        assert_eq!(text.parse::<Permit>().unwrap().to_string(), text);
    }
    for wrong in ["/*", "/", "/run/../*", "/run/app.sock:80"] {
        let error = wrong.parse::<Permit>().unwrap_err().to_string();
        assert!(error.contains("a path such as /run/app.sock"), "{error}");
    }
}

#[test]
fn permissions_cover_what_they_say() {
    let target = |text: &str| text.parse::<Target>().unwrap();
    let covers = |permit: &str, to: &str, address: &str| {
        let address = SocketAddr::new(address.parse().unwrap(), 1);
        permit.parse::<Permit>().unwrap().covers(&target(to), address)
    };
    assert!(covers("loopback", "localhost:22", "127.0.0.1"));
    assert!(covers("loopback", "localhost:22", "::ffff:127.0.0.1"));
    // The address decides: a name can be made to resolve to any address.
    assert!(!covers("loopback", "localhost:22", "192.0.2.1"));
    assert!(covers("any", "a:1", "192.0.2.1"));
    assert!(covers("db:5432", "DB:5432", "192.0.2.1") && !covers("db:5432", "db:1", "192.0.2.1"));
    assert!(covers("db:*", "db:1", "192.0.2.1") && !covers("db:*", "dc:1", "192.0.2.1"));
    // A SOCKS client has no way to write an address in the form that the permission has.
    assert!(covers("[2001:DB8:0::1]:80", "[2001:db8::1]:80", "2001:db8::1"));
    assert!(!covers("[2001:DB8:0::2]:80", "[2001:db8::1]:80", "2001:db8::1"));
    assert!(covers("loopback", "127.8.9.1:22", "127.8.9.1"));
    assert!(covers("loopback", "a.Localhost.:22", "127.0.0.1"));
    assert!(!covers("loopback", "localhost.example:22", "127.0.0.1"));
    assert!(!covers("none", "localhost:22", "127.0.0.1"));
    assert!("db".parse::<Permit>().is_err());
}

proptest! {
    #[test]
    fn messages_survive_and_garbage_is_told(
        host in "[a-z0-9.-]{1,255}",
        path in "/[a-z0-9 _@-]{1,50}/[a-zA-Z0-9,-]{1,50}",
        port: u16,
        garbage: Vec<u8>,
    ) {
        let port = port.max(1);
        let target = Target::new(&host, port).unwrap();
        let place = Place::Port(target.clone());
        let socket = Place::Socket(SocketPath::new(&path).unwrap());
        for request in [
            Request::Listen(place),
            Request::Datagrams(target.clone(), TrafficClass::Bulk),
            Request::Datagrams(target.clone(), TrafficClass::Live),
            Request::Datagrams(target.clone(), TrafficClass::Interactive),
            Request::Accepted(port),
            Request::Connect(socket.clone()),
            Request::Listen(socket),
        ] {
            let bytes = request.encode();
            let head = Head::decode(bytes[..HEAD_LEN].try_into().unwrap()).unwrap();
            prop_assert_eq!(Request::decode(head, &bytes[HEAD_LEN..]), Ok(request));
        }
        for answer in [Answer::Done { port, listener: 7 }, Answer::Refused(Reason::NoSuchHost, host.into())] {
            let bytes = answer.encode();
            let head = Head::decode(bytes[..HEAD_LEN].try_into().unwrap()).unwrap();
            prop_assert_eq!(Answer::decode(head, &bytes[HEAD_LEN..]), Ok(answer));
        }
        if let Some(head) = garbage.first_chunk() && let Ok(head) = Head::decode(*head) {
            let _ = Request::decode(head, &garbage[HEAD_LEN..]);
            let _ = Answer::decode(head, &garbage[HEAD_LEN..]);
        }
    }
}

#[test]
fn other_versions_are_told_apart_from_strangers() {
    let mut bytes: [u8; HEAD_LEN] = Request::Accepted(1).encode().try_into().unwrap();
    bytes[4] = 9;
    assert_eq!(Head::decode(bytes), Err(WireError::Version(9)));
    assert!(WireError::Version(9).to_string().contains("update this side"));
    bytes[0] = b'G';
    assert_eq!(Head::decode(bytes), Err(WireError::Magic));
    assert_eq!(Head::decode(*b"abfw\0\x01\0\0\xff\xff"), Err(WireError::Value));
}

pub(super) async fn connected() -> (Endpoint, Endpoint, Connection, Connection) {
    connected_with(StreamLimits::default()).await
}

/// Variant of [`connected`] in which the near side grants the far side these streams.
pub(super) async fn connected_with(
    streams: StreamLimits,
) -> (Endpoint, Endpoint, Connection, Connection) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let make = |permitted, streams| {
        let mut config = Config::new(SecretKey::generate().unwrap());
        (config.permitted, config.transport.streams) = (permitted, streams);
        Endpoint::bind(config, [any]).unwrap()
    };
    let client = make(Permitted::Nobody, streams);
    let server = make(Permitted::Anyone, StreamLimits::default());
    let path = PathSpec { local: client.local_addrs()[0], remote: server.local_addrs()[0] };
    let connecting = client.connect(server.public_key(), [path]);
    let (near, far) = soon(async {
        tokio::join!(connecting, async { server.accept().await.unwrap().await.unwrap() })
    })
    .await;
    (client, server, near.unwrap(), far)
}

pub(super) fn permits(connect: &[&str], listen: &[&str]) -> Arc<Permits> {
    let all = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Arc::new(Permits { connect: all(connect), listen: all(listen), ..Permits::default() })
}

#[tokio::test]
async fn to_listen_is_another_permission() {
    let listen = |permits: Arc<Permits>, bind: &'static str| async move {
        let (host, port) = bind.rsplit_once(':').unwrap();
        let bind = Target::new(host, port.parse().unwrap()).unwrap();
        permits.to_listen(&Place::Port(bind)).await.is_ok()
    };
    let connect_only = permits(&["loopback", "any"], &[]);
    assert!(!listen(connect_only, "127.0.0.1:8000").await);
    let loopback = permits(&[], &["loopback"]);
    for (bind, good) in [
        ("127.0.0.1:8000", true),
        ("localhost:0", true),
        ("127.0.0.1:80", false),
        ("0.0.0.0:8000", false),
        ("nosuch.invalid:8000", false),
    ] {
        assert_eq!(listen(loopback.clone(), bind).await, good, "{bind}");
    }
    assert!(listen(permits(&[], &["127.0.0.1:80"]), "127.0.0.1:80").await);
    assert!(listen(permits(&[], &["any"]), "0.0.0.0:80").await);
    let target = "127.0.0.1:8000".parse().unwrap();
    assert!(loopback.to_connect(&target).await.is_err());
}

pub(super) fn quiet() -> Arc<dyn Fn(ForwardEvent) + Send + Sync> {
    Arc::new(|_| {})
}

/// A TCP server that answers every connection with what it read, after its end.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut all = Vec::new();
                if tcp.read_to_end(&mut all).await.is_ok() {
                    let _ = tcp.write_all(&all).await;
                }
            });
        }
    });
    address
}

/// Sends bytes, ends its direction, and reads what comes back until the end.
async fn ask_echo(address: SocketAddr, bytes: Vec<u8>) -> Vec<u8> {
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(&bytes).await.unwrap();
    tcp.shutdown().await.unwrap();
    let mut back = Vec::new();
    tcp.read_to_end(&mut back).await.unwrap();
    back
}

#[tokio::test]
async fn local_forwards_carry_many_connections_and_half_closes() {
    let (_client, _server, near, far) = connected().await;
    let echo = echo().await;
    tokio::spawn(serve(far, permits(&["loopback"], &["loopback"]), Service::default(), quiet()));
    let link = Link::new(quiet());
    let forward: Forward = format!("0:127.0.0.1:{}", echo.port()).parse().unwrap();
    let listener = listen_here(&forward).await.unwrap();
    let address = listener.local().unwrap().to_string().parse().unwrap();
    tokio::spawn(listener.run(link.clone()));
    let carrying = link.clone();
    tokio::spawn(async move { carrying.carry(near).await });
    let asks = (0..8_usize).map(|n| ask_echo(address, vec![n as u8; 200_000 * n + 1]));
    let tasks: Vec<_> = asks.map(tokio::spawn).collect();
    for (n, task) in tasks.into_iter().enumerate() {
        assert_eq!(soon(task).await.unwrap(), vec![n as u8; 200_000 * n + 1]);
    }
}

#[tokio::test]
async fn remote_forwards_lead_back() {
    let (_client, _server, near, far) = connected().await;
    let echo = echo().await;
    let (told, mut addresses) = tokio::sync::mpsc::unbounded_channel();
    let tell = Arc::new(move |event| {
        if let ForwardEvent::Listening(place) = event {
            let _ = told.send(place.to_string().parse().unwrap());
        }
    });
    tokio::spawn(serve(far, permits(&["loopback"], &["loopback"]), Service::default(), tell));
    let link = Link::new(quiet());
    let forward: Forward = format!("0:127.0.0.1:{}", echo.port()).parse().unwrap();
    tokio::spawn(listen_there(link.clone(), forward));
    tokio::spawn(async move { link.carry(near).await });
    let address = soon(addresses.recv()).await.unwrap();
    assert_eq!(soon(ask_echo(address, b"there and back".to_vec())).await, b"there and back");
}

#[tokio::test]
async fn what_is_not_permitted_or_not_there_is_refused_with_the_reason() {
    let (_client, _server, near, far) = connected().await;
    tokio::spawn(serve(
        far,
        permits(&["127.0.0.1:9", "loopback", "nosuch.localhost.invalid:9"], &[]),
        Service::default(),
        quiet(),
    ));
    let link = Link::new(quiet());
    let carrying = link.clone();
    tokio::spawn(async move { carrying.carry(near).await });
    let refused = |target: &str| {
        let (link, target) = (link.clone(), target.parse::<Place>().unwrap());
        async move {
            let error = soon(link.open(&target)).await.unwrap_err();
            (error.kind(), error.to_string())
        }
    };
    let (kind, text) = refused("192.0.2.1:10").await;
    assert!(kind == ErrorKind::PermissionDenied && text.contains("--permit"), "{text}");
    // A name that may not be reached is not even resolved, since the query itself would tell its name server.
    assert!(refused("nosuch.invalid:10").await.1.contains("--permit"));
    let (kind, text) = refused("127.0.0.1:9").await;
    assert!(kind == ErrorKind::ConnectionRefused && text.contains("refused"), "{text}");
    assert_eq!(refused("nosuch.localhost.invalid:9").await.0, ErrorKind::NotFound);
}

#[tokio::test]
async fn a_reset_is_passed_on() {
    let (_client, _server, near, far) = connected().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(serve(far, permits(&["loopback"], &["loopback"]), Service::default(), quiet()));
    let link = Link::new(quiet());
    let carrying = link.clone();
    tokio::spawn(async move { carrying.carry(near).await });
    let target = Place::from(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let (mut send, mut receive) = soon(link.open(&target)).await.unwrap();
    let (tcp, _) = listener.accept().await.unwrap();
    socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO)).unwrap();
    drop(tcp);
    let mut byte = [0];
    let error = soon(receive.read(&mut byte)).await.unwrap_err();
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::ConnectionReset);
    // Writing works until the peer's stop arrives, and then fails.
    soon(write_until_refused(&mut send)).await;
}

async fn write_until_refused(send: &mut SendStream) {
    while send.write_all(&[0; 1000]).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
