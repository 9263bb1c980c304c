//! `anabranch sim`: runs, interruptions, continuation, refusals and figures.

mod common;

use std::fs;
use std::path::Path;

use common::anabranch;

/// Two flows over one link at two loss rates: four short runs.
const SCENARIO: &str = r#"
name = "pair"
title = "Two flows over one link"
duration = "3s"
warm-up = "500ms"
seeds = 2

[[path]]
name = "p"
rate = "5mbit"
delay = "20ms"
loss = "1%"

[[flow]]
name = "bulk"
count = 2
profile = "tcp:sack"
paths = "p"

[[probe]]
of = "bulk"
series = ["goodput_mbps"]
samples = ["packet_delay_s"]
interval = "500ms"

[[sweep]]
name = "loss"
key = "path.p.loss"
values = ["0%", "2%"]

[[claim]]
metric = "goodput_mbps"
of = "bulk"
min = 0.1
max = 5
"#;

struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Bench { directory: tempfile::tempdir().unwrap() };
        bench.write("pair.toml", SCENARIO);
        bench
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    fn run(&self, more: &str, out: &str) -> common::Ran {
        let line = format!("sim run {} {more} --out {}", self.path("pair.toml"), self.path(out));
        anabranch(&line)
    }

    /// All results that must not depend on how the runs were made.
    fn results(&self, out: &str) -> Vec<Vec<u8>> {
        let names = ["scalars.parquet", "series.parquet", "samples.parquet", "summary.json"];
        let read = |name| fs::read(Path::new(&self.path(out)).join(name)).unwrap();
        names.into_iter().map(read).collect()
    }
}

/// The message of a command on wrong usage: one line.
fn refused(ran: &common::Ran) -> String {
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    ran.stderr.clone()
}

#[test]
fn jobs_do_not_change_a_byte() {
    let bench = Bench::new();
    let report = bench.run("--jobs 1", "one").succeeded();
    assert!(report.contains("loss = 2%"), "{report}");
    assert!(report.contains("holds  goodput_mbps of bulk, loss=0%: "), "{report}");
    bench.run("--jobs 2", "two").succeeded();
    assert!(bench.results("one") == bench.results("two"));
}

#[test]
fn parts_that_are_merged_are_the_same_bytes() {
    let bench = Bench::new();
    bench.run("--seeds 4", "whole").succeeded();
    let parts: Vec<String> = (1..=7).map(|part| bench.path(&format!("part-{part}"))).collect();
    for part in 1..=7 {
        let said = bench.run(&format!("--seeds 4 --shard {part}/7"), &format!("part-{part}"));
        assert!(said.succeeded().contains("finished in"));
    }
    // Parts may be merged in any order, and may overlap.
    let again = bench.run("--seeds 3-4 --shard 1/1", "part-8").succeeded();
    assert!(again.contains("loss = 2%"), "one part of one is all there is: {again}");
    let merged = bench.path("merged");
    let line = |parts: &[String]| format!("sim merge {} --out {merged}", parts.join(" "));
    let some: Vec<String> = [6, 2, 0].map(|part| parts[part].clone()).to_vec();
    let ran = anabranch(&line(&some));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains(" of 8 runs missing: loss=0%, seed"), "{}", ran.stderr);
    let json = fs::read_to_string(Path::new(&merged).join("summary.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let lacking: usize = json["missing"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["seeds"].as_array().unwrap().len())
        .sum();
    let kept: usize = json["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["runs"].as_array().unwrap().len())
        .sum();
    assert_eq!((lacking + kept, json["seeds"].as_array().unwrap().len()), (8, 4));
    let mut rest: Vec<String> = parts.iter().rev().cloned().collect();
    rest.push(bench.path("part-8"));
    anabranch(&line(&rest)).succeeded();
    assert!(bench.results("merged") == bench.results("whole"));
    assert_eq!(
        fs::read(Path::new(&merged).join("scenario.json")).unwrap(),
        fs::read(Path::new(&bench.path("whole")).join("scenario.json")).unwrap()
    );

    let other = format!(
        "sim run {} --set duration=2s --out {}",
        bench.path("pair.toml"),
        bench.path("other")
    );
    anabranch(&other).succeeded();
    for (wrong, why) in [
        (format!("sim merge {} {}", parts[0], bench.path("other")), "another version of scenario"),
        (format!("sim merge {}", bench.path("nowhere")), "no such directory"),
        (format!("sim merge {}", bench.path("pair.toml")), "it is a file"),
    ] {
        let said = refused(&anabranch(&wrong));
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn planned_runs_can_be_chosen() {
    let bench = Bench::new();
    let file = bench.path("pair.toml");
    let plan = anabranch(&format!("sim plan {file} --seeds 11-13 --json")).succeeded();
    let json: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let runs = json["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 6);
    assert_eq!((&runs[0]["point"], &runs[0]["seed"]), (&0.into(), &11.into()));
    assert!(runs.iter().all(|run| run["cost"].as_f64().unwrap() > 0.0));
    let text = anabranch(&format!("sim plan {file} --seeds 11-13 --shards 4")).succeeded();
    assert!(text.contains("2 points × 3 seeds = 6 runs, about "), "{text}");
    assert!(text.contains("--shard 4/4  1 run, "), "{text}");

    let list = |ids: &[&serde_json::Value]| {
        ids.iter().map(|id| format!("{}\n", id.as_str().unwrap())).collect::<String>()
    };
    bench.write("two.txt", &list(&[&runs[4]["id"], &runs[1]["id"]]));
    bench.write("all.json", &plan);
    let two = format!("--seeds 11-13 --runs {}", bench.path("two.txt"));
    let ran = bench.run(&two, "some");
    assert!(ran.stderr.contains("2 runs of them"), "{}", ran.stderr);
    assert!(ran.succeeded().contains("2 runs finished"));
    let mut kept: Vec<String> = fs::read_dir(Path::new(&bench.path("some")).join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".run"))
        .collect();
    kept.sort();
    assert_eq!(kept, ["point0-seed12.run", "point1-seed12.run"]);
    let all = format!("--seeds 11-13 --runs {}", bench.path("all.json"));
    let ran = bench.run(&all, "some");
    assert!(ran.stderr.contains("2 runs finished earlier"), "{}", ran.stderr);
    ran.succeeded();
    bench.run("--seeds 11-13", "whole").succeeded();
    assert!(bench.results("some") == bench.results("whole"));

    // A run's id is of one scenario, one set of settings and one version.
    let said =
        refused(&bench.run(&format!("--set duration=2s --runs {}", bench.path("two.txt")), "no"));
    assert!(said.contains("is not a run of this scenario"), "{said}");
    bench.write("wrong.txt", "bonding\n");
    let said = refused(&bench.run(&format!("--runs {}", bench.path("wrong.txt")), "no"));
    assert!(said.contains("not 32 hexadecimal digits"), "{said}");
    for wrong in ["--seeds 0", "--seeds 4-2", "--shard 3/2", "--shard 1/2 --runs x", "--shard x"] {
        refused(&bench.run(wrong, "no"));
    }
    assert!(!Path::new(&bench.path("no")).exists());
}

#[test]
fn a_run_that_was_interrupted_ends_the_same() {
    let bench = Bench::new();
    bench.run("", "whole").succeeded();
    // Results as an interruption leaves them: one run finished, one cut short, the rest missing.
    bench.run("--seeds 1", "cut").succeeded();
    let cut = bench.path("cut");
    let run = Path::new(&cut).join("runs/point1-seed1.run");
    let bytes = fs::read(&run).unwrap();
    fs::write(&run, &bytes[..bytes.len() / 2]).unwrap();
    for name in ["scalars.parquet", "series.parquet", "samples.parquet", "summary.json"] {
        fs::remove_file(Path::new(&cut).join(name)).unwrap();
    }
    let ran = bench.run("", "cut");
    assert!(ran.stderr.contains("1 run finished earlier"), "{}", ran.stderr);
    ran.succeeded();
    assert!(bench.results("whole") == bench.results("cut"));
}

#[cfg(unix)]
#[test]
fn an_interruption_keeps_what_is_finished_and_says_how_to_go_on() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};
    let bench = Bench::new();
    let long = SCENARIO.replace("\"3s\"", "\"1h\"").replace("seeds = 2", "seeds = 500");
    bench.write("long.toml", &long);
    let out = bench.path("out");
    let mut child = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["sim", "run", &bench.path("long.toml"), "--jobs", "1", "--out", &out])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Wait for the announcement, which comes once Ctrl-C is handled.
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("2 points with 500 seeds"), "{line}");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let said = rest;
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("of 1,000 runs finished; the same command continues"), "{said}");
    assert!(!Path::new(&out).join("summary.json").exists());
}

#[test]
fn more_seeds_are_added_to_those_there_are() {
    let bench = Bench::new();
    bench.run("--seeds 1", "out").succeeded();
    let ran = bench.run("--seeds 2", "out");
    assert!(ran.stderr.contains("2 runs finished earlier"), "{}", ran.stderr);
    ran.succeeded();
    bench.run("--seeds 2", "fresh").succeeded();
    assert!(bench.results("out") == bench.results("fresh"));
}

#[test]
fn results_of_something_else_are_refused_and_kept() {
    let bench = Bench::new();
    bench.run("--seeds 1", "out").succeeded();
    let before = bench.results("out");
    let said = refused(&bench.run("--seeds 1 --set duration=2s", "out"));
    assert!(said.contains("another version of scenario `pair`"), "{said}");
    bench.write("pair.toml", &SCENARIO.replace("\"pair\"", "\"other\""));
    let said = refused(&bench.run("--seeds 1", "out"));
    assert!(said.contains("holds results of scenario `pair`"), "{said}");
    assert!(bench.results("out") == before);

    bench.write("thesis.tex", "years of work");
    let said = refused(&bench.run("--seeds 1", "."));
    assert!(said.contains("holds other files"), "{said}");
    let said = refused(&bench.run("--seeds 1", "thesis.tex"));
    assert!(said.contains("it is a file"), "{said}");
    assert_eq!(fs::read_to_string(bench.path("thesis.tex")).unwrap(), "years of work");
}

#[test]
fn a_place_that_cannot_be_written_fails_and_keeps_earlier_runs() {
    let bench = Bench::new();
    bench.run("--seeds 1", "out").succeeded();
    let out = bench.path("out");
    let blocked = Path::new(&out).join("runs/point0-seed2.run");
    fs::create_dir(&blocked).unwrap();
    let ran = bench.run("--seeds 2 --jobs 1", "out");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("point0-seed2.run: cannot"), "{}", ran.stderr);
    fs::remove_dir(&blocked).unwrap();
    let ran = bench.run("--seeds 2", "out");
    assert!(ran.stderr.contains("2 runs finished earlier"), "{}", ran.stderr);
    ran.succeeded();
}

#[test]
fn mistakes_are_named_with_their_place() {
    let bench = Bench::new();
    let wrong = [
        ("duration = \"3s\"", "duration = \"0s\"", "pair.toml:4:"),
        ("rate = \"5mbit\"", "rate = \"-5mbit\"", "pair.toml:10:"),
        ("rate = \"5mbit\"", "rate = \"5parsec\"", "pair.toml:10:"),
        ("\"2%\"]", "\"102%\"]", "pair.toml:29:"),
        ("delay = \"20ms\"", "delays = \"20ms\"", "pair.toml:11:"),
    ];
    for (right, mistake, place) in wrong {
        bench.write("pair.toml", &SCENARIO.replacen(right, mistake, 1));
        let ran = bench.run("", "out");
        assert_eq!(ran.code, Some(2), "{mistake}: {}", ran.stderr);
        assert!(ran.stderr.contains(place), "{mistake}: {}", ran.stderr);
        assert!(!Path::new(&bench.path("out")).exists(), "{mistake}");
    }
    let mistakes = || {
        let ran = anabranch(&format!("sim check {} --json", bench.path("pair.toml")));
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.code, &answer["ok"]), (Some(2), &false.into()), "{answer}");
        answer["mistakes"].as_array().unwrap().clone()
    };
    assert!(mistakes().iter().any(|mistake| mistake["line"] == 11));
    bench.write(
        "pair.toml",
        &SCENARIO.replacen("duration = ", "quick = { seeds = 0 }\nduration = ", 1),
    );
    assert!(
        mistakes().iter().any(|mistake| mistake["line"] == 4),
        "a mistake in what --quick changes"
    );
    bench.write("pair.toml", SCENARIO);
    let said = refused(&bench.run("--set flow.bulk.count=many", "out"));
    assert!(said.contains("flow.bulk.count"), "{said}");
    for option in ["--seeds 0", "--seeds -1", "--jobs 0", "--jobs many"] {
        refused(&bench.run(option, "out"));
    }
    let ran = anabranch(&format!("sim run {}", bench.path("missing.toml")));
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(2), 1), "{}", ran.stderr);
    fs::write(bench.path("pair.toml"), [0xff, 0xfe, 0x00]).unwrap();
    let ran = bench.run("", "out");
    assert!(ran.stderr.contains("is not text"), "{}", ran.stderr);
}

#[test]
fn a_claim_that_fails_fails_the_run() {
    let bench = Bench::new();
    bench.write("pair.toml", &SCENARIO.replace("min = 0.1", "min = 4.99"));
    let ran = bench.run("--seeds 1", "out");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains("FAILS  goodput_mbps of bulk, loss=2%: "), "{}", ran.stdout);
    assert!(ran.stderr.contains("claims of the scenario fail"), "{}", ran.stderr);
    let summary = fs::read_to_string(Path::new(&bench.path("out")).join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert!(summary["claims"].as_array().unwrap().iter().any(|claim| claim["verdict"] == "fails"));
}

#[test]
fn check_says_what_would_run() {
    let bench = Bench::new();
    let said = anabranch(&format!("sim check {}", bench.path("pair.toml"))).succeeded();
    assert!(said.contains("2 points × 2 seeds = 4 runs, at most 12 s of virtual time"), "{said}");
    assert!(said.contains("2 flows"), "{said}");
    let schema = anabranch("sim check --schema").succeeded();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert!(schema["properties"]["duration"].is_object());
}

#[test]
fn figures_are_drawn_of_what_there_is() {
    let bench = Bench::new();
    bench.run("", "out").succeeded();
    let out = bench.path("out");
    let files = anabranch(&format!("sim plot {out} --metric goodput_mbps --json")).succeeded();
    let files: Vec<String> = serde_json::from_str(&files).unwrap();
    assert!(files.iter().any(|file| file.ends_with("figures/goodput_mbps.svg")), "{files:?}");
    for file in &files {
        assert!(fs::read_to_string(file).unwrap().starts_with("<svg "), "{file}");
    }
    let line = format!("sim plot {out} --metric goodput_mbps --format png --format pdf --json");
    let files: Vec<String> = serde_json::from_str(&anabranch(&line).succeeded()).unwrap();
    assert!(files.len().is_multiple_of(3) && !files.is_empty(), "{files:?}");
    for (file, begins) in files.iter().zip([&b"<svg "[..], b"\x89PNG", b"%PDF-"].iter().cycle()) {
        assert!(fs::read(file).unwrap().starts_with(begins), "{file}");
    }
    let said = refused(&anabranch(&format!("sim plot {out} --format jpeg")));
    assert!(said.contains("possible values: svg, png, pdf"), "{said}");
    let text = anabranch(&format!("sim plot {out} --metric packet_delay_s")).succeeded();
    assert!(text.starts_with("1 figure in ") && text.ends_with("index.html\n"), "{text}");
    let page = fs::read_to_string(Path::new(&out).join("figures/index.html")).unwrap();
    // The page has the figures that were drawn before, too.
    for figure in ["goodput_mbps.svg", "packet_delay_s-distribution.svg"] {
        assert!(page.contains(&format!("<img src=\"{figure}\"")), "{page}");
    }
    let said = refused(&anabranch(&format!("sim plot {out} --metric gooodput")));
    assert!(said.contains("there is no metric 'gooodput'; there are:"), "{said}");
    let said = refused(&anabranch(&format!("sim plot {out} --x los")));
    assert!(said.contains("there is no sweep key 'los'; there is: loss"), "{said}");
    fs::remove_file(Path::new(&out).join("series.parquet")).unwrap();
    let ran = anabranch(&format!("sim plot {out}"));
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("the run is not finished"), "{}", ran.stderr);
    fs::write(Path::new(&out).join("series.parquet"), "not a table").unwrap();
    let ran = anabranch(&format!("sim plot {out}"));
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(1), 1), "{}", ran.stderr);
    let said = refused(&anabranch(&format!("sim plot {}", bench.path("."))));
    assert!(said.contains("holds no results"), "{said}");
}

#[test]
fn packets_can_be_captured() {
    let bench = Bench::new();
    let ran = bench.run("--seeds 1 --pcapng", "out");
    ran.succeeded();
    let capture = Path::new(&bench.path("out")).join("traces/point0-seed1.pcapng");
    let bytes = fs::read(capture).unwrap();
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert!(bytes.len() > 10_000, "{}", bytes.len());
    bench.run("--seeds 1 --set flow.bulk.profile=anabranch --qlog", "why").succeeded();
    let qlog = Path::new(&bench.path("why")).join("traces/point0-seed1-bulk.1-path0.sqlog");
    let text = fs::read_to_string(qlog).unwrap();
    assert!(text.starts_with("\u{1e}{") && text.contains("recovery:metrics_updated"));
    // Runs that are kept without their traces are run again when traces are wanted.
    let bare = bench.run("--seeds 1", "bare");
    bare.succeeded();
    let ran = bench.run("--seeds 1 --pcapng", "bare");
    assert!(!ran.stderr.contains("finished earlier"), "{}", ran.stderr);
    ran.succeeded();
    assert!(Path::new(&bench.path("bare")).join("traces/point1-seed1.pcapng").exists());
}

/// Positions and hops are drawn as a map, even if only one of its metrics is asked for.
#[test]
fn a_map_shows_stations_and_routes() {
    let bench = Bench::new();
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/radio/moving.toml");
    let out = bench.path("map");
    anabranch(&format!("sim run {scenario} --set duration=4s --out {out}")).succeeded();
    let files = anabranch(&format!("sim plot {out} --json")).succeeded();
    let files: Vec<String> = serde_json::from_str(&files).unwrap();
    let named = |name: &str| files.iter().filter(|file| file.contains(name)).count();
    // Positions are drawn as a map, not as a line for each of the fifty stations.
    assert_eq!((named("stations-map.svg"), named("x_m"), named("hop_")), (1, 0, 0), "{files:?}");
    let asked = anabranch(&format!("sim plot {out} --metric hop_losses --json")).succeeded();
    let asked: Vec<String> = serde_json::from_str(&asked).unwrap();
    assert!(asked.len() == 1 && asked[0].ends_with("stations-map.svg"), "{asked:?}");
    let svg = fs::read_to_string(&asked[0]).unwrap();
    assert_eq!(svg.matches("<circle ").count(), 2 * 50, "two panels of 50 stations");
    assert!(svg.contains("<title>Stations and routes</title>") && svg.contains(">2 to 4 s</text>"));
}
