"""Scenarios and classes that the tests of policies share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anabranch as ab

PATHS = """
[[path]]
name = "wide"
rate = "8mbit"
delay = "10ms/25ms@3s"
loss = "1%"
[[path]]
name = "short"
rate = "4mbit"
delay = "5ms"
jitter = "2ms"
[[path]]
name = "long"
rate = "3mbit"
delay = "60ms"
loss = "0.5%"
"""


TRAFFIC = {
    "bulk": "",
    "paced": 'traffic = { kind = "on-off", rate = "9mbit", on = "200ms", off = "100ms" }',
    "file": 'traffic = "size:2MB"',
}


def text(profile: str, traffic: str = "bulk", duration: str = "6s", **choice: str) -> str:
    """A scenario of one flow over three paths, with these policies."""
    table = "tcp" if profile.startswith("tcp:") else "policy"
    policies = "".join(f'{table}.{axis} = "{name}"\n' for axis, name in choice.items())
    head = f'name = "own"\nduration = "{duration}"\n{PATHS}'
    flow = f'[[flow]]\nname = "f"\nprofile = "{profile}"\n{TRAFFIC[traffic]}\n'
    return head + flow + policies


def run_program(*arguments: str, cwd: Path) -> str:
    """What a program of Python prints, which has the package that is tested here."""
    package = str(Path(ab.__file__).resolve().parents[1])
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": package}
    done = subprocess.run(
        command, cwd=cwd, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def load(text: str, *policies: type) -> ab.Scenario:
    return ab.Scenario.parse(text, policies=list(policies))


def digest(scenario: ab.Scenario, seed: int = 3) -> Any:
    return scenario.run(scenario.runs(seeds=[seed])[0]).digest


PROFILES = ["anabranch", "uncoded", "fmtcp", "tcp:mptcp", "tcp:parallel"]


class Steady(ab.CongestionController):
    """A window that does not move."""

    name = "steady"

    def __init__(self, *, packets: int = 50, share: float = 1.0, paced: bool = False) -> None:
        self.cwnd = packets * share * self.packet_size
        if paced:
            self.pacing_rate = 1e6

    def on_ack(self, event: ab.AckEvent, siblings: object) -> None:
        pass

    def on_timeout(self, event: ab.TimeoutEvent) -> None:
        pass


class Failing(ab.Scheduler):
    name = "failing"
    after = 100

    def __init__(self) -> None:
        self.left = self.after

    def pull(self, path: int, view: ab.SchedulerView) -> object:
        self.left -= 1
        if self.left < 0:
            raise ZeroDivisionError("on purpose")
        return view.first_in_line()


def scheduler(answer: Any, **more: Any) -> type[ab.Scheduler]:
    """A class whose pull returns `answer`."""
    return type("Odd", (ab.Scheduler,), {"name": "odd", "pull": lambda *_: answer, **more})
