"""The whole configuration: a section for each part of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from .learning_sections import GuardConfig, LearnerConfig, NetworkConfig, ReplayConfig
from .playing_sections import ActorsConfig, ExplorationConfig, GameConfig, TeacherConfig
from .setting import setting


@dataclass(frozen=True)
class RunConfig:
    """The run as a whole."""

    name: str = setting("tempest", "Name of the run; start of its folder's name.")
    steps: int = setting(3_000_000, "Steps (decisions) of the whole run over all games.", low=1)
    seed: int = setting(1, "Seed of everything random.", low=0, high=2**63 - 1)
    num_envs: int = setting(128, "Games played in parallel.", low=1)
    device: str = setting("auto", "Device of the network.", choices=("auto", "cpu", "cuda"))
    phases: str = setting(
        "steps",
        "What epsilon, n_steps and the learning rate follow: own steps, or the teacher's share.",
        choices=("steps", "teacher"),
    )
    threads: int = setting(1, "CPU threads of the learner.", low=1, high=1024)
    log_interval: int = setting(50_000, "Steps between two log rows.", low=1)
    checkpoint_interval: int = setting(500_000, "Steps between two checkpoints.", low=1)
    keep_checkpoints: int = setting(3, "Newest checkpoints kept beside the best.", low=1)
    save_replay: bool = setting(True, "Whether checkpoints carry the replay, for exact resume.")
    compress_replay: bool = setting(
        True, "Whether that replay is compressed: a tenth of the size, four times as long to write."
    )


@dataclass(frozen=True)
class Config:
    """Everything that a run depends on."""

    run: RunConfig = field(default_factory=RunConfig)
    game: GameConfig = field(default_factory=GameConfig)
    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    exploration: ExplorationConfig = field(default_factory=ExplorationConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    guard: GuardConfig = field(default_factory=GuardConfig)
    actors: ActorsConfig = field(default_factory=ActorsConfig)
