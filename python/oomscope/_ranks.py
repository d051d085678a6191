"""Ranks of one job tell each other of a failure without a collective: the others may be waiting in one for ever.

They meet in a folder of the job. The failing rank leaves a word there; a thread in every other rank looks for it each
second and answers with its own figures. Whatever does not answer within five seconds is left out. Failures within ten
seconds of each other share one verdict, which the first of them gives.
"""
from __future__ import annotations

import itertools
import json
import os
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

from . import _torch
from ._program import size

PATIENCE = 5.0  # seconds for all the others together
TOGETHER = 10.0  # seconds
_SHARED = ("SLURM_JOB_ID", "SLURM_STEP_ID", "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT",
           "TORCHELASTIC_RESTART_COUNT")


def job_folder(root: str) -> Path:
    """Where the ranks of one job meet: they all know its name without asking each other."""
    words = [os.environ[name] for name in _SHARED if name in os.environ]
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
        words.append(str(os.getppid()))  # one node: the launcher, which tells runs on the same port apart
    return Path(root) / re.sub(r"[^\w.-]", "_", "-".join(["job", *words]))


class Board:
    """Texts by key for all ranks to see, each a file of the job's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "board"
        self._rank, self._world = (_torch.ranks()[name] for name in ("rank", "world"))
        self._number = 0  # of the failure that was looked at last

    def put(self, key: str, text: str) -> str:
        """`text`, or what another rank had put there before."""
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            with open(self._folder / key, "x", encoding="utf-8") as file:
                file.write(text)
            return text
        except FileExistsError:
            until = time.monotonic() + 1
            while not self.get(key) and time.monotonic() < until:  # the other is about to write it
                time.sleep(0.01)
            return self.get(key) or text

    def get(self, key: str) -> str:
        """Empty: nothing so far."""
        try:
            return (self._folder / key).read_text(encoding="utf-8")
        except OSError:
            return ""

    def is_first(self, failed_at: float) -> bool:
        """Is this the first of the failures that belong together? Older ones, and this rank's own, had their verdict."""
        own = f"{failed_at} {self._rank}"
        for self._number in itertools.count(self._number + 1):
            first = self.put(f"failure-{self._number}", own)
            if first == own or failed_at - float(first.split()[0]) < TOGETHER:
                break
        return first == own

    def table(self, own: dict[str, Any]) -> str:
        """A line for each rank: what it says of itself, within PATIENCE."""
        found = {self._rank: own}
        until = time.monotonic() + PATIENCE
        while len(found) < self._world and time.monotonic() < until:
            time.sleep(0.1)
            for rank in set(range(self._world)) - found.keys():
                answer = self.get(f"summary-{self._number}-{rank}")
                if answer.endswith("}"):
                    found[rank] = json.loads(answer)
        return "".join(f"\n  rank {rank}: {_line(found.get(rank))}" for rank in range(self._world))

    def close(self) -> None:
        """The verdict is said."""
        self.put(f"said-{self._number}", "said")

    def wait(self) -> None:
        """Until it is, and not for long: a launcher ends all ranks when one is gone."""
        until = time.monotonic() + 3 * PATIENCE
        while not self.get(f"said-{self._number}") and time.monotonic() < until:
            time.sleep(0.1)

    def answer(self, since: float, summary: Callable[[], dict[str, Any]]) -> None:
        """Looks once, and answers a failure that is not of an earlier run."""
        word = self.get(f"failure-{self._number + 1}")
        if word:
            self._number += 1
        if word and float(word.split()[0]) >= since:
            self.put(f"summary-{self._number}-{self._rank}", json.dumps(summary()))


def _line(summary: dict[str, Any] | None) -> str:
    if summary is None:
        return f"no answer within {PATIENCE:.0f} s"
    return (f"{'out of memory' if summary['failed'] else 'not failed'}, step {summary['step']}, {summary['phase']}, "
            f"allocated {size(summary.get('allocated'))}, reserved {size(summary.get('reserved'))}")


def watch(root: Callable[[], str], summary: Callable[[], dict[str, Any]]) -> bool:
    """Starts the thread of a rank that answers each failure of the job, where there may be other ranks: under a
    launcher, or in a process that another one started; torch.distributed may begin after it."""
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", lambda: None)()
    if _torch.ranks()["world"] == 1 and parent is None:
        return False
    began = time.time()

    def look() -> None:
        board = None
        while True:
            time.sleep(1)
            try:
                if _torch.ranks()["world"] > 1:
                    board = board or Board(job_folder(root()))
                    board.answer(began, summary)
            except Exception:  # a file that is being written; at the end modules go away under a daemon thread
                continue

    threading.Thread(target=look, name="oomscope-ranks", daemon=True).start()
    return True
