"""The whole configuration: one tree of typed dataclasses, one sentence of help per field.

Sources, later ones winning: the defaults below, a YAML file of ``configs/`` (by name) or any path,
then ``key=value`` overrides such as ``learner.gamma=0.97``.  Unknown keys and values out of range
are errors that say what would have been right.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from tempest_agent.errors import UserError

LARGEST = 2**62 - 1
"""Largest whole number where a setting has no limit of its own: sums of two still fit 64 bits."""


class ConfigError(UserError, ValueError):
    """A mistake in a configuration."""


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A dataclass field with its help sentence and the values that are allowed."""
    metadata = {"help": help, "low": low, "high": high, "choices": choices}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class GameConfig:
    """The games that are played for training."""

    frame_skip: int = setting(1, "Game ticks that one decision lasts.", low=1, high=16)
    start_levels: tuple[int, ...] = setting(
        (1, 1, 1, 9, 17, 25),
        "Levels a training game may start at; each game draws one entry.",
        low=1,
        high=99,
    )
    lives: int = setting(3, "Lives at the start of a game (2 to 5).", low=2, high=5)
    bonus_life: int = setting(
        2, "Bonus life every this many times 10,000 points; 0 is never.", low=0, high=7
    )
    difficulty: str = setting(
        "medium", "Position of the difficulty switch.", choices=("medium", "easy", "hard")
    )
    level_curriculum: str = setting(
        "none",
        "How start levels change: not at all, unlocked as they are mastered, or where lives go.",
        choices=("none", "unlock", "deaths"),
    )
    unlock_share: float = setting(
        0.5,
        "Share of teacher-free games that must reach the next start level to unlock it.",
        low=0.01,
        high=1.0,
    )
    unlock_games: int = setting(
        10, "Teacher-free games from the highest start level that this share is of.", low=1
    )
    max_ticks: int = setting(30_000, "A training game is cut after this many ticks.", low=1)
    input_delay: int = setting(0, "Ticks between an action and its effect.", low=0, high=4)
    reward_scale: float = setting(0.01, "Reward per point of score.", low=1e-9)
    death_penalty: float = setting(10.0, "Reward taken off for each life lost.", low=0.0)
    life_loss_terminal: bool = setting(
        True, "Whether a lost life ends the return (the game itself goes on)."
    )
    backend: str = setting(
        "sim", "What is played on: the simulator or the real game in MAME.", choices=("sim", "mame")
    )
    rom_path: str = setting("", "Folder with your own tempest1.zip, for the real game.")
    mame_path: str = setting("", "The program MAME; empty takes the installed one.")
    strict_roms: bool = setting(True, "Whether ROM files with wrong checksums are refused.")
    random_bytes: str = setting(
        "machine",
        "Where the real game's chance comes from: its own chips or the simulator's stream.",
        choices=("machine", "simulator"),
    )


@dataclass(frozen=True)
class TeacherConfig:
    """Who else drives the training games, and how long."""

    name: str = setting("expert", "Teacher that drives and labels; none leaves it out.")
    expert_ratio_start: float = setting(
        0.95, "Share of segments the teacher drives at the start.", low=0.0, high=1.0
    )
    expert_ratio_floor: float = setting(
        0.02, "Share of segments the teacher drives in the end.", low=0.0, high=1.0
    )
    expert_ratio_steps: int = setting(
        400_000, "Decisions over which the teacher's share falls to its floor.", low=1
    )
    expert_ratio_schedule: str = setting(
        "frames",
        "What the share falls by: decisions alone, or the teacher-free score on top.",
        choices=("frames", "performance"),
    )
    expert_ratio_goal: float = setting(
        0.3,
        "Part of the teacher's score at which the share by performance is at its floor.",
        low=0.001,
        high=10.0,
    )
    expert_ratio_drop: float = setting(
        0.25,
        "Fall of the teacher-free score below its best that lets the share rise.",
        low=0.01,
        high=1.0,
    )
    expert_ratio_rise: float = setting(
        0.2, "What the share by performance rises by when the student degrades.", low=0.0, high=1.0
    )
    expert_ratio_rise_steps: int = setting(
        200_000, "Decisions that a rise lasts at most, and until the next may begin.", low=1
    )
    segment_min: int = setting(50, "Fewest decisions one driver keeps the controls.", low=1)
    segment_max: int = setting(250, "Most decisions one driver keeps the controls.", low=1)
    free_share: float = setting(
        0.125, "Share of games in which the teacher never drives (at least 1/8).", low=0.125, high=1
    )
    score: float = setting(
        0.0, "Mean score of the teacher for the imitation gate; 0 measures it first.", low=0.0
    )
    score_games: int = setting(8, "Games played to measure the teacher's score.", low=1)


@dataclass(frozen=True)
class ExplorationConfig:
    """Random actions of the agent's own games."""

    epsilon_max: float = setting(
        0.3, "Exploration rate of the most curious game.", low=0.0, high=1.0
    )
    epsilon_min: float = setting(
        1e-4, "Exploration rate of the least curious game.", low=0.0, high=1.0
    )
    epsilon_start: float = setting(
        1.0, "Exploration rate of every game in the first decision.", low=0.0, high=1.0
    )
    epsilon_steps: int = setting(
        100_000, "Decisions over which the rates fall to the ladder.", low=1
    )
    epsilon_floor: float = setting(
        0.0, "Exploration rate that no game falls below, whatever the ladder.", low=0.0, high=1.0
    )
    hold_max: int = setting(3, "Most decisions one random action is held.", low=1)
    fire_share: float = setting(0.75, "Share of random actions that fire.", low=0.0, high=1.0)
    zap_share: float = setting(0.03, "Share of random actions that zap.", low=0.0, high=1.0)


@dataclass(frozen=True)
class NetworkConfig:
    """The value network and its spinner head."""

    encoder: str = setting(
        "mlp", "Flat MLP, or weights shared over the lanes.", choices=("mlp", "lanes")
    )
    hidden: tuple[int, ...] = setting((512, 256), "Widths of the MLP's layers.", low=1)
    lane_width: int = setting(48, "Channels per lane of the lanes encoder.", low=1)
    value_head: str = setting(
        "knots",
        "What is valued: each knot, or with the lanes encoder the lanes where the claw may land.",
        choices=("knots", "lanes"),
    )
    dueling: bool = setting(True, "Whether state value and advantages have their own heads.")
    spinner_head: str = setting(
        "functional",
        "How the spinner is chosen: interpolated values, plain knots, or regression.",
        choices=("functional", "knots", "regression"),
    )
    spinner_knots: int = setting(9, "Knots of the value over the spinner axis.", low=2, high=63)
    spinner_interpolation: str = setting(
        "linear",
        "Values between knots: straight lines, or parabolas through three neighbouring knots.",
        choices=("linear", "quadratic"),
    )
    layer_norm: bool = setting(True, "Whether every layer's outputs are normalised.")
    noisy: bool = setting(False, "Whether the value head has weights with learned noise.")


@dataclass(frozen=True)
class ReplayConfig:
    """What is remembered and how it is sampled."""

    capacity: int = setting(400_000, "Decisions that are kept.", low=1)
    storage: str = setting(
        "auto",
        "Memory it lives in; auto is the training device's where that is a GPU and it fits.",
        choices=("auto", "host", "device"),
    )
    learning_starts: int = setting(10_000, "Decisions played before the first update.", low=1)
    prioritised: bool = setting(False, "Whether surprising rows are sampled more often.")
    priority_exponent: float = setting(0.5, "Power of the priority (alpha).", low=0.0, high=1.0)
    importance_start: float = setting(
        0.4, "Importance exponent (beta) at the start.", low=0.0, high=1.0
    )
    importance_steps: int = setting(
        3_000_000, "Decisions over which the importance exponent rises to 1.", low=1
    )
    death_boost: float = setting(
        1.0, "Factor on the priority of the decisions before a lost life.", low=1.0
    )
    death_window: int = setting(
        30, "Decisions before a lost life that the factor is for.", low=1, high=1000
    )
    expert_share: float = setting(
        0.0, "Least share of each batch that is drawn from the teacher's rows.", low=0.0, high=1.0
    )
    demonstrations: str = setting(
        "", "Minari data set that the replay is filled with before the first decision."
    )
    demonstrations_share: float = setting(
        0.5, "Largest share of the capacity that demonstrations fill.", low=0.0, high=1.0
    )


@dataclass(frozen=True)
class LearnerConfig:
    """The update."""

    learning_rate: float = setting(5e-4, "Step size of AdamW at the start.", low=1e-12)
    learning_rate_floor: float = setting(
        0.05, "Share of the step size that is left at the end.", low=0.0, high=1.0
    )
    learning_rate_hold: float = setting(
        0.2, "Share of the run before the step size begins to fall.", low=0.0, high=1.0
    )
    learning_rate_schedule: str = setting(
        "linear",
        "How the step size falls after that: in a line, in half a cosine, or not at all.",
        choices=("linear", "cosine", "constant"),
    )
    learning_rate_warm_up: int = setting(
        0, "Decisions over which the step size rises from 0 first.", low=0
    )
    weight_decay: float = setting(1e-4, "Decoupled weight decay of AdamW.", low=0.0)
    max_grad_norm: float = setting(10.0, "Gradient norm above which it is scaled down.", low=0.0)
    gamma: float = setting(0.99, "Discount per decision.", low=0.0, high=0.99999)
    n_steps: int = setting(5, "Longest n-step return at the start.", low=1, high=100)
    n_steps_end: int = setting(
        0, "Longest n-step return in the end; 0 leaves it as at the start.", low=0, high=100
    )
    n_steps_steps: int = setting(
        1_000_000, "Decisions over which the longest return goes there.", low=1
    )
    trace: str = setting(
        "uncorrected",
        "What an n-step return does about others' actions: nothing, end, or weigh them.",
        choices=("uncorrected", "cut", "retrace"),
    )
    trace_decay: float = setting(
        1.0, "Factor on each weight of a retrace return (lambda).", low=0.0, high=1.0
    )
    trace_temperature: float = setting(
        0.1, "Value difference that makes an action e times less the student's own.", low=1e-6
    )
    double_q: bool = setting(
        True, "Whether the online network chooses what the target network judges."
    )
    munchausen: float = setting(
        0.0, "Share of the scaled log policy that is added to the reward (0 is off).", low=0, high=1
    )
    munchausen_temperature: float = setting(
        0.03, "Entropy temperature of Munchausen targets.", low=1e-6
    )
    munchausen_floor: float = setting(-1.0, "Lowest scaled log policy that is added.", high=0.0)
    value_rescaling: str = setting(
        "none",
        "What the network learns instead of the value itself.",
        choices=("none", "sqrt", "symlog"),
    )
    target_clip: float = setting(100.0, "Targets are clamped to this magnitude.", low=1e-6)
    loss: str = setting(
        "huber",
        "Loss on the value, and with it the kind of value head.",
        choices=("huber", "squared", "c51", "hl_gauss", "iqn"),
    )
    value_bins: int = setting(
        51, "Bins of c51 and hl_gauss between both target clips.", low=2, high=1001
    )
    value_smoothing: float = setting(0.75, "Width of hl_gauss's bell in bins.", low=0.05, high=10.0)
    quantile_samples: int = setting(16, "Quantiles per state and action of iqn.", low=1, high=256)
    batch_size: int = setting(256, "Rows of one update, all micro-batches together.", low=1)
    gradient_accumulation_steps: int = setting(
        1, "Micro-batches that one update is made of.", low=1
    )
    gradient_steps: int = setting(1, "Updates per vector step.", low=1)
    train_freq: int = setting(1, "Vector steps between updates.", low=1)
    tau: float = setting(
        1.0, "Share of the online weights taken over by the target network.", low=1e-6, high=1.0
    )
    target_update_interval: int = setting(
        300, "Updates between two moves of the target network.", low=1
    )
    ema_decay: float = setting(
        0.999, "Decay of the averaged weights that play.", low=0.0, high=0.999999
    )
    precision: str = setting(
        "auto",
        "Arithmetic of the network; auto is bfloat16 where the device is fast at it.",
        choices=("auto", "float32", "bfloat16", "float16"),
    )
    compile: bool = setting(
        False,
        "Whether torch.compile makes kernels of the network's passes, and on a GPU one graph of "
        "the whole update (needs a C compiler).",
    )
    max_skipped_updates: int = setting(
        20, "Updates in a row without a finite gradient before float32 takes over.", low=1
    )
    imitation: str = setting(
        "cross_entropy",
        "Loss towards the teacher's action.",
        choices=("none", "cross_entropy", "margin"),
    )
    imitation_weight: float = setting(4.0, "Weight of imitation before the gate.", low=0.0)
    imitation_floor: float = setting(
        0.0, "Gate of imitation that is left when the student plays as well.", low=0.0, high=1.0
    )
    imitation_temperature: float = setting(
        1.0, "Value difference that counts as one unit of preference.", low=1e-6
    )
    imitation_width: float = setting(
        0.12, "Spinner distance (of 1) within which an action still resembles.", low=1e-3
    )
    imitation_margin: float = setting(0.8, "Value margin of the margin loss.", low=0.0)
    spinner_weight: float = setting(0.1, "Weight of the continuous spinner head.", low=0.0)


@dataclass(frozen=True)
class GuardConfig:
    """When the stability guard sees a symptom, and how far it may go."""

    enabled: bool = setting(
        True, "Whether the guard takes remedies; otherwise it only tells of symptoms."
    )
    window: int = setting(12, "Lines of metrics that it looks at.", low=3, high=1000)
    patience: int = setting(3, "Lines a symptom lasts before the next remedy.", low=1)
    recovery: int = setting(10, "Lines without symptoms before a remedy is taken back.", low=1)
    bound_factor: float = setting(
        1.5, "Values over the largest possible return; approximation overshoots a little.", low=1.0
    )
    overestimation: float = setting(
        3.0, "Mean Q over what the best mean reward is worth for ever.", low=1.0
    )
    growth_factor: float = setting(
        3.0, "Growth of the highest Q within the window that counts as running away.", low=1.0
    )
    score_drop: float = setting(
        0.4, "Share of its best that the teacher-free score may lose.", low=0.0, high=1.0
    )
    reward_drop: float = setting(
        0.6, "Share of its reward per decision that the agent may lose.", low=0.0, high=1.0
    )
    gradient_swing: float = setting(
        20.0, "Largest gradient norm over the mean or the smallest.", low=1.0
    )
    clip_ratio: float = setting(
        0.25, "Least share of the gradient that clipping leaves on average.", low=0.0, high=1.0
    )
    clip_share: float = setting(
        0.001, "Share of clamped targets above which the clamp distorts.", low=0.0, high=1.0
    )
    still_share: float = setting(
        0.02, "Share of decisions with a turn below which the policy is frozen.", low=0.0, high=1.0
    )
    target_age: float = setting(
        5.0, "Age of the target network over the usual one that counts as stalled.", low=1.0
    )
    clamp_factor: float = setting(
        5.0, "Clamp on targets, over what the best mean reward is worth for ever.", low=1.0
    )
    min_learning_rate: float = setting(
        0.125, "Lowest factor on the learning rate.", low=0.0, high=1.0
    )
    max_accumulation: int = setting(4, "Highest factor on the rows of an update.", low=1, high=64)
    expert_ratio: float = setting(
        0.5, "Least share of the teacher while its share is raised.", low=0.0, high=1.0
    )
    expert_lines: int = setting(10, "Lines for which the teacher's share is raised.", low=1)
    max_rollbacks: int = setting(
        3, "How often a run may go back to its last good checkpoint.", low=0
    )


@dataclass(frozen=True)
class ActorsConfig:
    """Processes that play while the learner learns; read by ``tempest-agent train`` alone."""

    count: int = setting(
        0,
        "Actors that share the games, on Ray; 0 plays them here.",
        low=0,
        high=4096,
    )
    synchronous: bool = setting(
        False, "Whether actors play only while the learner waits, one decision at a time."
    )
    chunk_steps: int = setting(
        16, "Decisions of every game that an actor sends at once.", low=1, high=4096
    )
    queue: int = setting(
        2, "Chunks that an actor may be ahead of the learner, and so how old weights get.", low=1
    )
    publish_interval: int = setting(
        32, "Updates between two versions of the weights that actors get.", low=1
    )
    deadline_seconds: float = setting(
        120.0, "Seconds without a chunk after which an actor counts as hung.", low=0.1
    )
    max_restarts: int = setting(
        5, "Times in a row that an actor is begun anew without a chunk between.", low=0
    )
    ray_address: str = setting(
        "", "Ray cluster to join, auto or host:port; empty starts one on this machine."
    )


@dataclass(frozen=True)
class RunConfig:
    """The run as a whole."""

    name: str = setting("tempest", "Name of the run; begins its folder's name.")
    steps: int = setting(3_000_000, "Decisions of the whole run over all games.", low=1)
    seed: int = setting(1, "Seed of everything random.", low=0, high=2**63 - 1)
    num_envs: int = setting(128, "Games played side by side.", low=1)
    device: str = setting("auto", "Where the network lives.", choices=("auto", "cpu", "cuda"))
    phases: str = setting(
        "steps",
        "What epsilon, n_steps and the step size go by: own decisions, or the teacher's share.",
        choices=("steps", "teacher"),
    )
    threads: int = setting(1, "CPU threads of the learner.", low=1)
    log_interval: int = setting(50_000, "Decisions between two lines of metrics.", low=1)
    checkpoint_interval: int = setting(500_000, "Decisions between two checkpoints.", low=1)
    keep_checkpoints: int = setting(3, "Newest checkpoints kept beside the best.", low=1)
    save_replay: bool = setting(True, "Whether checkpoints carry the replay, for exact resume.")
    compress_replay: bool = setting(
        True, "Whether that replay is compressed: a tenth of the size, four times as long to write."
    )


@dataclass(frozen=True)
class Config:
    """Everything a run depends on."""

    run: RunConfig = field(default_factory=RunConfig)
    game: GameConfig = field(default_factory=GameConfig)
    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    exploration: ExplorationConfig = field(default_factory=ExplorationConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    guard: GuardConfig = field(default_factory=GuardConfig)
    actors: ActorsConfig = field(default_factory=ActorsConfig)


def settings() -> Iterator[tuple[str, Any, str]]:
    """Every setting as ``(dotted key, default, help sentence)``, in order."""
    for section in dataclasses.fields(Config):
        for entry in dataclasses.fields(_section_type(section.name)):
            yield f"{section.name}.{entry.name}", entry.default, entry.metadata["help"]


def to_dict(config: Config) -> dict[str, dict[str, Any]]:
    """``config`` as plain Python types (tuples as lists), fit for YAML and checkpoints."""
    tree = dataclasses.asdict(config)
    return {
        section: {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
        for section, values in tree.items()
    }


def from_dict(tree: Mapping[str, Any], base: Config | None = None) -> Config:
    """``base`` (or the defaults) with the values of ``tree`` on top, validated.

    Raises:
        ConfigError: an unknown key, a wrong type, or a value out of range.
    """
    config = base or Config()
    names = [section.name for section in dataclasses.fields(Config)]
    for name, values in tree.items():
        if name not in names:
            raise ConfigError(_unknown(str(name), names, "section"))
        if not isinstance(values, Mapping):
            raise ConfigError(f"{name} must hold settings (name: value), not {values!r}")
        for key, value in values.items():
            config = _with_value(config, name, str(key), value)
    _check_together(config)
    return config


def load_config(source: str | Path | None = None, overrides: Iterable[str] = ()) -> Config:
    """The configuration of ``source`` with ``key=value`` overrides.

    Args:
        source: name of a file in ``configs/`` (``quick``), path of a YAML file, or None for the
            defaults (``default.yaml``).
        overrides: strings such as ``learner.gamma=0.97``; values are YAML.

    Raises:
        ConfigError: no such configuration, bad YAML, an unknown key or a bad value.
    """
    name, text = _read(source if source is not None else "default")
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{name} is not valid YAML: {' '.join(str(error).split())}") from error
    if tree is None:
        raise ConfigError(f"{name} is empty; leave --config out for the defaults")
    if not isinstance(tree, Mapping):
        raise ConfigError(f"{name} must hold sections of settings, not {type(tree).__name__}")
    return apply_overrides(from_dict(tree), overrides)


def apply_overrides(config: Config, overrides: Iterable[str]) -> Config:
    """``config`` with each ``section.key=value`` of ``overrides`` set.

    Raises:
        ConfigError: no ``=``, an unknown key or a bad value.
    """
    tree: dict[str, dict[str, Any]] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        section, dot, name = key.strip().partition(".")
        if not equals:
            raise ConfigError(f"{override!r} has no '='; write section.key=value")
        if not dot:
            raise ConfigError(_unknown(key.strip(), [k for k, _, _ in settings()], "setting"))
        try:
            tree.setdefault(section, {})[name] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"the value of {override!r} is not valid YAML") from error
    return from_dict(tree, config)


def available() -> list[str]:
    """Names of the configurations that come with the package."""
    folder = resources.files("tempest_agent.configs")
    return sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".yaml"))


def _read(source: str | Path) -> tuple[str, str]:
    path = Path(source)
    if isinstance(source, str) and path.suffix == "" and len(path.parts) == 1:
        if source in available():
            file = resources.files("tempest_agent.configs") / f"{source}.yaml"
            return source, file.read_text(encoding="utf-8")
        if not path.is_file():
            raise ConfigError(_unknown(source, available(), "configuration"))
    if not path.is_file():
        raise ConfigError(
            f"no configuration file {str(source)!r}; give a path or one of {', '.join(available())}"
        )
    try:
        return str(source), path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration {str(source)!r}: {error}") from error


def _section_type(name: str) -> Any:
    return typing.get_type_hints(Config)[name]


def _with_value(config: Config, section: str, key: str, value: Any) -> Config:
    kind = _section_type(section)
    entries = {entry.name: entry for entry in dataclasses.fields(kind)}
    if key not in entries:
        raise ConfigError(_unknown(f"{section}.{key}", [k for k, _, _ in settings()], "setting"))
    wanted = typing.get_type_hints(kind)[key]
    checked = _checked(f"{section}.{key}", value, wanted, entries[key].metadata)
    part = dataclasses.replace(getattr(config, section), **{key: checked})
    return dataclasses.replace(config, **{section: part})


def _checked(key: str, value: Any, wanted: Any, limits: Mapping[str, Any]) -> Any:
    if isinstance(wanted, types.GenericAlias):
        items = value if isinstance(value, list | tuple) else [value]
        if not items:
            raise ConfigError(f"{key}={value!r} is empty; give at least one value")
        return tuple(_checked(key, item, int, limits) for item in items)
    value = _converted(key, value, wanted)
    choices = limits["choices"]
    if choices and value not in choices:
        near = _nearest(str(value), choices)
        raise ConfigError(f"{key}={value!r} is none of {', '.join(choices)}{near}")
    low, high = limits["low"], limits["high"]
    if high is None and isinstance(value, int):
        high = LARGEST if value > LARGEST else None
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ConfigError(f"{key}={value!r} is out of range; it must be {bounds}")
    return value


def _converted(key: str, value: Any, wanted: type) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is float:
        # YAML 1.1 reads 5e-4 (no dot) as text.
        if isinstance(value, str):
            try:
                value, is_number = float(value), True
            except ValueError:
                is_number = False
        if is_number and value == value and abs(value) != float("inf"):
            return float(value)
    elif wanted is int:
        if isinstance(value, str) and value.replace("_", "").isdecimal():
            return int(value)
        if is_number and (isinstance(value, int) or value.is_integer()):
            return int(value)
        if isinstance(value, str):
            try:
                return _converted(key, float(value), int)
            except (ValueError, OverflowError):
                pass
    elif isinstance(value, wanted):
        return value
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    raise ConfigError(f"{key}={value!r} must be {names[wanted]}")


def _check_together(config: Config) -> None:
    teacher, exploration = config.teacher, config.exploration
    replay, run, learner = config.replay, config.run, config.learner
    longest = max(learner.n_steps, learner.n_steps_end)
    problems = (
        (
            teacher.segment_min > teacher.segment_max,
            f"teacher.segment_min={teacher.segment_min} is above "
            f"teacher.segment_max={teacher.segment_max}; lower the first or raise the second",
        ),
        (
            teacher.expert_ratio_floor > teacher.expert_ratio_start,
            f"teacher.expert_ratio_floor={teacher.expert_ratio_floor} is above "
            f"teacher.expert_ratio_start={teacher.expert_ratio_start}; the share can only fall",
        ),
        (
            exploration.epsilon_floor > exploration.epsilon_start,
            f"exploration.epsilon_floor={exploration.epsilon_floor} is above "
            f"exploration.epsilon_start={exploration.epsilon_start}; lower the first",
        ),
        (
            config.game.level_curriculum != "none" and len(set(config.game.start_levels)) < 2,
            f"game.level_curriculum={config.game.level_curriculum} needs several levels in "
            f"game.start_levels={list(config.game.start_levels)}, lowest to highest",
        ),
        (
            config.game.level_curriculum != "none" and config.game.backend != "sim",
            f"game.level_curriculum={config.game.level_curriculum} works on the simulator alone; "
            "set it to none, or game.backend=sim",
        ),
        (
            config.actors.count > run.num_envs,
            f"actors.count={config.actors.count} is above run.num_envs={run.num_envs}; some actors "
            "would have no game",
        ),
        (
            exploration.epsilon_min > exploration.epsilon_max,
            f"exploration.epsilon_min={exploration.epsilon_min} is above "
            f"exploration.epsilon_max={exploration.epsilon_max}; swap them",
        ),
        (
            replay.capacity < run.num_envs * (longest + 2),
            f"replay.capacity={replay.capacity} is too small for {run.num_envs} games and "
            f"n_steps={longest}; set at least {run.num_envs * (longest + 2)}",
        ),
        (
            replay.learning_starts > replay.capacity,
            f"replay.learning_starts={replay.learning_starts} is above "
            f"replay.capacity={replay.capacity}; learning would never start",
        ),
        (
            learner.gradient_accumulation_steps > learner.batch_size,
            f"learner.gradient_accumulation_steps={learner.gradient_accumulation_steps} is above "
            f"learner.batch_size={learner.batch_size}; some micro-batches would be empty",
        ),
        (
            learner.batch_size > replay.capacity,
            f"learner.batch_size={learner.batch_size} is above "
            f"replay.capacity={replay.capacity}; lower the first or raise the second",
        ),
        *_learner_problems(config),
    )
    for wrong, message in problems:
        if wrong:
            raise ConfigError(message)


def _learner_problems(config: Config) -> Iterator[tuple[bool, str]]:
    learner, network, replay = config.learner, config.network, config.replay
    yield (
        network.spinner_interpolation == "quadratic" and network.spinner_knots < 3,
        f"network.spinner_knots={network.spinner_knots} is too few for "
        "network.spinner_interpolation=quadratic; set at least 3",
    )
    yield (
        network.value_head == "lanes"
        and (
            network.encoder != "lanes"
            or network.spinner_knots != 63
            or network.spinner_head == "regression"
            or not network.dueling
            or network.noisy
            or learner.loss not in ("huber", "squared")
        ),
        "network.value_head=lanes values the landing place of every knob count: set "
        "network.encoder=lanes and network.spinner_knots=63, and leave network.spinner_head, "
        "dueling, noisy and learner.loss at their defaults",
    )
    yield (
        learner.trace == "retrace" and learner.loss in ("c51", "iqn"),
        f"learner.trace=retrace corrects expected values, which learner.loss={learner.loss} does "
        "not learn from; use huber, squared or hl_gauss",
    )
    yield (
        learner.trace == "retrace" and learner.munchausen > 0,
        f"learner.munchausen={learner.munchausen} and learner.trace=retrace exclude each other; "
        "set learner.munchausen=0 or another trace",
    )
    yield (
        replay.death_boost > 1 and not replay.prioritised,
        f"replay.death_boost={replay.death_boost} changes priorities, which are off; set "
        "replay.prioritised=true",
    )


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _unknown(word: str, known: Iterable[str], what: str) -> str:
    known = list(known)
    # "replay.gamma" and plain "gamma" should both find "learner.gamma".
    last = word.rpartition(".")[2]
    moved = [key for key in known if key.rpartition(".")[2] == last]
    near = f"; did you mean {moved[0]}?" if moved else _nearest(word, known)
    if not near:
        by_last = {key.rpartition(".")[2]: key for key in known}
        match = difflib.get_close_matches(last, list(by_last), n=1, cutoff=0.6)
        near = f"; did you mean {by_last[match[0]]}?" if match else f"; known: {', '.join(known)}"
    return f"unknown {what} {word!r}{near}"
