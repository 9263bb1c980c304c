//! `anabranch repro`: items listed, checked and refused.

mod common;

use common::anabranch;

#[test]
fn every_item_is_listed() {
    let json: serde_json::Value =
        serde_json::from_str(&anabranch("repro --list --json").succeeded()).unwrap();
    let items = json["items"].as_array().unwrap();
    assert_eq!(items.len(), 96);
    assert_eq!((&items[0]["id"], &items[0]["status"]), (&"mplot-tab2".into(), &"formula".into()));
    let text = anabranch("repro --list --paper late").succeeded();
    assert!(text.contains("late-fig1") && !text.contains("mplot"), "{text}");
}

#[test]
fn formulas_are_checked_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("repro");
    let line = format!("repro mplot-tab2 late-fig1 mtcp-fig2 --json --out {}", out.display());
    let json: serde_json::Value = serde_json::from_str(&anabranch(&line).succeeded()).unwrap();
    let verdicts: Vec<&str> = json["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["reproduced", "reproduced", "differs"]);
    assert_eq!(json["items"][1]["measured"]["X_i"]["mean"], 11.0);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("late-fig1") && page.contains("<svg"));
    let kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("report.json")).unwrap()).unwrap();
    assert_eq!(kept, json);
}

#[test]
fn what_does_not_exist_is_named_with_its_neighbours() {
    for (line, near) in
        [("repro mplot-fig33", "mplot-fig3"), ("repro --paper quic", "fmtcp"), ("repro", "--list")]
    {
        let ran = anabranch(line);
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains(near), "{line}: {}", ran.stderr);
    }
}

#[test]
fn parts_are_merged_to_the_same_report() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    // The cheapest item that is simulated.
    let item = "ptcp-fig7b --quick";
    let plan: serde_json::Value =
        serde_json::from_str(&anabranch(&format!("repro {item} --plan --json")).succeeded())
            .unwrap();
    assert!(plan["runs"].as_array().unwrap().len() > 2, "{plan}");
    anabranch(&format!("repro {item} --out {}", path("whole"))).succeeded();
    for part in [1, 2] {
        let line = format!("repro {item} --shard {part}/2 --out {}", path(&format!("part-{part}")));
        assert!(anabranch(&line).succeeded().contains("finished"));
    }
    let merge = |parts: &[&str], out: &str| {
        let parts: String = parts.iter().map(|part| format!("--merge {} ", path(part))).collect();
        anabranch(&format!("repro {item} {parts} --out {}", path(out)))
    };
    let ran = merge(&["part-2"], "some");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("runs are missing, the first of them ptcp/"), "{}", ran.stderr);
    merge(&["part-2", "part-1"], "merged").succeeded();
    for name in ["report.json", "report.html"] {
        let read = |out: &str| std::fs::read(directory.path().join(out).join(name)).unwrap();
        assert!(read("merged") == read("whole"), "{name}");
    }
    let ran = merge(&["nowhere"], "no");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}
