"""The table of a sweep: hand-computed figures, its text, and its picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import pytest
from places import ROOT

from tempest_agent.config import load_config
from tempest_agent.plots.figure_files import save_figure
from tempest_agent.plots.sweep import sweep_figure
from tempest_agent.sweep.plan import Plan, load_variants, make_plan
from tempest_agent.sweep.report import markdown, table, title


def result(seed: int, scores: list[int], seconds: float | None = 10.0) -> dict[str, Any]:
    return {
        "seed": seed, "scores": scores, "updates": 100 * seed, "seconds": seconds,
        "deaths_per_1000_ticks": 0.5 * seed,
    }  # fmt: skip


@pytest.fixture
def plan() -> Plan:
    variants = {"low": {"learner.gamma": 0.9}, "c51": {"learner.loss": "c51"}}
    return make_plan(load_config("smoke"), variants, 2, 4, 500)


@pytest.fixture
def figures(plan: Plan) -> dict[str, Any]:
    results = {
        "base": [result(1, [10, 10, 10, 10]), result(2, [10, 10, 10, 10])],
        "low": [result(1, [0, 10, 20, 90]), result(2, [20, 20, 20, 20], None)],
    }
    return table(plan, results)


def test_rows_are_computed_over_all_games_of_all_seeds(figures: dict[str, Any]) -> None:
    base, low = figures["variants"]
    assert base["score_iqm"] == 10
    assert base["score_iqm_ci95"] == [10, 10]
    assert base["improvement"] is None
    # 0 10 20 20 20 20 20 90 without the two at either end.
    assert low["score_iqm"] == 20
    assert low["score_iqm_by_seed"] == [15, 20]
    # Six of eight above 10, one equal.
    assert low["improvement"] == pytest.approx((6 + 0.5) / 8)
    low_end, high_end = low["improvement_ci95"]
    assert low_end < 6.5 / 8 < high_end
    assert (low["updates"], low["seconds"], low["seeds"]) == (150, 10, [1, 2])
    assert low["deaths_per_1000_ticks"] == 0.75
    assert low["changes"] == {"learner.gamma": 0.9}


def test_the_text_has_a_line_for_each_variant_that_was_run(figures: dict[str, Any]) -> None:
    lines = markdown(figures).split("\n")
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[2] == ["base", "", "2", "10", "10 - 10", "", "", "150", "10"]
    assert cells[3][:4] == ["low", "`learner.gamma=0.9`", "2", "20"]
    assert cells[3][5] == "0.81"
    assert title(figures) == (
        "smoke: 4,000 decisions, 2 seeds, 4 greedy games each from level 1, cut after 500 ticks"
    )


def test_without_the_base_nothing_is_compared(plan: Plan) -> None:
    (low,) = table(plan, {"low": [result(1, [1, 2, 3], None)]})["variants"]
    assert low["improvement"] is None
    assert low["improvement_ci95"] is None
    assert low["seconds"] is None
    assert "None" not in markdown(table(plan, {"low": [result(1, [1, 2, 3], None)]}))


def test_the_picture_grows_with_the_variants(figures: dict[str, Any], tmp_path: Path) -> None:
    save_figure(sweep_figure(figures, title(figures)), tmp_path / "two.png")
    figures["variants"] *= 5
    save_figure(sweep_figure(figures, title(figures)), tmp_path / "ten.png")
    two, ten = (cv2.imread(str(tmp_path / f"{name}.png")) for name in ("two", "ten"))
    assert two is not None
    assert ten is not None
    assert ten.shape[0] > two.shape[0]
    assert ten.shape[1] == two.shape[1]
    assert (two.reshape(-1, 3) != 255).any(axis=1).mean() > 0.01


def test_the_picture_shows_scores_and_improvement_with_their_intervals(
    figures: dict[str, Any],
) -> None:
    scores, better = sweep_figure(figures, "title").axes

    def lines(axes: Any) -> list[tuple[list[float], list[float]]]:
        drawn = (line.get_data() for line in axes.lines)
        return [([float(x) for x in xs], [float(y) for y in ys]) for xs, ys in drawn]

    low = figures["variants"][1]
    assert (low["score_iqm_ci95"], [1, 1]) in lines(scores)
    assert ([low["score_iqm"]], [1]) in lines(scores)
    assert (low["score_iqm_by_seed"], [1, 1]) in lines(scores)
    no_difference, interval, middle = lines(better)
    assert no_difference[0] == [0.5, 0.5]
    assert interval == (low["improvement_ci95"], [1, 1])
    assert middle == ([low["improvement"]], [1])
    assert [label.get_text() for label in scores.get_yticklabels()] == ["base", "low"]


def test_the_page_of_ablations_tells_what_the_shipped_variants_are() -> None:
    page = (ROOT / "docs" / "ablations.md").read_text(encoding="utf-8")
    shipped = make_plan(load_config("ablation"), load_variants("ablation"), 3, 16, 10_000)
    known = {variant.name: variant.described() for variant in shipped.variants}
    cells = [[cell.strip(" `") for cell in row.split("|")[1:-1]] for row in page.split("\n")]
    rows = {row[0]: row for row in cells if row and row[0] in known}
    assert "base" in rows
    assert len(rows) > 5
    for name, row in rows.items():
        assert row[1] == known[name]
        assert int(row[2]) >= 2, "one run of a variant is no comparison"
    assert title(table(shipped, {})) in page
