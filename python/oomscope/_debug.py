"""--debug-memory: after the first optimizer step, what is on the card, and what the second step will add.

The first step's forward and backward ran without the optimizer's state, which its own end brought. From the second
step on they run beside it, so the peak of the second is the first's plus that state.
"""
from __future__ import annotations

import sys
from typing import Any

from . import _torch
from ._marks import progress
from ._profile import Meter, tell


class FirstStep:
    """Watches one optimizer step. `text` is the summary, once it is known."""

    def __init__(self) -> None:
        self.text: str | None = None
        self._meter = Meter()

    def start(self) -> None:
        progress.start()
        progress.before_optimizer.append(self._before)
        progress.after_step.append(self._after)
        self._meter.take()

    def _before(self, optimizer: Any) -> None:
        self._reached = self._meter.take()[0]
        self._state_before = _bytes(_state_of(optimizer))
        progress.before_optimizer.remove(self._before)

    def _after(self, optimizer: Any, step: int) -> None:
        progress.after_step.remove(self._after)
        in_optimizer = self._meter.take()[0]
        allocated, reserved = self._meter.now()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        weights = _bytes(parameters)
        gradients = _bytes(p.grad for p in parameters if p.grad is not None)
        state = _bytes(_state_of(optimizer))
        added = state - self._state_before
        rows = [("weights", weights), ("gradients", gradients), ("optimizer state", state)]
        on_card = _torch.cuda_is_on()
        rest = allocated - weights - gradients - state
        if on_card and rest >= 0:
            rows += [("[other tensors]", rest), ("[cached, free]", reserved - allocated)]
        total = sum(count for _, count in rows)
        size = _torch.format_bytes
        lines = [f"after step {step}:"]
        lines += [f"  {name:16} {size(count):>12}" for name, count in rows] + [f"  {'total':16} {size(total):>12}"]
        lines.append(f"  the step reached {size(max(self._reached, in_optimizer))}: forward and backward "
                     f"{size(self._reached)}, optimizer {size(in_optimizer)}")
        lines.append(f"  the second step adds {size(added)} of optimizer state to forward and backward: "
                     f"about {size(max(self._reached + added, in_optimizer))}" + self._against_card(added))
        self.text = "\n".join(lines)
        tell(self.text)

    def _against_card(self, added: int) -> str:
        if not _torch.cuda_is_on():
            return ""
        free, total = sys.modules["torch"].cuda.mem_get_info()
        return f", on a card of {_torch.format_bytes(total)}"


def _state_of(optimizer: Any) -> list[Any]:
    return [value for state in optimizer.state.values() for value in state.values() if hasattr(value, "untyped_storage")]


def _bytes(tensors: Any) -> int:
    """Of distinct storages on the card; without a card, of all."""
    found = {}
    for tensor in tensors:
        if tensor.device.type == "cuda" or not _torch.cuda_is_on():
            storage = tensor.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
    return sum(found.values())
