"""The entries of a checkpoint that a resumed run needs: schedules, guard, replay, games, seeds."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tempest_agent.agent.networks.layout import Layout
from tempest_agent.config import LARGEST
from tempest_agent.envs.machine.inputs import MAX_INPUT_DELAY
from tempest_agent.envs.machine.memory import RAM_SIZE
from tempest_agent.stability.symptoms import SYMPTOMS

from .schema_checks import (
    Check,
    MisfitError,
    any_number,
    flag,
    list_of,
    name_like,
    number,
    one_of,
    optional,
    quoted,
    record,
    require_table,
    table_of,
    tensor,
    whole,
    wrong_value,
)
from .schema_network import METRICS


def _space(name: str, value: Any) -> None:
    record({"kind": one_of(("box", "discrete", "dict", "tuple"))}, all_of=("kind",))(name, value)
    ends = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64"
    kinds: dict[str, dict[str, Check]] = {
        "box": {"low": _ends(ends), "high": _ends(ends), "dtype": one_of(ends.split())},
        "discrete": {"n": whole(1, 10**5), "start": whole(-LARGEST)},
        "dict": {"parts": table_of(_space)},
        "tuple": {"parts": list_of(_space)},
    }
    parts = kinds[value["kind"]]
    record(parts, all_of=parts)(name, value)
    if value["kind"] == "box":
        low, high = value["low"], value["high"]
        if low.shape != high.shape or not bool((low.double() <= high.double()).all()):
            raise MisfitError(f"the ends of its entry {name} do not fit each other")


def _ends(dtypes: str) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, Tensor) or str(value.dtype)[6:] not in dtypes.split():
            raise wrong_value(name, value, f"a tensor of {dtypes}")

    return check


def _schedule(name: str, value: Any) -> None:
    require_table(name, value)
    steps = {"first": whole(), "last": whole(), "warm_up": whole()}
    if "values" in value:
        record({"values": list_of(number()), "last": whole(1)}, all_of=("last",))(name, value)
        if len(value["values"]) < 2:
            raise MisfitError(f"its entry {name}.values has fewer than two")
        return
    numbers = {"start": number(), "end": number()}
    shape = one_of(("linear", "cosine", "constant"))
    record(steps | numbers | {"shape": shape}, all_of=("first", "last", *numbers))(name, value)
    unknown = value.keys() - {*steps, *numbers, "shape"}
    if unknown:
        raise MisfitError(f"its entry {name} has an unknown name {quoted(min(unknown, key=str))}")


REMEDIES = frozenset(remedy for spec in SYMPTOMS.values() for remedy in spec.remedies)

_PCG64 = record(
    {
        "bit_generator": one_of(("PCG64",)),
        "state": record(
            {"state": whole(0, 2**128 - 1), "inc": whole(0, 2**128 - 1)}, all_of=("state", "inc")
        ),
        "has_uint32": whole(0, 1),
        "uinteger": whole(0, 2**32 - 1),
    },
    all_of=("bit_generator", "state", "has_uint32", "uinteger"),
)
_TWISTER = "key", "pos"
_NUMPY = record(
    {
        "bit_generator": one_of(("MT19937",)),
        "state": record(
            {"key": tensor("uint32 int64", 624), "pos": whole(0, 624)}, all_of=_TWISTER
        ),
        "has_gauss": whole(0, 1),
        "gauss": number(),
    },
    all_of=("bit_generator", "state", "has_gauss", "gauss"),
)


def _python(name: str, value: Any) -> None:
    list_of(lambda *_: None, 3)(name, value)
    version, internal, gauss = value
    whole(3, 3)(f"{name}[0]", version)
    list_of(whole(0, 2**32 - 1), 625)(f"{name}[1]", internal)
    whole(0, 624)(f"{name}[1][624]", internal[624])
    optional(number())(f"{name}[2]", gauss)


_RANDOM = record({"torch": tensor("uint8", None), "numpy": _NUMPY, "python": _python})

_REPLAY_PARTS: dict[str, Check] = {
    **dict.fromkeys(("position", "filled"), whole()),
    "random": _PCG64,
    # May be infinite.
    "largest_priority": any_number,
}
REPLAY = record(_REPLAY_PARTS, all_of=_REPLAY_PARTS)


def _remedy(name: str, value: Any) -> None:
    list_of(lambda *_: None, 2)(name, value)
    one_of(REMEDIES)(f"{name}[0]", value[0])
    number()(f"{name}[1]", value[1])


_SERIES: dict[str, Check] = {
    "lines": list_of(table_of(any_number)),
    "best_reward": any_number,
    **{
        f"{of}_{level}": optional(any_number)
        for of in ("best", "first", "spread")
        for level in ("agent_reward", "score")
    },
}
_GUARD = record(
    {
        "good_step": optional(whole()),
        **dict.fromkeys(("_present", "_position"), table_of(whole(), SYMPTOMS)),
        **dict.fromkeys(("_wait", "_clean", "_expert_lines", "_backoff"), whole()),
        "_undone": list_of(one_of(REMEDIES)),
        "_exhausted": list_of(one_of(SYMPTOMS)),
        "series": record(_SERIES, all_of=_SERIES),
        "remedies": record(
            {
                **dict.fromkeys(("target_clip", "learning_rate", "expert_ratio"), number(0)),
                "accumulation": whole(1, 64),
                **dict.fromkeys(("rollbacks", "_earned"), whole()),
                "before": list_of(_remedy),
            }
        ),
    }
)

SIMPLE: dict[str, Check] = {
    "step": whole(),
    "player_only": flag,
    "spaces": record({"observation": _space, "action": _space}, all_of=("observation", "action")),
    "exploration_fraction": optional(number(0, 1)),
    "vector_steps": whole(),
    "owed": whole(),
    "teacher_score": number(),
    "schedules": table_of(_schedule),
    "guard": _GUARD,
    "best_score": optional(any_number),
    "best_step": optional(whole()),
    "snapshot": record(
        {"file": optional(name_like(r"replay_\d{1,19}\.npz")), "stamp": name_like(r"[0-9a-f]{32}")},
        all_of=("file", "stamp"),
    ),
}
"""Entries whose check does not depend on the run."""


def state_entries(games: int, layout: Layout) -> dict[str, Check]:
    """Return the checks of entries that each rank has; arrays of games have length ``games``."""
    numbers = tensor("bool int8 uint8 int16 uint16 int32 int64", games)
    drivers = record(
        {
            **dict.fromkeys(
                ("is_expert", "segment_left", "hold_left", "held_spin", "held_buttons"), numbers
            ),
            "random": _PCG64,
        }
    )
    labels: dict[str, Check] = {
        "images": tensor("uint8", games, None, RAM_SIZE),
        "inputs": tensor("int16", games, None, MAX_INPUT_DELAY, 2),
        **dict.fromkeys(("open", "asked"), tensor("bool", games, None)),
        "delay": whole(0, MAX_INPUT_DELAY),
        "random": _PCG64,
    }
    codes = tensor("int8 uint8 float16 float32 float64", games, layout.num_features)
    history = record(
        {
            **dict.fromkeys(("frames", "finished", "free_finished"), whole()),
            "returns": tensor("float64", games),
            "made": tensor("float64", games, None),
            **dict.fromkeys(("recent", "free_games"), list_of(list_of(any_number))),
        }
    )
    collector = record(
        {
            "games": record({"states": tensor("uint8", games, None), "observation": codes}),
            "drivers": drivers,
            "labels": record(labels, all_of=labels),
            "episode_start": tensor("bool", games),
            "largest_reward": number(0),
            "counts": table_of(list_of(any_number)),
            "history": history,
            "actors": record(
                {
                    "codes": codes,
                    "zap_legal": tensor("bool", games),
                    "incarnations": list_of(whole()),
                    "totals": optional(table_of(whole())),
                },
                all_of=("codes", "zap_legal", "incarnations", "totals"),
            ),
        }
    )
    share = record(
        {
            "lowest": number(0, 1),
            "best": optional(any_number),
            "raised": flag,
            **dict.fromkeys(("turn", "rises"), whole()),
        }
    )
    return {
        "collector": optional(collector),
        "replay": optional(REPLAY),
        "teacher": record({}),
        "random": _RANDOM,
        "metrics": METRICS,
        "curriculum": optional(record({"share": share, "alone_since": optional(whole())})),
    }
