use core::time::Duration;

use proptest::prelude::*;

use super::*;

/// Text that is often almost a valid description of a link.
fn near_description() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "rate",
        "delay",
        "loss",
        "jitter",
        "buffer",
        "blackout",
        "mtu",
        "ecn",
        "red",
        "reorder",
        "name",
        "codel",
        "fluctuation",
        "correlation",
        "x",
    ]);
    let value = prop_oneof![
        "[0-9]{1,4}(mbit|kbit|ms|s|%|KiB|p|)(@[0-9]{1,3}(ms|s))?",
        "(markov:|ge:|trimodal:|pattern:|joint:[a-z]/)?[0-9]{1,3}%(/[0-9]{1,3}%){0,4}(@[0-9]{1,3}ms)?",
        "[0-9]{1,2}s/[0-9]{1,3}%-[0-9]{1,3}%/[0-9]{1,2}%",
        "[a-z]{1,3}/[0-9]/([0-9]{1,2}%\\+){0,3}[0-9]{1,2}%(/[0-9]{1,2}%)?@[0-9]{1,2}ms",
        "[0-9]s-[0-9]s(\\+[0-9]s-[0-9]s)?",
        "\\PC{0,12}",
    ];
    let item = (key, value).prop_map(|(key, value)| format!("{key}={value}"));
    prop::collection::vec(prop_oneof![9 => item, 1 => "\\PC{0,8}"], 0..7)
        .prop_map(|items| items.join(","))
}

/// Descriptions of valid links of almost any kind.
fn description() -> impl Strategy<Value = String> {
    let loss = prop::sample::select(vec![
        "0%",
        "7%",
        "100%",
        "10%/60%@40ms",
        "markov:0%/90%@3ms",
        "ge:10%/30%/1%/80%",
        "trimodal:5%/60%@4ms/20%@9ms",
        "pattern:00101",
        "10%/60%@40ms,correlation=air/3/50%@1ms",
        "joint:air/2/10%+20%/30%@2ms",
    ]);
    let rate = prop::sample::select(vec![
        "1mbit",
        "3333kbit",
        "1gbit",
        "8mbit/700kbit@30ms",
        "9mbit,fluctuation=7ms/10%-100%/10%",
        "9mbit,fluctuation=basic/4",
    ]);
    let queue = prop::sample::select(vec![
        "buffer=3p",
        "buffer=9000B",
        "ecn",
        "red,buffer=12p",
        "codel",
        "codel,ecn,buffer=30p",
    ]);
    let rest = prop::sample::select(vec!["jitter=0ms", "jitter=4ms", "jitter=4ms,reorder"]);
    let dark = prop::sample::select(vec!["1s-2s", "20ms-25ms", "0ms-10ms+15ms-60ms"]);
    let mtu = prop::sample::select(vec!["3000B", "68B", "2kB/1500B@12ms"]);
    (rate, 0..30_u64, loss, queue, rest, dark, mtu).prop_map(
        |(rate, delay, loss, queue, rest, dark, mtu)| {
            format!(
                "rate={rate},delay={delay}ms/5ms@25ms,loss={loss},{queue},{rest},blackout={dark},mtu={mtu}"
            )
        },
    )
}

proptest! {
    #[test]
    fn reading_a_description_never_panics(text in near_description()) {
        if let Ok(config) = text.parse::<LinkConfig>() {
            prop_assert!(Link::<()>::new(&config, 1, "any").is_ok());
        }
    }

    /// Every token comes back exactly once, outputs come in the order of time and not late, and the
    /// counters add up, whatever the link, the packet sizes, the gaps and the times of polling.
    #[test]
    fn packets_are_conserved(
        text in description(),
        seed in any::<u64>(),
        traffic in prop::collection::vec((0..5_000_u64, 1..3_000_u32, any::<bool>()), 1..120),
    ) {
        let mut link = seeded(&text, seed);
        let (mut now, mut latest) = (Time::ZERO, Time::ZERO);
        let mut returned = vec![0_u32; traffic.len()];
        let mut late = false;
        let mut count = |output: LinkOutput<u64>, now: Time| {
            let (time, token) = match output {
                LinkOutput::Delivered(d) => (d.time, d.token),
                // The packet was refused on entry, perhaps before earlier outputs were collected.
                LinkOutput::Dropped(d) if d.time == Time::MAX => (latest, d.token),
                LinkOutput::Dropped(d) => (d.time, d.token),
            };
            late |= time < latest || time > now;
            latest = time;
            returned[token as usize] += 1;
        };
        for (token, (gap, size, poll)) in traffic.iter().enumerate() {
            now += Duration::from_micros(*gap);
            if *poll {
                link.advance(now, |output| count(output, now));
            }
            let ecn = Ecn::from_bits(*size as u8);
            if let Err(refused) = link.enqueue(now, *size, ecn, token as u64) {
                count(LinkOutput::Dropped(Dropped { time: Time::MAX, ..refused }), now);
            }
        }
        while let Some(next) = link.next_event() {
            prop_assert!(link.packets_inside() > 0 || next <= now);
            now = now.max(next);
            link.advance(now, |output| count(output, now));
        }
        prop_assert!(!late);
        prop_assert!(returned.iter().all(|times| *times == 1), "{returned:?}");
        let c = *link.counters();
        let dropped =
            c.dropped_by_queue() + c.dropped_blackout + c.dropped_too_long + c.lost_random;
        prop_assert_eq!(c.packets_in, c.packets_delivered + dropped);
        prop_assert_eq!(c.packets_serialised, c.packets_delivered + c.lost_random);
        prop_assert_eq!((link.packets_inside(), link.queue().bytes()), (0, 0));
    }
}
