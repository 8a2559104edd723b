"""Settings of what is learned and how: network, replay, update, guard."""

from __future__ import annotations

from dataclasses import dataclass

from .setting import setting


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
    policy_head: bool = setting(
        False, "Whether a second lanes head chooses actions, taught by labels instead of values."
    )
    acts: str = setting(
        "values",
        "The head whose best action is played: values, or the policy head's. auto, for train: the "
        "policy's, if there is one and a teacher whom it learns from.",
        choices=("values", "policy", "auto"),
    )
    avoids_deadly: bool = setting(
        False,
        "Whether turns into a lane that the forecast calls deadly in this tick are no choice.",
    )


@dataclass(frozen=True)
class ReplayConfig:
    """What is stored and how it is sampled."""

    capacity: int = setting(400_000, "Decisions that are kept.", low=1)
    storage: str = setting(
        "auto",
        "Memory it lives in; auto is the training device's if that is a GPU and it fits.",
        choices=("auto", "host", "device"),
    )
    learning_starts: int = setting(10_000, "Decisions played before the first update.", low=1)
    prioritised: bool = setting(False, "Whether rows with a large error are sampled more often.")
    priority_exponent: float = setting(0.5, "Power of the priority (alpha).", low=0.0, high=1.0)
    importance_start: float = setting(
        0.4, "Importance exponent (beta) at the start.", low=0.0, high=1.0
    )
    importance_steps: int = setting(
        3_000_000, "Decisions over which the importance exponent rises to 1.", low=1
    )
    demonstrations: str = setting(
        "", "Minari data set that fills the replay before the first decision."
    )
    demonstrations_share: float = setting(
        0.5, "Largest share of the capacity for demonstrations.", low=0.0, high=1.0
    )


@dataclass(frozen=True)
class LearnerConfig:
    """The update."""

    learning_rate: float = setting(5e-4, "Step size of AdamW at the start.", low=1e-12)
    learning_rate_floor: float = setting(
        0.05, "Share of the step size at the end.", low=0.0, high=1.0
    )
    learning_rate_hold: float = setting(
        0.2, "Share of the run before the step size falls.", low=0.0, high=1.0
    )
    learning_rate_schedule: str = setting(
        "linear",
        "How the step size falls after that: linearly, by half a cosine, or not at all.",
        choices=("linear", "cosine", "constant"),
    )
    learning_rate_warm_up: int = setting(
        0, "Decisions over which the step size first rises from 0.", low=0
    )
    weight_decay: float = setting(1e-4, "Decoupled weight decay of AdamW.", low=0.0)
    max_grad_norm: float = setting(10.0, "Gradient norm above which it is scaled down.", low=0.0)
    gamma: float = setting(0.99, "Discount per decision.", low=0.0, high=0.99999)
    n_steps: int = setting(5, "Longest n-step return at the start.", low=1, high=100)
    n_steps_end: int = setting(
        0, "Longest n-step return at the end; 0 keeps that of the start.", low=0, high=100
    )
    n_steps_steps: int = setting(
        1_000_000, "Decisions over which the longest return changes.", low=1
    )
    trace: str = setting(
        "uncorrected",
        "How n-step returns treat other drivers' actions: as any, end before them, or weigh them.",
        choices=("uncorrected", "cut", "retrace"),
    )
    trace_decay: float = setting(
        1.0, "Factor on each weight of a retrace return (lambda).", low=0.0, high=1.0
    )
    trace_temperature: float = setting(
        0.1, "Value difference that makes an action e times less likely for the student.", low=1e-6
    )
    double_q: bool = setting(
        True, "Whether the online network chooses the action that the target network evaluates."
    )
    target_clip: float = setting(
        100.0, "Targets are clamped to this magnitude; 0 is no clamp.", low=0.0
    )
    reward_unit: float = setting(
        1.0,
        "Unit of reward in which values are learned; 0 measures it before the first update.",
        low=0.0,
        high=1e30,
    )
    loss: str = setting(
        "huber",
        "Loss on the value, which decides the kind of value head.",
        choices=("huber", "squared", "c51", "iqn"),
    )
    value_bins: int = setting(51, "Bins of c51 between both target clips.", low=2, high=1001)
    quantile_samples: int = setting(16, "Quantiles per state and action of iqn.", low=1, high=256)
    batch_size: int = setting(256, "Rows of one update, all micro-batches together.", low=1)
    gradient_accumulation_steps: int = setting(1, "Micro-batches of one update.", low=1)
    gradient_steps: int = setting(1, "Updates per vector step.", low=1, high=100_000)
    train_freq: int = setting(1, "Vector steps between updates.", low=1, high=100_000)
    tau: float = setting(
        1.0, "Share of the online weights in a move of the target network.", low=1e-6, high=1.0
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
        choices=("none", "cross_entropy"),
    )
    imitation_weight: float = setting(4.0, "Weight of imitation before the gate.", low=0.0)
    imitation_floor: float = setting(
        0.0,
        "Least gate of imitation, also if the student plays as well as the teacher.",
        low=0.0,
        high=1.0,
    )
    imitation_temperature: float = setting(
        1.0, "Value difference of one unit of preference.", low=1e-6
    )
    imitation_width: float = setting(
        0.12, "Spinner distance (of 1) within which an action resembles the teacher's.", low=1e-3
    )
    plan_weight: float = setting(
        1.0,
        "Weight of the cross entropy towards the plans' values (teacher.labels=plans).",
        low=0.0,
    )
    plan_temperature: float = setting(
        50.0, "Points that make a plan e times less wanted than the best.", low=1e-3
    )
    regret_weight: float = setting(
        1.0, "Weight of the policy's expected regret, for each 100 points of it.", low=0.0
    )
    plan_batch_size: int = setting(
        384, "States of one update that teach by their plans (teacher.labels=plans).", low=1
    )
    death_share: float = setting(
        0.15, "Share of them from the last ticks before a death.", low=0.0, high=1.0
    )
    spinner_weight: float = setting(0.1, "Weight of the continuous spinner head.", low=0.0)


@dataclass(frozen=True)
class GuardConfig:
    """When the stability guard reports a symptom, and how far its remedies go."""

    enabled: bool = setting(
        True, "Whether the guard applies remedies; otherwise it only reports symptoms."
    )
    window: int = setting(12, "Log rows that it looks at.", low=3, high=1000)
    patience: int = setting(3, "Log rows a symptom lasts before the next remedy.", low=1)
    recovery: int = setting(10, "Log rows without symptoms before a remedy is undone.", low=1)
    bound_factor: float = setting(
        1.5, "Values over the largest possible return; approximation overshoots a little.", low=1.0
    )
    overestimation: float = setting(
        3.0, "Mean Q over the discounted sum of the best mean reward.", low=1.0
    )
    growth_factor: float = setting(
        3.0, "Growth of the highest Q within the window that counts as divergence.", low=1.0
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
        5.0, "Clamp on targets, over the discounted sum of the best mean reward.", low=1.0
    )
    min_learning_rate: float = setting(
        0.125, "Lowest factor on the learning rate.", low=0.0, high=1.0
    )
    max_accumulation: int = setting(4, "Highest factor on the rows of an update.", low=1, high=64)
    expert_ratio: float = setting(
        0.5, "Least share of the teacher while its share is raised.", low=0.0, high=1.0
    )
    expert_lines: int = setting(10, "Log rows for which the teacher's share is raised.", low=1)
    max_rollbacks: int = setting(3, "Most rollbacks of a run to its last good checkpoint.", low=0)
