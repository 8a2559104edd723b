"""Build ``static/tempest.wasm``: ``python -m tempest_agent.web.build``.

Numba compiles every function to LLVM's intermediate form; llvmlite's LLVM has a back end for
WebAssembly.  So the code that plays in Python is the code that plays in a page, without a port.
Needs the extra ``web-build``: the versions of Numba and llvmlite that this works with, and
``ziglang`` for its ``wasm-ld``.  Takes some minutes of one core.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    # Without these there are vectors of the building machine's processor in the code.
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_LOOP_VECTORIZE": "0",
    "NUMBA_SLP_VECTORIZE": "0",
}
TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+simd128,+bulk-memory,+sign-ext,+nontrapping-fptoint"
STACK_BYTES = 1 << 18

_DROPPED = re.compile(r'"(target-cpu|target-features|probe-stack|tune-cpu)"="[^"]*"')
# Arrays here never own memory, so there is nothing to count.
_COUNTING = re.compile(r"^define [^@\n]*@(NRT_incref|NRT_decref)\([^\n]*\{\n.*?^\}\n", re.M | re.S)


def own_text(text: str, layout: str) -> str:
    """Return Numba's intermediate code for x86-64 as such for ``TRIPLE``."""
    text = re.sub(r"^target triple = .*$", f'target triple = "{TRIPLE}"', text, flags=re.M)
    text = re.sub(r"^target datalayout = .*$", f'target datalayout = "{layout}"', text, flags=re.M)
    text = _DROPPED.sub("", text).replace("= common ", "= weak ")
    return _COUNTING.sub(r"define linkonce_odr void @\1(ptr %0) { ret void }\n", text)


def entry_text(name: str, compiled: str, count: int) -> str:
    """Return an exported function around one with Numba's calling convention.

    It answers with an int32, and stops the program where Numba's would raise.
    """
    given = ", ".join(f"i32 %a{i}" for i in range(count))
    types = ", ".join(["ptr", "ptr", *["i32"] * count])
    passed = ", ".join(["ptr %answer", "ptr %error", *(f"i32 %a{i}" for i in range(count))])
    return f"""
declare i32 @"{compiled}"({types})
declare void @llvm.trap()
define i32 @{name}({given}) {{
  %answer = alloca i64
  %error = alloca ptr
  %status = call i32 @"{compiled}"({passed})
  %raised = icmp ne i32 %status, 0
  br i1 %raised, label %wrong, label %right
wrong:
  call void @llvm.trap()
  unreachable
right:
  %value = load i64, ptr %answer
  %short = trunc i64 %value to i32
  ret i32 %short
}}
"""


def compile_entries() -> bytes:
    """Return one WebAssembly object file with all entries and one copy of what they use."""
    import llvmlite.binding as llvm
    import numba
    from numba import types

    from tempest_agent.web.entries import ENTRIES

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        opt=3, reloc="static", codemodel="default", features=FEATURES
    )
    layout = str(machine.target_data)
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cpython_wrapper": True}
    whole: Any = None
    for function, count in ENTRIES.items():
        arguments = (types.int32,) * count
        compiled: Any = numba.njit(types.int64(*arguments), **options)(function)
        made = compiled.overloads[arguments]
        text = own_text(made.library.get_llvm_str(), layout)
        text += entry_text(function.__name__, made.fndesc.mangled_name, count)
        text = _defined_once(text, made.fndesc.mangled_name)
        print(f"{function.__name__}: {len(text):,} characters", file=sys.stderr)
        part = llvm.parse_assembly(text)
        if whole is None:
            whole = part
        else:
            whole.link_in(part)
    names = {function.__name__ for function in ENTRIES}
    for each in (*whole.functions, *whole.global_variables):
        if not each.is_declaration and each.name not in names:
            each.linkage = "internal"
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(whole, passes)
    whole.verify()
    objects: bytes = machine.emit_object(whole)
    return objects


def _defined_once(text: str, compiled: str) -> str:
    """Drop the declaration of a function that the same text defines."""
    return re.sub(rf'^declare i32 @"{re.escape(compiled)}"\([^\n]*\n', "", text, flags=re.M)


def link(objects: bytes, names: list[str]) -> bytes:
    """Return the module of an object file; with ``names``, its memory and the free part's start."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "tempest.o", Path(folder) / "tempest.wasm"
        source.write_bytes(objects)
        subprocess.run(
            [sys.executable, "-m", "ziglang", "wasm-ld", "--no-entry", "--strip-all",
             "--gc-sections", "--stack-first", "-z", f"stack-size={STACK_BYTES}",
             "--export=__heap_base", *(f"--export={name}" for name in names),
             str(source), "-o", str(target)],
            check=True,
        )  # fmt: skip
        return target.read_bytes()


def main() -> None:
    """Compile in a process with the environment that this needs, and write the files."""
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        with tempfile.TemporaryDirectory() as cache:
            # Code that was kept on disk has no intermediate form.
            environment = {**os.environ, **ENVIRONMENT, "TEMPEST_AGENT_CACHE": cache}
            command = [sys.executable, "-m", "tempest_agent.web.build"]
            sys.exit(subprocess.run(command, env=environment).returncode)
    from tempest_agent.web.entries import ENTRIES
    from tempest_agent.web.sources import MODULE, RECORD, digest_of_sources

    names = [function.__name__ for function in ENTRIES]
    module = link(compile_entries(), names)
    MODULE.write_bytes(module)
    RECORD.write_text(f"{digest_of_sources()}\n", encoding="utf-8")
    print(f"{MODULE}: {len(module):,} bytes")


if __name__ == "__main__":
    main()
