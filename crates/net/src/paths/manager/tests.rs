use super::*;
use crate::tests::accepted;
use crate::{Config, Permitted, SecretKey, TrafficClass};
use std::net::Ipv4Addr;

const PATIENCE: Duration = Duration::from_secs(20);

fn endpoint(listen: &[SocketAddr]) -> Endpoint {
    let mut config = Config::new(SecretKey::generate().unwrap());
    config.permitted = Permitted::Anyone;
    Endpoint::bind(config, listen.iter().copied()).unwrap()
}

/// The ends of a connection that is being dialled.
async fn both(
    dialling: impl Future<Output = Result<Connection, ConnectError>>,
    server: &Endpoint,
) -> (Connection, Connection) {
    let ends = async { tokio::join!(dialling, accepted(server)) };
    let (near, far) = tokio::time::timeout(PATIENCE, ends).await.unwrap();
    (near.unwrap(), far)
}

fn requests(texts: &[&str]) -> Vec<PathRequest> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn open(connection: &Connection) -> Vec<PathId> {
    let stats = connection.stats().unwrap();
    let open = stats.paths.iter().filter(|path| path.state != PathState::Closed);
    open.map(|path| path.id).collect()
}

#[tokio::test]
async fn requested_paths_are_opened_and_opened_again() {
    let server = endpoint(&[SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]);
    let client = endpoint(&[]);
    // The last does not exist on this machine: it may come later.
    let wanted = requests(&["127.0.0.1", "127.0.0.1,backup", "192.0.2.77"]);
    let remote = server.local_addrs()[0];
    let dialling = client.connect(server.public_key(), (remote, wanted));
    let (connection, accepted) = both(dialling, &server).await;
    assert_eq!(open(&connection), [PathId(0), PathId(1)]);

    let exchange = async {
        let (mut send, _) = connection.open_bi(TrafficClass::Bulk).await.unwrap();
        send.write_all(&[7; 100_000]).await.unwrap();
        send.finish().unwrap();
        let (_, mut receive) = accepted.accept_bi().await.unwrap();
        receive.read_to_end(100_000).await.unwrap().len()
    };
    assert_eq!(tokio::time::timeout(PATIENCE, exchange).await.unwrap(), 100_000);
    let stats = connection.stats().unwrap();
    let sent = |id: u32| {
        stats.paths.iter().find(|path| path.id == PathId(id)).unwrap().counters.sent_bytes
    };
    assert!(sent(0) > 100_000 && sent(1) < 20_000, "{} {}", sent(0), sent(1));
}

#[tokio::test]
async fn a_metered_path_sends_nothing_while_another_works() {
    let server = endpoint(&[SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]);
    let client = endpoint(&[]);
    let wanted = requests(&["127.0.0.1,metered", "127.0.0.1"]);
    let remote = server.local_addrs()[0];
    let dialling = client.connect(server.public_key(), (remote, wanted));
    let (connection, _accepted) = both(dialling, &server).await;
    assert_eq!(open(&connection), [PathId(0)]);
}

#[test]
fn places_follow_the_interfaces() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let remote = "203.0.113.5:4433".parse().unwrap();
    let wanted = requests(&["wwan0,metered", "wlan0", "192.0.2.9"]);
    let manager = Manager::new(endpoint(&[]), remote, wanted);
    let interface = |name: &str, index, address: &str| Interface {
        name: name.into(),
        index,
        addresses: vec![address.parse().unwrap()],
        running: true,
        loopback: false,
    };
    let list = [
        interface("eth0", 2, "192.0.2.9"),
        interface("wlan0", 3, "192.0.2.10"),
        interface("wwan0", 4, "192.0.2.11"),
    ];
    let keys =
        |metered| -> Vec<Key> { manager.local_endpoints(&list, metered).into_keys().collect() };
    assert_eq!(keys(false), [(1, "wlan0".to_owned(), 0), (2, "eth0".to_owned(), 0)]);
    assert_eq!(keys(true).len(), 3);
    // An interface that is plugged in again has a new index, so its local endpoint is a new one.
    let again = [interface("wlan0", 7, "192.0.2.10")];
    assert_ne!(
        manager.local_endpoints(&list, false)[&(1, "wlan0".into(), 0)],
        manager.local_endpoints(&again, false)[&(1, "wlan0".into(), 0)]
    );
}

#[test]
fn of_several_destinations_those_worth_trying_are_chosen_as_interfaces_come() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let choice = ["192.0.2.9:5", "198.51.100.9:5", "10.9.9.9:5"].map(|text| text.parse().unwrap());
    let request = |local| PathRequest { choice: choice.to_vec(), ..PathRequest::from(local) };
    let by_name = LocalRequest::Interface("eth1".into());
    let manager = Manager::new(endpoint(&[]), choice[0], vec![request(by_name)]);
    let interface = |name: &str, address: &str| Interface {
        name: name.into(),
        index: 2,
        addresses: vec![address.parse().unwrap()],
        running: true,
        loopback: false,
    };
    let remotes = |list: &[Interface]| -> Vec<SocketAddr> {
        manager.local_endpoints(list, false).into_values().map(|from| from.remote).collect()
    };
    assert!(remotes(&[interface("eth0", "192.0.2.1")]).is_empty());
    assert_eq!(remotes(&[interface("eth1", "192.0.2.1")]), choice[..1], "a neighbour");
    assert_eq!(remotes(&[interface("eth1", "203.0.113.1")]), choice[..2], "public ones");
}

/// A path that is closed and opened again keeps its name and its counters, whatever number it has.
#[tokio::test]
async fn a_name_outlives_its_path() {
    use super::super::named::PathStatus;
    let server = endpoint(&[SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]);
    let client = endpoint(&[]);
    let wanted = requests(&["127.0.0.1", "127.0.0.1,name=lte,backup"]);
    let remote = server.local_addrs()[0];
    let dialling = client.connect(server.public_key(), (remote, wanted.clone()));
    let (connection, _accepted) = both(dialling, &server).await;
    let names = || -> Vec<(String, PathStatus, u64)> {
        let paths = connection.named_paths().into_iter();
        paths.map(|path| (path.name, path.status, path.stats.counters.sent_bytes)).collect()
    };
    let until = async |wanted: PathStatus| {
        while names()[1].1 != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, until(PathStatus::Backup)).await.unwrap();
    let before = names();
    assert_eq!((before[0].0.as_str(), before[1].0.as_str()), ("lo", "lte"));
    // The manager reopens only paths that it closed itself.
    let stats = connection.stats().unwrap();
    let lte = stats.paths.iter().find(|path| path.backup).unwrap();
    let local = connection.local_addr(lte.address.socket).unwrap();
    connection.remove_path(lte.id);
    assert_eq!(names()[1].1, PathStatus::Down);
    let again = connection.add_path(PathSpec { local, remote }).unwrap();
    let key = (1, "lo".to_owned(), 0);
    let from = LocalEndpoint {
        address: local.ip(),
        index: 1,
        device: None,
        remote,
        usage: PathUsage::Normal,
    };
    connection.name_path(again, naming(&wanted, &key, &from));
    tokio::time::timeout(PATIENCE, until(PathStatus::Up)).await.unwrap();
    let after = names();
    assert_ne!(again, lte.id);
    assert_eq!(after.len(), 2, "{after:?}");
    assert!(after[1].2 > before[1].2, "{before:?} {after:?}");
    assert_eq!(connection.path_name(again).as_deref(), Some("lte"));
}
