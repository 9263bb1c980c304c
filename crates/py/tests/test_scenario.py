"""Scenarios: reading them, what is wrong with them, their runs."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from conftest import TEXT

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def test_a_scenario_says_what_it_is(scenario: ab.Scenario) -> None:
    assert (scenario.name, scenario.title) == ("small", "A small sweep")
    assert (scenario.description, scenario.text) == ("For tests.", TEXT)
    assert scenario.seeds == [1, 2, 3]
    assert scenario.settings == []
    assert len(scenario.hash) == 16 and int(scenario.hash, 16)
    expected = [(loss, flows) for loss in ("1%", "2%") for flows in ("1", "2")]
    assert [(p["loss"], p["flows"]) for p in scenario.points] == expected
    assert repr(scenario) == f"<Scenario 'small' ({scenario.hash}): 4 points, 3 seeds>"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("3s", "duration=3s"),
        (True, "duration=true"),
        (3, "duration=3"),
        (0.25, "duration=0.25"),
        (1e-9, "duration=1e-9"),
        (["a", 1, 'q"'], 'duration=["a", 1, "q\\""]'),
        ((1, 2), "duration=[1, 2]"),
        ({"a": 1, "b c": [False]}, 'duration={"a" = 1, "b c" = [false]}'),
    ],
)
def test_settings_become_what_the_command_line_has(value: object, text: str) -> None:
    # What is no duration is refused, and the message has the setting as it was understood.
    if value == "3s":
        assert ab.Scenario.parse(TEXT, set={"duration": value}).settings == [text]
        return
    with pytest.raises(ab.ScenarioError) as refused:
        ab.Scenario.parse(TEXT, set={"duration": value})  # type: ignore[dict-item]
    assert refused.value.mistakes[0].file == f"scenario with {text}"


def test_settings_have_effect_and_leave_the_scenario(scenario: ab.Scenario) -> None:
    other = scenario.with_settings({"seeds": [7, 9], "path.p.delay": "20ms"})
    assert other.settings == ["seeds=[7, 9]", "path.p.delay=20ms"]
    assert other.seeds == [7, 9]
    assert scenario.settings == [] and scenario.seeds == [1, 2, 3]
    assert other.hash != scenario.hash and other != scenario
    assert other.with_settings({"seeds": 1}).settings[2] == "seeds=1"


def test_quick_shortens(scenario: ab.Scenario) -> None:
    short = scenario.quick()
    assert short.settings == ["--quick"]
    assert short == ab.Scenario.parse(TEXT, name="small.toml", quick=True)
    assert short.run(short.runs()[0]).virtual_seconds == 1.0


def test_files_are_read_beside_the_scenario_and_travel_with_it(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(TEXT)
    (tmp_path / "x.toml").write_text('name = "x"\nbase = "base.toml"\n')
    loaded = ab.Scenario.load(tmp_path / "x.toml")
    parsed = ab.Scenario.parse((tmp_path / "x.toml").read_text(), files={"base.toml": TEXT})
    assert loaded.hash == parsed.hash
    pickled = pickle.dumps(loaded)
    (tmp_path / "base.toml").unlink()
    assert pickle.loads(pickled) == loaded
    with pytest.raises(ab.ScenarioError, match="base.toml"):
        ab.Scenario.parse('name = "x"\nbase = "base.toml"\n')


def test_every_mistake_is_told_with_its_place() -> None:
    text = TEXT.replace('delay = "10ms"', 'dealy = "10ms"').replace("tcp:sack", "tcp:sac")
    with pytest.raises(ab.ScenarioError) as refused:
        ab.Scenario.parse(text, name="small.toml")
    mistakes = refused.value.mistakes
    assert len(mistakes) > 1 and str(refused.value).splitlines() == [str(m) for m in mistakes]
    first = next(mistake for mistake in mistakes if mistake.key == "path.p.dealy")
    line = text.splitlines().index('dealy = "10ms"') + 1
    assert (first.file, first.line, first.column) == ("small.toml", line, 1)
    assert first.given == "there is no key 'dealy'; did you mean 'delay'?"
    assert "delay" in first.allowed
    again = pickle.loads(pickle.dumps(refused.value))
    assert isinstance(again, ab.ScenarioError) and again.mistakes == mistakes
    assert set(again.mistakes) == set(mistakes)
    assert repr(first) == f"<Mistake {first}>"


def test_files_that_cannot_be_read_are_oserrors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="No such file or directory: 'nowhere.toml'"):
        ab.Scenario.load("nowhere.toml")
    with pytest.raises(IsADirectoryError):
        ab.Scenario.load(tmp_path)
    (tmp_path / "x").write_bytes(b"name = \xff")
    with pytest.raises(ValueError, match="x: is not text: byte 7 is not UTF-8"):
        ab.Scenario.load(os.fspath(tmp_path / "x"))


@pytest.mark.parametrize(
    ("set", "error", "text"),
    [
        ({3: "x"}, TypeError, "a setting's key is text, not int"),
        ({"": "x"}, ValueError, "'' is no key of a scenario, such as 'flow.bulk.count'"),
        ({"a=b": "x"}, ValueError, "'a=b' is no key"),
        ({"duration": None}, TypeError, "duration: NoneType is no setting: text, a number"),
        ({"duration": float("nan")}, ValueError, "duration: NaN is no setting: not finite"),
        ({"duration": [object()]}, TypeError, "duration: object is no setting"),
        (["duration=5s"], TypeError, "list"),
    ],
)
def test_wrong_settings_are_refused(set: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ab.Scenario.parse(TEXT, set=set)  # type: ignore[arg-type]


def test_runs_have_an_order_and_identities(scenario: ab.Scenario) -> None:
    runs = scenario.runs()
    assert [(run.index, run.seed) for run in runs] == [
        (point, seed) for point in range(4) for seed in (1, 2, 3)
    ]
    assert len({run.id for run in runs}) == 12 and all(len(run.id) == 32 for run in runs)
    assert sorted(runs, reverse=True)[::-1] == runs
    assert runs[0].point == {"loss": "1%", "flows": "1"}
    assert all(0 < run.cost < 1 for run in runs)
    assert repr(runs[0]) == f"<Run {runs[0].id}: loss=1%, flows=1, seed=1>"
    again = pickle.loads(pickle.dumps(runs[0]))
    assert again == runs[0] and hash(again) == hash(runs[0]) and again.cost == runs[0].cost
    assert runs[0] != runs[1] and runs[0] != "x"
    with pytest.raises(AttributeError):
        runs[0].seed = 3  # type: ignore[misc]


def test_seeds_are_a_number_or_several(scenario: ab.Scenario) -> None:
    def seeds(given: Any) -> list[int]:
        return [run.seed for run in scenario.runs(given) if run.index == 0]

    assert seeds(2) == [1, 2]
    assert seeds([9, 4, 9]) == [9, 4]
    assert seeds(range(5, 8)) == [5, 6, 7]
    assert seeds([2**64 - 1]) == [2**64 - 1]


@pytest.mark.parametrize(
    ("seeds", "error", "text"),
    [
        (0, ValueError, "seeds: 0 is no number of seeds: 1 to 1000000"),
        (-1, ValueError, "seeds: -1 is no number of seeds"),
        (10**30, ValueError, "is no number of seeds"),
        ([], ValueError, "seeds: none given; None stands for the scenario's"),
        ([-1], ValueError, r"seeds: -1 is no seed: 0 to 2\*\*64 - 1"),
        ([2**64], ValueError, "is no seed"),
        ("12", TypeError, "seeds: a number, or several numbers in a list or range, not str"),
        (1.5, TypeError, "not float"),
        ([1.5], TypeError, "seeds: a number, or several"),
    ],
)
def test_wrong_seeds_are_refused(
    scenario: ab.Scenario, seeds: object, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        scenario.runs(seeds)  # type: ignore[arg-type]


def test_runs_of_other_scenarios_are_refused(scenario: ab.Scenario) -> None:
    other = scenario.with_settings({"path.p.delay": "20ms"}).runs()[0]
    text = f"run {other.id} is none of scenario 'small' with these settings in this version"
    with pytest.raises(ValueError, match=text):
        scenario.run(other)
    with pytest.raises(TypeError):
        scenario.run("x")  # type: ignore[arg-type]


def test_what_can_be_named_is_listed() -> None:
    profiles = {profile.name: profile for profile in ab.profiles()}
    assert "anabranch" in profiles and "tcp:sack" in profiles
    assert profiles["anabranch"].summary in repr(profiles["anabranch"])
    policies = ab.policies()
    assert {p.axis for p in policies} >= {"scheduler", "congestion", "code", "redundancy"}
    assert [p.name for p in ab.policies("scheduler")] == [
        p.name for p in policies if p.axis == "scheduler"
    ]
    option = next(p for p in policies if p.options).options[0]
    assert option.key in repr(option) and option.help and isinstance(option.default, str)
    assert all(p.summary and p.source is not None and p.name in repr(p) for p in policies)
    with pytest.raises(ValueError, match="there is no axis 'x'; there are: "):
        ab.policies("x")


def test_shipped_scenarios_are_read() -> None:
    for path in sorted(SCENARIOS.glob("*.toml"))[:5]:
        scenario = ab.Scenario.load(path)
        assert pickle.loads(pickle.dumps(scenario)).hash == scenario.hash
