"""What is in a checkpoint, checked as a whole before anything of it is used.

Types, ranges, names and shapes: networks have the weights that the configuration calls for, arrays
of the games are as long as there are games, counters are whole numbers.  An entry that this version
does not know is not used, and one that it misses is told where it is needed; files of earlier
versions have fewer.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.config import LARGEST, Config, ConfigError, forget_local, from_dict
from tempest_agent.envs.machine.memory import LANES
from tempest_agent.errors import one_line, shown
from tempest_agent.stability.symptoms import DISEASES

from .checkpoint_archive import ForeignFileError, no_checkpoint

Check = Callable[[str, Any], None]
"""Raises ``MisfitError`` if the value of the entry with that name cannot be in a checkpoint."""


class MisfitError(ValueError):
    """An entry that cannot be in a checkpoint, said in one line."""


PLAYER = ("config", "layout", "learner", "step")
"""Entries without which nothing can be played."""
RUN = (*PLAYER, "vector_steps", "owed", "teacher_score", "schedules", "random")
"""Entries without which no training can be resumed."""


def check_content(content: dict[str, Any]) -> None:
    """Check every entry that this version reads of a checkpoint.

    Settings that no file may choose are None in ``content["config"]`` afterwards.

    Raises:
        MisfitError: an entry of another type, shape or range.
    """
    _record(_SIMPLE)("", content)
    if "config" not in content or "layout" not in content:
        return  # Nobody can use it: see ``require_entries``.
    _is_table("config", content["config"])
    content["config"] = forget_local(content["config"])
    try:
        config = from_dict(content["config"])
    except ConfigError as error:
        raise MisfitError(f"its settings: {one_line(error)[:300]}") from error
    if content.get("owed", 0) > config.learner.gradient_steps:
        raise MisfitError("its entry owed is above learner.gradient_steps, the updates of a step")
    layout = _layout(content["layout"])
    learner = _learner(config, layout, content.get("player_only", False))
    state = _state(config.run.num_envs, layout)
    # What ranks share has the arrays of all games.
    _record(state | {"learner": learner, "ranks": _list_of(_record(state))})("", content)
    replay = content.get("replay")
    if replay is not None and max(replay["position"], replay["filled"]) > config.replay.capacity:
        raise MisfitError("its replay is longer than replay.capacity")


def require_entries(path: Path, content: Mapping[str, Any], names: Iterable[str]) -> None:
    """``ForeignFileError`` for the checkpoint ``path`` if one of ``names`` is not in it."""
    for name in names:
        if name not in content:
            raise ForeignFileError(no_checkpoint(path, f": it has no entry {shown(name)}"))


def check_replay(state: Any) -> None:
    """As ``check_content`` for the ``state_dict`` of a replay alone."""
    _REPLAY("replay", state)


# Single values.


def _shown(value: Any) -> str:
    """``value`` in a few words, whatever it is."""
    if isinstance(value, bool | float | int) or value is None:
        return f"{value!s:.40}"
    if isinstance(value, str):
        return shown(value[:40])
    if isinstance(value, Tensor):
        return f"a tensor of {str(value.dtype)[6:]} {list(value.shape)}"
    return f"a {type(value).__name__} of {len(value)}"


def _wrong(name: str, value: Any, needed: str) -> MisfitError:
    return MisfitError(f"its entry {name or 'at the top'} is {_shown(value)}, not {needed}")


def _whole(low: int = 0, high: int = LARGEST) -> Check:
    def check(name: str, value: Any) -> None:
        if type(value) is not int or not low <= value <= high:
            raise _wrong(name, value, f"a whole number from {low} to {high}")

    return check


def _number(low: float = -math.inf, high: float = math.inf) -> Check:
    """A finite number."""

    def check(name: str, value: Any) -> None:
        _any_number(name, value)
        if not math.isfinite(value) or not low <= value <= high:
            raise _wrong(name, value, f"a finite number from {low} to {high}")

    return check


def _any_number(name: str, value: Any) -> None:
    if type(value) not in (int, float) or (type(value) is int and abs(value) > LARGEST):
        raise _wrong(name, value, "a number")


def _flag(name: str, value: Any) -> None:
    if type(value) is not bool:
        raise _wrong(name, value, "true or false")


def _one_of(known: Collection[Any]) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in known:
            raise _wrong(name, value, f"one of {', '.join(known)}")

    return check


def _name(pattern: str) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or re.fullmatch(pattern, value) is None:
            raise _wrong(name, value, f"a name of the form {pattern}")

    return check


def _maybe(check: Check) -> Check:
    def check_given(name: str, value: Any) -> None:
        if value is not None:
            check(name, value)

    return check_given


def _array(dtypes: str, *shape: int | None) -> Check:
    """A tensor of one of ``dtypes``; None in ``shape`` is any length."""
    known = {getattr(torch, dtype) for dtype in dtypes.split()}

    def check(name: str, value: Any) -> None:
        fits = (
            isinstance(value, Tensor)
            and value.dtype in known
            and value.dim() == len(shape)
            and all(n is None or n == length for n, length in zip(shape, value.shape, strict=True))
        )
        if not fits:
            lengths = ["any" if n is None else n for n in shape]
            raise _wrong(name, value, f"a tensor of {dtypes} {lengths}")

    return check


# Values of values.


def _is_table(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise _wrong(name, value, "a table of names and values")


def _record(known: Mapping[str, Check], all_of: Iterable[str] = ()) -> Check:
    """A table with entries of certain names, ``all_of`` them there; of others nothing is said."""
    needed = tuple(all_of)

    def check(name: str, value: Any) -> None:
        _is_table(name, value)
        for key in needed:
            if key not in value:
                raise MisfitError(f"its entry {name} has no {shown(key)}")
        for key, part in known.items():
            if key in value:
                part(f"{name}.{key}".lstrip("."), value[key])

    return check


def _table_of(part: Check, keys: Collection[str] | None = None) -> Check:
    """A table whose entries are alike, with any names or some of ``keys``."""

    def check(name: str, value: Any) -> None:
        _is_table(name, value)
        for key, item in value.items():
            if not isinstance(key, str) or (keys is not None and key not in keys):
                raise MisfitError(f"its entry {name} has an unknown name {_shown(key)}")
            part(f"{name}.{key[:80]}", item)

    return check


def _list_of(part: Check, length: int | None = None) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, list | tuple) or length not in (None, len(value)):
            raise _wrong(name, value, f"a list of {'any length' if length is None else length}")
        for number, item in enumerate(value):
            part(f"{name}[{number}]", item)

    return check


def _either(*checks: Check) -> Check:
    """The last one's error where none accepts."""

    def check(name: str, value: Any) -> None:
        for each in checks[:-1]:
            try:
                each(name, value)
            except MisfitError:
                continue
            return
        checks[-1](name, value)

    return check


# The parts of a checkpoint.

_LAYOUT = {
    "num_features": _whole(1, 10**7),
    "lane_features": _whole(0, 10**6),
    "lane_exists": _whole(0, 10**6),
    "lane_position": _whole(-1, 10**7),
    "num_pairs": _whole(1, 10**5),
    "counts": _whole(1, 2**15 - 1),
    "stored": _one_of(("int8", "uint8", "float16", "float32", "float64")),
    "fire_and_zap": _flag,
}


def _layout(value: Any) -> Layout:
    _record(_LAYOUT, all_of=("num_features",))("layout", value)
    unknown = value.keys() - {field.name for field in dataclasses.fields(Layout)}
    if unknown:
        raise MisfitError(f"its entry layout has an unknown name {_shown(min(unknown, key=str))}")
    layout = Layout(**value)
    if (
        layout.lane_features * LANES > layout.num_features
        or layout.lane_exists >= max(layout.lane_features, 1)
        or layout.lane_position >= layout.num_features
        or (layout.fire_and_zap and layout.num_pairs != 4)
    ):
        raise MisfitError("the numbers of its entry layout do not fit each other")
    return layout


def _space(name: str, value: Any) -> None:
    _record({"kind": _one_of(("box", "discrete", "dict", "tuple"))}, all_of=("kind",))(name, value)
    ends = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64"
    kinds: dict[str, dict[str, Check]] = {
        "box": {"low": _ends(ends), "high": _ends(ends), "dtype": _one_of(ends.split())},
        "discrete": {"n": _whole(1, 10**5), "start": _whole(-LARGEST)},
        "dict": {"parts": _table_of(_space)},
        "tuple": {"parts": _list_of(_space)},
    }
    parts = kinds[value["kind"]]
    _record(parts, all_of=parts)(name, value)
    if value["kind"] == "box":
        low, high = value["low"], value["high"]
        if low.shape != high.shape or not bool((low.double() <= high.double()).all()):
            raise MisfitError(f"the ends of its entry {name} do not fit each other")


def _ends(dtypes: str) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, Tensor) or str(value.dtype)[6:] not in dtypes.split():
            raise _wrong(name, value, f"a tensor of {dtypes}")

    return check


def _schedule(name: str, value: Any) -> None:
    _is_table(name, value)
    steps = {"first": _whole(), "last": _whole(), "warm_up": _whole()}
    if "values" in value:
        _record({"values": _list_of(_number()), "last": _whole(1)}, all_of=("last",))(name, value)
        if len(value["values"]) < 2:
            raise MisfitError(f"its entry {name}.values has fewer than two")
        return
    numbers = {"start": _number(), "end": _number()}
    shape = _one_of(("linear", "cosine", "constant"))
    _record(steps | numbers | {"shape": shape}, all_of=("first", "last", *numbers))(name, value)
    unknown = value.keys() - {*steps, *numbers, "shape"}
    if unknown:
        raise MisfitError(f"its entry {name} has an unknown name {_shown(min(unknown, key=str))}")


REMEDIES = frozenset(remedy for disease in DISEASES.values() for remedy in disease.remedies)

_PCG64 = _record(
    {
        "bit_generator": _one_of(("PCG64",)),
        "state": _record(
            {"state": _whole(0, 2**128 - 1), "inc": _whole(0, 2**128 - 1)}, all_of=("state", "inc")
        ),
        "has_uint32": _whole(0, 1),
        "uinteger": _whole(0, 2**32 - 1),
    },
    all_of=("bit_generator", "state", "has_uint32", "uinteger"),
)
_TWISTER = "key", "pos"
_NUMPY = _record(
    {
        "bit_generator": _one_of(("MT19937",)),
        "state": _record(
            {"key": _array("uint32 int64", 624), "pos": _whole(0, 624)}, all_of=_TWISTER
        ),
        "has_gauss": _whole(0, 1),
        "gauss": _number(),
    },
    all_of=("bit_generator", "state", "has_gauss", "gauss"),
)


def _python(name: str, value: Any) -> None:
    _list_of(lambda *_: None, 3)(name, value)
    version, internal, gauss = value
    _whole(3, 3)(f"{name}[0]", version)
    _list_of(_whole(0, 2**32 - 1), 625)(f"{name}[1]", internal)
    _whole(0, 624)(f"{name}[1][624]", internal[624])
    _maybe(_number())(f"{name}[2]", gauss)


_RANDOM = _record({"torch": _array("uint8", None), "numpy": _NUMPY, "python": _python})

_SCALAR = _array("float16 bfloat16 float32 float64 int64 int32")


def _sum(name: str, value: Any) -> None:
    _list_of(lambda *_: None, 2)(name, value)
    _SCALAR(f"{name}[0]", value[0])
    _either(_any_number, _SCALAR)(f"{name}[1]", value[1])


_FIGURES = _record(
    {
        "sums": _table_of(_sum),
        **dict.fromkeys(("totals", "highest", "lowest"), _table_of(_SCALAR)),
    },
    all_of=("sums", "totals", "highest", "lowest"),
)

_REPLAY_PARTS: dict[str, Check] = {
    **dict.fromkeys(("position", "filled"), _whole()),
    "random": _PCG64,
    # Infinite after an error that was.
    "largest_priority": _any_number,
}
_REPLAY = _record(_REPLAY_PARTS, all_of=_REPLAY_PARTS)


def _remedy(name: str, value: Any) -> None:
    _list_of(lambda *_: None, 2)(name, value)
    _one_of(REMEDIES)(f"{name}[0]", value[0])
    _number()(f"{name}[1]", value[1])


_GUARD = _record(
    {
        "good_step": _maybe(_whole()),
        **dict.fromkeys(("_present", "_position"), _table_of(_whole(), DISEASES)),
        **dict.fromkeys(("_wait", "_clean", "_expert_lines", "_backoff"), _whole()),
        "_undone": _list_of(_one_of(REMEDIES)),
        "_exhausted": _list_of(_one_of(DISEASES)),
        "series": _record(
            {
                "lines": _list_of(_table_of(_any_number)),
                "best_reward": _any_number,
                **dict.fromkeys(
                    (
                        f"{of}_{level}"
                        for of in ("best", "first", "spread")
                        for level in ("agent_reward", "score")
                    ),
                    _maybe(_any_number),
                ),
            },
            all_of=("lines",),
        ),
        "remedies": _record(
            {
                **dict.fromkeys(("target_clip", "learning_rate", "expert_ratio"), _number(0)),
                "accumulation": _whole(1, 64),
                **dict.fromkeys(("rollbacks", "_earned"), _whole()),
                "before": _list_of(_remedy),
            }
        ),
    }
)

_SIMPLE: dict[str, Check] = {
    "step": _whole(),
    "player_only": _flag,
    "spaces": _record({"observation": _space, "action": _space}, all_of=("observation", "action")),
    "exploration_fraction": _maybe(_number(0, 1)),
    "vector_steps": _whole(),
    "owed": _whole(),
    "teacher_score": _number(),
    "schedules": _table_of(_schedule),
    "guard": _GUARD,
    "best_score": _maybe(_any_number),
    "best_step": _maybe(_whole()),
    "snapshot": _record(
        {"file": _maybe(_name(r"replay_\d{1,19}\.npz")), "stamp": _name(r"[0-9a-f]{32}")},
        all_of=("file", "stamp"),
    ),
}
"""Entries that are alike in all runs."""


def _start_levels(games: int) -> Check:
    return _record(
        {
            "unlocked": _whole(0, 99),
            "began_on": _either(
                _array("int64 int32 int16 int8 uint8", games), _list_of(_whole(0, 99), games)
            ),
            "reached": _list_of(_flag),
            **dict.fromkeys(
                ("deaths", "decisions"), _either(_list_of(_number(0)), _array("float64", None))
            ),
        }
    )


def _state(games: int, layout: Layout) -> dict[str, Check]:
    """What each rank has its own of; arrays of games are ``games`` long."""
    start_levels = _start_levels(games)
    numbers = _array("bool int8 uint8 int16 uint16 int32 int64", games)
    drivers = _record(
        {
            **dict.fromkeys(
                ("is_expert", "segment_left", "hold_left", "held_spin", "held_buttons"), numbers
            ),
            "random": _PCG64,
        }
    )
    codes = _array("int8 uint8 float16 float32 float64", games, layout.num_features)
    history = _record(
        {
            **dict.fromkeys(("frames", "finished", "free_finished"), _whole()),
            "returns": _array("float64", games),
            "made": _array("float64", games, None),
            **dict.fromkeys(("recent", "free_games"), _list_of(_list_of(_any_number))),
        }
    )
    collector = _record(
        {
            "games": _record({"states": _array("uint8", games, None), "observation": codes}),
            "drivers": drivers,
            "episode_start": _array("bool", games),
            "largest_reward": _number(0),
            "counts": _table_of(_list_of(_any_number)),
            "history": history,
            "free_scores": _list_of(_any_number),
            "finished_games": _whole(),
            "actors": _record(
                {
                    "codes": codes,
                    "zap_legal": _array("bool", games),
                    "incarnations": _list_of(_whole()),
                    "totals": _maybe(_table_of(_whole())),
                },
                all_of=("codes", "zap_legal", "incarnations", "totals"),
            ),
        }
    )
    share = _record(
        {
            "lowest": _number(0, 1),
            "best": _maybe(_any_number),
            "raised": _flag,
            **dict.fromkeys(("turn", "rises"), _whole()),
        }
    )
    return {
        "collector": _maybe(collector),
        "replay": _maybe(_REPLAY),
        "teacher": _record({}),
        "random": _RANDOM,
        "start_levels": start_levels,
        "metrics": _FIGURES,
        "curriculum": _maybe(
            _record({"share": share, "start_levels": start_levels, "alone_since": _maybe(_whole())})
        ),
    }


# The networks.


def _learner(config: Config, layout: Layout, is_player: bool) -> Check:
    if is_player:
        average = _Weights(config, layout)
        return _record({"average": average}, all_of=("average",))
    weights = _Weights(config, layout)
    moments = _Moments(weights)
    accumulator = {
        "scaler": _table_of(_any_number),
        **dict.fromkeys(("skipped", "skipped_in_a_row"), _whole()),
        "float32_instead": _flag,
    }
    known: dict[str, Check] = {
        **dict.fromkeys(("online", "target", "average"), weights),
        "optimizer": moments,
        "accumulator": _record(accumulator, all_of=accumulator),
        "updates": _whole(),
        "target_age": _number(0),
        "metrics": _FIGURES,
    }
    return _record(known, all_of=known)


class _Weights:
    """The weights of a network: names, shapes, finite numbers."""

    def __init__(self, config: Config, layout: Layout) -> None:
        self._config, self._layout = config, layout
        self._shapes: dict[str, torch.Size] | None = None

    def shapes(self, most: int) -> dict[str, torch.Size]:
        """Name -> shape as the settings call for, made without memory.

        A network of more than ``most`` layers is not made at all.
        """
        if self._shapes is None:
            network = self._config.network
            if len(network.hidden) > most:
                raise MisfitError("network.hidden has more layers than there are weights")
            try:
                with torch.device("meta"):
                    made = QNetwork(self._layout, network, self._config.learner)
            except (RuntimeError, ValueError, OverflowError) as error:
                raise MisfitError("its settings and layout are those of no network") from error
            self._shapes = {name: value.shape for name, value in made.state_dict().items()}
        return self._shapes

    def __call__(self, name: str, value: Any) -> None:
        _is_table(name, value)
        shapes = self.shapes(len(value))
        if value.keys() != shapes.keys():
            raise MisfitError(f"its entry {name} has not the weights that its settings call for")
        for key, shape in shapes.items():
            _array("float32", *shape)(f"{name}.{key}", value[key])
            if not bool(torch.isfinite(value[key]).all()):
                raise MisfitError(f"its entry {name}.{key} has numbers that are not finite")


class _Moments:
    """The state of the optimiser, for the weights of ``online`` in their order."""

    def __init__(self, weights: _Weights) -> None:
        self._weights = weights

    def __call__(self, name: str, value: Any) -> None:
        parts = ("state", "param_groups")
        _record({"param_groups": _list_of(_GROUP, 1)}, all_of=parts)(name, value)
        count = len(value["param_groups"][0]["params"])
        state = value["state"]
        _is_table(f"{name}.state", state)
        for key, moments in state.items():
            part = f"{name}.state[{_shown(key)}]"
            if type(key) is not int or not 0 <= key < count:
                raise MisfitError(f"{part} is of no weight")
            _record({"step": _SCALAR}, all_of=("step", "exp_avg", "exp_avg_sq"))(part, moments)
            shapes = {_shape_of(part, moments[each]) for each in ("exp_avg", "exp_avg_sq")}
            if len(shapes) != 1 or not shapes <= set(self._weights.shapes(count).values()):
                raise MisfitError(f"{part} has the shape of no weight")


def _shape_of(name: str, value: Any) -> torch.Size:
    if not isinstance(value, Tensor) or value.dtype != torch.float32:
        raise _wrong(name, value, "a tensor of float32")
    return value.shape


_GROUP = _record(
    {
        **dict.fromkeys(("lr", "eps", "weight_decay"), _number(0)),
        "betas": _list_of(_number(0, 1), 2),
        **dict.fromkeys(
            ("amsgrad", "maximize", "foreach", "capturable", "differentiable", "fused",
             "decoupled_weight_decay"), _maybe(_flag),
        ),
        "params": _list_of(_whole()),
    },
    all_of=("lr", "betas", "eps", "weight_decay", "params"),
)  # fmt: skip
