mod waiting;

use super::*;
use std::io::Write as _;

const HEADER: &str = r#"{"kind":"anabranch-recording","format":2,"version":"0.1.0","profile":"mplot","seed":7,"paths":["sat","lte"]}"#;
const EVENTS: &str = r#"
{"t":1000000,"event":"scheduled","path":0,"what":"source","symbol":0,"reason":"own share of blocks"}
{"t":2000000,"event":"scheduled","path":0,"what":"source","symbol":1,"reason":"own share of blocks"}
{"t":3000000,"event":"scheduled","path":1,"what":"repair","symbol":0,"reason":"new data, own share"}
{"t":3500000,"event":"held","path":1,"until":5500000,"reason":"would arrive late"}
{"t":4000000,"event":"block-closed","first":0,"sources":2,"repairs":1,"loss_permille":50}
{"t":1500000000,"event":"repairs-due","first":0,"count":3}
{"t":1600000000,"event":"lost","path":1,"packets":2}
{"t":1700000000,"event":"timeout","path":1,"consecutive":2}
{"t":1700000000,"event":"reinjected","path":1,"packets":5}
{"t":1700000000,"event":"path-state","path":1,"state":"suspect","reason":"nothing heard"}
{"t":1800000000,"event":"congestion","path":0,"window":24000,"pacing_bps":12000000,"phase":"startup"}
{"t":2000000000,"event":"congestion","path":0,"window":12000,"pacing_bps":0,"phase":"recovery"}
{"t":2500000000,"event":"end","missed":0}
"#;

fn recording(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn report(text: &str) -> Result<summary::Report, Failure> {
    let file = recording(text);
    let mut reader = Reader::open(file.path())?;
    let mut summary = Summary::new(reader.header());
    while let Some(line) = reader.next_line()? {
        summary.add(reader.header(), &line);
    }
    Ok(summary.finish(reader.header(), reader.is_cut()))
}

fn whole() -> String {
    format!("{HEADER}{EVENTS}")
}

#[test]
fn events_add_up() {
    let report = report(&whole()).unwrap();
    assert!(report.complete);
    assert_eq!((report.events, report.seconds), (12, 2.5));
    let [sat, lte] = report.paths.as_slice() else { panic!("{:?}", report.paths) };
    assert_eq!((sat.symbols, lte.symbols), (2, 1));
    assert_eq!(sat.reasons[0].name, "own share of blocks");
    assert_eq!((lte.lost_packets, lte.timeouts, lte.timeouts_in_a_row), (2, 1, 2));
    assert_eq!(lte.held[0].count, 1);
    let congestion = sat.congestion.as_ref().unwrap();
    assert_eq!((congestion.window_min, congestion.window_last), (12_000, 12_000));
    let phases: Vec<_> = congestion.phases.iter().map(|p| (p.name.as_str(), p.seconds)).collect();
    assert_eq!(phases, [("recovery", 0.5), ("startup", 0.2)]);
    assert_eq!((report.blocks.closed, report.blocks.repairs_due), (1, 3));
    assert_eq!(report.timeline.iter().map(|i| i.from).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn the_summary_says_what_happened() {
    let text = render::text(&report(&whole()).unwrap());
    for part in [
        "profile mplot, seed 7, 2.5 s, 12 events",
        "Path sat: 2 symbols, 67 % of all.",
        "2  100 %  own share of blocks",
        "2 packets declared lost, 1 probe timeout (up to 2 in a row)",
        "lte became suspect: nothing heard",
        "1 block of 2 symbols on average; 1 repairs planned ahead (50 % of the data)",
    ] {
        assert!(text.contains(part), "missing '{part}' in:\n{text}");
    }
}

#[test]
fn every_event_has_a_sentence() {
    let file = recording(&whole());
    let mut reader = Reader::open(file.path()).unwrap();
    let header = reader.header().clone();
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line().unwrap() {
        lines.push(events::describe(&header, &line));
    }
    assert_eq!(lines.len(), 13);
    assert_eq!(
        lines[2],
        "   0.003000 s  lte: sent a repair of the block from symbol 0 (new data, own share)"
    );
    assert_eq!(lines[3], "   0.003500 s  lte: held back for 2.0 ms (would arrive late)");
}

#[test]
fn a_recording_that_was_cut_off_is_used_as_far_as_it_goes() {
    let whole = whole();
    let cut = &whole[..whole.len() - 20];
    let report = report(cut).unwrap();
    assert!(!report.complete);
    assert_eq!(report.events, 12);
    assert!(render::text(&report).contains("cut off"));
}

#[test]
fn anything_else_is_refused() {
    assert!(Reader::open(std::path::Path::new("/no/such/file")).is_err());
    let newer = HEADER.replace("\"format\":2", "\"format\":3");
    for (text, part) in [
        ("", "is not a recording"),
        ("{}", "is not a recording"),
        ("\u{0}\u{1}\u{2}", "is not a recording"),
        (newer.as_str(), "format 3"),
    ] {
        let error = report(text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let error = report(&format!("{HEADER}\nnonsense\n")).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
    let unknown = format!("{HEADER}\n{{\"t\":1,\"event\":\"nonsense\"}}\n");
    assert!(report(&unknown).is_err());
}

#[test]
fn paths_beyond_the_header_have_numbers() {
    let text =
        format!("{HEADER}\n{{\"t\":1,\"event\":\"lost\",\"path\":4294967295,\"packets\":1}}\n");
    let report = report(&text).unwrap();
    assert_eq!(report.paths.last().unwrap().name, "path 4294967295");
}

/// Observations of a connection are read from a qlog file as from a recording, under the paths' names.
#[test]
fn a_qlog_file_says_what_a_recording_says() {
    use anabranch_core::observe::Observation;
    use anabranch_results::trace::Qlog;
    use anabranch_types::{PathId, Time};
    let (path, directory) = (PathId(1), tempfile::tempdir().unwrap());
    let congestion =
        |cwnd, pacing_bps| Observation::Congestion { path, cwnd, pacing_bps, phase: "startup" };
    let all = crate::record::observations(path);
    let observations = [&[congestion(9, 8)][..], &all, &[congestion(1, 0)]].concat();
    let qlog = Qlog::single(directory.path(), "a", "a connection with somebody", "client");
    let mut observer = qlog.observer();
    qlog.name_path(Time::from_millis(5), path, "wan1");
    for observation in &observations {
        observer.observe(Time::from_millis(5), observation);
    }
    drop(observer);
    qlog.finish().unwrap();
    let mut reader = Reader::open(&directory.path().join("a.sqlog")).unwrap();
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line().unwrap() {
        lines.push(line.entry);
    }
    assert_eq!(reader.header().paths, ["path 0", "wan1"]);
    assert_eq!(lines.pop(), Some(crate::record::Entry::End { missed: 0 }));
    let expected: Vec<_> = observations
        .iter()
        .map(|observation| match observation {
            // Times count from the first event.
            Observation::Held { path, until, reason } => {
                let until = Time::from_nanos(until.as_nanos() - 5_000_000);
                Observation::Held { path: *path, until, reason }
            }
            Observation::Waited { since, what } => {
                let since = Time::from_nanos(since.as_nanos() - 5_000_000);
                Observation::Waited { since, what }
            }
            other => *other,
        })
        .map(|observation| Line::new(Time::ZERO, &observation).unwrap().entry)
        .collect();
    assert_eq!(lines, expected);
    let bad = report("\u{1e}{\"trace\":{}}\n").unwrap_err().to_string();
    assert!(bad.contains("--qlog"), "{bad}");
}

/// A path that carried a third of the data is down for two thirds of the time, then nothing is sent for a second.
#[test]
fn the_largest_cause_comes_first() {
    let mut text = HEADER.to_owned();
    let mut event = |millis: u64, rest: &str| {
        text += &format!("\n{{\"t\":{},{rest}}}", millis * 1_000_000);
    };
    let sent = |path: u32, what: &str| {
        format!(r#""event":"scheduled","path":{path},"what":"{what}","symbol":0,"reason":"r""#)
    };
    for millis in (0..=3000).step_by(100) {
        event(millis, &sent(0, "source"));
        event(millis, &sent(0, "source"));
        if millis <= 1000 {
            event(millis, &sent(1, "source"));
        }
        if millis == 1000 {
            event(millis, r#""event":"path-state","path":1,"state":"suspect","reason":"silence""#);
        }
    }
    event(3000, &sent(0, "repair"));
    event(4000, &sent(0, "source"));
    let report = report(&text).unwrap();
    let causes: Vec<_> = report.causes.iter().map(|cause| (cause.kind, cause.share)).collect();
    // Path 1 carried 11 symbols in 1 s, beside 64 on path 0, and was missed for 3 s.
    let [("path-down", down), ("pause", pause)] = causes[..] else { panic!("{causes:?}") };
    assert!((down - 33.0 / (75.0 + 33.0)).abs() < 1e-9, "{down}");
    assert!((pause - 0.25).abs() < 1e-9, "{pause}");
    let text = render::text(&report);
    let first = "\nWhy it was no faster: lte was down for 3.0 s of 4.0 s; in that time it would have carried 31 % of";
    assert!(text.contains(first), "{text}");
    assert!(
        text.contains(
            "\n  Also: nothing was sent for 1.0 s of 4.0 s (25 %), at most 1.0 s at once"
        ),
        "{text}"
    );
}

/// A pause with a timeout in it is reported as the peer not answering; repairs and holds are reported with their
/// shares.
#[test]
fn causes_have_their_figures() {
    let text = render::text(&report(&whole()).unwrap());
    let overhead = "33 % of the symbols were no new data: 1 repair and 0 sent again, while 2 packets were lost";
    assert!(text.contains(&format!("Why it was no faster: {overhead}.")), "{text}");
    let last =
        r#"{"t":2500000000,"event":"scheduled","path":0,"what":"source","symbol":9,"reason":"r"}"#;
    let text = render::text(
        &report(&format!("{}{last}", whole().replace("2500000000", "2400000000"))).unwrap(),
    );
    let silent = "the peer did not answer and nothing was sent for 2.5 s of 2.5 s (100 %), at most 2.5 s at once, with 1 probe timeout";
    assert!(text.contains(&format!("Why it was no faster: {silent}.")), "{text}");
    let none = render::text(&report(HEADER).unwrap());
    assert!(none.contains("This side sent no data"), "{none}");
}

/// The times of a file may be anything.
#[test]
fn impossible_times_are_borne() {
    let held = format!(r#"{{"t":{0},"event":"held","path":1,"until":{0},"reason":"r"}}"#, u64::MAX);
    let down = r#"{"t":5,"event":"path-state","path":1,"state":"suspect","reason":"r"}"#;
    let sent = r#","event":"scheduled","path":1,"what":"source","symbol":0,"reason":"r"}"#;
    let text = format!(
        "{HEADER}\n{held}\n{{\"t\":{0}{sent}\n{down}\n{{\"t\":0{sent}\n{held}\n{{\"t\":{0}{sent}\n",
        u64::MAX
    );
    let report = report(&text).unwrap();
    assert!(report.causes.iter().all(|cause| (0.0..=1.0).contains(&cause.share)), "{report:?}");
}
