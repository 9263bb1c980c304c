//! Whole transfers over a small lossy network: everything arrives once and in order, and no transfer gets stuck.

mod network;

use anabranch_policy::congestion;
use anabranch_tcp::{Config, DelayedAck, LossRecovery};
use anabranch_types::Time;
use network::{Path, Run};
use proptest::prelude::*;

fn config() -> impl Strategy<Value = Config> {
    let recovery = prop_oneof![
        Just(LossRecovery::Sack),
        Just(LossRecovery::FallFloyd),
        Just(LossRecovery::NewReno)
    ];
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let sizes = (prop_oneof![Just(500_u32), Just(1460)], 3000_u64..60_000, any::<bool>());
    (recovery, switches, sizes).prop_map(|(recovery, switches, (mss, receive_buffer, small))| {
        let (timestamps, limited_transmit, prr, rack, delayed) = switches;
        let sack = recovery == LossRecovery::Sack;
        Config {
            mss,
            recovery,
            timestamps,
            limited_transmit,
            prr: prr && sack,
            rack: rack && sack,
            delayed_ack: if delayed { DelayedAck::SECOND } else { DelayedAck::OFF },
            receive_buffer: if small { receive_buffer } else { 1 << 30 },
            read_at_once: !small,
            send_buffer: if small { 20_000 } else { 1 << 30 },
            rate_samples: true,
            ..Config::default()
        }
    })
}

fn path() -> impl Strategy<Value = Path> {
    (0.5_f64..20.0, 1_u64..100, 3_usize..60, 0.0_f64..0.3, 0.0_f64..0.2, 0.0_f64..0.2, 0.0_f64..0.2)
        .prop_map(|(mbps, delay, queue, loss, ack_loss, late, twice)| Path {
            ack_loss,
            late,
            twice,
            ..Path::new(mbps, delay, queue, loss)
        })
}

fn transfer(config: &Config, control: &str, path: Path, bytes: u64, seed: u64) -> Run {
    let mut run = Run::new(config, control, path, seed);
    let mut written = 0;
    run.until(Time::from_secs(100_000), |run| {
        written += run.sender.write(bytes - written);
        if written == bytes {
            run.sender.finish();
        }
        run.receiver.read(700);
        // The pipe counts each outstanding byte at most twice (RFC 6675 §4).
        assert!(run.sender.in_flight() <= 2 * run.sender.outstanding().max(1 << 16));
        assert!(run.receiver.delivered() >= run.sender.acknowledged());
        if run.receiver.is_finished() {
            run.receiver.read(u64::MAX);
        }
    });
    run
}

/// The names of all congestion controllers.
fn controllers() -> Vec<&'static str> {
    congestion::TABLE.iter().map(|row| row.0.name).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    #[test]
    fn every_byte_arrives(
        config in config(),
        path in path(),
        control in proptest::sample::select(controllers()),
        bytes in 1_u64..150_000,
        seed in any::<u64>(),
    ) {
        let run = transfer(&config, control, path, bytes, seed);
        prop_assert!(run.sender.is_drained(), "stuck at {} of {bytes}", run.sender.acknowledged());
        prop_assert!(run.receiver.is_finished());
        prop_assert_eq!(run.receiver.delivered(), bytes);
        prop_assert_eq!(run.sender.in_flight(), 0);
        prop_assert_eq!(run.sender.next_timeout(), None);
    }
}

#[test]
fn a_clean_link_is_filled() {
    let path = Path::new(10.0, 20, 49, 0.0);
    let run = transfer(&Config::default(), "reno:initial=2", path, 20_000_000, 1);
    // 1460 of the 1512 bytes of a packet are payload.
    let goodput = 20.0 * 8.0 / run.now.as_secs_f64();
    assert!((9.0..9.66).contains(&goodput), "{goodput}");
    assert_eq!(run.sender.statistics().timeouts, 0);
}
