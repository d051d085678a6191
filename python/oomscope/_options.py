"""The options of a script: --profile-memory, --debug-memory, --memory-baseline."""
from __future__ import annotations

import argparse
import atexit
import os
import sys
from pathlib import Path
from typing import Any, Iterable, TypeVar

from . import _install, _torch
from ._install import install
from ._marks import progress
from ._meter import live
from ._profile import profile
from ._program import Table, say, size, tell

Parser = TypeVar("Parser", bound=argparse.ArgumentParser)


def add_arguments(parser: Parser) -> Parser:
    """Adds the three options to a parser and returns it:

    --profile-memory [STEPS]  peaks of each step and phase, of so many steps (default 3)
    --debug-memory            after the first step what is on the card, and what the second will add
    --memory-baseline NAME    compare the peaks with the baseline of that name; the first time, save them as it

    Raises argparse.ArgumentError if the parser has one of them already."""
    group = parser.add_argument_group("memory (oomscope)")
    group.add_argument("--profile-memory", "--profile_memory", type=int, nargs="?", const=3, metavar="STEPS",
                       help="peaks of each step and phase, of so many steps (default 3)")
    group.add_argument("--debug-memory", "--debug_memory", action="store_true",
                       help="after the first step what is on the card, and what the second will add")
    group.add_argument("--memory-baseline", "--memory_baseline", metavar="NAME",
                       help="compare the peaks with the baseline of that name; the first time, save them as it")
    return parser


def start(args: Any, folder: str | os.PathLike[str] | None = None) -> None:
    """install(folder), and what the parsed arguments ask for. The profile's table comes when its steps are over, or at
    the end of the process; peaks.json and the comparison with a baseline at the end too, with the baselines in that folder
    unless OOMSCOPE_STORE names a store. Raises ValueError for a number of steps that makes no sense."""
    install(folder)
    if getattr(args, "debug_memory", False):
        FirstStep().start()
    steps, baseline = getattr(args, "profile_memory", None), getattr(args, "memory_baseline", None)
    if steps is not None or baseline is not None:
        peaks = profile(steps=steps)
        peaks.start()
        atexit.register(_finish, peaks, baseline, Path(str(_install.watcher.folder)))


def _finish(peaks: profile, baseline: str | None, folder: Path) -> None:
    peaks.stop()
    rank = _torch.ranks()["rank"]
    suffix = f"-rank{rank}" if rank else ""  # each rank has a baseline of its own
    path = folder / f"peaks{suffix}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if baseline is not None and not hasattr(sys, "last_value"):
            peaks.baseline(baseline + suffix, path)
        else:  # what was reached until an error is no measure of the run
            failed = "" if baseline is None else f"; the run failed: it is not compared with baseline {baseline}"
            say(f"oomscope: peaks: {peaks.save(path)}{failed}")
    except OSError as error:
        say(f"oomscope: {path}: {error.strerror}: the peaks are not kept")


class FirstStep(Table):
    """--debug-memory. The first step's forward and backward ran without the optimizer's state, which its own end
    brought. From the second step on they run beside it, so the peak of the second is the first's plus that state."""

    def start(self) -> None:
        self._peaks, self._states, self.balance = profile(steps=1), list[int](), dict[str, int]()
        self._peaks.speaks = False
        self._peaks.start()
        progress.watch(self)

    def before_optimizer(self, optimizer: Any) -> None:
        """More than once where step() runs its closure again: the first counts."""
        self._states.append(_bytes(_state_of(optimizer)))

    def after_step(self, optimizer: Any, step: int) -> None:
        progress.watchers.remove(self)
        weights = [p for group in optimizer.param_groups for p in group["params"]]
        state = _bytes(_state_of(optimizer))
        self.balance = {"weights": _bytes(weights), "optimizer state": state, "gradients": _bytes(p.grad for p in weights)}
        allocated, reserved = live()
        cuda, others = _torch.cuda(), allocated - sum(self.balance.values())
        if cuda is not None and others >= 0:  # else they are on several cards
            self.balance.update({"[other tensors]": others, "[cached, free]": reserved - allocated})
        parts = {name: part["allocated"] for name, part in self._peaks.steps[0]["phases"].items()}
        in_optimizer = parts.pop("optimizer step", 0)
        reached, added = max(parts.values(), default=0), state - self._states[0]
        self.second_step_bytes = max(reached + added, in_optimizer)
        card = f", on a card of {size(cuda.mem_get_info()[1])}" if cuda is not None else ""
        self.title = (f"after step {step}: it reached {size(reached)} in forward and backward, {size(in_optimizer)} in "
                      f"the optimizer\nthe second step adds {size(added)} of optimizer state to forward and backward: "
                      f"about {size(self.second_step_bytes)}{card}")
        tell(str(self))

    def _rows(self) -> list[tuple[Any, ...]]:
        return [("", "bytes"), *self.balance.items(), ("total", sum(self.balance.values()))]


def _state_of(optimizer: Any) -> Iterable[Any]:
    return (value for state in optimizer.state.values() for value in state.values())


def _bytes(values: Iterable[Any]) -> int:
    """Of the distinct storages of the tensors among them that are on the card; without a card, of all."""
    return sum(count for tensor, count in _torch.storages(values).values() if tensor.is_cuda or _torch.cuda() is None)
