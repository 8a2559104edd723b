"""What Numba has no function for: prefetching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return cast(Any, cgutils).get_item_pointer(
        context, builder, array_type, view, [index], wraparound=False
    )


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


prefetch: Callable[[Any, int], None] = cast(Any, intrinsic(_prefetch))
"""``prefetch(array, index)``: an entry will be written soon; begin to bring its cache line."""
