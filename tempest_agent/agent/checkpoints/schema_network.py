"""The entries of a checkpoint that hold networks: layout, weights, optimiser, metrics."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from tempest_agent.agent.networks.layout import Layout
from tempest_agent.agent.networks.q_network import QNetwork
from tempest_agent.config import Config
from tempest_agent.envs.machine.memory import LANES
from tempest_agent.errors import UserError

from .schema_checks import (
    Check,
    MisfitError,
    any_number,
    either,
    flag,
    list_of,
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

_LAYOUT = {
    "num_features": whole(1, 10**7),
    "lane_features": whole(0, 10**6),
    "lane_exists": whole(0, 10**6),
    "lane_position": whole(-1, 10**7),
    "forecast_features": whole(0, 10**6),
    "pending_spin": whole(-1, 10**7),
    "num_pairs": whole(1, 10**5),
    "counts": whole(1, 2**15 - 1),
    "stored": one_of(("int8", "uint8", "float16", "float32", "float64")),
    "fire_and_zap": flag,
}


def layout_of(value: Any) -> Layout:
    record(_LAYOUT, all_of=("num_features",))("layout", value)
    unknown = value.keys() - {field.name for field in dataclasses.fields(Layout)}
    if unknown:
        raise MisfitError(f"its entry layout has an unknown name {quoted(min(unknown, key=str))}")
    layout = Layout(**value)
    if (
        (layout.lane_features + layout.forecast_features) * LANES > layout.num_features
        or layout.lane_exists >= max(layout.lane_features, 1)
        or layout.lane_position >= layout.num_features
        or layout.pending_spins.stop > layout.num_features + 3
        or (layout.fire_and_zap and layout.num_pairs != 4)
    ):
        raise MisfitError("the numbers of its entry layout do not fit each other")
    return layout


SCALAR = tensor("float16 bfloat16 float32 float64 int64 int32")


def _sum(name: str, value: Any) -> None:
    list_of(lambda *_: None, 2)(name, value)
    SCALAR(f"{name}[0]", value[0])
    either(any_number, SCALAR)(f"{name}[1]", value[1])


METRICS = record(
    {
        "sums": table_of(_sum),
        **dict.fromkeys(("totals", "highest", "lowest"), table_of(SCALAR)),
    },
    all_of=("sums", "totals", "highest", "lowest"),
)


def learner_entry(config: Config, layout: Layout, is_player: bool) -> Check:
    if is_player:
        average = _Weights(config, layout)
        return record({"average": average}, all_of=("average",))
    weights = _Weights(config, layout)
    moments = _Moments(weights)
    accumulator: dict[str, Check] = {
        "scaler": table_of(any_number),
        **dict.fromkeys(("skipped", "skipped_in_a_row"), whole()),
        "float32_instead": flag,
    }
    known: dict[str, Check] = {
        **dict.fromkeys(("online", "target", "average"), weights),
        "optimizer": moments,
        "accumulator": record(accumulator, all_of=accumulator),
        "updates": whole(),
        "target_age": number(0),
        "metrics": METRICS,
    }
    # Learned in units of 1 before there were others.
    added: dict[str, Check] = {"reward_unit": number(0)}
    return record(known | added, all_of=known)


class _Weights:
    """Checks the weights of a network: names, shapes, finite numbers."""

    def __init__(self, config: Config, layout: Layout) -> None:
        self._config, self._layout = config, layout
        self._shapes: dict[str, torch.Size] | None = None

    def shapes(self, most: int) -> dict[str, torch.Size]:
        """Return name -> shape as the settings require, without allocating memory.

        Raises for a network of more than ``most`` layers.
        """
        if self._shapes is None:
            network = self._config.network
            if len(network.hidden) > most:
                raise MisfitError("network.hidden has more layers than there are weights")
            try:
                with torch.device("meta"):
                    made = QNetwork(self._layout, network, self._config.learner)
            except (RuntimeError, ValueError, OverflowError, UserError) as error:
                raise MisfitError("its settings and layout are those of no network") from error
            self._shapes = {name: value.shape for name, value in made.state_dict().items()}
        return self._shapes

    def __call__(self, name: str, value: Any) -> None:
        require_table(name, value)
        shapes = self.shapes(len(value))
        if value.keys() != shapes.keys():
            raise MisfitError(f"its entry {name} has not the weights that its settings require")
        for key, shape in shapes.items():
            tensor("float32", *shape)(f"{name}.{key}", value[key])
            if not bool(torch.isfinite(value[key]).all()):
                raise MisfitError(f"its entry {name}.{key} has numbers that are not finite")


class _Moments:
    """Checks the state of the optimiser, for the weights of ``online`` in their order."""

    def __init__(self, weights: _Weights) -> None:
        self._weights = weights

    def __call__(self, name: str, value: Any) -> None:
        parts = ("state", "param_groups")
        record({"param_groups": list_of(_GROUP, 1)}, all_of=parts)(name, value)
        count = len(value["param_groups"][0]["params"])
        state = value["state"]
        require_table(f"{name}.state", state)
        for key, moments in state.items():
            part = f"{name}.state[{quoted(key)}]"
            if type(key) is not int or not 0 <= key < count:
                raise MisfitError(f"{part} is of no weight")
            record({"step": SCALAR}, all_of=("step", "exp_avg", "exp_avg_sq"))(part, moments)
            shapes = {_shape_of(part, moments[each]) for each in ("exp_avg", "exp_avg_sq")}
            if len(shapes) != 1 or not shapes <= set(self._weights.shapes(count).values()):
                raise MisfitError(f"{part} has the shape of no weight")


def _shape_of(name: str, value: Any) -> torch.Size:
    if not isinstance(value, Tensor) or value.dtype != torch.float32:
        raise wrong_value(name, value, "a tensor of float32")
    return value.shape


_GROUP = record(
    {
        **dict.fromkeys(("lr", "eps", "weight_decay"), number(0)),
        "betas": list_of(number(0, 1), 2),
        **dict.fromkeys(
            ("amsgrad", "maximize", "foreach", "capturable", "differentiable", "fused",
             "decoupled_weight_decay"), optional(flag),
        ),
        "params": list_of(whole()),
    },
    all_of=("lr", "betas", "eps", "weight_decay", "params"),
)  # fmt: skip
