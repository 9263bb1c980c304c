use super::*;

fn close(got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance, "{got} is not {expected}");
}

#[test]
fn contention_of_a_few_stations() {
    let channel = Channel::fhss();
    assert_eq!(channel.contention(0), Contention { transmit: 0.0, collide: 0.0 });
    // A single station transmits with probability 2/(W + 1).
    close(channel.contention(1).transmit, 2.0 / 33.0, 1e-12);
    close(channel.contention(1).collide, 0.0, 1e-12);
    close(channel.contention(2).transmit, 0.057_04, 5e-6);
    close(channel.contention(5).transmit, 0.047_85, 5e-6);
    close(channel.contention(5).collide, 0.178_08, 5e-6);
}

/// Compares τ with the closed form in the paper, eq. 7.
#[test]
fn stages_add_up_to_the_closed_form() {
    let channel = Channel::fhss();
    for p in [0.05_f64, 0.2, 0.4, 0.6, 0.9] {
        let (w, m) = (32.0, 5);
        let closed = 2.0 * (1.0 - 2.0 * p)
            / ((1.0 - 2.0 * p) * (w + 1.0) + p * w * (1.0 - (2.0 * p).powi(m)));
        close(channel.transmit(p), closed, 1e-12);
    }
}

#[test]
fn shares_of_the_papers_own_channel() {
    // MPLOT's figure 10 needs 11 Mb/s times these shares.
    let channel = Channel::fhss();
    for (n, basic, reserved) in [
        (1, 0.839, 0.791),
        (2, 0.847, 0.819),
        (3, 0.837, 0.828),
        (5, 0.810, 0.834),
        (10, 0.758, 0.837),
    ] {
        close(channel.share(Access::Basic, n, 1023), basic, 6e-4);
        close(channel.share(Access::RtsCts, n, 1023), reserved, 6e-4);
    }
}

#[test]
fn throughput_of_802_11b() {
    let mbps = |preamble, payload| {
        Channel::dsss_11b(preamble).throughput(Access::Basic, 5, payload).as_mbps()
    };
    close(mbps(Preamble::Long, 800), 4.815, 6e-4);
    close(mbps(Preamble::Long, 1500), 6.343, 6e-4);
    close(mbps(Preamble::Short, 800), 5.679, 6e-4);
}

#[test]
fn turns_cost_nothing_however_many_take_them() {
    let channel = Channel::dsss_11b(Preamble::Long);
    let with = |n| channel.throughput(Access::Tdma, n, 1000);
    assert_eq!(with(1), with(50));
    // A packet of 8000 bits takes 192 + 747.64 + 1 + 10 + 304 + 1 + 10 µs.
    close(with(1).as_mbps(), 8000.0 / 1265.636, 1e-4);
    let basic = |n| channel.throughput(Access::Basic, n, 1000);
    let reserved = |n| channel.throughput(Access::RtsCts, n, 1000);
    assert!(with(10) > basic(10) && basic(40) < basic(5) && reserved(5) < basic(5));
    // With RTS and CTS, contention costs less throughput.
    let fall = |of: &dyn Fn(u32) -> Bitrate| of(40).as_mbps() / of(5).as_mbps();
    assert!(fall(&reserved) > fall(&basic));
    assert_eq!(channel.throughput(Access::Basic, 0, 1000), Bitrate::ZERO);
    assert_eq!(channel.throughput(Access::Basic, 5, 0), Bitrate::ZERO);
    assert!(channel.throughput(Access::Basic, u32::MAX, 1000) < basic(40));
}

/// The rows of a reference table: model or simulator, number of stations, data rate, ACK rate, and
/// the other values.
fn rows(text: &str) -> impl Iterator<Item = (&str, u32, f64, f64, Vec<f64>)> {
    text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |cell: &str| cell.parse::<f64>().expect("a number");
        let rest = cells[4..].iter().map(|cell| number(cell)).collect();
        (cells[0], number(cells[1]) as u32, number(cells[2]), number(cells[3]), rest)
    })
}

fn channel(model: &str, data: f64, ack: f64) -> Channel {
    let base = Channel {
        data_rate: Bitrate::from_mbps(data),
        control_rate: Bitrate::from_mbps(ack),
        ..Channel::dsss_11b(Preamble::Long)
    };
    match model {
        "bianchi" => base,
        "bianchi_eifs" => Channel { collision: CollisionCost::Eifs, ..base },
        _ => Channel { collision: CollisionCost::Eifs, attempts: Some(7), ..base },
    }
}

#[test]
fn an_independent_solution_of_the_model_agrees_to_its_last_digit() {
    let table = include_str!("../../../tests/data/bianchi.csv");
    let mut count = 0;
    for (model, n, data, ack, rest) in rows(table) {
        let [throughput, tau, p] = rest[..] else { panic!("three results a row") };
        let channel = channel(model, data, ack);
        let contention = channel.contention(n);
        close(channel.throughput(Access::Basic, n, 1000).as_mbps(), throughput, 1e-5);
        close(contention.transmit, tau, 1e-6);
        close(contention.collide, p, 1e-6);
        count += 1;
    }
    assert_eq!(count, 90);
}

#[test]
fn event_simulators_agree_within_a_few_percent() {
    // The values are means over seeds. The simulators correspond to the model with EIFS and seven
    // attempts.
    let table = include_str!("../../../tests/data/dcf_sim.csv");
    let mut points: Vec<(&str, u32, f64, f64, Vec<f64>)> = Vec::new();
    for (sim, n, data, ack, rest) in rows(table) {
        let same = |point: &&mut (&str, u32, f64, f64, Vec<f64>)| {
            (point.0, point.1, point.2, point.3) == (sim, n, data, ack)
        };
        match points.iter_mut().find(same) {
            Some(point) => point.4.push(rest[1]),
            None => points.push((sim, n, data, ack, vec![rest[1]])),
        }
    }
    assert!(points.len() >= 50, "{}", points.len());
    for (sim, n, data, ack, measured) in points {
        let mean = measured.iter().sum::<f64>() / measured.len() as f64;
        let model = channel("finite", data, ack).throughput(Access::Basic, n, 1000).as_mbps();
        close(model / mean, 1.0, 0.04);
        assert!(!sim.is_empty());
    }
}
