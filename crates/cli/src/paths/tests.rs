use anabranch::paths::PathUsage;

use super::*;

fn arg(text: &str) -> PathArg {
    text.parse().unwrap()
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn interface(name: &str, addresses: &[&str]) -> Interface {
    let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
    let loopback = name == "lo";
    Interface { name: name.to_owned(), index: 1, addresses, running: true, loopback }
}

#[test]
fn paths_are_written_as_documented() {
    assert_eq!(arg("wlan0").remote, None);
    assert_eq!(arg("wwan0,metered").request.usage, PathUsage::Metered);
    let full = arg("10.0.0.7@nas.example:9,backup");
    assert_eq!(full.remote.as_deref(), Some("nas.example:9"));
    assert_eq!(full.request.usage, PathUsage::Backup);
    for bad in ["", "@h:9", "wlan0@", "wlan0,fast", ",backup", "300.1.1.1"] {
        assert!(bad.parse::<PathArg>().is_err(), "{bad}");
    }
}

#[tokio::test]
async fn hosts_need_a_port() {
    for (host, port, expected) in [
        ("127.0.0.1:9", None, "127.0.0.1:9"),
        ("127.0.0.1", Some(7), "127.0.0.1:7"),
        ("[::1]", Some(7), "[::1]:7"),
        ("[::1]:8", Some(7), "[::1]:8"),
    ] {
        assert_eq!(resolve(host, port).await.unwrap(), [address(expected)]);
    }
    for bad in ["host", "host:", "host:0", "host:x", "host:65536", "::1"] {
        assert!(matches!(resolve(bad, None).await, Err(Failure::Usage(_))), "{bad}");
    }
}

#[tokio::test]
async fn paths_get_a_destination_of_their_family() {
    let remotes = ["127.0.0.1:9", "[::1]:9"].map(address);
    let paths = [arg("127.0.0.1"), arg("::1"), arg("lo@127.0.0.3,backup")];
    let route = to_addresses(&remotes, &paths).await.unwrap();
    let to: Vec<_> = route.requests.iter().map(|request| request.remote.unwrap()).collect();
    assert_eq!(to, [remotes[0], remotes[1], address("127.0.0.3:9")]);
    assert_eq!(route.requests[2].usage, PathUsage::Backup);
    assert!(to_addresses(&remotes[..1], &[arg("::1")]).await.is_err());
}

#[test]
fn this_machine_is_reached_through_itself() {
    let list = [interface("lo", &["127.0.0.1", "::1"]), interface("eth0", &["198.51.100.7"])];
    let local = |remote: &str| itself(&list, address(remote)).map(|request| request.local);
    let at = |ip: &str| Some(LocalRequest::Address(ip.parse().unwrap()));
    assert_eq!(local("127.0.0.5:9"), at("127.0.0.1"));
    assert_eq!(local("[::1]:9"), at("::1"));
    assert_eq!(local("198.51.100.7:9"), at("198.51.100.7"));
    assert_eq!(local("203.0.113.1:9"), None);
    let remotes = [address("203.0.113.1:9")];
    let nowhere = automatic(&list[..1], &remotes, remotes[0]);
    assert_eq!(nowhere.requests[0].local, LocalRequest::Any);
    assert_eq!(nowhere.requests[0].choice, remotes, "whichever interface comes");
}

#[test]
fn what_is_not_there_is_named() {
    let list = [interface("eth0", &["192.0.2.1"])];
    let requests = ["eth0", "wwan0", "192.0.2.1", "192.0.2.2", "wwan0"];
    let requests = requests.map(|text| text.parse().unwrap()).to_vec();
    let route = Route { remote: address("203.0.113.1:9"), requests };
    assert_eq!(route.missing(&list), ["wwan0", "192.0.2.2"]);
}

#[test]
fn listening_takes_addresses_and_interfaces() {
    assert_eq!(listening("127.0.0.1:9").unwrap(), [address("127.0.0.1:9")]);
    assert_eq!(listening("0.0.0.0").unwrap(), [address("0.0.0.0:0")]);
    assert_eq!(listening("::1").unwrap(), [address("[::1]:0")]);
    assert!(listening("lo:77").unwrap().contains(&address("127.0.0.1:77")));
    for bad in ["nosuch0", "lo:x", "256.1.1.1"] {
        assert!(listening(bad).unwrap_err().to_string().contains("lo"), "{bad}");
    }
}
