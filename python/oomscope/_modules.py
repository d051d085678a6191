"""What each module takes, keeps for backward and reaches, while profile(modules=True) runs.

Kept bytes come from torch.autograd.graph.saved_tensors_hooks: each storage that autograd saves counts once a pass, for
the innermost module that was running; parameters and their views do not count, they are there anyway.
"""
from __future__ import annotations

import contextlib
import math
import sys
from typing import Any

from . import _torch


class Modules:
    """One row a module, of the call of it that kept most. Names come from the outermost module."""

    def __init__(self) -> None:
        self._best: dict[str, dict[str, Any]] = {}  # rows by name
        self._names: dict[int, str] = {}
        self._running: list[tuple[dict[str, Any], contextlib.ExitStack]] = []  # row, what to undo at its end
        self._seen: set[int] = set()  # storages of this pass

    def rows(self) -> list[dict[str, Any]]:
        """Most kept bytes first: {name, inputs, outputs, dtype, kept_bytes, largest, peak_bytes}."""
        return sorted(self._best.values(), key=_weight, reverse=True)

    def enter(self, module: Any, inputs: Any) -> None:
        autograd, scope = sys.modules["torch"].autograd, contextlib.ExitStack()
        if not self._running:  # a new pass
            self._names = {id(each): name or type(module).__name__ for name, each in module.named_modules()}
            self._seen = set(_torch.storages(module.parameters()))
            with contextlib.suppress(RuntimeError):  # where torch.func takes a gradient there can be none
                scope.enter_context(autograd.graph.saved_tensors_hooks(self._save, lambda tensor: tensor))
        name = self._names.get(id(module), type(module).__name__)
        scope.enter_context(autograd.profiler.record_function("oomscope.module:" + name))
        row = {"name": name, "inputs": _shapes(inputs), "outputs": [], "dtype": None, "kept_bytes": 0, "largest": None,
               "peak_bytes": 0}
        self._best.setdefault(name, row)
        self._running.append((row, scope))

    def leave(self, output: Any) -> None:
        row, scope = self._running.pop()
        scope.close()
        row["outputs"] = _shapes(output)
        row["dtype"] = next((each["dtype"] for each in row["outputs"]), None)
        self._best[row["name"]] = max(self._best[row["name"]], row, key=_weight)

    def end(self) -> None:
        """Of a forward that was interrupted, or within which measuring ends."""
        while self._running:
            self.leave(None)

    def reach(self, peak: int) -> None:
        """What was reached since the last boundary was reached inside all that run."""
        for row, _ in self._running:
            row["peak_bytes"] = max(row["peak_bytes"], peak)

    def _save(self, tensor: Any) -> Any:
        """Counts and hands on what autograd saves; the tensor is kept as it would be without us."""
        for address, (_, count) in _torch.storages([tensor] if self._running else []).items():
            if address in self._seen:
                continue
            self._seen.add(address)
            row = self._running[-1][0]
            row["kept_bytes"] += count
            if row["largest"] is None or tensor.numel() > math.prod(row["largest"][0]):
                row["largest"] = [list(tensor.shape), str(tensor.dtype).replace("torch.", "")]
        return tensor


def _weight(row: dict[str, Any]) -> tuple[int, int]:
    return row["kept_bytes"], row["peak_bytes"]


def _shapes(values: Any) -> list[dict[str, Any]]:
    """Of all tensors in nested tuples, lists and dictionaries."""
    if hasattr(values, "shape") and hasattr(values, "dtype"):
        return [{"shape": list(values.shape), "dtype": str(values.dtype).replace("torch.", "")}]
    if isinstance(values, dict):
        values = list(values.values())
    return [shape for each in values for shape in _shapes(each)] if isinstance(values, (tuple, list)) else []
