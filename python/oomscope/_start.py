"""The same from a command line: --profile-memory, --debug-memory, --memory-baseline, each also with underscores."""
from __future__ import annotations

import argparse
import atexit
import os
from typing import Any, TypeVar

Parser = TypeVar("Parser", bound=argparse.ArgumentParser)


def add_arguments(parser: Parser) -> Parser:
    """Adds the three options to a parser and returns it:

    --profile-memory [STEPS]  peaks of each step and phase, of so many steps (default 3)
    --debug-memory            after the first step what is on the card, and what the second will add
    --memory-baseline NAME    compare the peaks with the baseline of that name; the first time, save them as it"""
    group = parser.add_argument_group("memory (oomscope)")
    group.add_argument("--profile-memory", "--profile_memory", dest="profile_memory", type=int, nargs="?", const=3,
                       metavar="STEPS", help="peaks of each step and phase, of so many steps (default 3)")
    group.add_argument("--debug-memory", "--debug_memory", dest="debug_memory", action="store_true",
                       help="after the first step what is on the card, and what the second will add")
    group.add_argument("--memory-baseline", "--memory_baseline", dest="memory_baseline", metavar="NAME",
                       help="compare the peaks with the baseline of that name; the first time, save them as it")
    return parser


def start(args: Any, folder: str | None = None) -> None:
    """install(folder), and what the parsed arguments ask for. The profile's table comes when its steps are over, or at
    the end of the process; peaks.json and the comparison with a baseline then too. Raises nothing of its own."""
    from ._install import install, watcher
    install(folder)
    if getattr(args, "debug_memory", False):
        from ._debug import FirstStep
        FirstStep().start()
    steps, baseline = getattr(args, "profile_memory", None), getattr(args, "memory_baseline", None)
    if steps is None and baseline is None:
        return
    from ._profile import profile
    peaks = profile(steps=steps)
    peaks.start()

    def finish() -> None:
        peaks.stop()
        if baseline is not None:
            os.makedirs(str(watcher.folder), exist_ok=True)
            peaks.baseline(baseline, os.path.join(str(watcher.folder), "peaks.json"))

    atexit.register(finish)
