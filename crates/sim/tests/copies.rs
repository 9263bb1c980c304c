//! Copies of symbols that have been in flight for long (recovery `xlink`), over links of which one
//! stalls for a second.

use anabranch_sim::scenario::Scenario;

/// A transfer over two paths of 10 Mb/s. Their round trips are 20 ms and twice `far` ms, and the
/// first is dark for a second. Returns the completion time and the longest time without a byte
/// delivered in order, both in seconds.
fn transfer(flow: &str, far: u32, size: &str) -> (f64, f64) {
    let text = format!(
        r#"
name = "stall"
duration = "20s"
stop = "done"
[[path]]
name = "near"
rate = "10mbit"
delay = "10ms"
blackout = "60ms-1060ms"
[[path]]
name = "far"
rate = "10mbit"
delay = "{far}ms"
[[flow]]
name = "bonded"
traffic = "size:{size}"
{flow}
"#
    );
    let scenario = Scenario::parse(&text, "stall.toml").expect("no mistakes");
    let report = scenario.run(&scenario.points()[0], 1).expect("runs");
    let figure = |name| report.scalar("bonded", name).expect("measured");
    (figure("fct_mean_s"), figure("longest_gap_s"))
}

/// The results of [`transfer`] with `resend` and with `xlink`.
fn both(flow: &str, far: u32, size: &str) -> [(f64, f64); 2] {
    let results = ["resend", "xlink"].map(|name| transfer(&flow.replace("WHICH", name), far, size));
    println!(
        "{flow} {far} ms, {size}: {:.3?} with resend, {:.3?} with xlink",
        results[0], results[1]
    );
    results
}

#[test]
fn copies_end_a_short_transfer_over_tcp_before_the_timer_fires() {
    for far in [10, 40] {
        let flow = "profile = \"tcp:mptcp\"\ntcp = { recovery = \"WHICH\" }";
        let [resend, xlink] = both(flow, far, "60kB");
        assert!(xlink.0 < 0.7 * resend.0, "{far} ms: {xlink:?}, {resend:?}");
    }
}

#[test]
fn copies_shorten_a_stall_in_the_transport() {
    let flow = "profile = \"uncoded\"\npolicy = { scheduler = \"min-rtt\", recovery = \"WHICH\" }";
    let [resend, xlink] = both(flow, 10, "2MB");
    assert!(xlink.1 < 0.7 * resend.1, "{xlink:?}, {resend:?}");
    // Copies take capacity from new data, so the transfer may take a little longer.
    assert!(xlink.0 < 1.15 * resend.0, "{xlink:?}, {resend:?}");
}

/// Sends messages for `seconds` over paths with these losses, per cent. Returns the share of
/// symbols that lost all copies before the first of these losses was known, the share expected from
/// the losses that occurred, and the number of messages.
fn left_to_repair(profile: &str, losses: &[u32], gap: u32, seconds: u32) -> (f64, f64, f64) {
    let path = |(number, loss): (usize, &u32)| {
        let delay = 20 + 10 * number;
        format!(
            "[[path]]\nname = \"p{number}\"\nrate = \"20mbit\"\ndelay = \"{delay}ms\"\nloss = \"{loss}%\"\n"
        )
    };
    let paths: String = losses.iter().enumerate().map(path).collect();
    let count = 1000 * seconds / gap;
    let text = format!(
        r#"
name = "talk"
duration = "{}s"
{paths}
[[flow]]
name = "talk"
profile = "{profile}"
class = "interactive"
traffic = {{ kind = "messages", size = "200B", interval = "{gap}ms", count = {count} }}
"#,
        seconds - 1
    );
    let scenario = Scenario::parse(&text, "talk.toml").unwrap_or_else(|error| panic!("{error:?}"));
    let report = scenario.run(&scenario.points()[0], 1).expect("runs");
    let figure = |of: &str, name| report.scalar(of, name).expect("measured");
    let happened = |number| figure(&format!("link.p{number}"), "loss_share");
    let expected = (0..losses.len()).map(happened).product();
    (figure("talk", "loss_before_repair"), expected, figure("talk", "messages"))
}

#[test]
fn what_copies_leave_to_be_repaired_is_the_product_of_the_losses() {
    // Probes (with a message every 100 ms) and copies that replace others (with one every 20 ms) do
    // not count.
    let cases: [(&str, &[u32], u32); 5] = [
        ("mtcp", &[20, 20], 20),
        ("mtcp", &[10, 30], 20),
        ("mtcp", &[20, 20], 100),
        ("mtcp", &[20], 20),
        ("uncoded", &[10], 100),
    ];
    for (profile, losses, gap) in cases {
        let (left, expected, messages) = left_to_repair(profile, losses, gap, 60 * gap / 10);
        println!("{profile} {losses:?}, every {gap} ms: {left:.4}, expected {expected:.4}");
        // The bound is four standard deviations of a mean of that many draws.
        let deviation = (expected * (1.0 - expected) / messages).sqrt();
        assert!((left - expected).abs() < 4.0 * deviation, "{left} {expected} ± {deviation}");
    }
}
