//! Packet protection of 1200-byte packets against the bare AEAD beneath it, in one run.

use anabranch::crypto::{NoiseCrypto, SecretKey};
use anabranch_core::crypto::{Crypto, Session};
use anabranch_types::PathId;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use std::hint::black_box;

const LEN: usize = 1200;
const HEADER_LEN: usize = 10;

fn sessions() -> (Session, Session) {
    let identity = |fill| NoiseCrypto::new(SecretKey::from_bytes([fill; 32])).unwrap();
    let (mut client, mut server) = (identity(1), identity(2));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut initiator = client.initiate(&server.public_key(), b"", &mut first).unwrap();
    let responder = server.accept(b"", &first).unwrap().responder;
    let server = responder.respond(b"", &mut second).unwrap();
    (initiator.finish(&second).unwrap().1, server)
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

fn seal(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("seal");
    group.throughput(Throughput::Bytes(LEN as u64));
    let mut buffers = vec![[7_u8; LEN]; 64];
    let bare = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[1; 32]).unwrap());
    let mut number = 0_u64;
    group.bench_function("bare", |bencher| {
        bencher.iter(|| {
            number += 1;
            let (header, rest) = buffers[number as usize % 64].split_at_mut(HEADER_LEN);
            let (body, end) = rest.split_at_mut(LEN - HEADER_LEN - 16);
            let tag =
                bare.seal_in_place_separate_tag(nonce(number), Aad::from(&*header), body).unwrap();
            end.copy_from_slice(tag.as_ref());
        });
    });
    let (mut client, _) = sessions();
    for (name, masked) in [("sealer", false), ("sealer and mask", true)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                number += 1;
                let packet = &mut buffers[number as usize % 64];
                client.keys.sealer.seal(PathId(1), number, packet, HEADER_LEN);
                if masked {
                    black_box(client.keys.sealer.mask(packet.last_chunk().unwrap()));
                }
            });
        });
    }
    group.finish();
}

fn open(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("open");
    group.throughput(Throughput::Bytes(LEN as u64));
    let (mut client, mut server) = sessions();
    let mut packet = [7; LEN];
    client.keys.sealer.seal(PathId(1), 9, &mut packet, HEADER_LEN);
    let bare = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[1; 32]).unwrap());
    let mut bare_packet = [7; LEN];
    let (header, rest) = bare_packet.split_at_mut(HEADER_LEN);
    let (body, end) = rest.split_at_mut(LEN - HEADER_LEN - 16);
    let tag = bare.seal_in_place_separate_tag(nonce(9), Aad::from(&*header), body).unwrap();
    end.copy_from_slice(tag.as_ref());
    let mut copy = packet;
    group.bench_function("bare and copy", |bencher| {
        bencher.iter(|| {
            copy.copy_from_slice(&bare_packet);
            let (header, body) = copy.split_at_mut(HEADER_LEN);
            black_box(bare.open_in_place(nonce(9), Aad::from(&*header), body).unwrap().len())
        });
    });
    group.bench_function("opener and copy", |bencher| {
        bencher.iter(|| {
            copy.copy_from_slice(&packet);
            server.keys.opener.open(PathId(1), 9, &mut copy, HEADER_LEN).unwrap()
        });
    });
    group.finish();
}

criterion_group!(benches, seal, open);
criterion_main!(benches);
