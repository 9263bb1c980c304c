//! One stream over loopback UDP, both ends in this process.

use anabranch::policy::Axis;
use anabranch::{Config, Endpoint, PathSpec, Permitted, Profile, SecretKey, TrafficClass};
use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use std::net::{Ipv4Addr, SocketAddr};

const LEN: usize = 32 << 20;
const PIECE: usize = 128 << 10;

fn endpoint(key: u8, paths: usize) -> Endpoint {
    let config =
        Config { permitted: Permitted::Anyone, ..Config::new(SecretKey::from_bytes([key; 32])) };
    let sockets = (0..paths).map(|_| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    Endpoint::bind(config, sockets).unwrap()
}

async fn transfer(profile: &Profile, paths: usize) {
    let (client, server) = (endpoint(1, paths), endpoint(2, 1));
    let remote = server.local_addrs()[0];
    let paths: Vec<_> =
        client.local_addrs().into_iter().map(|local| PathSpec { local, remote }).collect();
    let key = server.public_key();
    let (connection, accepted) =
        tokio::join!(client.connect_with(key, paths, profile.clone()), async {
            server.accept().await.unwrap().await.unwrap()
        });
    let connection = connection.unwrap();
    let reading = tokio::spawn(async move {
        let (_send, mut receive) = accepted.accept_bi().await.unwrap();
        let mut piece = vec![0; PIECE];
        let mut total = 0;
        while let Some(count) = receive.read(&mut piece).await.unwrap() {
            total += count;
        }
        assert_eq!(total, LEN);
        accepted
    });
    let (mut send, _receive) = connection.open_bi(TrafficClass::Bulk).await.unwrap();
    let piece = vec![7; PIECE];
    for _ in 0..LEN / PIECE {
        send.write_all(&piece).await.unwrap();
    }
    send.finish().unwrap();
    let accepted = reading.await.unwrap();
    connection.close(0, "");
    drop(accepted);
}

fn bench(criterion: &mut Criterion) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut group = criterion.benchmark_group("transfer");
    group.throughput(Throughput::Bytes(LEN as u64));
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    let mut repairs = Profile::named("anabranch").unwrap();
    repairs.set(Axis::Redundancy, "fixed:share=0.05").unwrap();
    for (name, profile) in [
        ("uncoded", Profile::named("uncoded").unwrap()),
        ("anabranch", Profile::named("anabranch").unwrap()),
        ("anabranch with 5 % repairs", repairs),
    ] {
        for paths in [1, 2] {
            group.bench_function(format!("{name}, {paths} paths"), |bencher| {
                bencher.iter(|| runtime.block_on(transfer(&profile, paths)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
