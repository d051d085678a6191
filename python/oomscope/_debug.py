"""--debug-memory: after the first optimizer step, what is on the card, and what the second step will add."""
from __future__ import annotations

from typing import Any, Iterable

from . import _torch
from ._marks import progress
from ._meter import Gauge, live
from ._program import Table, size, tell


class FirstStep(Table):
    """The first step's forward and backward ran without the optimizer's state, which its own end brought. From the second
    step on they run beside it, so the peak of the second is the first's plus that state."""

    def start(self) -> None:
        self._gauge, self._reached, self._state_before = Gauge(), 0, -1
        progress.start()
        progress.before_optimizer.append(self._before)
        progress.after_step.append(self._after)
        self._gauge.open()

    def _before(self, optimizer: Any) -> None:
        """More than once where step() runs its closure again."""
        self._reached = max(self._reached, self._gauge.take()[0])
        if self._state_before < 0:
            self._state_before = _bytes(_state_of(optimizer))

    def _after(self, optimizer: Any, step: int) -> None:
        progress.forget(self._before, self._after)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.balance = {"weights": _bytes(parameters),
                        "gradients": _bytes(p.grad for p in parameters if p.grad is not None),
                        "optimizer state": _bytes(_state_of(optimizer))}
        in_optimizer, (allocated, reserved) = self._gauge.take()[0], live()
        self._gauge.close()
        cuda = _torch.cuda()
        others = allocated - sum(self.balance.values())
        if cuda is not None and others >= 0:  # else they are on several cards
            self.balance.update({"[other tensors]": others, "[cached, free]": reserved - allocated})
        added = self.balance["optimizer state"] - max(0, self._state_before)
        self.second_step_bytes = max(self._reached + added, in_optimizer)
        card = f", on a card of {size(cuda.mem_get_info()[1])}" if cuda is not None else ""
        self.title = (f"after step {step}: it reached {size(self._reached)} in forward and backward, "
                      f"{size(in_optimizer)} in the optimizer\nthe second step adds {size(added)} of optimizer state "
                      f"to forward and backward: about {size(self.second_step_bytes)}{card}")
        tell(str(self))

    def _rows(self) -> list[tuple[str, ...]]:
        rows = [(name, size(count)) for name, count in self.balance.items()]
        return [("", "bytes"), *rows, ("total", size(sum(self.balance.values())))]


def _state_of(optimizer: Any) -> list[Any]:
    return [value for state in optimizer.state.values() for value in state.values() if hasattr(value, "untyped_storage")]


def _bytes(tensors: Iterable[Any]) -> int:
    """Of those on the card; without a card, of all."""
    return _torch.bytes_of(each for each in tensors if each.is_cuda or _torch.cuda() is None)
