//! Tests of the parts of streams against models.

use anabranch_policy::view::TrafficClass;
use bytes::Bytes;
use proptest::prelude::*;

use super::super::datagrams::DatagramQueue;
use super::super::ring::Ring;
use super::super::send::SendSide;
use crate::runs::Runs;

proptest! {
    #[test]
    fn runs_against_a_bitmap(ranges in prop::collection::vec((0..200_u64, 0..40_u64), 0..60)) {
        let mut runs = Runs::default();
        let mut model = [false; 240];
        for (start, length) in ranges {
            let mut fresh = Vec::new();
            runs.insert(start, start + length, |from, to| fresh.extend(from..to));
            let mut expected = Vec::new();
            for at in start..start + length {
                if !core::mem::replace(&mut model[at as usize], true) {
                    expected.push(at);
                }
            }
            prop_assert_eq!(fresh, expected);
            let contiguous = model.iter().position(|present| !present).unwrap_or(model.len());
            prop_assert_eq!(runs.contiguous(), contiguous as u64);
            let edges = model[contiguous..].windows(2).filter(|pair| !pair[0] && pair[1]).count();
            prop_assert_eq!(runs.pieces(), edges);
            for (from, to) in [(0, 5), (start, start + length), (start, 239), (50, 60)] {
                let present = model[from as usize..to.max(from) as usize].iter().all(|here| *here);
                prop_assert_eq!(runs.holds(from..to), present);
            }
        }
    }

    #[test]
    fn ring_against_a_vector(chunks in prop::collection::vec((1..3000_usize, 0..3000_usize), 1..20)) {
        let mut ring = Ring::default();
        let mut model: Vec<u8> = Vec::new();
        let (mut head, mut tail) = (0_u64, 0_u64);
        for (write, read) in chunks {
            let data: Vec<u8> = (0..write).map(|n| (model.len() + n * 7) as u8).collect();
            ring.ensure(head, core::iter::once(head..tail), tail - head + write as u64);
            ring.write(tail, &data);
            tail += write as u64;
            model.extend(&data);
            let mut out = vec![0; read.min((tail - head) as usize)];
            ring.read(head, &mut out);
            prop_assert_eq!(&out, &model[head as usize..head as usize + out.len()]);
            head += out.len() as u64;
        }
    }

    #[test]
    fn the_send_side_against_a_vector(steps in prop::collection::vec((0..4_u8, 0..900_usize), 1..60)) {
        const CAPACITY: u64 = 2000;
        let mut send = SendSide::new(TrafficClass::Bulk, u64::MAX);
        let (mut model, mut written): (Vec<u8>, u8) = (Vec::new(), 0);
        let mut memory = Vec::new();
        for (kind, length) in steps {
            let data: Vec<u8> = (0..length).map(|n| written.wrapping_add(n as u8)).collect();
            let room = CAPACITY as usize - model.len();
            match kind {
                0 => prop_assert_eq!(send.write(&data, CAPACITY), length.min(room)),
                1 => {
                    let mut chunk = Bytes::from(data.clone());
                    memory.push(chunk.clone());
                    prop_assert_eq!(send.write_chunk(&mut chunk, CAPACITY), length.min(room));
                    prop_assert_eq!(&chunk[..], &data[length.min(room)..]);
                }
                _ => {
                    let mut out = vec![0; length.min(model.len())];
                    send.take(&mut out);
                    prop_assert!(model.drain(..out.len()).eq(out));
                }
            }
            if kind < 2 {
                model.extend(&data[..length.min(room)]);
                written = written.wrapping_add(length.min(room) as u8);
                prop_assert_eq!(send.sendable().more, length > room);
            }
            prop_assert_eq!(send.unsent(), model.len() as u64);
        }
        let mut out = vec![0; model.len()];
        send.take(&mut out);
        prop_assert_eq!(out, model);
        prop_assert!(memory.iter().all(|chunk| chunk.is_empty() || chunk.is_unique()));
    }

    #[test]
    fn datagram_queue_against_a_list(steps in prop::collection::vec((any::<bool>(), 0..60_usize), 0..80)) {
        let mut queue = DatagramQueue::new(300);
        let mut model = std::collections::VecDeque::new();
        for (at, (push, length)) in steps.into_iter().enumerate() {
            if push {
                let datagram = vec![at as u8; length];
                let cost: usize = model.iter().map(|d: &Vec<u8>| d.len() + 16).sum();
                prop_assert_eq!(queue.cost(), cost);
                prop_assert_eq!(queue.push(&datagram), cost + length + 16 <= 300);
                if cost + length + 16 <= 300 {
                    model.push_back(datagram);
                }
            } else {
                let mut out = vec![0xee; length];
                let expected = model.pop_front();
                prop_assert_eq!(queue.pop(&mut out), expected.as_ref().map(Vec::len));
                if let Some(datagram) = expected {
                    let copied = datagram.len().min(length);
                    prop_assert_eq!(&out[..copied], &datagram[..copied]);
                    prop_assert!(out[copied..].iter().all(|byte| *byte == 0xee));
                }
            }
            prop_assert_eq!(queue.is_empty(), model.is_empty());
        }
    }
}
