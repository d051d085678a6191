"""Ranks of one job tell each other of a failure without a collective: the others may be waiting in one for ever.

The failing rank posts a word; a thread in every other rank looks for it once or twice a second and answers with its
own figures. Words travel through the job's store (torch.distributed's TCPStore) and through the folder of the job, so
that either is enough. Whatever does not answer within five seconds is left out.
"""
from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

from . import _torch
from ._folder import write_json

PREFIX = "oomscope/"
PATIENCE = 5.0  # seconds for all the others together
LOOK_EVERY = 0.5  # seconds between looks at the folder; the store is asked at every second look


def bounded(call: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """call() in a thread of its own; None if it fails or takes longer. The thread is left behind then."""
    answer: list[Any] = []

    def run() -> None:
        try:
            answer.append(call())
        except Exception:  # a store whose host is gone
            pass

    thread = threading.Thread(target=run, name="oomscope-store", daemon=True)
    thread.start()
    thread.join(seconds)
    return answer[0] if answer else None


def _store() -> Any | None:
    """The job's default store, if torch.distributed is initialised."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.distributed_c10d._get_default_store()


class Board:
    """Words by key, in the store where there is one, and in the job's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / f"board-{os.getppid()}"  # the launcher's: an earlier job's words are not read

    def post(self, key: str, document: dict[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        write_json(self._folder / (key + ".json"), document)
        store = _store()
        if store is not None:
            bounded(lambda: (store.set(PREFIX + key, json.dumps(document)), store.add(PREFIX + key + "/is-there", 1)))

    def read(self, key: str, ask_store: bool = True) -> dict[str, Any] | None:
        """What was posted, or None so far. Never waits for a key: add(key, 0) answers at once."""
        try:
            return dict(json.loads((self._folder / (key + ".json")).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            pass
        store = _store() if ask_store else None
        if store is None or not bounded(lambda: store.add(PREFIX + key + "/is-there", 0), 2.0):
            return None
        text = bounded(lambda: store.get(PREFIX + key), 2.0)
        return json.loads(text) if text else None

    def claim(self, key: str) -> bool:
        """True for the first rank that asks."""
        store = _store()
        count = bounded(lambda: store.add(PREFIX + key, 1)) if store is not None else None
        if count is not None:
            return bool(count == 1)
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            os.close(os.open(self._folder / key, os.O_CREAT | os.O_EXCL))
            return True
        except OSError:
            return False


def watch(folder: Callable[[], Path], summary: Callable[[], dict[str, Any]]) -> threading.Thread:
    """The thread of a rank that has not failed. It answers the first failure of the job, and ends. It waits for the
    process to become one of several: torch.distributed may start after it."""
    began = time.time()

    def look() -> None:
        while _torch.ranks()["world"] == 1:
            time.sleep(LOOK_EVERY)
        board = Board(folder())
        looks = 0
        while True:
            time.sleep(LOOK_EVERY)
            looks += 1
            word = board.read("failed", ask_store=looks % 2 == 0)
            if word is not None and word.get("time", 0) >= began:  # else an earlier run's
                rank = _torch.ranks()["rank"]
                if word.get("rank") != rank:
                    board.post(f"summary-{rank}", summary())
                return

    thread = threading.Thread(target=_quiet(look), name="oomscope-ranks", daemon=True)
    thread.start()
    return thread


def gather(board: Board, own: dict[str, Any], since: float) -> list[dict[str, Any] | None]:
    """All ranks' summaries in rank order, the caller's among them; None for those that did not answer in time."""
    found: list[dict[str, Any] | None] = [None] * max(own["world"], own["rank"] + 1)
    found[own["rank"]] = own
    until = time.monotonic() + PATIENCE
    while None in found and time.monotonic() < until:
        for rank, known in enumerate(found):
            if known is None:
                answer = board.read(f"summary-{rank}")
                if answer is not None and answer.get("time", 0) >= since:
                    found[rank] = answer
            if time.monotonic() >= until:
                break
        time.sleep(0.1)
    return found


def table(summaries: list[dict[str, Any] | None]) -> str:
    """One line a rank."""
    lines = []
    for rank, each in enumerate(summaries):
        if each is None:
            lines.append(f"  rank {rank}: no answer within {PATIENCE:.0f} s")
            continue
        state = "out of memory" if each.get("failed") else "not failed"
        lines.append(f"  rank {rank}: {state}, step {each.get('step')}, {each.get('phase')}, "
                     f"allocated {_torch.format_bytes(each.get('allocated'))}, "
                     f"reserved {_torch.format_bytes(each.get('reserved'))}")
    return "\n".join(lines)


def _quiet(call: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        try:
            call()
        except Exception:  # at the end of the process stores and modules go away under a daemon thread
            pass
    return run
