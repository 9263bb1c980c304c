"""Policies that are written in Python decide as built-in ones."""

from __future__ import annotations

import doctest
import pickle
import re
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

import anabranch as ab
import anabranch.policy
from policy_scenarios import (
    PROFILES,
    TRAFFIC,
    Failing,
    Steady,
    digest,
    load,
    run_program,
    text,
)
from ported import InTurn, LeastRtt, Reno


@pytest.mark.parametrize("traffic", TRAFFIC)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("built_in", "python"),
    [
        ("round-robin", "in-turn"),
        ("round-robin:quota=3", "in-turn:quota=3"),
        ("min-rtt:full=wait", "least-rtt"),
    ],
)
def test_a_scheduler_in_python_decides_as_the_built_in_one(
    profile: str, traffic: str, built_in: str, python: str
) -> None:
    expected = digest(load(text(profile, traffic, scheduler=built_in)))
    own = load(text(profile, traffic, scheduler=python), InTurn, LeastRtt)
    assert digest(own) == expected


@pytest.mark.parametrize("profile", PROFILES)
def test_the_scenarios_tell_schedulers_apart(profile: str) -> None:
    choices = ["round-robin", "round-robin:quota=3", "min-rtt:full=wait"]
    digests = {digest(load(text(profile, "paced", scheduler=choice))) for choice in choices}
    assert len(digests) == 3


@pytest.mark.parametrize("traffic", TRAFFIC)
@pytest.mark.parametrize("profile", [*PROFILES, "ptcp", "tcp:ptcp", "mtcp"])
def test_a_controller_in_python_decides_as_the_built_in_one(profile: str, traffic: str) -> None:
    expected = digest(load(text(profile, traffic, congestion="reno:initial=4")))
    assert digest(load(text(profile, traffic, congestion="reno-again:initial=4"), Reno)) == expected
    assert digest(load(text(profile, traffic, congestion="cubic"))) != expected


def test_a_controller_can_be_on_one_path_alone() -> None:
    def on_short(control: str) -> str:
        base = text("uncoded", congestion="cubic")
        return base.replace('jitter = "2ms"', f'jitter = "2ms"\ncongestion = "{control}"')

    assert digest(load(on_short("reno-again"), Reno)) == digest(load(on_short("reno")))
    assert digest(load(on_short("reno"))) != digest(load(text("uncoded", congestion="cubic")))


def goodput(scenario: ab.Scenario) -> float:
    return float(scenario.run(scenario.runs(seeds=[1])[0]).value("f", "goodput_mbps"))


def test_options_reach_init_as_keyword_arguments() -> None:
    one_path = text("tcp:sack", congestion="NAME").replace('jitter = "2ms"\n', "")
    one_path = one_path.replace('profile = "tcp:sack"', 'profile = "tcp:sack"\npaths = "short"')

    def with_options(options: str) -> float:
        return goodput(load(one_path.replace("NAME", f"steady{options}"), Steady))

    few, many = with_options(":packets=1"), with_options(":packets=10")
    assert few < 1.2 and many > 3.0
    assert with_options(":packets=4,share=0.25") == few
    assert 0.8 < with_options(":packets=10,paced=true") < 1.1


class Curious(ab.Scheduler):
    """Uses every event and action, and writes down what it saw."""

    name = "curious"
    seen: ClassVar[set[str]] = set()
    last: ab.SchedulerView | None = None

    def __init__(self) -> None:
        self.next = 0.1

    def on_event(self, event: ab.SchedulerEvent, view: ab.SchedulerView) -> object:
        Curious.seen.add(event.kind)
        if event.kind == "wakeup":
            self.next = view.now + 0.1
            assert event.path is None
            return [ab.TakeBack(path.id) for path in view.paths]
        if event.kind == "lost":
            assert event.path is not None and view.path(event.path) is not None
            return ab.Penalise(event.path)
        if event.kind == "path-up":
            return ab.Assign(ab.Pick(ab.Work.FRESH, path=event.path))
        return None

    def pull(self, path: int, view: ab.SchedulerView) -> object:
        if view.now > 1.0 and view.blocks:
            Curious.last = view
        if path == 2 and view.now < 1.0:
            return ab.Hold(1.0, "later")
        due = view.with_work
        if due:
            return ab.Pick(ab.Work.block(due[0]), count=2)
        for block in view.blocks:
            if self.random.random() < 0.05 and block.uncopied(view.path(path)) > 0:
                return [ab.Pick(ab.Work.copy(block), not_before=view.now + 0.001)]
        return [ab.Work.FRESH]

    def wakeup(self) -> float:
        return self.next


@pytest.mark.parametrize("profile", ["anabranch", "tcp:mptcp"])
def test_a_scheduler_hears_events_and_acts(profile: str) -> None:
    Curious.seen.clear()
    scenario = load(text(profile, duration="3s", scheduler="curious"), Curious)
    first = digest(scenario)
    assert {"acked", "lost", "cwnd-reduced", "path-up", "wakeup"} <= Curious.seen
    if profile == "anabranch":
        assert "recovered" in Curious.seen
    # Its random numbers follow from the seed.
    assert digest(scenario) == first
    assert digest(scenario, seed=4) != first


def test_views_stay_as_they_were() -> None:
    digest(load(text("anabranch", duration="2s", scheduler="curious"), Curious))
    view = Curious.last
    assert view is not None and 1.0 < view.now <= 2.0
    assert [path.slot for path in view.paths] == [0, 1, 2] and view.carriers == view.paths
    path = view.paths[1]
    assert view.path(path.id) is path and view.path(9) is None
    assert path.usable and path.state == "active" and 0.01 <= path.rtt.min <= path.rtt.smoothed
    assert path.cwnd >= path.packet_size and path.bytes_in_flight > 0
    assert "cwnd=" in repr(path) and "smoothed=" in repr(path.rtt)
    block = view.blocks[0]
    found = view.block(block.id)
    assert found is not None and found.first == block.first == view.floor
    assert view.fresh.symbol_size > 1000 and view.fresh.traffic_class == "bulk"
    with pytest.raises(AttributeError):
        path.cwnd = 3  # type: ignore[misc]


def test_runs_on_threads_do_not_meet() -> None:
    scenarios = [
        load(text("uncoded", "paced", scheduler="in-turn:quota=3"), InTurn),
        load(text("uncoded", duration="1000s", scheduler="failing"), Failing),
        load(text("tcp:mptcp", congestion="reno-again"), Reno),
    ]
    expected = [digest(scenarios[0]), ZeroDivisionError, digest(scenarios[2])]
    results: dict[int, Any] = {}

    def work(place: int) -> None:
        try:
            results[place] = digest(scenarios[place % 3])
        except ZeroDivisionError as error:
            results[place] = type(error)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [results[place] for place in range(9)] == expected * 3


def test_a_sweep_on_threads_has_the_policies(tmp_path: Path) -> None:
    scenario = load(text("uncoded", "paced", scheduler="in-turn"), InTurn)
    expected = [scenario.run(run).digest for run in scenario.runs(seeds=4)]
    results = scenario.sweep(seeds=4, jobs=2)
    assert isinstance(results, ab.Results)
    assert [report.digest for report in results.reports] == expected
    kept = scenario.sweep(seeds=4, jobs=2, out=tmp_path / "out")
    assert isinstance(kept, ab.Dataset)
    assert not kept.missing() and len(kept.scalars) == len(results.scalars)
    kept.close()
    failing = load(text("uncoded", scheduler="failing"), Failing)
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        failing.sweep(seeds=4, jobs=2)
    with pytest.raises(ab.ResultsError):
        ab.Dataset(tmp_path / "out", load(text("uncoded", "paced", scheduler="min-rtt")))


def test_the_hash_follows_the_code() -> None:
    def hashed(source: str, version: str | None = None) -> str:
        module: dict[str, Any] = {"ab": ab, "__name__": "made"}
        exec(source, module)
        module["Made"].version = version
        return load(text("anabranch", scheduler="made"), module["Made"]).hash

    source = """
class Limits:
    def __init__(self, most):
        self.most = most
LIMIT, LIMITS = 3, Limits(5)
def helper(view):
    return view.first_in_line() if LIMIT < LIMITS.most else None
class Made(ab.Scheduler):
    name = "made"
    def pull(self, path, view):
        return helper(view)
"""
    first = hashed(source)
    assert hashed(source) == first
    assert hashed("# A remark.\n" + source) == first
    for old, new in [
        ("= 3, L", "= 4, L"),
        ("Limits(5)", "Limits(6)"),
        ("self.most = most", "self.most = most + 1"),
        ("else None", "else ab.Idle()"),
        ("helper(view)\n", "None\n"),
    ]:
        changed = source.replace(old, new)
        assert changed != source and hashed(changed) != first, old
    unseen = source.replace("Limits(5)", "Limits(6)")
    assert hashed(source, "1") == hashed(unseen, "1") != first
    assert hashed(source, "2") != hashed(source, "1")


def test_a_scenario_pickles_with_its_policies() -> None:
    scenario = load(text("uncoded", "paced", scheduler="in-turn:quota=2"), InTurn, Reno)
    again = pickle.loads(pickle.dumps(scenario))
    assert again.hash == scenario.hash
    assert digest(again) == digest(scenario)
    changed = again.with_settings({"flow.f.policy.congestion": "reno-again"})
    assert digest(changed) == digest(
        load(text("uncoded", "paced", scheduler="round-robin:quota=2", congestion="reno"))
    )


def test_a_class_of_the_main_program_goes_to_other_processes(tmp_path: Path) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    source = f"""
import sys, cloudpickle, anabranch as ab
HOLD = 0.5
class Late(ab.Scheduler):
    name = "late-start"
    def pull(self, path, view):
        return ab.Hold(HOLD) if view.now < HOLD else view.first_in_line()
scenario = ab.Scenario.parse({text("uncoded", scheduler="late-start")!r}, policies=[Late])
open(sys.argv[1], "wb").write(cloudpickle.dumps(scenario))
print(scenario.hash, scenario.run(scenario.runs(seeds=[3])[0]).digest)
"""
    script, kept = tmp_path / "driver.py", tmp_path / "scenario"
    script.write_text(source)
    told = run_program(str(script), str(kept), cwd=tmp_path)
    scenario = cloudpickle.loads(kept.read_bytes())
    assert told.split() == [str(scenario.hash), str(digest(scenario))]


def test_the_docstrings_examples_work() -> None:
    assert doctest.testmod(anabranch.policy).failed == 0


def test_the_how_to_works(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs/howto/policy-in-python.md"
    program, *rest = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    assert not rest, "one program"
    shown = re.findall(r"^```text\n(.*?)^```", page.read_text(), re.M | re.S)[0]
    (tmp_path / "page.py").write_text(program)
    assert run_program("page.py", cwd=tmp_path) == shown
