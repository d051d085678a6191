"""What each module takes, keeps for backward and reaches, while profile(modules=True) runs.

Kept bytes come from torch.autograd.graph.saved_tensors_hooks: each storage that autograd saves counts once a pass, for
the innermost module that was running; parameters and their views do not count, they are there anyway.
"""
from __future__ import annotations

import contextlib
import math
import sys
from collections import Counter
from typing import Any

from . import _torch


class Modules:
    """One row a module, of the pass that kept most. Names come from the outermost module."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {}
        self._names: dict[int, str] = {}
        self._running: list[tuple[dict[str, Any], Any]] = []  # row, scope
        self._kept: Counter[str] = Counter()  # in this pass
        self._seen: set[int] = set()  # storages of this pass
        self._hooks = contextlib.ExitStack()  # of this pass

    def rows(self) -> list[dict[str, Any]]:
        """Most kept bytes first: {name, inputs, outputs, dtype, kept_bytes, largest, peak_bytes}."""
        return sorted(self._rows.values(), key=lambda row: -int(row["kept_bytes"]))

    def enter(self, module: Any, inputs: Any) -> None:
        if not self._running:  # a new pass
            self._names = {id(each): name or type(module).__name__ for name, each in module.named_modules()}
            self._seen = set(_torch.storages(module.parameters()))
            self._kept.clear()
            with contextlib.suppress(RuntimeError):  # where torch.func takes a gradient there can be none
                graph = sys.modules["torch"].autograd.graph
                self._hooks.enter_context(graph.saved_tensors_hooks(self._save, lambda tensor: tensor))
        name = self._names.get(id(module), type(module).__name__)
        row = self._rows.setdefault(name, {"name": name, "kept_bytes": 0, "largest": None, "peak_bytes": 0})
        row["inputs"] = _shapes(inputs)
        scope = sys.modules["torch"].autograd.profiler.record_function("oomscope.module:" + name)
        scope.__enter__()
        self._running.append((row, scope))

    def leave(self, output: Any) -> None:
        row, scope = self._running.pop()
        scope.__exit__(None, None, None)
        if not self._running:
            self._hooks.close()
        row["outputs"] = _shapes(output)
        row["dtype"] = next((each["dtype"] for each in row["outputs"]), None)

    def reached(self, peak: int) -> None:
        """So many bytes since the last boundary: reached inside all that run."""
        for row, _ in self._running:
            row["peak_bytes"] = max(row["peak_bytes"], peak)

    def _save(self, tensor: Any) -> Any:
        """Counts and hands on what autograd saves; the tensor is kept as it would be without us."""
        for address, (_, count) in _torch.storages([tensor] if self._running else []).items():
            if address in self._seen:
                continue
            self._seen.add(address)
            row = self._running[-1][0]
            self._kept[row["name"]] += count
            row["kept_bytes"] = max(row["kept_bytes"], self._kept[row["name"]])
            if row["largest"] is None or tensor.numel() > math.prod(row["largest"][0]):
                row["largest"] = [list(tensor.shape), str(tensor.dtype).replace("torch.", "")]
        return tensor


def _shapes(values: Any) -> list[dict[str, Any]]:
    """Of all tensors in nested tuples, lists and dictionaries."""
    if hasattr(values, "shape") and hasattr(values, "dtype"):
        return [{"shape": list(values.shape), "dtype": str(values.dtype).replace("torch.", "")}]
    if isinstance(values, dict):
        values = list(values.values())
    return [shape for each in values for shape in _shapes(each)] if isinstance(values, (tuple, list)) else []
