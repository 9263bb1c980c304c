//! One recording for each thing that a sender waits for: a connection over an emulated link, with
//! one slow side.

use std::time::Duration;

use anabranch::crypto::SecretKey;
use anabranch::policy::view::TrafficClass;
use anabranch::{Config, Endpoint, Permitted, RecvStream, SendStream};
use anabranch_emulate::Relay;

use super::*;
use crate::qlog::Qlogs;

/// Conditions of a tested connection.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// One-way delay of a link of 100 Mb/s.
    delay: &'static str,
    /// Bytes that the receiver grants.
    grant: u64,
    /// The sender's application rests before each piece.
    writing: Duration,
    /// The receiver's application rests before each piece.
    reading: Duration,
    pieces: usize,
}

const PIECE: usize = 50_000;
const USUAL: Case = Case {
    delay: "1ms",
    grant: 8 << 20,
    writing: Duration::ZERO,
    reading: Duration::ZERO,
    pieces: 10,
};

async fn write(mut stream: SendStream, case: Case) {
    for _ in 0..case.pieces {
        tokio::time::sleep(case.writing).await;
        stream.write_all(&vec![7; PIECE]).await.unwrap();
    }
    stream.finish().unwrap();
}

async fn read(mut stream: RecvStream, case: Case) {
    let mut piece = vec![0; PIECE];
    for _ in 0..case.pieces {
        tokio::time::sleep(case.reading).await;
        stream.read_exact(&mut piece).await.unwrap();
    }
}

/// Report of `why` on the sender's qlog.
async fn explained(case: Case) -> summary::Report {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::new(SecretKey::generate().unwrap());
    config.permitted = Permitted::Anyone;
    config.transport.streams.max_data = case.grant;
    config.transport.streams.max_stream_data = case.grant;
    config.transport.streams.growth = 1;
    let receiver =
        Endpoint::bind(config, ["127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap()]).unwrap();
    let link = format!("name=a,rate=100mbit,delay={}", case.delay).parse().unwrap();
    let relay = Relay::start(&[link], receiver.local_addrs()[0], 1).unwrap();
    let sender = Endpoint::client(Config::new(SecretKey::generate().unwrap())).unwrap();
    let accepted = async { receiver.accept().await.unwrap().await.unwrap() };
    let connected = sender.connect(receiver.public_key(), relay.addresses()[0]);
    let (there, here) = tokio::join!(accepted, connected);
    let here = here.unwrap();
    let qlogs = Qlogs::new(Some(directory.path()), "test").unwrap();
    qlogs.follow(&here, "client");
    let out = here.open_uni(TrafficClass::Bulk).await.unwrap();
    let reading = async { read(there.accept_uni().await.unwrap(), case).await };
    tokio::join!(write(out, case), reading);
    here.drained().await.unwrap();
    drop(here);
    tokio::task::spawn_blocking(move || qlogs.finish()).await.unwrap();
    let file = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    let mut reader = Reader::open(&file).unwrap();
    let mut summary = Summary::new(reader.header());
    while let Some(line) = reader.next_line().unwrap() {
        summary.add(reader.header(), &line);
    }
    summary.finish(reader.header(), reader.is_cut())
}

fn first_cause(case: Case) -> (&'static str, f64) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let report = runtime.unwrap().block_on(explained(case));
    let first = report.causes.first().unwrap_or_else(|| panic!("no cause: {report:?}"));
    println!("{}", render::text(&report));
    (first.kind, first.share)
}

#[test]
fn an_application_that_gives_nothing_to_send_is_named() {
    let case = Case { writing: Duration::from_millis(100), ..USUAL };
    let (kind, share) = first_cause(case);
    assert!(kind == "no-data" && share > 0.5, "{kind}, {share}");
}

#[test]
fn a_slow_reader_is_named() {
    let case = Case { reading: Duration::from_millis(100), grant: 100_000, ..USUAL };
    let (kind, share) = first_cause(case);
    assert!(kind == "slow-reader" && share > 0.5, "{kind}, {share}");
}

/// The receiver grants 100 kB per round trip of 160 ms; the link could carry 2 MB in that time.
#[test]
fn a_grant_that_is_small_for_the_path_is_named() {
    let case = Case { delay: "80ms", grant: 100_000, pieces: 30, ..USUAL };
    let (kind, share) = first_cause(case);
    assert!(kind == "credit" && share > 0.4, "{kind}, {share}");
}

/// A connection begins with a small window, which the first acknowledgements open.
#[test]
fn acknowledgements_that_take_long_are_named() {
    let case = Case { delay: "300ms", pieces: 10, ..USUAL };
    let (kind, share) = first_cause(case);
    assert!(kind == "late-acknowledgements" && share > 0.2, "{kind}, {share}");
}
