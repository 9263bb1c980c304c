mod capacity;
mod flow;
mod parse;
mod parts;
mod policer;
mod properties;

use anabranch_types::Time;

use super::*;

/// A link described by `text`; its tokens are packet numbers.
fn link(text: &str) -> Link<u64> {
    seeded(text, 1)
}

fn seeded(text: &str, seed: u64) -> Link<u64> {
    let config: LinkConfig = text.parse().expect("a valid description");
    Link::new(&config, seed, "test").expect("a valid configuration")
}

/// Advances from event to event until the link is empty. Returns all outputs.
fn drain(link: &mut Link<u64>) -> Vec<LinkOutput<u64>> {
    let mut out = Vec::new();
    let mut before = None;
    while let Some(next) = link.next_event() {
        assert!(Some(next) > before, "the next event must move on: {next}");
        before = Some(next);
        link.advance(next, |output| out.push(output));
    }
    out
}

/// Offers a packet of `size` bytes every `step`, advances the link meanwhile, and then drains it.
fn constant_traffic(
    link: &mut Link<u64>,
    packets: u64,
    size: u32,
    step: core::time::Duration,
) -> Vec<LinkOutput<u64>> {
    let mut out = Vec::new();
    let mut now = Time::ZERO;
    for token in 0..packets {
        link.advance(now, |output| out.push(output));
        if let Err(drop) = link.enqueue(now, size, Ecn::Ect0, token) {
            out.push(LinkOutput::Dropped(drop));
        }
        now += step;
    }
    out.extend(drain(link));
    out
}
