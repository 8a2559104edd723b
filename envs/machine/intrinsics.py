"""What Numba has no function for: prefetching, arrays at an address, counters that threads share.

Operations on counters order the memory accesses around them: what a thread wrote before it added
to a counter is there for the thread that reads the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj


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


def _array_at(_context, _address, shape, dtype):  # type: ignore[no-untyped-def]
    item = dtype.dtype
    array_type = types.Array(item, len(shape), "C")

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        size = context.get_abi_sizeof(context.get_data_type(item))
        values = cast(Any, cgutils).unpack_tuple(builder, arguments[1])
        lengths = [
            context.cast(builder, value, kind, types.intp)
            for value, kind in zip(values, signature.args[1], strict=True)
        ]
        strides = [context.get_constant(types.intp, size)]
        for length in reversed(lengths[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        array = context.make_array(array_type)(context, builder)
        memory = builder.inttoptr(arguments[0], array.data.type)
        cast(Any, arrayobj).populate_array(array, memory, lengths, strides, size, meminfo=None)
        return array._getvalue()

    return array_type(types.int64, shape, dtype), generate


def _bits_of(_context, _value):  # type: ignore[no-untyped-def]
    def generate(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


def _float_of(_context, _bits):  # type: ignore[no-untyped-def]
    def generate(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


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

load: Callable[[Any, int], int] = cast(Any, intrinsic(_load))
"""``load(counters, index)``: an entry of an int64 array, read anew each time."""

store: Callable[[Any, int, int], None] = cast(Any, intrinsic(_store))
"""``store(counters, index, value)``: set an entry of an int64 array, after all written before."""

array_at: Callable[[int, Any, Any], Any] = cast(Any, intrinsic(_array_at))
"""``array_at(address, shape, dtype)``: the C-contiguous array there."""

bits_of: Callable[[float], int] = cast(Any, intrinsic(_bits_of))
"""``bits_of(value)``: a float64's bits as an int64."""

float_of: Callable[[int], float] = cast(Any, intrinsic(_float_of))
"""``float_of(bits)``: the float64 of these bits."""

prefetch: Callable[[Any, int], None] = cast(Any, intrinsic(_prefetch))
"""``prefetch(array, index)``: fetch the cache line of an entry that will be written soon."""
