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

from . import _torch
from ._program import Table, size, whole


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
        gc.collect()
        self._before = self._look()
        return self

    def __exit__(self, *_: object) -> None:
        gc.collect()
        (uss, overhead, tensors, lines), (uss_before, overhead_before, tensors_before, lines_before) = \
            self._look(), self._before
        if self._stops:
            tracemalloc.stop()
        grown = sorted(lines.compare_to(lines_before, "lineno"), key=lambda line: -line.size_diff)
        self.rows = [(f"{line.traceback[0].filename}:{line.traceback[0].lineno}", line.size_diff)
                     for line in grown[:self._top] if line.size_diff > 0]
        self.rows += [("[other Python lines]", sum(line.size_diff for line in grown) - _sum(self.rows)),
                      ("tensors on the CPU", tensors["private"] - tensors_before["private"]),
                      ("tracemalloc itself", overhead - overhead_before)]
        if uss is not None and uss_before is not None:
            self.total = uss - uss_before
            self.rows.append(("[C heap, libraries, or freed and not given back]", self.total - _sum(self.rows)))
        self.outside = [(f"{kind_of} memory (tensors)", tensors[kind_of]) for kind_of in ("shared", "pinned")]
        self.outside += _workers()

    def _look(self) -> tuple[int | None, int, Counter[str], tracemalloc.Snapshot]:
        """(unshared bytes, tracemalloc's own, those of CPU tensors by kind, lines)."""
        uss, overhead = unshared_bytes("self"), tracemalloc.get_tracemalloc_memory()
        ours = [tracemalloc.Filter(False, name) for name in (tracemalloc.__file__, __file__)]
        return uss, overhead, _cpu_tensors(), tracemalloc.take_snapshot().filter_traces(ours)

    def _rows(self) -> list[tuple[str, ...]]:
        total = ("total: unshared bytes of this process", self.total)
        shown = [*self.rows, total, *((name, count) for name, count in self.outside if count)]
        return [("grown by", "bytes"), *((name, size(count)) for name, count in shown)]


def _sum(rows: list[tuple[str, int]]) -> int:
    return sum(count for _, count in rows)


def unshared_bytes(pid: str) -> int | None:
    """USS of a process in bytes: a few milliseconds for each GiB it has. None: no such file, or not ours to read."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return None
    return sum(int(kib) << 10 for kib in re.findall(r"^Private_(?:Clean|Dirty):\s*(\d+)", text, re.M))


def _cpu_tensors() -> Counter[str]:
    """Bytes of distinct CPU storages that Python objects refer to: private, shared and pinned."""
    found: Counter[str] = Counter()
    on_host = [each for each in _torch.tensors_alive() if each.device.type == "cpu"]
    for tensor, count in _torch.storages(on_host).values():
        pinned = _torch.cuda() is not None and tensor.is_pinned()
        found["pinned" if pinned else "shared" if tensor.is_shared() else "private"] += count
    return found


def _workers() -> list[tuple[str, int]]:
    """Unshared bytes of child processes: a loader's workers copy what they touch."""
    try:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [(f"worker {pid}: unshared", unshared_bytes(pid) or 0) for pid in children]
