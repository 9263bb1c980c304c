"""Reports and tables: what runs measured, and how other libraries get it."""

import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import anabranch as ab
from conftest import TEXT


def test_a_report_says_what_run_it_is_of(scenario: ab.Scenario, report: ab.Report) -> None:
    run = scenario.runs()[0]
    assert report.run == run
    again = scenario.run(run)
    assert again.digest == report.digest and len(report.digest) == 16
    assert again.to_bytes() == report.to_bytes()
    assert (report.packet_hops, report.events) == (again.packet_hops, again.events)
    assert report.packet_hops > 1000 and report.events > report.packet_hops
    assert report.virtual_seconds == 2.0
    assert repr(report).startswith("<Report of loss=1%, flows=1, seed=1: ")


def test_single_figures_are_found_by_name(report: ab.Report) -> None:
    rows = {(row["subject"], row["metric"]): row["value"] for row in report.scalars.rows()}
    assert report.value("bulk", "goodput_mbps") == rows["bulk", "goodput_mbps"] > 1
    with pytest.raises(KeyError, match="there is nothing called 'blk'; there are: all, bulk, "):
        report.value("blk", "goodput_mbps")
    with pytest.raises(KeyError, match="'bulk' has no figure 'x'; it has: goodput_mbps, "):
        report.value("bulk", "x")


def test_tables_have_the_columns_of_the_files(report: ab.Report) -> None:
    common = ["point", "loss", "flows", "seed", "subject", "metric"]
    assert report.scalars.columns == [*common, "value"]
    assert report.series.columns == [*common, "time_s", "value"]
    assert report.samples.columns == [*common, "index", "value"]
    first = report.series.rows()[0]
    assert (first["point"], first["loss"], first["flows"], first["seed"]) == (0, "1%", 1.0, 1)
    assert (first["subject"], first["metric"]) == ("bulk", "goodput_mbps")
    assert report.samples["index"] == list(range(len(report.samples)))
    series = report.series
    assert len(series) == len(series["value"]) == 20
    assert series.to_dict()["time_s"] == [row["time_s"] for row in series.rows()]
    with pytest.raises(KeyError, match="there is no column 'x'; there are: point, loss"):
        series["x"]


def test_tables_are_shown(report: ab.Report) -> None:
    assert repr(report.series) == (
        "<Table of 20 rows: point, loss, flows, seed, subject, metric, time_s, value>"
    )
    html = report.series._repr_html_()
    assert html.count("<tr>") == 11 and "<p>20 rows</p>" in html and "<td>1%</td>" in html


def test_an_empty_table_has_columns(scenario: ab.Scenario) -> None:
    text = TEXT[: TEXT.index("[[probe]]")]
    plain = ab.Scenario.parse(text)
    report = plain.run(plain.runs(1)[0])
    assert len(report.series) == 0 and report.series.rows() == []
    assert report.series.columns == ["point", "seed", "subject", "metric", "time_s", "value"]


def test_reports_are_sent_as_bytes(scenario: ab.Scenario, report: ab.Report) -> None:
    data = report.to_bytes()
    again = ab.Report.from_bytes(data, scenario)
    assert again.run == report.run and again.run.index == report.run.index
    assert again.to_bytes() == data
    with pytest.raises(ValueError, match="these bytes are not a report, or are damaged"):
        ab.Report.from_bytes(data[:-1], scenario)
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 1
    with pytest.raises(ValueError, match="not a report"):
        ab.Report.from_bytes(bytes(damaged), scenario)
    other = scenario.with_settings({"path.p.delay": "20ms"})
    with pytest.raises(ValueError, match="another scenario than 'small'"):
        ab.Report.from_bytes(data, other)


def test_reports_are_pickled(report: ab.Report) -> None:
    again = pickle.loads(pickle.dumps(report))
    assert again.to_bytes() == report.to_bytes()
    assert (again.run, again.run.index) == (report.run, report.run.index)
    assert again.series.rows() == report.series.rows()
    restore, (data, run, numeric) = report.__reduce__()
    with pytest.raises(ValueError, match="the pickled report is damaged"):
        restore(data[1:], run, numeric)


def buffers(table: ab.Table, column: str) -> list[int]:
    """Where the values of a column are in memory."""
    pyarrow = pytest.importorskip("pyarrow")
    chunks = pyarrow.table(table).column(column).chunks
    return [chunk.buffers()[1].address for chunk in chunks]


def test_values_are_not_copied(report: ab.Report) -> None:
    # Each time it is asked, the report makes a new table; only its own memory is where it was.
    for table in ("series", "samples"):
        first, second = getattr(report, table), getattr(report, table)
        assert first is not second
        assert buffers(first, "value") == buffers(second, "value")
    assert buffers(report.series, "time_s") == buffers(report.series, "time_s")
    assert buffers(report.series, "time_s") != buffers(report.series, "value")


def test_tables_outlive_their_report(scenario: ab.Scenario) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    report = scenario.run(scenario.runs()[0])
    expected = report.samples["value"]
    table = pyarrow.table(report.samples)
    del report
    gc.collect()
    assert table.column("value").to_pylist() == expected
    table.validate(full=True)


def by_pyarrow(table: ab.Table) -> dict[str, Any]:
    return pytest.importorskip("pyarrow").table(table).to_pydict()


def by_polars(table: ab.Table) -> dict[str, Any]:
    return pytest.importorskip("polars").DataFrame(table).to_dict(as_series=False)


def by_pandas(table: ab.Table) -> dict[str, Any]:
    pandas = pytest.importorskip("pandas", minversion="3")
    return pandas.DataFrame.from_arrow(table).to_dict(orient="list")


def by_duckdb(ours: ab.Table) -> dict[str, Any]:
    # It finds what the query names among our variables.
    found = pytest.importorskip("duckdb").sql("select * from ours")
    rows = found.fetchall()
    return {name: [row[at] for row in rows] for at, name in enumerate(found.columns)}


@pytest.mark.parametrize("read", [by_pyarrow, by_polars, by_pandas, by_duckdb])
def test_other_libraries_read_tables(
    report: ab.Report, read: Callable[[ab.Table], dict[str, Any]]
) -> None:
    assert read(report.series) == report.series.to_dict()
