"""The examples for clusters, docs/examples/cluster, with what of their tools is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "docs/examples/cluster"

#: Six runs of a few milliseconds each.
SCENARIO = """
name = "parts"
duration = "1s"
seeds = 3
path = [{ name = "only", rate = "5mbit", delay = "10ms", loss = "1%" }]
flow = [{ name = "bulk", profile = "anabranch" }]
sweep = [{ key = "path.only.loss", values = ["0%", "2%"] }]
"""


@pytest.fixture
def place(tmp_path: Path, program: Path) -> Path:
    """A directory with the scenario and its results as one process makes them."""
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/anabranch").symlink_to(program)
    run(tmp_path, "anabranch", "sim", "run", "scenario.toml", "--out", "whole")
    return tmp_path


def run(place: Path, *command: str, env: Mapping[str, str] | None = None) -> None:
    """Runs a command that finds `anabranch`, and the tools beside this Python, on its path."""
    path = [str(place / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    everything = {**os.environ, "PATH": os.pathsep.join(path), "HOME": str(place), **(env or {})}
    done = subprocess.run(
        command, cwd=place, env=everything, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"


def needs(tool: str) -> None:
    if shutil.which(tool) or (Path(sys.executable).parent / tool).exists():
        return
    pytest.skip(f"{tool} is not installed")


def assert_same(place: Path, merged: str) -> None:
    """The merged results are, byte for byte, what one process wrote."""
    for name in ("summary.json", "scalars.parquet", "series.parquet", "samples.parquet"):
        ours, whole = (place / each / name for each in (merged, "whole"))
        assert ours.exists() == whole.exists(), name
        assert not whole.exists() or ours.read_bytes() == whole.read_bytes(), name


def test_gnu_parallel_makes_the_parts(place: Path) -> None:
    needs("parallel")
    told = subprocess.run(["parallel", "--version"], capture_output=True, text=True)
    if "GNU" not in told.stdout:
        pytest.skip("the parallel that is installed is not GNU's")
    script = str(EXAMPLES / "parallel.sh")
    run(place, "sh", script, "scenario.toml", "out", "4")
    assert_same(place, "out/all")
    # Once more makes nothing anew, and fails at nothing.
    run(place, "sh", script, "scenario.toml", "out", "4")
    assert_same(place, "out/all")


def test_a_slurm_array_makes_the_parts(place: Path) -> None:
    script = str(EXAMPLES / "slurm.sh")
    for part in range(1, 4):
        env = {"SLURM_ARRAY_TASK_ID": str(part), "SLURM_CPUS_PER_TASK": "1", "PARTS": "3"}
        run(place, "bash", script, "scenario.toml", "out", env=env)
    merge(place)
    assert_same(place, "out/all")


def test_the_slurm_script_counts_its_own_parts(place: Path) -> None:
    """Without `PARTS` there are as many as its array has."""
    text = (EXAMPLES / "slurm.sh").read_text()
    assert "#SBATCH --array=1-100\n" in text
    assert "${PARTS:-100}" in text


def test_a_kubernetes_job_makes_the_parts(place: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    job = yaml.safe_load((EXAMPLES / "kubernetes.yaml").read_text())
    container = job["spec"]["template"]["spec"]["containers"][0]
    env = {each["name"]: each["value"] for each in container["env"]}
    assert env["PARTS"] == str(job["spec"]["completions"])
    env |= {"PARTS": "3", "SCENARIO": "scenario.toml", "OUT": "out"}
    for index in range(3):
        command = [*container["command"], *container["args"]]
        run(place, *command, env={**env, "JOB_COMPLETION_INDEX": str(index)})
    merge(place)
    assert_same(place, "out/all")


def test_the_kubernetes_job_follows_the_schema() -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    job = yaml.safe_load((EXAMPLES / "kubernetes.yaml").read_text())
    validate.validate(job, "1.33", strict=True)
    job["spec"]["completion"] = 3
    with pytest.raises(validate.ValidationError):
        validate.validate(job, "1.33", strict=True)


def test_snakemake_makes_the_parts(place: Path) -> None:
    needs("snakemake")
    options = ["--cores", "2", "--config", "scenario=scenario.toml", "out=out", "parts=3"]
    run(place, "snakemake", "--snakefile", str(EXAMPLES / "Snakefile"), *options)
    assert_same(place, "out/all")


def merge(place: Path) -> None:
    parts = sorted(str(part) for part in (place / "out/parts").iterdir())
    run(place, "anabranch", "sim", "merge", *parts, "--out", "out/all")
