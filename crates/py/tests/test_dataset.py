"""Results directories and sweeps."""

import filecmp
import json
import subprocess
from pathlib import Path

import pytest

import anabranch as ab
from conftest import TEXT

FILES = ["scalars.parquet", "series.parquet", "samples.parquet", "summary.json"]


def same(one: Path, other: Path) -> bool:
    """Whether two directories have the same tables and summary."""
    return filecmp.cmpfiles(one, other, FILES, shallow=False) == (FILES, [], [])


def test_a_dataset_is_what_the_program_writes(
    tmp_path: Path, scenario: ab.Scenario, program: Path
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    theirs = tmp_path / "theirs"
    subprocess.run([program, "sim", "run", file, "--out", theirs], check=True, capture_output=True)
    with ab.Dataset(tmp_path / "ours", ab.Scenario.load(file)) as dataset:
        # In an order of our own.
        for run in reversed(dataset.missing()):
            dataset.commit(dataset.scenario.run(run))
        summary = dataset.write()
    assert same(tmp_path / "ours", theirs)
    assert summary == json.loads((theirs / "summary.json").read_text())
    # Either goes on with what the other began.
    with ab.Dataset(theirs, scenario) as dataset:
        assert dataset.missing() == []
    again = [program, "sim", "run", file, "--out", tmp_path / "ours"]
    said = subprocess.run(again, check=True, capture_output=True, text=True)
    assert "12 runs finished earlier" in said.stderr


def test_directories_are_merged(tmp_path: Path, scenario: ab.Scenario, results: ab.Results) -> None:
    for part in range(3):
        with ab.Dataset(tmp_path / f"part{part}", scenario) as dataset:
            dataset.commit(results.reports[part::3])
    with ab.Dataset(tmp_path / "all", scenario) as dataset:
        missing = dataset.merge(tmp_path / "part0", tmp_path / "part2")
        assert missing == scenario.runs()[1::3] == dataset.missing()
        assert dataset.missing(scenario.runs()[:2]) == missing[:1]
        with pytest.raises(ab.IncompleteError, match="4 of 12 runs missing, the first") as lacking:
            dataset.write()
        assert lacking.value.missing == missing
        partial = dataset.write(partial=True)
        assert sum(len(point["seeds"]) for point in partial["missing"]) == 4
        assert dataset.merge(tmp_path / "part1") == []
        dataset.write()
    whole = scenario.sweep(out=tmp_path / "whole")
    whole.close()
    assert same(tmp_path / "all", tmp_path / "whole")


def test_tables_hold_every_run(tmp_path: Path, scenario: ab.Scenario, results: ab.Results) -> None:
    with ab.Dataset(tmp_path / "out", scenario) as dataset:
        dataset.commit(results.reports)
        for table in ("scalars", "series", "samples"):
            rows = getattr(dataset, table).rows()
            assert rows == getattr(results, table).rows()
            assert {(row["point"], row["seed"]) for row in rows} == {
                (run.index, run.seed) for run in scenario.runs()
            }
        pyarrow = pytest.importorskip("pyarrow.parquet")
        dataset.write()
        for table in ("scalars", "series", "samples"):
            written = pyarrow.read_table(tmp_path / "out" / f"{table}.parquet")
            assert written.to_pylist() == getattr(dataset, table).rows()


def test_tables_are_parted_by_sweep_keys(
    tmp_path: Path, scenario: ab.Scenario, results: ab.Results
) -> None:
    out = tmp_path / "out"
    with ab.Dataset(out, scenario) as dataset:
        dataset.commit(results.reports)
        key = next(iter(scenario.points[0]))
        for wrong, why in [("nothing", f"no sweep key 'nothing'; it has {key}"), (3, "sweep key")]:
            with pytest.raises((ValueError, TypeError), match=why):
                dataset.write(partition_by=wrong)  # type: ignore[arg-type]
        dataset.write(partition_by=key)
        rows = dataset.scalars.rows()
    parts = sorted((out / "partitions").iterdir())
    values = {point[key] for point in scenario.points}
    assert len(parts) == len(values)
    polars = pytest.importorskip("polars")
    for hive in (False, True):
        read = polars.read_parquet(out / "partitions/*/scalars.parquet", hive_partitioning=hive)
        assert len(read) == len(rows)
        assert sorted(read["value"].to_list()) == sorted(row["value"] for row in rows)
    duckdb = pytest.importorskip("duckdb")
    pattern = str(out / "partitions/**/scalars.parquet")
    counted = duckdb.sql(f"select count(*) from read_parquet('{pattern}', hive_partitioning=true)")
    assert counted.fetchall() == [(len(rows),)]


def test_a_directory_is_for_one_writer_and_one_scenario(
    tmp_path: Path, scenario: ab.Scenario
) -> None:
    dataset = ab.Dataset(tmp_path / "out", scenario, seeds=2)
    assert (dataset.seeds, dataset.path) == ([1, 2], tmp_path / "out")
    assert len(dataset.runs()) == 8 and dataset.scenario == scenario
    assert repr(dataset) == f"<Dataset '{tmp_path / 'out'}' of 'small', for 8 runs>"
    with pytest.raises(ab.ResultsError, match="out: another run is writing its results here"):
        ab.Dataset(tmp_path / "out", scenario)
    dataset.close()
    dataset.close()
    with pytest.raises(ValueError, match="out: the dataset is closed"):
        dataset.missing()
    other = scenario.with_settings({"path.p.delay": "20ms"})
    with pytest.raises(ab.ResultsError, match="it holds results of another version of scenario"):
        ab.Dataset(tmp_path / "out", other)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/letter.txt").write_text("Dear")
    with pytest.raises(OSError, match="it holds other files; give another directory"):
        ab.Dataset(tmp_path / "full", scenario)


def test_wrong_reports_are_refused(
    tmp_path: Path, scenario: ab.Scenario, results: ab.Results
) -> None:
    other = scenario.with_settings({"path.p.delay": "20ms"})
    with ab.Dataset(tmp_path / "out", scenario, 1) as dataset:
        report = results.reports[0]
        with pytest.raises(ValueError, match="is none of scenario 'small'"):
            dataset.commit([report, other.run(other.runs()[0])])
        assert len(dataset.missing()) == 4, "none of them is kept"
        with pytest.raises(ValueError, match="seed=2: the dataset is not for seed 2"):
            dataset.commit(results.reports[1])
        with pytest.raises(TypeError, match="a report, or several, not int"):
            dataset.commit([3])  # type: ignore[list-item]
        with pytest.raises(TypeError, match="a report, or several, not int"):
            dataset.commit(3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a run, or several, not str"):
            dataset.missing("x")  # type: ignore[arg-type]
        with pytest.raises(ab.ResultsError, match="nowhere: there is no such directory"):
            dataset.merge(tmp_path / "nowhere")
        dataset.commit(report)
        assert len(dataset.missing()) == 3


def test_a_sweep_is_the_same_however_it_is_made(
    tmp_path: Path, scenario: ab.Scenario, results: ab.Results
) -> None:
    seen: list[tuple[int, int]] = []
    one = scenario.sweep(jobs=1, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(done, 12) for done in range(1, 13)]
    assert [r.to_bytes() for r in one.reports] == [r.to_bytes() for r in results.reports]
    assert [report.run for report in one.reports] == scenario.runs()
    assert len(one) == 12 and one.scenario == scenario
    assert repr(one) == "<Results of 'small': 12 reports>"
    dataset = scenario.sweep(out=tmp_path / "out", seeds=1)
    dataset.close()
    seen.clear()
    more = scenario.sweep(out=tmp_path / "out", progress=lambda done, of: seen.append((done, of)))
    assert isinstance(more, ab.Dataset) and seen[-1] == (8, 8), "four were there"


def test_a_sweep_ends_with_what_goes_wrong(scenario: ab.Scenario) -> None:
    def stop(done: int, of: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        scenario.sweep(progress=stop)
    with pytest.raises(ValueError, match="jobs: at least 1"):
        scenario.sweep(jobs=0)


def test_figures_are_drawn(tmp_path: Path, results: ab.Results) -> None:
    figure = ab.plot(results)
    assert figure.title == "Goodput" and figure.svg.startswith("<svg ")
    assert figure._repr_svg_() == figure.svg and repr(figure) == "<Figure 'Goodput'>"
    assert "Scenario small; anabranch 0." in " ".join(figure.svg.split())
    figure.save(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text() == figure.svg
    assert ab.plot(results, kind="time", point=1).title == "Goodput, loss = 1%, flows = 2"
    assert ab.plot(results, "packet_delay_s").title == "Packet delay"
    assert "flows" in ab.plot(results, x="flows").svg
    with pytest.raises(ValueError, match="x.png: figures are SVG; give a name that ends in .svg"):
        figure.save(tmp_path / "x.png")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        figure.save(tmp_path / "nowhere/x.svg")
    for wrong, text in [
        ({"metric": "x"}, "there is no 'x' to draw; measured: .*goodput_mbps"),
        ({"subject": "x"}, "there is no 'goodput_mbps' of 'x' to draw; measured"),
        ({"kind": "x"}, "kind: 'x' is not one of summary, time, distribution, shares"),
        ({"kind": "distribution"}, "there is no 'goodput_mbps' to draw as \"distribution\""),
        ({"x": "y"}, "there is no sweep key 'y'; there is: loss, flows"),
        ({"kind": "time"}, "each point has a figure of its own; say which by point=0"),
    ]:
        with pytest.raises(ValueError, match=text):
            ab.plot(results, **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a Dataset, Results or a Report, not int"):
        ab.plot(3)  # type: ignore[arg-type]
    assert ab.plot(results.reports[0]).title == "Goodput"
    out = tmp_path / "out"
    with ab.Dataset(out, results.scenario) as dataset:
        dataset.commit(results.reports)
        assert ab.plot(dataset).svg == figure.svg
