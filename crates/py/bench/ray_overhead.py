"""What a sweep on Ray costs above its runs: CPU time, all of Ray's processes counted.

    python crates/py/bench/ray_overhead.py [RUNS]

Makes the same runs of about a second twice: one after the other in this process, and by
`anabranch.ray.sweep` on a cluster of this machine's cores. Ray's own start is told apart.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import time
from pathlib import Path

import anabranch as ab

SCENARIO = """
name = "overhead"
duration = "10s"
path = [
  { name = "a", rate = "200mbit", delay = "20ms", loss = "1%" },
  { name = "b", rate = "100mbit", delay = "40ms" },
]
flow = [{ name = "bulk", profile = "anabranch" }]
"""


def cpu_seconds() -> float:
    """CPU time of this process and of all below it, those that ended included."""
    tick = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    times: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            fields = text.rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            times[int(entry.name)] = sum(map(int, fields[11:15])) / tick

    def is_ours(pid: int) -> bool:
        while pid not in (0, os.getpid()):
            pid = parents.get(pid, 0)
        return pid != 0

    return sum(each for pid, each in times.items() if is_ours(pid))


def main() -> None:
    """Measures and prints."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    scenario = ab.Scenario.parse(SCENARIO, name="overhead.toml")
    runs = scenario.runs(seeds=count)
    scenario.run(runs[0])

    before = cpu_seconds()
    for run in runs:
        scenario.run(run)
    alone = cpu_seconds() - before
    print(f"{count} runs in one process: {alone:.1f} s of CPU, {alone / count:.2f} s each")

    with tempfile.TemporaryDirectory(prefix="ab-", dir="/tmp") as place:
        os.environ |= {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_TMPDIR": place,
        }
        import ray

        import anabranch.ray as abr

        before = cpu_seconds()
        ray.init(include_dashboard=False, log_to_driver=False, object_store_memory=2**27)
        started = cpu_seconds()
        clock = time.monotonic()
        abr.sweep(scenario, seeds=count, out=Path(place, "out"), progress=False).close()
        swept, wall = cpu_seconds() - started, time.monotonic() - clock
        ray.shutdown()
    print(f"by Ray: {swept:.1f} s of CPU in {wall:.1f} s, and {started - before:.1f} s to start it")
    print(f"overhead: {swept / alone - 1:+.1%}")


if __name__ == "__main__":
    main()
