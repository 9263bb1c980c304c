use core::time::Duration;

use anabranch_types::{Bitrate, DataSize, Probability};

use super::*;
use crate::delay::DelayCourse;
use crate::loss::LossConfig;
use crate::queue::{CodelConfig, Discipline, QueueLimit};
use crate::rate::{Blackout, Fluctuation, RandomRate};

fn parse(text: &str) -> Result<LinkConfig, LinkConfigError> {
    text.parse()
}

#[test]
fn the_demo_syntax_is_read() {
    let config = parse("name=lte, rate=12mbit, delay=40ms, loss=5%, ecn").expect("valid");
    assert_eq!(config.name, "lte");
    assert_eq!(config.rate.at(Time::ZERO), Bitrate::from_mbps(12.0));
    assert_eq!(config.delay, Duration::from_millis(40));
    assert_eq!(config.loss, LossConfig::Bernoulli(Probability::clamped(0.05)));
    assert!(matches!(&config.queue.discipline, Discipline::Red(red) if red.ecn));
    assert_eq!(config.queue.limit, None);
}

#[test]
fn every_key_is_read() {
    let config = parse(
        "rate=12mbit/3mbit@10s,delay=1s,jitter=2ms,reorder,red,buffer=64KiB,blackout=10s-15s+20s-21s",
    )
    .expect("valid");
    assert_eq!(config.rate.at(Time::from_secs(10)), Bitrate::from_mbps(3.0));
    assert_eq!((config.jitter.size, config.jitter.reorder), (Duration::from_millis(2), true));
    assert_eq!(config.queue.limit, Some(QueueLimit::Bytes(DataSize::from_bytes(65_536))));
    assert!(matches!(&config.queue.discipline, Discipline::Red(red) if !red.ecn));
    let at = |a, b| Blackout { start: Time::from_secs(a), end: Time::from_secs(b) };
    assert_eq!(config.blackouts, [at(10, 15), at(20, 21)]);
    let packets = parse("rate=1mbit,delay=1ms,buffer=50p").expect("valid").queue.limit;
    assert_eq!(packets, Some(QueueLimit::Packets(50)));
}

#[test]
fn loss_models_are_read() {
    let loss = |text: &str| parse(&format!("rate=1mbit,delay=1ms,loss={text}")).map(|c| c.loss);
    assert_eq!(loss("0%"), Ok(LossConfig::None));
    let Ok(LossConfig::Markov(markov)) = loss("markov:5%/35%@250ms") else { panic!("markov") };
    let states: Vec<(f64, u128)> =
        markov.states.iter().map(|s| (s.loss.get(), s.mean_dwell.as_millis())).collect();
    assert_eq!(states, [(0.05, 250), (0.35, 250)]);
    let Ok(LossConfig::Markov(markov)) = loss("markov:1%@2s/50%/100%@100ms") else { panic!() };
    let dwells: Vec<u128> = markov.states.iter().map(|s| s.mean_dwell.as_millis()).collect();
    assert_eq!(dwells, [2_000, 100, 100]);
    let Ok(LossConfig::GilbertElliott(ge)) = loss("ge:1%/20%") else { panic!("ge") };
    assert_eq!((ge.loss_in_good.get(), ge.loss_in_bad.get()), (0.0, 1.0));
    let Ok(LossConfig::GilbertElliott(ge)) = loss("ge:1%/20%/2%/60%") else { panic!("ge") };
    assert_eq!((ge.bad_to_good.get(), ge.loss_in_bad.get()), (0.2, 0.6));
    let Ok(LossConfig::Scheduled(steps)) = loss("5%/20%@10s") else { panic!("scheduled") };
    assert_eq!(steps.at(Time::from_secs(11)).get(), 0.2);
}

#[test]
fn the_less_common_parts_are_read() {
    let ms = Duration::from_millis;
    let config = parse("rate=5mbit,delay=40ms/80ms@10s,fluctuation=1s/20%-100%/10%,codel,reorder")
        .expect("valid");
    assert_eq!((config.delay, config.delay_changes), (ms(40), vec![(Time::from_secs(10), ms(80))]));
    assert!(config.jitter.reorder);
    let Fluctuation::Random(random) = config.fluctuation else { panic!("random") };
    assert_eq!(random, RandomRate::ptcp(ms(1_000)));
    let codel = |ecn| Discipline::Codel(CodelConfig { ecn, ..CodelConfig::default() });
    assert_eq!(config.queue.discipline, codel(false));
    let marking = parse("rate=5mbit,delay=1ms,codel,ecn").expect("valid");
    assert_eq!(marking.queue.discipline, codel(true));

    let config = parse("rate=5mbit,delay=1ms,correlation=air.1/3/50%@2ms,loss=5%").expect("valid");
    let LossConfig::Correlated(shared) = config.loss else { panic!("correlated") };
    assert_eq!((shared.group.as_str(), shared.position, shared.slot), ("air.1", 3, ms(2)));
    assert_eq!(*shared.base, LossConfig::Bernoulli(Probability::clamped(0.05)));

    let loss = |text: &str| parse(&format!("rate=1mbit,delay=1ms,loss={text}")).map(|c| c.loss);
    let Ok(LossConfig::Markov(markov)) = loss("trimodal:25%/75%@250ms/2%@1s") else { panic!() };
    let states: Vec<(f64, u128)> =
        markov.states.iter().map(|s| (s.loss.get(), s.mean_dwell.as_millis())).collect();
    assert_eq!(states, [(0.25, 250), (0.75, 250), (1.0, 1_000)]);
    let Ok(LossConfig::Trace(trace)) = loss("pattern:0001") else { panic!("trace") };
    assert_eq!(trace.mean_loss().get(), 0.25);
    let Ok(LossConfig::Joint(joint)) = loss("joint:air/2/10%+20%+5%/30%@1ms") else { panic!() };
    assert_eq!((joint.position, joint.losses.len()), (2, 3));
    assert_eq!(joint.correlation[0][2], 0.09);
}

/// Links with a wrong rate, delay, name or item: the key that the error names, and the link.
const WRONG: [(&str, &str); 20] = [
    ("rate", "rate=0mbit,delay=1ms"),
    ("rate", "rate=-5mbit,delay=1ms"),
    ("rate", "rate=12,delay=1ms"),
    ("rate", "rate=9999999gbit,delay=1ms"),
    ("rate", "rate=1mbit/2mbit,delay=1ms"),
    ("rate", "rate=1mbit/2mbit@2s/3mbit@1s,delay=1ms"),
    ("rate", "delay=1ms"),
    ("rate", "rate,delay=1ms"),
    ("delay", "rate=1mbit"),
    ("delay", "rate=1mbit,delay=40"),
    ("delay", "rate=1mbit,delay=-1ms"),
    ("delay", "rate=1mbit,delay=61s"),
    ("delay", "rate=1mbit,delay=1s/61s@2s"),
    ("delay", "rate=1mbit,delay=1s/2s"),
    ("delay", "rate=1mbit,delay=1s/2s@3s/3s@3s"),
    ("name", "name=,rate=1mbit,delay=1ms"),
    ("name", "name=a b,rate=1mbit,delay=1ms"),
    ("rate", "rate=1mbit,rate=1mbit,delay=1ms"),
    ("link", ""),
    ("link", "rate=1mbit,,delay=1ms"),
];

/// Settings that are wrong although rate and delay are valid: the key that the error names, and the
/// setting.
const WRONG_BESIDE: &[(&str, &str)] = &[
    ("loss", "loss=101%"),
    ("loss", "loss=-1%"),
    ("loss", "loss=1"),
    ("loss", "loss=0.05"),
    ("loss", "loss=NaN%"),
    ("loss", "loss=5%/6%"),
    ("loss", "loss=markov:5%@250ms"),
    ("loss", "loss=markov:5%/35%"),
    ("loss", "loss=markov:5%/35%@0ms"),
    ("loss", "loss=ge:1%"),
    ("loss", "loss=ge:0%/0%"),
    ("loss", "loss=ge:1%/20%/0%"),
    ("jitter", "jitter=2"),
    ("jitter", "jitter=61s"),
    ("jitter", "jitter=5ms,jitter-law=gamma"),
    ("jitter-law", "jitter=2ms,jitter-law=cauchy"),
    ("jitter-law", "jitter-law=gamma"),
    ("jitter-correlation", "jitter=2ms,jitter-correlation=2days"),
    ("jitter-correlation", "jitter-correlation=100ms"),
    ("delay-steps", "delay-steps=15s"),
    ("delay-steps", "delay-steps=15s/10ms"),
    ("delay-steps", "delay-steps=1ms/10ms-60ms"),
    ("delay-steps", "delay-steps=15s/40ms-60ms"),
    ("clumps", "clumps=0ms"),
    ("clumps", "clumps=8ms-2ms"),
    ("clumps", "clumps=2-8"),
    ("policer", "policer=20mbit"),
    ("policer", "policer=20mbit/100B"),
    ("policer", "policer=20/64KiB"),
    ("clumps", "clumps"),
    ("buffer", "buffer=10"),
    ("buffer", "buffer=10B"),
    ("buffer", "buffer=0p"),
    ("buffer", "buffer=9GiB"),
    ("mtu", "mtu=67B"),
    ("mtu", "mtu=1500"),
    ("mtu", "mtu=1500B/1400B"),
    ("blackout", "blackout=10s"),
    ("blackout", "blackout=15s-10s"),
    ("blackout", "blackout=10s-15"),
    ("ecn", "ecn=yes"),
    ("ecn", "ecn,ecn"),
    ("red", "ecn,red"),
    ("codel", "codel,red"),
    ("codel", "codel=5ms"),
    ("fluctuation", "fluctuation=1s"),
    ("fluctuation", "fluctuation=0s/20%-100%/10%"),
    ("fluctuation", "fluctuation=1s/100%-20%/10%"),
    ("fluctuation", "fluctuation=1s/0%-20%/10%"),
    ("fluctuation", "fluctuation=1s/20-100/10"),
    ("fluctuation", "fluctuation=tdma/5"),
    ("fluctuation", "fluctuation=basic/0"),
    ("fluctuation", "fluctuation=basic/257"),
    ("fluctuation", "fluctuation=basic"),
    ("correlation", "correlation=air/0/50%@1ms"),
    ("correlation", "correlation=air/1/50%"),
    ("correlation", "correlation=air/1/0.5@1ms"),
    ("correlation", "correlation=air/1/50%@0ms"),
    ("correlation", "loss=ge:1%/20%,correlation=air/1/50%@1ms"),
    ("loss", "loss=trimodal:25%/75%@250ms"),
    ("loss", "loss=trimodal:25%/75%/2%@1s"),
    ("loss", "loss=trimodal:25%/75%@250ms/102%@1s"),
    ("loss", "loss=pattern:0120"),
    ("loss", "loss=pattern:"),
    ("loss", "loss=joint:air/1/25%+75%/50%@1ms"),
    ("loss", "loss=joint:air/3/25%+25%/50%@1ms"),
    ("loss", "loss=poisson:3%"),
    ("reorder", "reorder"),
    ("speed", "speed=1mbit"),
    ("fast", "fast"),
];

#[test]
fn mistakes_are_refused_by_the_key_they_are_in() {
    let beside =
        WRONG_BESIDE.iter().map(|(key, text)| (*key, format!("rate=1mbit,delay=1ms,{text}")));
    for (key, text) in WRONG.map(|(key, text)| (key, text.to_owned())).into_iter().chain(beside) {
        let error = parse(&text).expect_err(&text);
        assert_eq!(error.key, key, "{text}: {error}");
    }
}

#[test]
fn errors_say_what_was_given_and_what_is_allowed() {
    let error = parse("rate=1mbit,delay=1ms,loss=140%").expect_err("above 100 %").to_string();
    assert!(
        error.starts_with("loss: '140%' is not accepted; allowed: a loss such as 5%"),
        "{error}"
    );
    let error = parse("rate=1mbit,delay=1ms,los=1%").expect_err("unknown").to_string();
    assert!(error.contains("name, rate, fluctuation, delay, loss"), "{error}");
}

#[test]
fn programmatic_configurations_are_checked_too() {
    let link = LinkConfig::new(Bitrate::ZERO, Duration::ZERO);
    assert_eq!(Link::<()>::new(&link, 1, "a").expect_err("no rate").key, "rate");
    let config = LinkConfig::new(Bitrate::from_mbps(1.0), Duration::ZERO)
        .with_buffer(QueueLimit::Packets(0));
    assert_eq!(Link::<()>::new(&config, 1, "a").expect_err("no room").key, "buffer");
    let config = LinkConfig::new(Bitrate::from_mbps(1.0), Duration::from_secs(61));
    assert_eq!(config.validate().expect_err("too far").key, "delay");
}

#[test]
fn files_are_read_where_they_can_be() {
    let mut files = |path: &str| match path {
        "rate" => Ok("4\n4\n10\n".to_owned()),
        "delay" => Ok("0 20\n10 40\n".to_owned()),
        "words" => Ok("none at all\n".to_owned()),
        _ => Err("there is none".to_owned()),
    };
    let read = |text: &str, files: &mut ReadFile<'_>| LinkConfig::read(text, files);
    let config = read("rate=trace:rate,delay=trace:delay", &mut files).expect("valid");
    assert_eq!(config.rate.at(Time::ZERO), Bitrate::from_bps(3_600_000));
    assert_eq!(config.delay, Duration::from_millis(30));
    assert!(matches!(config.fluctuation, Fluctuation::Trace(_)));
    assert!(matches!(config.delay_course, DelayCourse::Trace(_)));
    let plain = config.changed("rate=1mbit,delay=5ms,codel", &mut files).expect("valid");
    assert_eq!((plain.fluctuation, plain.delay_course), (Fluctuation::None, DelayCourse::Steady));
    for (key, text) in [
        ("rate", "rate=trace:none,delay=1ms"),
        ("rate", "rate=trace:words,delay=1ms"),
        ("delay", "rate=1mbit,delay=trace:rate"),
        ("loss", "rate=1mbit,delay=1ms,loss=trace:rate"),
        ("delay-steps", "rate=1mbit,delay-steps=15s/10ms-60ms,delay=trace:delay"),
        ("fluctuation", "rate=trace:rate,delay=1ms,fluctuation=1s/20%-100%/10%"),
    ] {
        let error = read(text, &mut files).expect_err(text);
        assert_eq!(error.key, key, "{text}: {error}");
    }
    let error = parse("rate=trace:rate,delay=1ms").expect_err("no files here").to_string();
    assert!(error.contains("no files are read here"), "{error}");
}
