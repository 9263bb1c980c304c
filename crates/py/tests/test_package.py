"""The package itself: its types and its documentation."""

import doctest
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import anabranch as ab
from anabranch import _native

PACKAGE = Path(__file__).parents[1]


def test_stubs_and_module_agree(tmp_path: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    command = [sys.executable, "-m", "mypy.stubtest", "anabranch._native"]
    # Elsewhere than in the sources, which would be found first and need have no module built.
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr


def test_everything_is_exported_and_documented() -> None:
    public = {name for name in _native.__all__ if not name.startswith("_")}
    assert public | {"__version__", "commit"} <= set(ab.__all__)
    for name in ab.__all__:
        thing = getattr(ab, name)
        if isinstance(thing, str):
            continue
        assert thing.__doc__, name
        for attribute, value in vars(thing).items() if isinstance(thing, type) else []:
            public = not attribute.startswith("_")
            own = not issubclass(thing, BaseException)
            if public and own and hasattr(value, "__get__"):
                assert value.__doc__, f"{name}.{attribute}"


def test_examples_are_right() -> None:
    found = doctest.testmod(ab)
    assert found.attempted > 0 and found.failed == 0
    readme = doctest.testfile(str(PACKAGE / "README.md"), module_relative=False)
    assert readme.attempted > 0 and readme.failed == 0


def test_the_version_is_that_of_the_build() -> None:
    assert ab.__version__.count(".") == 2
    assert ab.commit == "unknown" or len(ab.commit) == 40
