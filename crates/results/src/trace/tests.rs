use anabranch_core::observe::Observation;
use anabranch_policy::view::SymbolId;
use anabranch_types::{PathId, Time};

use super::*;

/// The blocks of a pcapng file: type and body.
fn blocks(bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut blocks) = (0, Vec::new());
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        assert_eq!(length % 4, 0);
        assert_eq!(word(at + length - 4) as usize, length, "both lengths agree");
        blocks.push((word(at), bytes[at + 8..at + length - 4].to_vec()));
        at += length;
    }
    blocks
}

#[test]
fn blocks_are_as_the_format_has_them() {
    let mut file = PcapNg::begin(Vec::new(), "test", "a comment").unwrap();
    file.interface("wifi").unwrap();
    file.packet(0, 5_000_000_001, &[1, 2, 3], 99, Some("why")).unwrap();
    let bytes = file.finish().unwrap();
    let blocks = blocks(&bytes);
    let kinds: Vec<u32> = blocks.iter().map(|block| block.0).collect();
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 6]);
    assert_eq!(blocks[0].1[..4], [0x4d, 0x3c, 0x2b, 0x1a]);
    assert_eq!(blocks[1].1[..8], [101, 0, 0, 0, 0, 0, 0, 0]);
    let expected: [u32; 5] = [0, 1, 705_032_705, 3, 99];
    let expected: Vec<u8> = expected.into_iter().flat_map(u32::to_le_bytes).collect();
    assert_eq!(blocks[2].1[..20], expected);
    assert_eq!(blocks[2].1[20..24], [1, 2, 3, 0]);
    assert_eq!(blocks[2].1[24..32], [1, 0, 3, 0, b'w', b'h', b'y', 0]);
}

#[test]
fn a_failing_output_is_reported_when_the_file_ends() {
    /// A writer that accepts this many bytes and then fails.
    #[derive(Debug)]
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert!(PcapNg::begin(Full(10), "test", "").is_err());
    let mut file = PcapNg::begin(Full(100), "test", "").unwrap();
    assert!(file.packet(0, 0, &[0; 200], 200, None).is_err());
}

#[test]
fn decisions_are_a_sequence_of_json_texts_for_each_path() {
    let directory = tempfile::tempdir().unwrap();
    let qlog = Qlog::new(directory.path(), "run", "a test");
    let mut observer = qlog.observer();
    let at = Time::from_nanos(1_500_000);
    let congestion =
        |cwnd| Observation::Congestion { path: PathId(1), cwnd, pacing_bps: 0, phase: "slow" };
    observer.observe(at, &congestion(3000));
    observer.observe(at, &congestion(6000));
    observer.observe(at, &Observation::RepairsDue { first: SymbolId(9), count: 2 });
    drop(observer);
    qlog.finish().unwrap();
    let texts = |name: &str| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(directory.path().join(name)).unwrap();
        let texts = text.split('\u{1e}').skip(1);
        texts.map(|text| serde_json::from_str(text.strip_suffix('\n').unwrap()).unwrap()).collect()
    };
    let path = texts("run-path1.sqlog");
    assert_eq!(path[0]["qlog_format"], "JSON-SEQ");
    let names: Vec<&str> = path[1..].iter().map(|event| event["name"].as_str().unwrap()).collect();
    let metrics = "recovery:metrics_updated";
    assert_eq!(names, ["recovery:congestion_state_updated", metrics, metrics]);
    assert_eq!(path[3]["data"]["congestion_window"], 6000);
    assert_eq!((&path[3]["path_id"], &path[3]["time"]), (&1.into(), &1.5.into()));
    assert_eq!(texts("run-connection.sqlog")[1]["data"]["count"], 2);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_connection_can_be_one_file_in_which_paths_stay_apart() {
    let directory = tempfile::tempdir().unwrap();
    let qlog = Qlog::single(directory.path(), "send-1", "a test", "server");
    let mut observer = qlog.observer();
    for path in [0, 1, 0] {
        let path = PathId(path);
        let phase = "slow";
        let event = Observation::Congestion { path, cwnd: 3000, pacing_bps: 0, phase };
        observer.observe(Time::ZERO, &event);
    }
    observer.observe(Time::ZERO, &Observation::RepairsDue { first: SymbolId(9), count: 2 });
    qlog.finish().unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let text = std::fs::read_to_string(directory.path().join("send-1.sqlog")).unwrap();
    let texts: Vec<serde_json::Value> =
        text.split('\u{1e}').skip(1).map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(texts[0]["trace"]["vantage_point"]["type"], "server");
    let (metrics, state) = ("recovery:metrics_updated", "recovery:congestion_state_updated");
    let names: Vec<&str> = texts[1..].iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names, [state, metrics, state, metrics, metrics, "anabranch:repairs_due"]);
    let paths: Vec<Option<u64>> =
        texts[1..].iter().map(|event| event["path_id"].as_u64()).collect();
    assert_eq!(paths, [Some(0), Some(0), Some(1), Some(1), Some(0), None]);
}
