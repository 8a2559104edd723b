"""What compiled code does with addresses and bits is what NumPy does with the arrays."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tempest_agent.envs.engine.step_job import address
from tempest_agent.envs.machine.compiled import kernel
from tempest_agent.envs.machine.intrinsics import array_at, bits_of, float_of

PAIR = np.dtype([("one", "u1"), ("other", "<i4")])


@kernel
def double_numbers(place: int, rows: int, columns: int, layers: int) -> NDArray[np.int64]:
    numbers = array_at(place, (rows, columns, layers), np.int16)
    for row in range(rows):
        for column in range(columns):
            for layer in range(layers):
                numbers[row, column, layer] *= 2
    return np.array(numbers.strides)


@kernel
def add_pairs(place: int, count: int) -> int:
    pairs = array_at(place, (count,), PAIR)
    total = 0
    for i in range(len(pairs)):
        total += pairs[i].one + pairs[i].other
    return total


@kernel
def to_bits(value: float) -> int:
    return bits_of(value)


@kernel
def to_float(bits: int) -> float:
    return float_of(bits)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (5, 1, 7)])
def test_an_array_at_an_address_has_its_shape_and_strides(shape: tuple[int, int, int]) -> None:
    numbers = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    expected = numbers * 2
    strides = double_numbers(address(numbers), *shape)
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_array_equal(strides, expected.strides)


def test_an_array_at_an_address_may_hold_records() -> None:
    pairs = np.zeros(5, PAIR)
    pairs["one"], pairs["other"] = range(5), [-7, 1, 2, 3, 100_000]
    assert add_pairs(address(pairs), len(pairs)) == pairs["one"].sum() + pairs["other"].sum()


@given(st.floats(allow_nan=False))
def test_bits_of_a_float_and_back(value: float) -> None:
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    assert to_bits(value) == bits
    back: Any = to_float(bits)
    assert back == value
    assert np.signbit(back) == np.signbit(value)
