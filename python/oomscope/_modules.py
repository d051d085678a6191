"""What each module takes, keeps for backward and reaches, while profile(modules=True) runs.

Kept bytes come from torch.autograd.graph.saved_tensors_hooks: each storage that autograd saves counts once, for the
innermost module that was running; parameters and their views do not count, they are there anyway.
"""
from __future__ import annotations

import threading
from typing import Any, Callable

from . import _torch


class ModuleSpy:
    """Hooks every module of the process, in the thread that started it. Names come from the outermost module."""

    def __init__(self, take_peak: Callable[[], int]) -> None:
        self._take_peak = take_peak  # the most bytes since it was last called
        self._rows: dict[str, dict[str, Any]] = {}
        self._names: dict[int, str] = {}
        self._running: list[tuple[str, Any, list[int]]] = []  # name, scope, [peak so far]
        self._seen: set[int] = set()
        self._hooks: list[Any] = []

    def start(self) -> None:
        torch = _torch.torch_module()
        assert torch is not None
        self._torch = torch
        self._thread = threading.get_ident()
        module = torch.nn.modules.module
        self._hooks = [module.register_module_forward_pre_hook(self._enter),
                       module.register_module_forward_hook(self._leave, **_torch.always_call(module))]
        self._saved = torch.autograd.graph.saved_tensors_hooks(self._save, lambda tensor: tensor)
        self._saved.__enter__()

    def stop(self) -> list[dict[str, Any]]:
        """Rows by kept bytes, largest first: {name, inputs, outputs, dtype, kept_bytes, largest, peak_bytes}."""
        for hook in self._hooks:
            hook.remove()
        self._saved.__exit__(None, None, None)
        return sorted(self._rows.values(), key=lambda row: -int(row["kept_bytes"]))

    def _enter(self, module: Any, inputs: Any) -> None:
        if threading.get_ident() != self._thread or _torch.in_backward():
            return
        if not self._running:  # a new pass
            self._names = {id(each): name or type(module).__name__ for name, each in module.named_modules()}
            self._seen = {each.untyped_storage().data_ptr() for each in module.parameters()}
            for row in self._rows.values():
                row.update(kept_bytes=0, largest=None)
        name = self._names.get(id(module), type(module).__name__)
        row = self._rows.setdefault(name, {"name": name, "kept_bytes": 0, "largest": None, "peak_bytes": 0})
        row["inputs"] = _shapes(inputs)
        scope = self._torch.autograd.profiler.record_function("oomscope.module:" + name)
        scope.__enter__()
        self._spread_peak()
        self._running.append((name, scope, [0]))

    def _leave(self, module: Any, inputs: Any, output: Any) -> None:
        if threading.get_ident() != self._thread or not self._running or _torch.in_backward():
            return
        self._spread_peak()
        name, scope, peak = self._running.pop()
        scope.__exit__(None, None, None)
        row = self._rows[name]
        row["outputs"] = _shapes(output)
        row["dtype"] = next((each["dtype"] for each in row["outputs"]), None)
        row["peak_bytes"] = max(row["peak_bytes"], peak[0])

    def _spread_peak(self) -> None:
        """What was reached since the last boundary was reached inside all that run."""
        reached = self._take_peak()
        for _, _, peak in self._running:
            peak[0] = max(peak[0], reached)

    def _save(self, tensor: Any) -> Any:
        """Counts and hands on what autograd saves; the tensor is kept as it would be without us."""
        if self._running:
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
            if address not in self._seen:
                self._seen.add(address)
                row = self._rows[self._running[-1][0]]
                row["kept_bytes"] += storage.nbytes()
                largest = row["largest"]
                if largest is None or tensor.numel() > _count(largest[0]):
                    row["largest"] = [list(tensor.shape), str(tensor.dtype).replace("torch.", "")]
        return tensor


def _shapes(values: Any) -> list[dict[str, Any]]:
    """Of all tensors in nested tuples, lists and dictionaries."""
    if hasattr(values, "shape") and hasattr(values, "dtype"):
        return [{"shape": list(values.shape), "dtype": str(values.dtype).replace("torch.", "")}]
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (tuple, list)):
        return [shape for each in values for shape in _shapes(each)]
    return []


def _count(shape: list[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count
