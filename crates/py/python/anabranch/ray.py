"""A sweep on a Ray cluster, from the cores of one machine to many machines.

>>> import anabranch as ab                                     # doctest: +SKIP
>>> import anabranch.ray as abr                                # doctest: +SKIP
>>> scenario = ab.Scenario.load("scenarios/bonding.toml")      # doctest: +SKIP
>>> dataset = abr.sweep(scenario, seeds=100, out="bonded")     # doctest: +SKIP

The runs travel in batches, as plain Ray tasks; their reports travel back, and the driver alone
writes the results directory. So the workers need neither a shared file system nor the scenario's
files, only the same build of `anabranch` as the driver.

This module needs Ray: ``pip install 'anabranch[ray]'``.
"""

from __future__ import annotations

import math
import os
import pickle
import platform
import sys
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import anabranch as ab

try:
    import ray
except ImportError as error:
    raise ImportError("anabranch.ray needs Ray: pip install 'anabranch[ray]'") from error

from ray import exceptions as lost

__all__ = ["RunFailure", "SweepError", "sweep"]


class RunFailure(NamedTuple):
    """A run that raised, or that was alone on each worker that died."""

    run: ab.Run
    message: str
    #: The traceback on the worker, where there is one.
    detail: str = ""

    def __str__(self) -> str:
        point = ", ".join(f"{key}={value}" for key, value in self.run.point.items())
        where = f"point {self.run.index}" + (f" ({point})" if point else "")
        return f"{where} with seed {self.run.seed}: {self.message}"


class SweepError(RuntimeError):
    """Why a sweep is not complete. What it finished is kept: the same call goes on from there."""

    def __init__(self, message: str, failures: Sequence[RunFailure] = ()) -> None:
        super().__init__(message, list(failures))
        self.failures = list(failures)
        """The runs that failed, if it was runs that did."""

    def __str__(self) -> str:
        return str(self.args[0])


def sweep(
    scenario: ab.Scenario,
    seeds: int | Iterable[int] | None = None,
    *,
    out: str | os.PathLike[str],
    batch_seconds: float = 10.0,
    retries: int = 3,
    max_failures: int = 10,
    progress: bool = True,
    options: Mapping[str, Any] | None = None,
) -> ab.Dataset:
    """Makes the runs that `out` does not hold yet, and writes its tables and summary.

    The files are those of ``anabranch sim run``, byte for byte. After Ctrl-C, an error or a death
    of the driver the same call makes what is left.

    Args:
        scenario: What to run.
        seeds: As for :meth:`anabranch.Scenario.runs`.
        out: The results directory, on the driver's machine.
        batch_seconds: How much estimated CPU time a task gets; towards the end they get shorter.
        retries: How often a run may lose its worker or node before it is held to be the cause. A
            batch that loses its worker is halved, so that it is the run that is found.
        max_failures: The sweep ends early at so many failed runs; fewer fail it only at its end.
        progress: Whether to show how far it is, on standard error or in the notebook.
        options: Ray's options of the tasks, such as ``{"num_cpus": 1, "runtime_env": …}``.

    Returns:
        The dataset, written and still open.

    Raises:
        SweepError: Runs failed, or the workers have another build of `anabranch` or none.
        anabranch.ResultsError: The directory holds other results, is in use or cannot be written.
    """
    if not batch_seconds > 0:
        raise ValueError(f"batch_seconds is a time above 0, not {batch_seconds}")
    if retries < 0 or max_failures < 1:
        raise ValueError("retries is a number from 0, max_failures one from 1")
    chosen = seeds if seeds is None or isinstance(seeds, int) else list(seeds)
    dataset = ab.Dataset(out, scenario, seeds=chosen)
    try:
        missing = dataset.missing()
        if missing:
            limits = _Limits(batch_seconds, retries, max_failures)
            tasks = _Tasks(scenario, dict(options or {}))
            _Sweep(dataset, missing, tasks, limits, _Progress(len(missing), progress)).finish()
        dataset.write()
    except BaseException:
        dataset.close()
        raise
    return dataset


class _Limits(NamedTuple):
    batch_seconds: float
    retries: int
    max_failures: int


# ---- on the worker -------------------------------------------------------------------------------


class _Answer(NamedTuple):
    """What a worker sends back. All of it is of Python's own types, so that any build reads it."""

    build: tuple[str, str]
    host: str
    cpu: float
    #: For each run a report's bytes, or a message and a traceback.
    outcomes: list[bytes | tuple[str, str]]


def _build() -> tuple[str, str]:
    return (ab.__version__, ab.commit)


def _run_batch(build: tuple[str, str], boxed: list[Any], runs: bytes) -> tuple[Any, ...]:
    """Makes the runs. Scenario and runs are unpacked only here, once the builds were compared."""
    started = time.process_time()
    outcomes: list[bytes | tuple[str, str]] = []
    if _build() == build:
        scenario: ab.Scenario = ray.get(boxed[0])
        for run in pickle.loads(runs):
            try:
                outcomes.append(scenario.run(run).to_bytes())
            except Exception as error:
                message = f"{type(error).__name__}: {error}"
                outcomes.append((message, traceback.format_exc()))
    cpu = time.process_time() - started
    return tuple(_Answer(_build(), platform.node(), cpu, outcomes))


# ---- on the driver -------------------------------------------------------------------------------

#: The worker, its node or what it made is gone; the runs themselves need not be at fault.
_LOST = (
    lost.WorkerCrashedError,
    lost.NodeDiedError,
    lost.OutOfMemoryError,
    lost.ObjectLostError,
    lost.LocalRayletDiedError,
)


def _cost(runs: Iterable[ab.Run]) -> float:
    return math.fsum(max(run.cost, 1e-6) for run in runs)


class _Tasks:
    """Starts batches on the cluster."""

    def __init__(self, scenario: ab.Scenario, options: dict[str, Any]) -> None:
        self._remote = ray.remote(_run_batch)
        self._options = {"num_cpus": 1, "name": f"anabranch {scenario.name}", **options}
        # Put once, and fetched once by each node. The list keeps Ray from unpacking it for the
        # task, which must compare the builds first.
        self._boxed = [ray.put(scenario)]

    def start(self, runs: list[ab.Run], retries: int) -> ray.ObjectRef[Any]:
        task = self._remote.options(max_retries=retries, **self._options)
        return task.remote(_build(), self._boxed, pickle.dumps(runs))

    def slots(self) -> int:
        """How many tasks the cluster can run at once, as it is now."""
        each = self._options["num_cpus"] or 1
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        return max(1, int(resources.get("CPU", 1) / each))


@dataclass
class _Waiting:
    """Runs that no task has: halves of lost batches first, then what costs most."""

    runs: list[ab.Run]
    halves: list[list[ab.Run]] = field(default_factory=list)
    cost: float = 0.0

    def __post_init__(self) -> None:
        # Stable, so that runs of equal cost keep their order. The next one is at the end.
        self.runs = sorted(self.runs, key=lambda run: run.cost, reverse=True)[::-1]
        self.cost = _cost(self.runs)

    def __bool__(self) -> bool:
        return bool(self.runs or self.halves)

    def take(self, cost: float) -> list[ab.Run]:
        """The next batch, of about `cost` and at least one run."""
        if self.halves:
            return self.halves.pop()
        batch = [self.runs.pop()]
        total = _cost(batch)
        while self.runs and total + self.runs[-1].cost <= cost:
            batch.append(self.runs.pop())
            total += _cost(batch[-1:])
        self.cost -= total
        return batch


class _Sweep:
    """One sweep under way."""

    def __init__(
        self,
        dataset: ab.Dataset,
        missing: list[ab.Run],
        tasks: _Tasks,
        limits: _Limits,
        progress: _Progress,
    ) -> None:
        self._dataset, self._tasks = dataset, tasks
        self._limits, self._progress = limits, progress
        self._waiting = _Waiting(missing)
        self._under_way: dict[ray.ObjectRef[Any], list[ab.Run]] = {}
        self._failures: list[RunFailure] = []
        self._slots, self._asked = 1, -math.inf
        #: CPU seconds that finished runs were estimated to take, and took.
        self._total, self._estimated, self._measured = self._waiting.cost, 0.0, 0.0

    def finish(self) -> None:
        """Runs everything, or raises why not."""
        try:
            while self._waiting or self._under_way:
                self._submit()
                for ref in self._ready(timeout=0.5):
                    self._take(ref)
                self._show()
                if len(self._failures) >= self._limits.max_failures:
                    break
        except BaseException as error:
            self._progress.close()
            self._rescue()
            if isinstance(error, KeyboardInterrupt):
                self._progress.interrupted()
            raise
        finally:
            for ref in self._under_way:
                ray.cancel(ref, force=False)
        self._progress.close()
        if self._failures:
            raise self._failed()

    def _submit(self) -> None:
        """Keeps every slot busy, and as many tasks waiting, which an autoscaler looks at."""
        now = time.monotonic()
        if now - self._asked > 10:
            self._slots, self._asked = self._tasks.slots(), now
        while self._waiting and len(self._under_way) < 2 * self._slots:
            # The estimate is of another machine: what is finished tells how this one compares.
            pace = self._measured / self._estimated if self._measured > 0 else 1.0
            share = self._waiting.cost / (2 * self._slots)
            batch = self._waiting.take(min(self._limits.batch_seconds / pace, share))
            self._start(batch)

    def _start(self, batch: list[ab.Run]) -> None:
        # Halving finds the run that kills its worker sooner than repeating the whole does.
        retries = self._limits.retries if len(batch) == 1 else min(1, self._limits.retries)
        self._under_way[self._tasks.start(batch, retries)] = batch

    def _ready(self, timeout: float) -> list[ray.ObjectRef[Any]]:
        refs = list(self._under_way)
        ready, _ = ray.wait(refs, num_returns=1, timeout=timeout)
        if ready:
            ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        return list(ready)

    def _take(self, ref: ray.ObjectRef[Any]) -> None:
        """Keeps what a task made."""
        batch = self._under_way[ref]
        try:
            answer = _Answer(*ray.get(ref))
        except _LOST as error:
            del self._under_way[ref]
            self._lost(batch, error)
            return
        except (lost.RayTaskError, lost.RayError) as error:
            raise SweepError(_startless(error)) from error
        if answer.build != _build():
            raise SweepError(_mismatch(answer))
        reports = []
        for run, outcome in zip(batch, answer.outcomes, strict=True):
            if isinstance(outcome, bytes):
                reports.append(ab.Report.from_bytes(outcome, self._dataset.scenario))
            else:
                self._failures.append(RunFailure(run, *outcome))
        self._dataset.commit(reports)
        # Only now: an interruption before that finds the task once more.
        del self._under_way[ref]
        self._progress.runs += len(reports)
        self._estimated += _cost(batch)
        self._measured += answer.cpu

    def _lost(self, batch: list[ab.Run], error: Exception) -> None:
        if len(batch) > 1:
            middle = len(batch) // 2
            self._waiting.halves += [batch[middle:], batch[:middle]]
            return
        times = self._limits.retries + 1
        attempts = "at its only attempt" if times == 1 else f"at each of {times} attempts"
        reason = str(error).strip().split("\n", 1)[0]
        message = f"its worker died {attempts}: {reason}"
        self._failures.append(RunFailure(batch[0], message, str(error)))

    def _rescue(self) -> None:
        """Keeps what is finished but not taken yet, when something ends the sweep."""
        try:
            for ref in self._ready(timeout=0) if self._under_way else []:
                self._take(ref)
        except Exception:  # What ended the sweep is what is told.
            pass

    def _show(self) -> None:
        share = self._estimated / self._total if self._total else 1.0
        self._progress.show(share, self._measured)

    def _failed(self) -> SweepError:
        count = len(self._failures)
        lines = [f"{count} {'run' if count == 1 else 'runs'} failed"]
        if self._waiting or self._under_way:
            lines[0] += ", too many to go on (max_failures)"
        lines[0] += "; what finished is kept, and the same call makes the rest:"
        return SweepError(
            "\n  ".join(lines + [str(each) for each in self._failures]), self._failures
        )


def _mismatch(answer: _Answer) -> str:
    ours, theirs = (f"{version} ({commit})" for version, commit in (_build(), answer.build))
    return (
        f"the worker on {answer.host} has anabranch {theirs}, the driver {ours}: results of "
        "different builds do not mix; install the same wheel on all nodes, or name it in "
        "options={'runtime_env': {'pip': [...]}}"
    )


def _startless(error: Exception) -> str:
    text = str(error).strip()
    if "No module named 'anabranch'" in text:
        return (
            "the workers have no anabranch: install the driver's wheel on all nodes, or name it "
            "in options={'runtime_env': {'pip': [...]}}"
        )
    return f"a worker could not begin with its runs: {text}"


# ---- how far it is -------------------------------------------------------------------------------


class _Progress:
    """A line that is rewritten on a terminal or in a notebook; elsewhere one now and then."""

    def __init__(self, total: int, shown: bool) -> None:
        self.runs, self._total = 0, total
        self._started = time.monotonic()
        self._next = self._started
        self._display = _display() if shown else None

    def show(self, share: float, cpu: float) -> None:
        """Shows that `share` of the work is done, in `cpu` seconds of the workers' CPU time."""
        now = time.monotonic()
        if self._display is not None and now >= self._next:
            self._next = now + self._display.interval
            self._display.write(_line(self.runs, self._total, share, cpu, now - self._started))

    def close(self) -> None:
        """Leaves what follows a line of its own."""
        if self._display is not None:
            self._display.close()

    def interrupted(self) -> None:
        """Says what is left of an interrupted sweep."""
        if self._display is not None:
            done = f"interrupted with {self.runs} of {self._total} runs finished"
            print(f"{done}; the same call continues", file=sys.stderr)


def _line(runs: int, total: int, share: float, cpu: float, elapsed: float) -> str:
    """`3 of 20 runs, 17 %, 41 s of CPU, 12 s left`."""
    text = f"{runs} of {total} runs, {share:.0%}".replace("%", " %")
    text += f", {_rounded(cpu)} of CPU" if cpu else ""
    if 0.01 <= share < 1 and elapsed >= 0.5:
        text += f", {_rounded(elapsed * (1 - share) / share)} left"
    return text


def _rounded(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class _Lines:
    interval = 5.0

    def write(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class _Terminal:
    interval = 0.2

    def write(self, text: str) -> None:
        # Back to the start of the line, the text, and nothing behind it.
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class _Notebook:
    interval = 0.5

    def __init__(self, display: Any) -> None:
        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def write(self, text: str) -> None:
        self._handle.update({"text/plain": text}, raw=True)

    def close(self) -> None:
        pass


def _display() -> _Lines | _Terminal | _Notebook:
    # Only a notebook's kernel has this shell, and it has loaded IPython long ago.
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if type(shell).__name__ == "ZMQInteractiveShell":
        return _Notebook(sys.modules["IPython"].display.display)
    return _Terminal() if sys.stderr.isatty() else _Lines()
