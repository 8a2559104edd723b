"""Settings of play: the games, the teacher, exploration and the actors."""

from __future__ import annotations

from dataclasses import dataclass

from .setting import setting


@dataclass(frozen=True)
class GameConfig:
    """The training games."""

    frame_skip: int = setting(1, "Game ticks per step (decision).", low=1, high=16)
    start_levels: tuple[int, ...] = setting(
        (1, 1, 1, 9, 17, 25),
        "Levels at which a training game may start; each game draws one entry.",
        low=1,
        high=99,
    )
    lives: int = setting(3, "Lives at the start of a game (2 to 5).", low=2, high=5)
    bonus_life: int = setting(
        2, "Bonus life every this many times 10,000 points; 0 is never.", low=0, high=7
    )
    difficulty: str = setting(
        "medium",
        "Position of the difficulty switch.  On hard the real machine's levels 96 to 99 can hang.",
        choices=("medium", "easy", "hard"),
    )
    max_ticks: int = setting(30_000, "A training game is truncated after this many ticks.", low=1)
    input_delay: tuple[int, ...] = setting(
        (0,),
        "Ticks between an action and its effect; of several, the games take one after the other.",
        low=0,
        high=4,
    )
    observation: str = setting(
        "features",
        "What the student sees: features, or features_plain without the hand-written forecast.",
        choices=("features", "features_plain"),
    )
    reward_scale: float = setting(0.01, "Reward per point of score.", low=1e-9)
    death_penalty: float = setting(10.0, "Reward taken off for each life lost.", low=0.0)
    life_loss_terminal: bool = setting(
        True, "Whether a lost life ends the return (the game itself continues)."
    )
    backend: str = setting(
        "sim",
        "What plays the games: the simulator or the real game in MAME.",
        choices=("sim", "mame"),
    )
    rom_path: str = setting(
        "",
        "Folder with your own tempest.zip or tempest1.zip, for the real game.",
        local="--rom-path FOLDER",
    )
    mame_path: str = setting(
        "", "The program MAME; empty for the installed one.", local="--mame PROGRAM"
    )
    strict_roms: bool = setting(True, "Whether ROM files with wrong checksums are refused.")
    random_bytes: str = setting(
        "machine",
        "Source of the real game's random bytes: its own chips or the simulator's stream.",
        choices=("machine", "simulator"),
    )


@dataclass(frozen=True)
class TeacherConfig:
    """The teacher, and how much it drives the training games."""

    name: str = setting("expert", "Teacher that drives and labels; none for no teacher.")
    expert_ratio_start: float = setting(
        0.95, "Share of segments that the teacher drives at the start.", low=0.0, high=1.0
    )
    expert_ratio_floor: float = setting(
        0.02, "Share of segments that the teacher drives at the end.", low=0.0, high=1.0
    )
    expert_ratio_steps: int = setting(
        400_000, "Steps over which the teacher's share falls to its floor.", low=1
    )
    expert_ratio_schedule: str = setting(
        "frames",
        "What the share depends on: steps only, or also the teacher-free score.",
        choices=("frames", "performance"),
    )
    expert_ratio_goal: float = setting(
        0.3,
        "Fraction of the teacher's score at which the share by performance is at its floor.",
        low=0.001,
        high=10.0,
    )
    expert_ratio_drop: float = setting(
        0.25,
        "Relative fall of the teacher-free score below its best that raises the share.",
        low=0.01,
        high=1.0,
    )
    expert_ratio_rise: float = setting(
        0.2,
        "Amount by which the share by performance rises when the student degrades.",
        low=0.0,
        high=1.0,
    )
    expert_ratio_rise_steps: int = setting(
        200_000, "Most steps of such a rise, and least steps before the next.", low=1
    )
    segment_min: int = setting(50, "Least steps for which one driver keeps the controls.", low=1)
    segment_max: int = setting(250, "Most steps for which one driver keeps the controls.", low=1)
    free_share: float = setting(
        0.125, "Share of games in which the teacher never drives (at least 1/8).", low=0.125, high=1
    )
    labels: str = setting(
        "action",
        "What teaches the policy: the teacher's action, or the values of all of the planner's "
        "plans, for any teacher. auto, for train: plans where the expert or the planner teaches.",
        choices=("action", "plans", "auto"),
    )
    label_share: float = setting(
        0.25, "Share of the visited states that get the values of all plans.", low=0.0, high=1.0
    )
    death_labels: int = setting(
        12, "Ticks before each death that always get them.", low=0, high=100
    )
    score: float = setting(
        0.0, "Mean score of the teacher for the imitation gate; 0 measures it first.", low=0.0
    )
    score_games: int = setting(8, "Games played to measure the teacher's score.", low=1)


@dataclass(frozen=True)
class ExplorationConfig:
    """Random actions while the agent drives.

    A rate is the chance that a step starts a random action; the share of random steps is larger
    because actions are held.
    """

    epsilon_max: float = setting(
        0.3,
        "Exploration rate of the most exploring game: chance to start a random action.",
        low=0.0,
        high=1.0,
    )
    epsilon_min: float = setting(
        1e-4, "Exploration rate of the least exploring game.", low=0.0, high=1.0
    )
    epsilon_start: float = setting(
        1.0, "Exploration rate of every game at the first step.", low=0.0, high=1.0
    )
    epsilon_steps: int = setting(100_000, "Steps over which the rates fall to the ladder.", low=1)
    epsilon_floor: float = setting(0.0, "Lower bound of all exploration rates.", low=0.0, high=1.0)
    hold_max: int = setting(
        3, "Most steps for which a random action is held; larger values explore more.", low=1
    )
    fire_share: float = setting(0.75, "Share of random actions that fire.", low=0.0, high=1.0)
    zap_share: float = setting(0.03, "Share of random actions that zap.", low=0.0, high=1.0)


@dataclass(frozen=True)
class ActorsConfig:
    """Processes that play while the learner learns; used by ``tempest-agent train`` only."""

    count: int = setting(
        0,
        "Actors that share the games, on Ray; 0 plays in the learner process.",
        low=0,
        high=4096,
    )
    synchronous: bool = setting(
        False, "Whether actors play only while the learner waits, one step at a time."
    )
    chunk_steps: int = setting(
        16, "Steps of every game that an actor sends at once.", low=1, high=4096
    )
    queue: int = setting(
        2,
        "Chunks by which an actor may be ahead of the learner, which bounds the age of weights.",
        low=1,
        high=1024,
    )
    publish_interval: int = setting(
        32, "Updates between two published versions of the weights.", low=1
    )
    deadline_seconds: float = setting(
        120.0, "Seconds without a chunk after which an actor counts as hung.", low=0.1
    )
    max_restarts: int = setting(
        5, "Restarts of an actor in a row without a chunk in between.", low=0
    )
    ray_address: str = setting(
        "",
        "Ray cluster to join, auto or host:port; empty or local starts one on this machine.",
        local="--ray-address ADDRESS",
    )
