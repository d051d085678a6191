"""The options of a script: --profile-memory, --debug-memory, --memory-baseline."""
from __future__ import annotations

import argparse
import atexit
import os
import sys
from pathlib import Path
from typing import Any, TypeVar

from . import _install, _torch
from ._install import install
from ._marks import progress
from ._meter import live
from ._profile import profile
from ._program import run_program, say, size, tell

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


class FirstStep:
    """--debug-memory. The first step's forward and backward ran without the optimizer's state, which its own end
    brought. From the second step on they run beside it, so the peak of the second is the first's plus that state. What
    is on the card now the program says, of a snapshot."""

    def start(self) -> None:
        self.second_step_bytes = 0
        self._peaks, self._before = profile(steps=1), list[int]()
        self._peaks.speaks = False
        self._peaks.start()
        progress.watch(self)

    def before_optimizer(self, optimizer: Any) -> None:
        """More than once where step() runs its closure again: the first counts."""
        self._before.append(live()[0])

    def after_step(self, optimizer: Any, step: int) -> None:
        progress.watchers.remove(self)
        parts = {name: part["allocated"] for name, part in self._peaks.steps[0]["phases"].items()}
        in_optimizer = parts.pop("optimizer step", 0)
        reached, added = max(parts.values(), default=0), live()[0] - self._before[0]
        self.second_step_bytes = max(reached + added, in_optimizer)
        cuda, card, balance = _torch.cuda(), "", ""
        if cuda is not None:
            card = f", on a card of {size(cuda.mem_get_info()[1])}"
            balance = run_program("show", "-", "--at", "end", "--by", "category", "--device", str(cuda.current_device()),
                                  stdin=_torch.snapshot()[0])[1]
        tell(f"after step {step}: it reached {size(reached)} in forward and backward, {size(in_optimizer)} in the "
             f"optimizer\nthe second step adds {size(added)} of optimizer state to forward and backward: "
             f"about {size(self.second_step_bytes)}{card}\n{balance}")
