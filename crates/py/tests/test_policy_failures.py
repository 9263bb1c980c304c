"""What policies in Python do wrong is said, and does no harm."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
import anabranch.policy
from policy_scenarios import (
    Failing,
    Steady,
    digest,
    load,
    run_program,
    scheduler,
    text,
)
from ported import InTurn


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("packets=many", "policy 'steady': packets=many is not a whole number"),
        ("share=x", "policy 'steady': share=x is not a number"),
        ("paced=2", "policy 'steady': paced=2 is not true or false"),
        ("pace=2", "policy 'steady' has no option 'pace'; it takes packets, share, paced"),
        ("packets=0", "cwnd, a number of bytes of 1 at least, is 0"),
    ],
)
def test_wrong_options_are_mistakes_of_the_scenario(option: str, message: str) -> None:
    with pytest.raises(ab.ScenarioError) as caught:
        load(text("uncoded", congestion=f"steady:{option}"), Steady)
    assert message in str(caught.value)
    assert "flow.f.policy.congestion" in str(caught.value)


def test_unknown_names_list_what_was_brought() -> None:
    with pytest.raises(ab.ScenarioError, match=r"no congestion policy 'stead'; known: .*, steady"):
        load(text("uncoded", congestion="stead"), Steady)
    with pytest.raises(ab.ScenarioError, match="no scheduler policy 'in-turn'"):
        load(text("uncoded", scheduler="in-turn"))


@pytest.mark.parametrize("profile", ["anabranch", "tcp:mptcp"])
def test_an_exception_ends_the_run_and_is_raised_with_its_traceback(profile: str) -> None:
    scenario = load(text(profile, duration="1000s", scheduler="failing"), Failing)
    began = time.monotonic()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="on purpose") as caught:
            digest(scenario)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert frames[-1].name == "pull" and Path(frames[-1].filename).name == "policy_scenarios.py"
    assert time.monotonic() - began < 20
    # Nothing is left of it.
    assert digest(load(text(profile, scheduler="min-rtt")))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (3, r"Odd.pull returned 3, of type int; it may return a Work, a Pick, a list"),
        ("fresh", r"pull returned 'fresh', of type str"),
        ([ab.Work.FRESH, [ab.Work.FRESH]], r"pull returned \[Work.FRESH\], of type list"),
        (ab.Send(None), r"pull returned None, of type NoneType"),
    ],
)
def test_a_wrong_answer_says_what_is_allowed(answer: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        digest(load(text("anabranch", scheduler="odd"), scheduler(answer)))


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("on_event", 3, r"Odd.on_event returned 3, of type int; it may return None, an Assign"),
        ("on_event", [ab.Work.FRESH], r"Odd.on_event returned Work.FRESH, of type Work"),
        ("wakeup", "soon", r"Odd.wakeup\(\), seconds or None, is 'soon', of type str"),
    ],
)
def test_so_do_wrong_answers_of_other_methods(method: str, answer: Any, message: str) -> None:
    odd = scheduler(ab.Work.FRESH, **{method: lambda *_: answer})
    with pytest.raises(TypeError, match=message):
        digest(load(text("anabranch", scheduler="odd"), odd))


@pytest.mark.parametrize(
    ("attributes", "error", "message"),
    [
        (
            {"cwnd": "wide"},
            TypeError,
            "Odd.cwnd, a number of bytes of 1 at least, is 'wide', of type str",
        ),
        ({"cwnd": -1}, ValueError, "cwnd, .* is -1"),
        ({"cwnd": float("nan")}, ValueError, "cwnd, .* is nan"),
        ({"ssthresh": []}, TypeError, r"ssthresh, bytes or None, is \[\]"),
        ({"pacing_rate": "1mbit"}, TypeError, "pacing_rate, bits per second or None, is '1mbit'"),
        ({"phase": 1}, TypeError, "Odd.phase, a str, is 1"),
        ({"own_queue": "x"}, TypeError, "own_queue, seconds or None, is 'x'"),
    ],
)
def test_wrong_attributes_say_what_is_allowed(
    attributes: dict[str, Any], error: type[Exception], message: str
) -> None:
    class Odd(Steady):
        name = "odd"

        def on_ack(self, event: ab.AckEvent, siblings: object) -> None:
            if event.now > 0.5:
                vars(self).update(attributes)

    with pytest.raises(error, match=message):
        digest(load(text("anabranch", congestion="odd"), Odd))


def test_wrong_values_are_refused_where_they_are_made() -> None:
    with pytest.raises(ValueError, match="count=0 is not a whole number from 1 to 65535"):
        ab.Pick(ab.Work.FRESH, count=0)
    with pytest.raises(ValueError, match="Assign needs a Pick with a path"):
        ab.Assign(ab.Pick(ab.Work.FRESH))
    with pytest.raises(ValueError, match="no time"):
        ab.Hold(-1.0)
    assert repr(ab.Pick(ab.Work.block(7), 2, path=1)) == (
        "Pick(Work.block(7), count=2, path=1, not_before=0.0)"
    )
    assert ab.Work.copy(3) == ab.Work.copy(3) != ab.Work.block(3)


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        (Steady, r"give a list of classes, such as policies=\[Mine\]"),
        ([3], "policies: 3 is no subclass of anabranch.Scheduler"),
        ([Steady.__new__(Steady)], "give the class, not an object"),
        ([type("Nameless", (ab.Scheduler,), {"pull": print})], "Nameless has no name"),
        ([type("Idler", (ab.Scheduler,), {"name": "idler"})], "Idler has no pull"),
        (
            [type("Deaf", (ab.CongestionController,), {"name": "deaf"})],
            "Deaf has no on_ack and no on_timeout",
        ),
    ],
)
def test_what_is_no_policy_is_refused(policies: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ab.Scenario.parse(text("anabranch"), policies=policies)


@pytest.mark.parametrize("name", ["In Turn", "", "round-robin", "x" * 65])
def test_names_are_those_that_scenarios_can_write(name: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be a name|already; choose another name"):
        load(text("anabranch"), scheduler(None, name=name))


def test_a_parameter_without_default_is_refused() -> None:
    def init(self: Any, quota: int) -> None: ...

    with pytest.raises(TypeError, match=r"Odd.__init__\(quota\) has no default"):
        load(text("anabranch"), scheduler(None, __init__=init))


ENDLESS = f"""
import os, signal, threading, anabranch as ab
class Endless(ab.Scheduler):
    name = "endless"
    def pull(self, path, view):
        while view.now > 0.1:
            pass
        return view.first_in_line()
scenario = ab.Scenario.parse({text("uncoded", scheduler="endless")!r}, policies=[Endless])
runs = scenario.runs(seeds=4)
"""


@pytest.mark.parametrize(
    "call",
    [
        "scenario.run(runs[0])",
        "scenario.sweep(seeds=4, jobs=3)",
    ],
)
def test_ctrl_c_ends_a_policy_that_does_not(call: str, tmp_path: Path) -> None:
    program = f"""{ENDLESS}
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    {call}
except KeyboardInterrupt:
    print("heard", [thread.name for thread in threading.enumerate()])
"""
    (tmp_path / "program.py").write_text(program)
    assert run_program("program.py", cwd=tmp_path) == "heard ['MainThread']\n"


def test_a_program_can_end_while_policies_run(tmp_path: Path) -> None:
    program = f"""{ENDLESS}
import time
threading.Thread(target=lambda: scenario.run(runs[0]), daemon=True).start()
time.sleep(0.5)
print("end")
"""
    (tmp_path / "program.py").write_text(program)
    assert run_program("program.py", cwd=tmp_path) == "end\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals as Unix has them")
def test_a_run_with_a_policy_hears_ctrl_c() -> None:
    scenario = load(text("uncoded", duration="100000s", scheduler="in-turn"), InTurn)
    began = time.monotonic()
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        digest(scenario)
    assert time.monotonic() - began < 5
    assert digest(load(text("uncoded", scheduler="in-turn"), InTurn))
