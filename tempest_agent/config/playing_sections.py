"""Settings of who plays: the games, the teacher, the actors and exploration."""

from __future__ import annotations

from dataclasses import dataclass

from .setting import setting


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
        "medium",
        "Position of the difficulty switch.  On hard the real machine's levels 96 to 99 can hang.",
        choices=("medium", "easy", "hard"),
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
    rom_path: str = setting(
        "",
        "Folder with your own tempest.zip or tempest1.zip, for the real game.",
        local="--rom-path FOLDER",
    )
    mame_path: str = setting(
        "", "The program MAME; empty takes the installed one.", local="--mame PROGRAM"
    )
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
    """Random actions of the agent's own games.

    A rate is the chance that a decision begins a random action, not the share of random decisions,
    which is larger where actions are held.
    """

    epsilon_max: float = setting(
        0.3,
        "Exploration rate of the most curious game: chance to begin a random action.",
        low=0.0,
        high=1.0,
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
    hold_max: int = setting(
        3, "Most decisions one random action is held; the more, the more of all are random.", low=1
    )
    fire_share: float = setting(0.75, "Share of random actions that fire.", low=0.0, high=1.0)
    zap_share: float = setting(0.03, "Share of random actions that zap.", low=0.0, high=1.0)


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
        2,
        "Chunks that an actor may be ahead of the learner, and so how old weights get.",
        low=1,
        high=1024,
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
        "",
        "Ray cluster to join, auto or host:port; empty or local starts one on this machine.",
        local="--ray-address ADDRESS",
    )
