"""The protocol of measurements: standard games, late starts, endurance, and late inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tempest_agent.envs.mame.mame_options import MameOptions
from tempest_agent.evaluation.bands import BANDS, band_name, pooled_bands
from tempest_agent.evaluation.games import (
    ENDURANCE_MAX_TICKS,
    STANDARD_EPISODES,
    STANDARD_MAX_TICKS,
    EvaluationGames,
)

LATE_START_TICKS = 6_000
"""Ticks of a game that starts late: about 16 levels, as many as a band has."""

LATE_START_EPISODES = 167
"""Games of each band of start levels: a million ticks."""

ENDURANCE_EPISODES = 20
DELAYS: Final = (1, 2)


@dataclass(frozen=True)
class Part:
    """Games to play, and what they are called."""

    name: str
    games: EvaluationGames


def protocol_parts(
    asked: str,
    seed: int,
    machine: MameOptions | None = None,
    episodes: int = STANDARD_EPISODES,
    max_ticks: int | None = None,
) -> list[Part]:
    """Return the parts of the protocol.

    Args:
        asked: ``standard``, ``bands``, ``endurance``, ``delays``, or ``all`` of them.
        seed: of all games.
        machine: options of the real machines, None for the simulator.
        episodes: standard games; the other parts have more or fewer in proportion.
        max_ticks: where to cut games that would be longer; None as the protocol does.
    """

    def sized(name: str, standard_episodes: int, ticks: int, **more: Any) -> Part:
        count = -(-standard_episodes * episodes // STANDARD_EPISODES)  # Rounded up.
        ticks = ticks if max_ticks is None else min(ticks, max_ticks)
        return Part(name, EvaluationGames(count, seed, max_ticks=ticks, machine=machine, **more))

    found = {
        "standard": [sized("standard", STANDARD_EPISODES, STANDARD_MAX_TICKS)],
        "bands": [
            sized(
                band_name(first, last),
                LATE_START_EPISODES,
                LATE_START_TICKS,
                level=first,
                to_level=last,
            )
            for first, last in BANDS
        ],
        "endurance": [
            sized("endurance", ENDURANCE_EPISODES, ENDURANCE_MAX_TICKS, bonus_life="none")
        ],
        "delays": [
            sized(f"input delay {delay}", STANDARD_EPISODES, STANDARD_MAX_TICKS, input_delay=delay)
            for delay in DELAYS
        ],
    }
    return [part for name in (found if asked == "all" else [asked]) for part in found[name]]


def protocols_of(
    asked: str, names: Sequence[str], results: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return one JSON object a player: its ``results`` of the parts of these ``names``.

    Of an evaluation that was broken off there are fewer results than names, or the last one is not
    complete.
    """
    parts = [{"part": name, **result} for name, result in zip(names, results, strict=False)]
    whole = len(set(names))
    players = dict.fromkeys(part["policy"] for part in parts)
    return [
        _protocol(asked, whole, [part for part in parts if part["policy"] == player])
        for player in players
    ]


def _protocol(asked: str, whole: int, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON object of one player, of whom there should be ``whole`` parts.

    ``bands`` are those of the games that started late, together, by the level of each tick.
    """
    first = parts[0]
    late = [part for part in parts if "to_level" in part]
    standard = next((part for part in parts if part["part"] == "standard"), None)
    broken_off = len(parts) < whole or parts[-1].get("interrupted", False)
    return {
        **{name: first[name] for name in ("policy", "seed", "frame_skip", "backend")},
        "standard": asked,
        "limit_share": standard["limit_share"] if standard else None,
        "bands": pooled_bands(late) if late else None,
        "parts": list(parts),
        **{name: first[name] for name in ("checkpoint_sha256", "checkpoint_step")},
        "seconds": round(sum(part["seconds"] for part in parts), 3),
        **({"interrupted": True} if broken_off else {}),
    }


def protocol_title(protocols: Sequence[Mapping[str, Any]]) -> str:
    """Return the title of the table of one or several players."""
    names = ", ".join(protocol["policy"] for protocol in protocols)
    return f"{names}: seed {protocols[0]['seed']}; intervals of 95 %"


def protocol_table(protocols: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: a row for each part, and for each player within it.

    Points are the interquartile mean, for endurance the median.
    """
    names = list(dict.fromkeys(part["part"] for each in protocols for part in each["parts"]))
    rows = [
        ([protocol["policy"]] if len(protocols) > 1 else [])
        + [text(protocol, part) for text in _COLUMNS.values()]
        for name in names
        for protocol in protocols
        for part in protocol["parts"]
        if part["part"] == name
    ]
    return (["player"] if len(protocols) > 1 else []) + list(_COLUMNS), rows


def points_of(part: Mapping[str, Any]) -> tuple[str, float, tuple[float, float]]:
    """Return which statistic of the scores of a part is shown, its value and its interval."""
    statistic = "median" if part["part"] == "endurance" else "IQM"
    low, high = part[f"score_{statistic.lower()}_ci95"]
    return statistic, part[f"score_{statistic.lower()}"], (low, high)


def _name(_protocol: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    return f"{part['part']} (interrupted)" if part.get("interrupted") else str(part["part"])


def _points(_protocol: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    statistic, points, _ = points_of(part)
    return f"{statistic} {points:,.0f}"


def _interval(_protocol: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    return "{:,.0f} to {:,.0f}".format(*points_of(part)[2])


def _share(_protocol: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    share = part["limit_share"]
    return "-" if share is None else f"{100 * share:.1f} %"


def _deaths_there(protocol: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    """Return the deaths while the levels of a band were played, whatever the start level."""
    if "to_level" not in part:
        return "-"
    levels = [part["level"], part["to_level"]]
    rate = next(b["deaths_per_1000_ticks"] for b in protocol["bands"] if b["levels"] == levels)
    return "-" if rate is None else f"{rate:.3f}"


def _causes(_protocol: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    return ", ".join(f"{cause} {n:,}" for cause, n in part["deaths"].items() if n) or "-"


def _ticks(_protocol: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    return f"{part['ticks_median']:,.0f}"


_COLUMNS: Final[dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], str]]] = {
    "part": _name,
    "games": lambda _, part: str(part["episodes"]),
    "points": _points,
    "interval": _interval,
    "of the limit": _share,
    "deaths/1,000 ticks": lambda _, part: f"{part['deaths_per_1000_ticks']:.3f}",
    "in these levels": _deaths_there,
    "mean level": lambda _, part: f"{part['level_mean']:.1f}",
    "ticks, median": _ticks,
    "over": lambda _, part: f"{100 * part['ended_share']:.0f} %",
    "lives lost to": _causes,
}
