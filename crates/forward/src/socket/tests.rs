use core::time::Duration;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{SocketError, SocketListener, dial};
use crate::tests::{connected, permits, quiet, soon};
use crate::{Link, Service, listen_here, serve};

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn why(error: &std::io::Error) -> SocketError {
    *error.get_ref().unwrap().downcast_ref().unwrap()
}

async fn refused(path: &Path) -> SocketError {
    why(&SocketListener::bind(path).await.unwrap_err())
}

#[tokio::test]
async fn a_socket_is_its_users_alone_and_goes_with_its_listener() {
    let directory = directory();
    let path = directory.path().join("a.sock");
    let listener = SocketListener::bind(&path).await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    let (near, far) = tokio::join!(dial(&path), listener.accept());
    near.unwrap().write_all(b"x").await.unwrap();
    assert_eq!(far.unwrap().read_u8().await.unwrap(), b'x');
    drop(listener);
    assert!(!path.exists());
}

#[tokio::test]
async fn what_is_left_behind_is_replaced_and_what_lives_stays() {
    let directory = directory();
    let path = directory.path().join("a.sock");
    // A stale socket: it is closed, but its file is there.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert_eq!(why(&dial(&path).await.unwrap_err()), SocketError::Refused);
    let listener = SocketListener::bind(&path).await.unwrap();
    assert_eq!(refused(&path).await, SocketError::InUse);
    // The probe does not appear as a connection.
    let asked = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(asked.is_err());
    assert!(dial(&path).await.is_ok() && listener.accept().await.is_ok());
    // Somebody else's socket, made after this one was taken away, is not removed with it.
    fs::remove_file(&path).unwrap();
    let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    drop(listener);
    assert_eq!(refused(&path).await, SocketError::InUse);
    drop(other);
}

#[tokio::test]
async fn files_and_links_are_not_removed_and_each_error_says_what_to_do() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("file"), "kept").unwrap();
    symlink(at("file"), at("link")).unwrap();
    for name in ["file", "link"] {
        assert_eq!(refused(&at(name)).await, SocketError::NoSocket);
    }
    assert_eq!(fs::read(at("file")).unwrap(), b"kept");
    assert_eq!(refused(&at("none/a.sock")).await, SocketError::NoDirectory);
    assert_eq!(refused(&at("file/a.sock")).await, SocketError::NoDirectory);
    assert_eq!(refused(&at(&"a".repeat(120))).await, SocketError::TooLong);
    for name in ["none.sock", "none/a.sock"] {
        assert_eq!(why(&dial(&at(name)).await.unwrap_err()), SocketError::Refused);
    }
    for error in [SocketError::NoSocket, SocketError::NoDirectory, SocketError::TooLong] {
        assert!(error.to_string().contains(": "), "{error}");
    }
}

/// Of many that find the same stale socket at once, one gets it, and its socket stays.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_one_gets_it() {
    let directory = directory();
    let path = directory.path().join("a.sock");
    for _ in 0..20 {
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                tokio::spawn(async move { SocketListener::bind(&path).await })
            })
            .collect();
        let mut bound = Vec::new();
        for task in tasks {
            bound.extend(task.await.unwrap().ok());
        }
        assert_eq!(bound.len(), 1);
        assert!(dial(&path).await.is_ok() && bound[0].accept().await.is_ok());
        drop(bound);
        assert!(!path.exists());
    }
}

/// A permitted directory stands for the sockets in it. A link in it counts as what it leads to.
#[tokio::test]
async fn a_link_out_of_a_permitted_directory_is_not_followed() {
    let (inside, outside) = (directory(), directory());
    let at = |name: &str| inside.path().join(name).to_str().unwrap().to_owned();
    let far = outside.path().join("far.sock");
    let _sockets = [
        SocketListener::bind(&far).await.unwrap(),
        SocketListener::bind(Path::new(&at("own.sock"))).await.unwrap(),
    ];
    symlink(&far, at("out.sock")).unwrap();
    symlink("own.sock", at("other.sock")).unwrap();
    symlink("/nowhere/at/all", at("lost.sock")).unwrap();
    symlink(outside.path(), at("below")).unwrap();
    let all = permits(&[&at("*")], &[]);
    for (name, permitted) in [
        ("own.sock", true),
        ("other.sock", true),
        ("missing.sock", true),
        ("out.sock", false),
        ("lost.sock", false),
        ("below/far.sock", false),
    ] {
        let led = all.to_connect(&at(name).parse().unwrap()).await;
        assert_eq!(led.is_ok(), permitted, "{name}: {led:?}");
    }
    // A socket that is permitted by name may be a link, and so may the permitted directory.
    let named = permits(&[&at("out.sock")], &[]);
    assert!(named.to_connect(&at("out.sock").parse().unwrap()).await.is_ok());
    symlink(inside.path(), outside.path().join("in")).unwrap();
    let linked = |name: &str| outside.path().join("in").join(name).to_str().unwrap().to_owned();
    let all = permits(&[&linked("*")], &[]);
    for (name, permitted) in [("own.sock", true), ("out.sock", false)] {
        let led = all.to_connect(&linked(name).parse().unwrap()).await;
        assert_eq!(led.is_ok(), permitted, "{name}: {led:?}");
    }
}

/// Both sides of a forward are sockets. A socket that is not permitted is refused, even if others
/// are permitted.
#[tokio::test]
async fn a_socket_leads_to_a_socket() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (_client, _server, near, far) = connected().await;
    let only = at("far.sock");
    tokio::spawn(serve(far, permits(&[&only, "any"], &[]), Service::default(), quiet()));
    let link = Link::new(quiet());
    let carrying = link.clone();
    tokio::spawn(async move { carrying.carry(near).await });
    let target = SocketListener::bind(Path::new(&only)).await.unwrap();
    let forward = format!("{}:{only}", at("near.sock")).parse().unwrap();
    let listener = listen_here(&forward).await.unwrap();
    assert_eq!(listener.local().unwrap().to_string(), at("near.sock"));
    tokio::spawn(listener.run(link.clone()));
    let bytes: Vec<u8> = (0..500_000_u32).map(|n| (n * 7) as u8).collect();
    let mut client = soon(dial(Path::new(&at("near.sock")))).await.unwrap();
    let mut server = soon(target.accept()).await.unwrap();
    let (mut read, mut write) = client.split();
    let sent = async {
        write.write_all(&bytes).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let echoed = async {
        let mut all = Vec::new();
        server.read_to_end(&mut all).await.unwrap();
        server.write_all(&all).await.unwrap();
        drop(server);
    };
    let back = read.read_to_end(&mut got);
    soon(async { tokio::join!(sent, echoed, back).2 }).await.unwrap();
    assert!(got == bytes);
    let refused = soon(link.open(&at("other.sock").parse().unwrap())).await.unwrap_err();
    assert!(refused.to_string().contains("--permit decides"), "{refused}");
    drop(target);
    let refused = soon(link.open(&only.parse().unwrap())).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert!(refused.to_string().contains("start the program"), "{refused}");
}

/// Tests nothing when run as root, who may use every socket.
#[tokio::test]
async fn who_may_not_is_told_so() {
    let directory = directory();
    let path = directory.path().join("a.sock");
    let listener = SocketListener::bind(&path).await.unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o500)).unwrap();
    if let Err(error) = dial(&path).await {
        assert_eq!(why(&error), SocketError::Forbidden);
        assert_eq!(refused(&path).await, SocketError::Foreign);
        assert_eq!(refused(&directory.path().join("b.sock")).await, SocketError::Denied);
    }
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
    drop(listener);
}
