"""host_profile(): where this process's own memory grew, by Python line, and what no line shows.

tracemalloc sees the Python heap alone. Beside it stand the tensors on the CPU, and as one row what libraries and the C
heap took, so that the rows add up to the growth of the process's unshared bytes (USS: Private_Clean + Private_Dirty of
/proc/self/smaps_rollup). Shared and pinned memory and the loader's workers are shown below the total: they are not
unshared bytes of this process.
"""
from __future__ import annotations

import gc
import os
import re
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

from . import _torch
from ._program import Table, whole


class host_profile(Table):
    """with oomscope.host_profile() as h: ... ; print(h). Rows of (name, bytes), which sum to h.total, the growth of
    this process's unshared bytes; h.outside: what is not unshared (name, bytes now). Linux; elsewhere the total is
    unknown (None) and so is the last row. Slows Python's allocations two- to fourfold while it runs. Raises nothing
    but ValueError for a `top` that makes no sense.

    Source: tracemalloc by line, gc for CPU tensors, /proc/PID/smaps_rollup."""

    def __init__(self, top: int = 10) -> None:
        self.rows: list[tuple[str, int]] = []
        self.outside: list[tuple[str, int]] = []
        self.total: int | None = None
        self._top = whole("top", top, 0)

    def __enter__(self) -> host_profile:
        self._stops = not tracemalloc.is_tracing()
        if self._stops:
            tracemalloc.start()
        self._figures, self._lines = _look()
        return self

    def __exit__(self, *_: object) -> None:
        figures, lines = _look()
        if self._stops:
            tracemalloc.stop()
        grown = sorted(lines.compare_to(self._lines, "lineno"), key=lambda line: -line.size_diff)
        self.rows = [(f"{line.traceback[0].filename}:{line.traceback[0].lineno}", line.size_diff)
                     for line in grown[:self._top] if line.size_diff > 0]
        self.rows.append(("[other Python lines]", sum(line.size_diff for line in grown) - _sum(self.rows)))
        self.rows += [(name, figures[name] - self._figures[name]) for name in ("tensors on the CPU", "tracemalloc itself")]
        if "unshared" in figures:
            self.total = figures["unshared"] - self._figures["unshared"]
            self.rows.append(("[C heap, libraries, or freed and not given back]", self.total - _sum(self.rows)))
        self.outside = [(name, figures[name]) for name in ("shared memory (tensors)", "pinned memory (tensors)")]
        self.outside += _workers()

    def _rows(self) -> list[tuple[Any, ...]]:
        total = ("total: unshared bytes of this process", "unknown" if self.total is None else self.total)
        return [("grown by", "bytes"), *self.rows, total, *(row for row in self.outside if row[1])]


def _sum(rows: list[tuple[str, int]]) -> int:
    return sum(count for _, count in rows)


def _look() -> tuple[Counter[str], tracemalloc.Snapshot]:
    """Bytes of what is no Python line: of this process, of tracemalloc, and of distinct CPU storages that Python
    objects refer to; and Python's lines."""
    gc.collect()
    uss = unshared_bytes("self")
    figures: Counter[str] = Counter() if uss is None else Counter(unshared=uss)
    figures["tracemalloc itself"] = tracemalloc.get_tracemalloc_memory()
    for tensor, count in _torch.storages(_torch.tensors_alive()).values():
        if tensor.device.type != "cpu":
            continue
        pinned = _torch.cuda() is not None and tensor.is_pinned()
        figures["pinned memory (tensors)" if pinned else "shared memory (tensors)" if tensor.is_shared()
                else "tensors on the CPU"] += count
    ours = [tracemalloc.Filter(False, name) for name in (tracemalloc.__file__, __file__)]
    return figures, tracemalloc.take_snapshot().filter_traces(ours)


def unshared_bytes(pid: str) -> int | None:
    """USS of a process in bytes: a few milliseconds for each GiB it has. None: no such file, or not ours to read."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return None
    return sum(int(kib) << 10 for kib in re.findall(r"^Private_(?:Clean|Dirty):\s*(\d+)", text, re.M))


def _workers() -> list[tuple[str, int]]:
    """Unshared bytes of child processes: a loader's workers copy what they touch."""
    try:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [(f"worker {pid}: unshared", unshared_bytes(pid) or 0) for pid in children]
