"""Memory that is freed and wanted again costs no page faults."""

from __future__ import annotations

import subprocess
import sys

from tempest_agent.agent.learner.malloc import keep_freed_memory

CODE = """
import numpy as np, resource
from tempest_agent.agent.learner.malloc import keep_freed_memory
kept = keep_freed_memory({})

def use():
    blocks = [np.empty(5_000_000, np.uint8) for _ in range(12)]
    for block in blocks:
        block[:] = 1

use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    use()
print(int(kept), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_no_page_is_cleared_twice() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    kept, faults = map(int, done.stdout.split())
    pages = 5 * 12 * 5_000_000 // 4096
    assert faults < (pages // 100 if kept else 2 * pages)


def test_settings_of_the_user_stay() -> None:
    assert not keep_freed_memory({"MALLOC_TRIM_THRESHOLD_": "100000"})
    assert not keep_freed_memory({"GLIBC_TUNABLES": "glibc.malloc.check=1"})
