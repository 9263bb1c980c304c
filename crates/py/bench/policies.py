"""What a call of a policy in Python costs, against the built-in policy that decides the same.

    python crates/py/bench/policies.py

Runs of both alternate; the CPU time of the fastest of each counts. Install a release build first
(`pip install ./crates/py`): a debug build's calls cost three times as much.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import anabranch as ab
from ported import InTurn, LeastRtt, Reno

ROUNDS = 7
TEXT = """
name = "cost"
duration = "30s"
[[path]]
name = "a"
rate = "20mbit"
delay = "10ms"
[[path]]
name = "b"
rate = "10mbit"
delay = "30ms"
loss = "0.1%"
[[flow]]
name = "f"
profile = "{profile}"
{table}.{axis} = "{policy}"
"""


def scenario(profile: str, axis: str, policy: str, *classes: type) -> ab.Scenario:
    table = "tcp" if profile.startswith("tcp:") else "policy"
    text = TEXT.format(profile=profile, table=table, axis=axis, policy=policy)
    return ab.Scenario.parse(text, policies=list(classes))


def run(scenario: ab.Scenario) -> tuple[float, object]:
    first = scenario.runs(seeds=[1])[0]
    began = time.process_time()
    report = scenario.run(first)
    return time.process_time() - began, report.digest


def calls(cls: type, methods: list[str], profile: str, axis: str, policy: str) -> int:
    """How often these methods are called in a run."""
    count = 0

    def counting(method: str):
        original = getattr(cls, method)

        def counted(self, *arguments):
            nonlocal count
            count += 1
            return original(self, *arguments)

        return counted

    counted = type(cls.__name__, (cls,), {method: counting(method) for method in methods})
    run(scenario(profile, axis, policy, counted))
    return count


def main() -> None:
    print("profile      policy             calls   built-in     Python   a call")
    for cls, axis, built_in, python, methods in [
        (InTurn, "scheduler", "round-robin", "in-turn", ["pull"]),
        (LeastRtt, "scheduler", "min-rtt:full=wait", "least-rtt", ["pull"]),
        (Reno, "congestion", "reno", "reno-again", ["on_ack", "on_timeout"]),
    ]:
        for profile in ["anabranch", "tcp:mptcp"]:
            times: dict[str, list[float]] = {built_in: [], python: []}
            digests = set()
            for _ in range(ROUNDS):
                for policy in (built_in, python):
                    taken, digest = run(scenario(profile, axis, policy, cls))
                    times[policy].append(taken)
                    digests.add(digest)
            if len(digests) != 1:
                sys.exit(f"{python} does not decide as {built_in} under {profile}")
            fast, slow = min(times[built_in]), min(times[python])
            made = calls(cls, methods, profile, axis, python)
            cost = (slow - fast) / made * 1e6
            print(f"{profile:12} {python:14} {made:9} {fast:8.3f} s {slow:8.3f} s {cost:5.2f} µs")


if __name__ == "__main__":
    main()
