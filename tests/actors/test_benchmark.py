"""``benchmarks/actors_scaling.py``, small: its lines, and a short soak."""

from __future__ import annotations

import importlib.util
import json
from types import ModuleType

import pytest
from places import ROOT

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.usefixtures("shared_ray")]

SCRIPT = ROOT / "benchmarks" / "actors_scaling.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("actors_scaling", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.WARM_UP = 0.5
    return module


def test_a_line_per_number_of_actors(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    small = "--actors 1 2 --games 4 --chunk-steps 4 --cost-us 500 --seconds 0.5"
    lines = script.main(small.split())
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == lines
    assert [(line["actors"], line["games"]) for line in lines] == [(1, 4), (2, 8)]
    for line in lines:
        # The games cannot take less time than they cost.
        assert 0.0 < line["efficiency"] < 1.1
        assert line["version_lag"] >= 0.0
        assert min(line["learner_mb"], line["actor_mb"], line["ray_mb"]) > 1


def test_actors_are_killed_and_the_steps_counted_are_the_steps_stored(script: ModuleType) -> None:
    short = "--soak-minutes 0.1 --soak-actors 2 --games 4 --chunk-steps 4 --kill-every 2"
    line = script.main(short.split())
    assert line["killed"] >= 1
    assert 0 < line["steps_stored"] == line["steps_counted"]
    assert line["steps_lost_with_actors"] <= 4 * 4 * (line["killed"] + 1)


def test_a_decision_that_is_missing_or_comes_twice_is_found(script: ModuleType) -> None:
    class Arguments:
        games, chunk_steps, cost_us, real = 2, 4, 0.0, False

    ingest, witness = script.Ingest(1, Arguments), script.Witness(2)
    replay = ingest.collector.replay
    for _ in range(6):
        played = ingest.collect()
        witness.look(replay, played)
    seen = witness.serial.copy()
    # That would be right after one more decision: now it is there twice, or the one before is not.
    for wrong in (seen, seen - 2):
        witness.serial = wrong.copy()
        with pytest.raises(AssertionError, match="expected"):
            witness.look(replay, played)
    ingest.remote.close()
