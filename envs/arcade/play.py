"""State 04, the game proper: the ten steps of a play tick."""

from __future__ import annotations

from tempest_agent.envs.machine.compiled import rule
from tempest_agent.envs.machine.memory import Ram
from tempest_agent.envs.machine.randomness import Source

from .analysis import analyze
from .collisions import collide_all_shots
from .enemies import move_enemies
from .explosions import advance_explosions
from .player import fire, move_player
from .shots import enemy_fire, move_shots
from .superzapper import superzapper
from .waiting_queue import move_queue


@rule
def play(ram: Ram, source: Source) -> None:
    move_player(ram)
    fire(ram, source)
    superzapper(ram, source)
    move_queue(ram, source)
    move_enemies(ram, source)
    move_shots(ram)
    enemy_fire(ram, source)
    collide_all_shots(ram, source)
    advance_explosions(ram)
    analyze(ram)
