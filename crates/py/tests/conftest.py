"""What the tests share: a scenario that takes moments, and the program to compare with."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import anabranch as ab

TEXT = """
name = "small"
title = "A small sweep"
description = "For tests."
duration = "2s"
seeds = 3

[quick]
duration = "1s"

[[path]]
name = "p"
rate = "10mbit"
delay = "10ms"
loss = "1%"

[[flow]]
name = "bulk"
profile = "tcp:sack"
paths = "p"

[[probe]]
of = "bulk"
series = ["goodput_mbps"]
samples = ["packet_delay_s"]
interval = "100ms"

[[sweep]]
key = "path.p.loss"
values = ["1%", "2%"]

[[sweep]]
key = "flow.bulk.count"
name = "flows"
values = [1, 2]
"""


@pytest.fixture(scope="session")
def scenario() -> ab.Scenario:
    """Four points with three seeds."""
    return ab.Scenario.parse(TEXT, name="small.toml")


@pytest.fixture(scope="session")
def results(scenario: ab.Scenario) -> ab.Results:
    """All of its runs."""
    return scenario.sweep()


@pytest.fixture(scope="session")
def report(results: ab.Results) -> ab.Report:
    """Its first run."""
    return results.reports[0]


@pytest.fixture(scope="session")
def long() -> str:
    """A scenario whose run takes minutes."""
    return TEXT.replace('"2s"', '"20000s"').replace("10mbit", "100mbit")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program `anabranch` of the same commit."""
    target = Path(__file__).parents[3] / "target"
    candidates = [
        os.environ.get("ANABRANCH"),
        target / "debug/anabranch",
        target / "release/anabranch",
    ]
    file = tmp_path_factory.mktemp("program") / "small.toml"
    file.write_text(TEXT)
    for path in filter(None, [*candidates, shutil.which("anabranch")]):
        if Path(path).is_file():
            plan = subprocess.run([path, "sim", "plan", file, "--json"], capture_output=True)
            if plan.returncode == 0 and json.loads(plan.stdout)["commit"] == ab.commit:
                return Path(path)
    if "ANABRANCH" in os.environ:
        pytest.fail("ANABRANCH names no program of the commit that the package was built from")
    pytest.skip("no program `anabranch` of this commit; `cargo build` makes it")
