"""The random stream of a seed, in compiled code, so that a page plays the games of Python's seeds.

NumPy's ``SeedSequence`` (O'Neill 2015, "Developing a seed_seq alternative") written out for one
form: ``SeedSequence(seed).spawn(1)[0].generate_state(1, np.uint64)``, the state that
``engine/seeds.py`` gives the one game of a seed.
"""

from __future__ import annotations

from typing import Any

from tempest_agent.envs.machine.compiled import int64, rule

_WORD = 0xFFFFFFFF
_POOL = 4
_INIT_A, _MULT_A = 0x43B0D7E5, 0x931E8875
_INIT_B, _MULT_B = 0x8B51F9DD, 0x58F38DED
_MIX_LEFT, _MIX_RIGHT = 0xCA01F9DD, 0x4973F715


@rule
def _hashed(value: int, before: int, after: int) -> int:
    value = ((value ^ before) * after) & _WORD
    return value ^ (value >> 16)


@rule
def _mixed(x: int, y: int) -> int:
    mixed = (_MIX_LEFT * x - _MIX_RIGHT * y) & _WORD
    return mixed ^ (mixed >> 16)


@rule
def stream_state(low: int, high: int, pool: Any) -> int:
    """Return the 64 bits of state of the seed ``high * 2**32 + low``, as an int64.

    ``pool``: int64 scratch, ``(4,)``.
    """
    constant = int64(_INIT_A)
    for i in range(_POOL):
        following = (constant * _MULT_A) & _WORD
        word = low if i == 0 else (high if i == 1 else int64(0))
        pool[i] = _hashed(word, constant, following)
        constant = following
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                following = (constant * _MULT_A) & _WORD
                pool[target] = _mixed(pool[target], _hashed(pool[source], constant, following))
                constant = following
    # The key of the first child, 0, stands behind the pool's four words.
    for target in range(_POOL):
        following = (constant * _MULT_A) & _WORD
        pool[target] = _mixed(pool[target], _hashed(int64(0), constant, following))
        constant = following
    second = (int64(_INIT_B) * _MULT_B) & _WORD
    third = (second * _MULT_B) & _WORD
    state = _hashed(pool[0], int64(_INIT_B), second) | (_hashed(pool[1], second, third) << 32)
    return state | 1
