"""Threads and signals."""

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import anabranch as ab
from conftest import TEXT

CHILD = """
import sys, time
import anabranch as ab
scenario = ab.Scenario.parse(sys.stdin.read())
print("ready", flush=True)
try:
    scenario.{call}
except KeyboardInterrupt:
    print(time.time(), flush=True)
"""


@pytest.mark.parametrize("call", ["run(scenario.runs()[0])", "sweep(jobs=2)"])
def test_ctrl_c_ends_a_run_at_once(long: str, call: str) -> None:
    command = [sys.executable, "-c", CHILD.format(call=call)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin and child.stdout
        child.stdin.write(long)
        child.stdin.close()
        assert child.stdout.readline() == "ready\n"
        time.sleep(1)
        sent = time.time()
        child.send_signal(signal.SIGINT)
        heard = float(child.stdout.readline())
        assert child.wait(timeout=10) == 0
    assert heard - sent < 0.25, "a tenth of a second, and what a busy machine adds"


def test_other_threads_go_on_meanwhile(scenario: ab.Scenario) -> None:
    one = ab.Scenario.parse(TEXT, set={"duration": "60s"})
    turns, ended = [0], threading.Event()

    def count() -> None:
        while not ended.is_set():
            turns[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    start, before = time.monotonic(), turns[0]
    one.run(one.runs()[-1])
    elapsed, after = time.monotonic() - start, turns[0]
    ended.set()
    thread.join()
    assert after - before > 100 * elapsed, f"{after - before} turns in {elapsed:.2f} s"


def test_a_short_run_ends_while_a_long_one_goes_on() -> None:
    long = ab.Scenario.parse(TEXT, set={"duration": "600s"})
    short = ab.Scenario.parse(TEXT, set={"duration": "1s"})
    begun = threading.Event()
    order: list[str] = []

    def run_long() -> None:
        begun.set()
        long.run(long.runs()[0])
        order.append("long")

    def run_short() -> None:
        begun.wait()
        short.run(short.runs()[0])
        order.append("short")

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(run_long), pool.submit(run_short)]:
            future.result()
    assert order == ["short", "long"]
