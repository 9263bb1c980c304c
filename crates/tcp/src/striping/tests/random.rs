//! Random losses and small buffers: every byte is delivered once, in order.

use proptest::prelude::*;

use super::*;
use crate::config::WindowUpdates;

fn loss() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..0.3]
}

fn any_path() -> impl Strategy<Value = Path> {
    (100..10_000_u64, 1..200_u64, loss(), loss(), any::<bool>(), 0..20_u64).prop_map(
        |(kbps, delay, loss, ack_loss, darkens, start)| {
            let dark = if darkens { (s(start), s(start + 8)) } else { (Time::MAX, Time::MAX) };
            Path { loss, ack_loss, dark, ..path(kbps, delay) }
        },
    )
}

/// Bytes of a buffer, from less than a packet to more than the whole transfer.
fn buffer() -> impl Strategy<Value = u64> {
    prop_oneof![1..5000_u64, 1..70_000_u64, Just(1 << 20)]
}

fn striping() -> impl Strategy<Value = Striping> {
    let rates = || prop::collection::vec((0..10_000_u64).prop_map(Bitrate::from_bps), 3);
    let told = prop::collection::vec(rates(), 0..6);
    let source = prop_oneof![
        told.prop_map(|rates| RateSource::Told(Arc::new(rates))),
        Just(RateSource::Acknowledged),
        Just(RateSource::Window)
    ];
    let interval = (1..3000_u64).prop_map(Duration::from_millis);
    let by_rate =
        (interval, source, any::<bool>()).prop_map(|(interval, source, within_buffers)| {
            Striping::ByRate(Estimate { interval, source, within_buffers })
        });
    prop_oneof![Just(Striping::UntilFull), by_rate]
}

proptest! {
    #[test]
    fn every_byte_is_delivered_once_and_in_order(
        seed in any::<u64>(),
        paths in prop::collection::vec(any_path(), 1..4),
        striping in striping(),
        resequencing_buffer in prop_oneof![Just(0), buffer()],
        receive in prop::collection::vec(prop::option::of(buffer()), 3),
        send in prop::collection::vec(prop::option::of(buffer()), 3),
        receive_buffer in buffer(),
        send_buffer in buffer(),
        bytes in 1..150_000_u64,
        low_water in prop_oneof![Just(0), buffer()],
        mechanisms in prop::array::uniform4(any::<bool>()),
    ) {
        let [rack, handshake, own_timer, opening] = mechanisms;
        let window_updates =
            if opening { WindowUpdates::Opening } else { WindowUpdates::Each };
        let base = connection();
        let persist = base.timers.persist.filter(|_| own_timer);
        let timers = crate::TimerConfig { persist, ..base.timers };
        let connection =
            Config { rack, prr: rack, handshake, timers, window_updates, receive_buffer, send_buffer, ..base };
        let buffers = receive.into_iter().zip(send);
        let buffers = buffers.map(|(receive, send)| SocketBuffers { receive, send }).collect();
        let config = StripingConfig { striping, resequencing_buffer, low_water, buffers };
        let mut run = Run::new(&config, &connection, &paths, seed);
        run.transfer(bytes);
        prop_assert_eq!(run.receiver.delivered(), bytes);
        prop_assert_eq!(run.sender.acknowledged(), bytes);
        prop_assert_eq!(run.sender.sent(), bytes);
        prop_assert!(run.receiver.peak_held() <= resequencing_buffer);
        // Each byte went through exactly one socket and was read from it.
        let sockets = || (0..paths.len()).filter_map(|path| run.receiver.socket(path));
        prop_assert_eq!(sockets().map(|socket| socket.delivered()).sum::<u64>(), bytes);
        prop_assert_eq!(sockets().map(|socket| socket.readable()).sum::<u64>(), 0);
    }
}
