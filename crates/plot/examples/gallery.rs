//! Draws one figure of every kind into the given directory, for visual inspection.

use anabranch_plot::{BarSeries, Bars, Figure, Line, Style};

fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    for (name, figure) in [
        ("lines", lines()),
        ("log", log()),
        ("distribution", distribution()),
        ("time", time()),
        ("shares", shares()),
        ("bars", bars()),
        ("many", many()),
    ] {
        let path = std::path::Path::new(&directory).join(format!("{name}.svg"));
        std::fs::write(path, figure.to_svg())?;
    }
    Ok(())
}

fn lines() -> Figure {
    let line = |name: &str, scale: f64| {
        let at = |x: f64| 40.0 / (1.0 + scale * x);
        let points: Vec<(f64, f64)> =
            (0..=10).map(|x| f64::from(x) * 5.0).map(|x| (x, at(x))).collect();
        let band = points.iter().map(|p| (p.1 * 0.93 - 0.5, p.1 * 1.06 + 0.5)).collect();
        Line::new(name, points).band(band)
    };
    Figure::new(
        "Goodput of a transfer over three lossy links",
        "loss probability (%)",
        "goodput (Mb/s)",
    )
    .line(line("anabranch", 0.01))
    .line(line("mplot", 0.02))
    .line(line("tcp:sack", 0.6))
    .line(line("tcp:cubic", 0.5))
    .reference("the paper states", 33.5)
    .caption(
        "Mean over 10 seeds with the 95 % interval of Student's t as a band. Bottleneck 10 Mb/s, \
             round trip 100 ms, 300 s of which the first 50 s are not counted.",
    )
}

fn log() -> Figure {
    let line = |name: &str, scale: f64| {
        let points = (0..=12).map(|i| libm::pow(10.0, -4.0 + f64::from(i) / 4.0));
        Line::new(name, points.map(|p| (p, scale / libm::sqrt(p))).collect())
    };
    let mut figure = Figure::new("Rate against loss", "loss probability", "rate (packets/s)")
        .line(line("c = 1.22", 12.2))
        .line(line("c = 0.93", 9.3));
    figure.x.log = true;
    figure.y.log = true;
    figure
}

fn distribution() -> Figure {
    let values = |seed: u64, scale: f64| -> Vec<f64> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..3000).map(|_| 0.02 - scale * libm::log(1.0 - next())).collect()
    };
    let (one, two, few) = (values(1, 0.03), values(2, 0.08), [0.05, 0.1, 0.1, 0.3]);
    Figure::distributions(
        "Delay of packets",
        "delay (s)",
        [("coded", one.as_slice()), ("retransmitted", &two), ("four only", &few)],
    )
}

fn time() -> Figure {
    let line = |name: &str, period: f64, top: f64| {
        let at = |t: f64| top * (0.5 + 0.5 * libm::fmod(t, period) / period);
        let points = (0..30_000).map(|i| f64::from(i) * 0.01).map(|t| (t, at(t))).collect();
        Line::new(name, points).style(Style::Plain)
    };
    Figure::new("Congestion windows", "time (s)", "window (packets)")
        .line(line("flow 0", 17.0, 84.0))
        .line(line("flow 1", 23.0, 77.0))
        .line(line("flow 2", 5.0, 12_345.0 / 300.0))
}

fn shares() -> Figure {
    let points = |scale: f64, shift: f64| {
        (0..=60)
            .map(|t| (f64::from(t), scale * (1.2 + libm::sin(f64::from(t) / 9.0 + shift))))
            .collect()
    };
    Figure::new("Rate per path", "time (s)", "delivered (Mb/s)")
        .layer("starlink", points(40.0, 0.0))
        .layer("lte", points(12.0, 2.0))
        .layer("wifi & cable <5 GHz>", points(20.0, 4.0))
}

fn bars() -> Figure {
    let values = |values: [f64; 4]| values.map(|v| (v, v * 0.9, v * 1.12)).to_vec();
    let categories =
        ["one path", "two paths, the second far", "ten paths", "ten paths, correlated losses"];
    Figure::new("Completion time of 1 MB", "", "time (s)").bars(Bars {
        categories: categories.map(str::to_owned).to_vec(),
        series: vec![
            BarSeries {
                name: "anabranch".to_owned(),
                values: values([3.1, 1.7, 0.6, 0.9]),
                is_outlined: false,
            },
            BarSeries {
                name: "tcp:sack".to_owned(),
                values: values([9.0, 8.0, 7.7, 8.1]),
                is_outlined: false,
            },
        ],
    })
}

fn many() -> Figure {
    let mut figure = Figure::new(
        "A title that is so long that it does not fit on one line of a figure that is six hundred and forty pixels wide",
        "offered load (share of the bottleneck's rate)",
        "99th percentile of completion time over all transfers (s)",
    );
    for index in 0..12 {
        let points = (0..8).map(|x| (f64::from(x) * 1e6, 1e-4 * f64::from(x * x + index)));
        figure = figure
            .line(Line::new(format!("variant number {index} of the profile"), points.collect()));
    }
    figure
}
