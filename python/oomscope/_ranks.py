"""Ranks of one job tell each other of a failure without a collective: the others may be waiting in one for ever.

They meet in the job's store (torch.distributed's TCPStore), over connections of their own. The failing rank leaves a
word there; a thread in every other rank looks for it each second and answers with its own figures. Whatever does not
answer within five seconds is left out. Failures within ten seconds of each other share one verdict, which the first of
them gives.
"""
from __future__ import annotations

import itertools
import json
import os
import select
import socket
import threading
import time
from datetime import timedelta
from typing import Any, Callable, TypeVar

from . import _torch
from ._program import size

PATIENCE = 5.0  # seconds for all the others together
TOGETHER = 10.0  # seconds
NOTHING = "nothing"  # what a store answers for a key that it does not have
Result = TypeVar("Result")


def within(seconds: float, function: Callable[[], Result]) -> Result | None:
    """Its result; None where it fails or takes longer: a store may be gone with its host, and never answer."""
    results: list[Result] = []

    def run() -> None:
        try:
            results.append(function())
        except Exception:  # whatever a store that goes away raises: then this rank speaks for itself
            pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return results[0] if results else None


class Board:
    """Texts by key for all ranks to see, over a connection of its own. Raises something where the job has no
    TCPStore, or it is gone."""

    def __init__(self) -> None:
        job: Any = _torch.process_group()
        store = job.distributed_c10d._get_default_store()
        while isinstance(store, job.PrefixStore):
            store = store.underlying_store
        own = job.TCPStore(store.host, store.port, None, False, timedelta(seconds=PATIENCE), wait_for_workers=False)
        self._store = job.PrefixStore("oomscope" + os.environ.get("TORCHELASTIC_RESTART_COUNT", ""), own)
        self._number = 0  # of the failure that was looked at last
        self._end = socket.create_connection((store.host, store.port), PATIENCE)  # says quietly that the store is gone
        self.rank, self.world = job.get_rank(), job.get_world_size()
        self.run = self._first("run", f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")

    def _first(self, key: str, text: str) -> str:
        """`text`, or what another rank had put there before."""
        return str(self._store.compare_set(key, "", text).decode())

    def _get(self, key: str) -> str:
        """Empty: nothing so far. A comparison that must fail asks without waiting, in torch 2.1 too."""
        return str(self._store.compare_set(key, NOTHING, NOTHING).decode()).replace(NOTHING, "")

    def is_first(self, failed_at: float) -> bool:
        """Is this the first of the failures that belong together? Older ones, and this rank's own, had their verdict."""
        own = f"{failed_at} {self.rank}"
        for self._number in itertools.count(self._number + 1):
            first = self._first(f"failure-{self._number}", own)
            if first == own or failed_at - float(first.split()[0]) < TOGETHER:
                break
        return first == own

    def _wait(self, key: str, until: float) -> str:
        """Its text when it comes, or empty. store.wait() would keep the connection from other threads."""
        text = self._get(key)
        while not text and time.monotonic() < until:
            time.sleep(0.1)
            text = self._get(key)
        return text

    def table(self, own: dict[str, Any]) -> str:
        """A line for each rank: what it says of itself, within PATIENCE."""
        number, until = self._number, time.monotonic() + PATIENCE
        answers = [json.dumps(own) if rank == self.rank else self._wait(f"summary-{number}-{rank}", until)
                   for rank in range(self.world)]
        return "".join(f"\n  rank {rank}: {_line(answer)}" for rank, answer in enumerate(answers))

    def wait(self) -> None:
        """Until the verdict of the first is said, and not for long: a launcher ends all ranks when one is gone."""
        self._wait(f"said-{self._number}", time.monotonic() + 3 * PATIENCE)

    def close(self) -> None:
        self._first(f"said-{self._number}", "said")

    def answer(self, summary: Callable[[], dict[str, Any]], over: threading.Event) -> None:
        """Answers each failure of the job, until it is over or the store is gone."""
        number = 1
        while not over.wait(1) and not select.select([self._end], [], [], 0)[0]:
            if self._get(f"failure-{number}"):
                self._first(f"summary-{number}-{self.rank}", json.dumps(summary()))
                number += 1


def one_verdict(board: Board | None, failed_at: float, summary: Callable[[], dict[str, Any]],
                tell: Callable[[str], None]) -> None:
    """tell(a line for each rank) in the first that failed; the others wait until it is said. Without a store, or with
    one that does not answer, each speaks for itself."""
    is_first = within(PATIENCE, lambda: board.is_first(failed_at)) if board is not None else None
    if board is None or is_first is None:
        tell("")
    elif is_first:
        tell(within(PATIENCE + 1, lambda: board.table(summary())) or "")
        within(PATIENCE, board.close)
    else:
        within(3 * PATIENCE, board.wait)


def _line(answer: str) -> str:
    if not answer:
        return f"no answer within {PATIENCE:.0f} s"
    summary = json.loads(answer)
    return (f"{'out of memory' if summary['failed'] else 'not failed'}, step {summary['step']}, {summary['phase']}, "
            f"allocated {size(summary['allocated'])}, reserved {size(summary['reserved'])}")
