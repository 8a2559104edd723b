"""What Numba has no function for: prefetching, arrays at an address, counters that threads share.

Operations on counters order the memory accesses around them: what a thread wrote before it added
to a counter is there for the thread that reads the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .arcade.compiled import rule


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return cast(Any, cgutils).get_item_pointer(
        context, builder, array_type, view, [index], wraparound=False
    )


def _fetch_add(_context, array, _index, _amount):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        amount = context.cast(builder, arguments[2], signature.args[2], types.int64)
        address = _address(context, builder, signature.args[0], arguments[0], index)
        return builder.atomic_rmw("add", address, amount, "seq_cst")

    return types.int64(array, types.intp, types.int64), generate


def _fetch_or(_context, array, _index, _bits):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        bits = context.cast(builder, arguments[2], signature.args[2], types.int64)
        address = _address(context, builder, signature.args[0], arguments[0], index)
        return builder.atomic_rmw("or", address, bits, "seq_cst")

    return types.int64(array, types.intp, types.int64), generate


def _load(_context, array, _index):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        address = _address(context, builder, signature.args[0], arguments[0], index)
        return builder.load_atomic(address, "seq_cst", 8)

    return types.int64(array, types.intp), generate


def _store(_context, array, _index, _value):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        value = context.cast(builder, arguments[2], signature.args[2], types.int64)
        address = _address(context, builder, signature.args[0], arguments[0], index)
        builder.store_atomic(value, address, "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


def _pointer(_context, _address):  # type: ignore[no-untyped-def]
    def generate(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


def _prefetch(_context, array, _index):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        address = _address(context, builder, signature.args[0], arguments[0], index)
        i32 = ir.IntType(32)
        pointer = ir.IntType(8).as_pointer()
        function = cast(Any, cgutils).get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [pointer, i32, i32, i32]),
            "llvm.prefetch.p0",
        )
        for_writing, into_first_level, data = i32(1), i32(3), i32(1)
        place = builder.bitcast(address, pointer)
        builder.call(function, [place, for_writing, into_first_level, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


fetch_add: Callable[[Any, int, int], int] = cast(Any, intrinsic(_fetch_add))
"""``fetch_add(counters, index, amount)``: add to an entry of an int64 array; returns the former."""

fetch_or: Callable[[Any, int, int], int] = cast(Any, intrinsic(_fetch_or))
"""``fetch_or(counters, index, bits)``: set bits of an entry of an int64 array."""

load: Callable[[Any, int], int] = cast(Any, intrinsic(_load))
"""``load(counters, index)``: an entry of an int64 array, read anew each time."""

store: Callable[[Any, int, int], None] = cast(Any, intrinsic(_store))
"""``store(counters, index, value)``: set an entry of an int64 array, after all written before."""

_pointer_to: Callable[[int], Any] = cast(Any, intrinsic(_pointer))
_carray: Callable[..., Any] = cast(Any, numba).carray


@rule
def array_at(address: int, shape: Any, dtype: Any) -> Any:
    """The array, contiguous in C's order, whose memory begins at ``address``."""
    return _carray(_pointer_to(address), shape, dtype)


prefetch: Callable[[Any, int], None] = cast(Any, intrinsic(_prefetch))
"""``prefetch(array, index)``: an entry will be written soon; begin to bring its cache line."""
