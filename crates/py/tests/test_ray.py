"""Sweeps on a real Ray cluster of two nodes on this machine, that loses workers and nodes."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab

ray = pytest.importorskip("ray", reason="ray is not installed")

from ray.cluster_utils import Cluster  # noqa: E402

import anabranch.ray as abr  # noqa: E402

#: Of what a driver in a process of its own needs too.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Else Ray asks the routing table for an address and listens there.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}

SCENARIO = """
name = "swept"
duration = "{duration}"
seeds = 6
path = [
  { name = "near", rate = "8mbit", delay = "10ms", loss = "1%" },
  { name = "far", rate = "4mbit", delay = "40ms" },
]
flow = [{ name = "bulk", profile = "anabranch" }]
probe = [{ series = ["goodput_mbps"], interval = "500ms" }]
sweep = [{ key = "path.near.loss", values = ["0%", "1%", "3%", "10%"] }]
"""


class Nodes:
    """A cluster on loopback: a head, to which the driver is connected, and nodes to be lost."""

    def __init__(self) -> None:
        common = {"node_ip_address": "127.0.0.1", "object_store_memory": 80 * 2**20}
        head = {"num_cpus": 1, "include_dashboard": False, "include_log_monitor": False, **common}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._common = common
        self._others = [self.add()]
        self.address: str = self._cluster.address
        ray.init(address=self.address, log_to_driver=False)

    def add(self) -> Any:
        return self._cluster.add_node(num_cpus=1, **self._common)

    def lose(self) -> None:
        """Ends a node as a power cut does."""
        self._cluster.remove_node(self._others.pop(), allow_graceful=False)

    def mend(self) -> None:
        if not self._others:
            self._others.append(self.add())

    def close(self) -> None:
        ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    # Sockets lie in there, and their names may have 107 bytes: the directory of pytest is too deep.
    with (
        tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as place,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in {**ENVIRONMENT, "RAY_TMPDIR": place}.items():
            patch.setenv(name, value)
        patch.setattr("ray._private.ray_constants.ENABLE_RAY_CLUSTER", False)
        Path(place, "ray").mkdir()
        nodes = Nodes()
        try:
            yield nodes
        finally:
            nodes.close()


@pytest.fixture
def cluster(nodes: Nodes) -> Nodes:
    nodes.mend()
    return nodes


def scenario(duration: str = "4s") -> ab.Scenario:
    return ab.Scenario.parse(SCENARIO.replace("{duration}", duration), name="swept.toml")


def workers() -> list[int]:
    """The processes that are making runs now."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            name = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if name.startswith(b"ray::anabranch swept"):
            found.append(int(entry.name))
    return found


def kept(out: Path) -> int:
    return len(list((out / "runs").glob("*"))) if (out / "runs").exists() else 0


def when(condition: Callable[[], object], then: Callable[[], None]) -> threading.Thread:
    """Does something beside the test once `condition` holds; the test must join it."""

    def watch() -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "it never came to that"
            time.sleep(0.02)
        then()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def assert_same(out: Path, whole: Path) -> None:
    """The results are, byte for byte, those of one process."""
    for name in ("summary.json", "scalars.parquet", "series.parquet"):
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Path:
    """What the program makes of the scenario in one process."""
    place = tmp_path_factory.mktemp("whole")
    (place / "swept.toml").write_text(SCENARIO.replace("{duration}", "4s"))
    command = [program, "sim", "run", "swept.toml", "--jobs", "1", "--out", "out"]
    subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=300)
    built = json.loads((place / "out/summary.json").read_text())["commit"]
    assert built == ab.commit, f"{program} is of another commit than the package: build it again"
    return place / "out"


def test_a_killed_worker_costs_nothing(cluster: Nodes, whole: Path, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill() -> None:
        victim = workers()[0]
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    thread = when(lambda: kept(tmp_path / "out") >= 2 and workers(), kill)
    abr.sweep(scenario(), out=tmp_path / "out", batch_seconds=0.2, progress=False).close()
    thread.join()
    assert killed
    assert_same(tmp_path / "out", whole)


def test_a_lost_node_costs_nothing(cluster: Nodes, whole: Path, tmp_path: Path) -> None:
    thread = when(lambda: kept(tmp_path / "out") >= 2, cluster.lose)
    abr.sweep(scenario(), out=tmp_path / "out", batch_seconds=0.2, progress=False).close()
    thread.join()
    assert_same(tmp_path / "out", whole)


DRIVER = """
import sys, ray
import anabranch as ab, anabranch.ray as abr
address, file, out = sys.argv[1:]
ray.init(address=address, log_to_driver=False)
abr.sweep(ab.Scenario.load(file), out=out, batch_seconds=0.2)
"""


def test_a_killed_driver_goes_on(cluster: Nodes, whole: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "swept.toml", tmp_path / "out"
    file.write_text(SCENARIO.replace("{duration}", "4s"))
    command = [sys.executable, "-c", DRIVER, cluster.address, str(file), str(out)]
    driver = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    when(lambda: kept(out) >= 3, driver.kill).join()
    _, told = driver.communicate(timeout=30)
    assert " of 24 runs, " in told
    before = kept(out)
    assert 3 <= before < 24
    stamps = {file: file.stat().st_mtime_ns for file in (out / "runs").iterdir()}
    abr.sweep(scenario(), out=out, batch_seconds=0.2, progress=False).close()
    assert_same(out, whole)
    # What the first driver kept was not made again.
    assert all(file.stat().st_mtime_ns == stamp for file, stamp in stamps.items())


def test_interrupted_it_keeps_what_is_done(
    cluster: Nodes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    # Long enough that no worker ends by itself soon.
    long = scenario("2000s")
    thread = when(lambda: workers(), lambda: os.kill(os.getpid(), signal.SIGINT))
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        abr.sweep(long, out=out, batch_seconds=0.2)
    assert time.monotonic() - started < 30
    thread.join()
    assert "interrupted with 0 of 24 runs" in capsys.readouterr().err
    deadline = time.monotonic() + 10
    while workers():
        assert time.monotonic() < deadline, "the workers did not hear of it"
        time.sleep(0.05)
    # The directory is free again.
    ab.Dataset(out, long).close()


class Faulty:
    """A scenario with runs that raise, and runs that end the process they are made in."""

    name = "swept"

    def __init__(self, sound: ab.Scenario, *, raising: set[int], killing: set[int]) -> None:
        self._sound, self._raising, self._killing = sound, raising, killing

    def run(self, run: ab.Run) -> ab.Report:
        if run.seed in self._killing and run.index == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if run.seed in self._raising and run.index == 2:
            raise ValueError("no such thing")
        return self._sound.run(run)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Callable[[set[int], set[int]], None]:
    """Gives the workers a faulty scenario instead of the sound one."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    tasks = abr._Tasks

    def arrange(raising: set[int], killing: set[int]) -> None:
        def begin(scenario: ab.Scenario, options: dict[str, Any]) -> Any:
            return tasks(Faulty(scenario, raising=raising, killing=killing), options)

        monkeypatch.setattr(abr, "_Tasks", begin)

    return arrange


def test_bad_runs_are_named(cluster: Nodes, tmp_path: Path, faults: Any) -> None:
    faults({5}, {2})
    with pytest.raises(abr.SweepError) as caught:
        abr.sweep(scenario("1s"), out=tmp_path / "out", retries=1, progress=False)
    told = str(caught.value)
    assert told.startswith("2 runs failed; what finished is kept"), told
    assert "point 2 (loss=3%) with seed 5: ValueError: no such thing" in told
    assert "point 1 (loss=1%) with seed 2: its worker died at each of 2 attempts" in told
    bad = {(failure.run.index, failure.run.seed) for failure in caught.value.failures}
    assert bad == {(2, 5), (1, 2)}
    assert any("in run" in failure.detail for failure in caught.value.failures)
    # All others are kept.
    with ab.Dataset(tmp_path / "out", scenario("1s")) as dataset:
        assert {(run.index, run.seed) for run in dataset.missing()} == bad


def test_many_bad_runs_end_it_early(cluster: Nodes, tmp_path: Path, faults: Any) -> None:
    faults({1, 2, 3, 4, 5, 6}, set())
    with pytest.raises(abr.SweepError, match="too many to go on") as caught:
        abr.sweep(
            scenario("1s"), out=tmp_path / "out", batch_seconds=1e-3, max_failures=2, progress=False
        )
    assert 2 <= len(caught.value.failures) < 6


def test_another_build_is_refused(
    cluster: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abr, "_build", lambda: ("99.0.0", "feed"))
    with pytest.raises(abr.SweepError, match="results of different builds do not mix") as caught:
        abr.sweep(scenario("1s"), out=tmp_path / "out", progress=False)
    assert f"anabranch {ab.__version__} ({ab.commit}), the driver 99.0.0 (feed)" in str(
        caught.value
    )


def test_wrong_arguments_are_refused_first(tmp_path: Path) -> None:
    for wrong in ({"batch_seconds": 0.0}, {"retries": -1}, {"max_failures": 0}):
        with pytest.raises(ValueError):
            abr.sweep(scenario(), out=tmp_path / "out", **wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_progress_is_short() -> None:
    assert abr._line(3, 20, 0.25, 41.0, 10.0) == "3 of 20 runs, 25 %, 41 s of CPU, 30 s left"
    assert abr._line(0, 20, 0.0, 0.0, 9.0) == "0 of 20 runs, 0 %"
    assert abr._line(20, 20, 1.0, 99.0, 9.0) == "20 of 20 runs, 100 %, 99 s of CPU"
    assert [abr._rounded(each) for each in (0.2, 130.0, 7500.0)] == ["1 s", "2 min", "2 h 5 min"]
