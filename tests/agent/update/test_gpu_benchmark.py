"""``benchmarks/learner_gpu.py`` at a size for a CPU, and compiled passes."""

from __future__ import annotations

import functools
import importlib.util
import json
from types import ModuleType

import numpy as np
import pytest
import torch
from hybrid_bandit import LAYOUT, random_batch
from places import ROOT

from tempest_agent.agent.learner.learner import Learner
from tempest_agent.config import load_config

pytestmark = pytest.mark.xdist_group("compiler")

SCRIPT = ROOT / "benchmarks" / "learner_gpu.py"
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("learner_gpu", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_runs_on_a_cpu(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--device cpu --batch 40 --rows 400 --updates 2 --repetitions 1 --hidden [16,8]"
    figures = script.main(arguments.split())
    assert json.loads(capsys.readouterr().out) == figures
    assert figures["samples_per_second"] == figures["update_samples_per_second"] > 0
    assert figures["graph_samples_per_second"] is None


def test_compiled_passes_learn_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced and differentiated as ever, but run without a minute of a C compiler's work."""
    compile_ = functools.partial(torch.compile, backend="aot_eager")
    monkeypatch.setattr(torch, "compile", compile_)
    states = []
    for compiled in ("false", "true"):
        torch.manual_seed(0)
        config = load_config(
            None,
            ["network.hidden=[8]", "learner.precision=float32", f"learner.compile={compiled}"],
        )
        learner = Learner(LAYOUT, config, CPU)
        random = np.random.default_rng(0)
        for _ in range(3):
            learner.update(random_batch(random, 16), 1e-2, 0.0)
        states.append(learner.state_dict()["online"])
    assert states[0].keys() == states[1].keys()
    for name, value in states[0].items():
        torch.testing.assert_close(states[1][name], value, rtol=1e-4, atol=1e-5)
