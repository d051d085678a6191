"""host_profile(): where this process's own memory grew, by Python line, and what no line shows.

tracemalloc sees the Python heap alone. Beside it stand the tensors on the CPU, and as one row what libraries and the C
heap took, so that the rows add up to the growth of the process's unshared bytes (USS: Private_Clean + Private_Dirty of
/proc/self/smaps_rollup). Shared and pinned memory and the loader's workers are shown below the total: they are not
unshared bytes of this process.
"""
from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from pathlib import Path
from types import TracebackType
from typing import Any

from ._torch import cuda_is_on, format_bytes

FRAMES = 1  # of a Python line; more cost memory of their own


class host_profile:
    """with oomscope.host_profile() as h: ... ; print(h). Rows of (name, bytes), which sum to h.total, the growth of
    this process's unshared bytes; h.outside: what is not unshared (name, bytes now). Linux; elsewhere the total is
    unknown (None) and so is the last row. Slows Python's allocations two- to fourfold while it runs. Raises nothing.

    Source: tracemalloc by line, gc for CPU tensors, /proc/PID/smaps_rollup."""

    def __init__(self, top: int = 10) -> None:
        self.rows: list[tuple[str, int]] = []
        self.outside: list[tuple[str, int]] = []
        self.total: int | None = None
        self._top = top

    def __enter__(self) -> host_profile:
        self._stops = not tracemalloc.is_tracing()
        if self._stops:
            tracemalloc.start(FRAMES)
        gc.collect()
        self._overhead = tracemalloc.get_tracemalloc_memory()
        self._tensors = _cpu_tensors()[0]
        self._lines = tracemalloc.take_snapshot()
        self._uss = unshared_bytes("self")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        gc.collect()
        uss = unshared_bytes("self")
        lines = tracemalloc.take_snapshot()
        tensors, shared, pinned = _cpu_tensors()
        overhead = tracemalloc.get_tracemalloc_memory() - self._overhead
        ours = (tracemalloc.Filter(False, tracemalloc.__file__), tracemalloc.Filter(False, __file__))
        grown = lines.filter_traces(ours).compare_to(self._lines.filter_traces(ours), "lineno")
        if self._stops:
            tracemalloc.stop()
        grown.sort(key=lambda row: -row.size_diff)
        self.rows = [(f"{row.traceback[0].filename}:{row.traceback[0].lineno}", row.size_diff)
                     for row in grown[:self._top] if row.size_diff > 0]
        rest = sum(row.size_diff for row in grown) - sum(count for _, count in self.rows)
        self.rows += [("[other Python lines]", rest), ("tensors on the CPU", tensors - self._tensors),
                      ("tracemalloc itself", overhead)]
        if uss is not None and self._uss is not None:
            self.total = uss - self._uss
            self.rows.append(("[C heap, libraries, or freed and not given back]",
                              self.total - sum(count for _, count in self.rows)))
        self.outside = [("shared memory (tensors)", shared), ("pinned memory (tensors)", pinned), *_workers()]

    def __str__(self) -> str:
        width = max((len(name) for name, _ in self.rows + self.outside), default=0)
        lines = [f"{name.ljust(width)}  {format_bytes(count):>12}" for name, count in self.rows]
        lines.append(f"{'total: unshared bytes of this process'.ljust(width)}  {format_bytes(self.total):>12}")
        lines += [f"{name.ljust(width)}  {format_bytes(count):>12}" for name, count in self.outside if count]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._notebook import rows_html
        return rows_html([*self.rows, ("total: unshared bytes of this process", self.total), *self.outside])


def unshared_bytes(pid: str) -> int | None:
    """USS of a process in bytes: a few milliseconds for each GiB it has. None: no such file, or not ours to read."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return None
    rows = (line.split() for line in text.splitlines())
    return sum(int(row[1]) * 1024 for row in rows if row[0] in ("Private_Clean:", "Private_Dirty:"))


def _cpu_tensors() -> tuple[int, int, int]:
    """(private, shared, pinned) bytes of distinct CPU storages that Python objects refer to."""
    torch = sys.modules.get("torch")
    totals = {"private": 0, "shared": 0, "pinned": 0}
    seen: set[int] = set()
    if torch is None:
        return 0, 0, 0
    for each in gc.get_objects():
        try:
            if not issubclass(type(each), torch.Tensor) or each.device.type != "cpu":
                continue
            storage = each.untyped_storage()
            if storage.data_ptr() in seen:
                continue
            seen.add(storage.data_ptr())
            pinned = cuda_is_on() and each.is_pinned()
            totals["pinned" if pinned else "shared" if storage.is_shared() else "private"] += storage.nbytes()
        except (RuntimeError, NotImplementedError, ReferenceError):  # fake, sparse or dead
            continue
    return totals["private"], totals["shared"], totals["pinned"]


def _workers() -> list[tuple[str, Any]]:
    """Unshared bytes of child processes: a loader's workers copy what they touch."""
    try:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [(f"worker {pid}: unshared", unshared_bytes(pid) or 0) for pid in children]
