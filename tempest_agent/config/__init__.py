"""The configuration: one dataclass per section, one sentence of help per setting.

Sources, in order of precedence: ``key=value`` overrides such as ``learner.gamma=0.97``, a YAML file
(a name in ``configs/`` or a path), the defaults.  Errors about unknown keys and values out of range
say what would be right.
"""

from .automatic import teaches_policy, without_auto
from .config import Config, RunConfig
from .learning_sections import GuardConfig, LearnerConfig, NetworkConfig, ReplayConfig
from .loading import (
    apply_changes,
    apply_overrides,
    available,
    from_dict,
    load_config,
    local_settings,
    read_tree,
    settings,
    to_dict,
)
from .local import forget_local, local_options, with_local
from .older import as_meant
from .playing_sections import ActorsConfig, ExplorationConfig, GameConfig, TeacherConfig
from .setting import ConfigError, setting
from .validation import LARGEST

__all__ = [
    "LARGEST",
    "ActorsConfig",
    "Config",
    "ConfigError",
    "ExplorationConfig",
    "GameConfig",
    "GuardConfig",
    "LearnerConfig",
    "NetworkConfig",
    "ReplayConfig",
    "RunConfig",
    "TeacherConfig",
    "apply_changes",
    "apply_overrides",
    "as_meant",
    "available",
    "forget_local",
    "from_dict",
    "load_config",
    "local_options",
    "local_settings",
    "read_tree",
    "setting",
    "settings",
    "teaches_policy",
    "to_dict",
    "with_local",
    "without_auto",
]
