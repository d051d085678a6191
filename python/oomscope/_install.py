"""install(): on out of memory, a snapshot with its context in one folder, and the first lines of `oomscope why`.

The allocator calls the observer in the thread whose request failed, before the error is raised, also for errors that
the program catches. It writes the folder and returns; a thread of its own asks the program and prints, and at the end
of the process that thread is waited for. See Note [Nothing of ours reaches the user's code].

Note [Nothing of ours reaches the user's code]
Every entry from torch is wrapped: what fails here is said once on stderr. Ctrl-C while files are written is kept back
and delivered right after. After a fork the child starts with a fresh account and no threads. CUDA is not initialised.
"""
from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from . import _nvml, _ranks, _torch
from ._folder import case_folder, job_folder, write_json
from ._marks import progress
from ._program import find_program, run_program, say

WHY_SECONDS = 40.0  # for the program's answer; then what it has said so far is printed


class Watcher:
    """One a process."""

    def __init__(self) -> None:
        self.folder: str | None = None  # None: not installed
        self.most_snapshots = 3
        self.verdict = True
        self.ooms = 0
        self.modules: list[dict[str, Any]] = []  # of profile(modules=True), for the marks
        self.cases: list[Path] = []
        self._busy = threading.Lock()
        self._speakers: list[threading.Thread] = []
        self._is_watching_ranks = False
        self._error_before = 0

    # --- called by torch ---------------------------------------------------------------------------------------

    def observe(self, device: int, request: int, limit: int, free: int) -> None:
        """Never raises: the allocator is in the middle of its own error."""
        if progress.paused or self.folder is None:
            return
        keeps_back = _InterruptsKeptBack()
        try:
            with keeps_back:
                self._observe(device, request, limit, free)
        except BaseException as error:  # noqa: B036 whatever it is, the user gets torch's error and not ours
            say(f"oomscope: the failure could not be recorded: {error!r}")
        keeps_back.deliver()

    def _observe(self, device: int, request: int, limit: int, free: int) -> None:
        self.ooms += 1
        if self.ooms > self.most_snapshots:
            if self.cases:
                _change_context(self.cases[-1], {"ooms": self.ooms})
            return
        if not self._busy.acquire(blocking=False):
            return  # another thread's failure is being written: it is counted
        try:
            assert self.folder is not None
            began = time.monotonic()
            self._error_before = id(getattr(sys, "last_value", None))  # an earlier failure's, not ours
            case = case_folder(self.folder, min(len(self.cases), 2))
            self.cases.append(case)
            context = context_of(device, request, limit, free)
            write_json(case / "context.json", context)
            snapshot = case / "oom.pickle"
            carries_marks = _torch.dump_snapshot(str(snapshot))
            if self.modules or not carries_marks:
                progress.write_marks(str(snapshot), carries_marks, self.modules)
            context["snapshot"] = snapshot.name
            context["dump_seconds"] = round(time.monotonic() - began, 3)
            write_json(case / "context.json", context)
            self._speak(case, context)
        finally:
            self._busy.release()

    # --- afterwards --------------------------------------------------------------------------------------------

    def _speak(self, case: Path, context: dict[str, Any]) -> None:
        def run() -> None:
            try:
                self._tell(case, context)
            except Exception as error:
                say(f"oomscope: {case}: {error!r}")

        speaker = threading.Thread(target=run, name="oomscope-verdict", daemon=True)
        self._speakers.append(speaker)
        speaker.start()

    def _tell(self, case: Path, context: dict[str, Any]) -> None:
        """The verdict: of this process, or where it is a rank, one for all of them."""
        text = ""
        if context["world"] > 1:
            board = _ranks.Board(case.parent)
            own = dict(context, failed=True)
            board.post("failed", {"rank": context["rank"], "time": context["time"]})
            board.post(f"summary-{context['rank']}", own)
            if not board.claim("verdict"):
                return
            text = "\n" + _ranks.table(_ranks.gather(board, own, context["time"] - 60))
        if not self.verdict:
            return
        code, answer, errors = run_program("why", str(case / "oom.pickle"), seconds=WHY_SECONDS) if find_program() else (127, "", "")
        self._add_message(case)
        head = answer.split("\n\n")[0].rstrip()
        if not head:
            head = errors.strip() or context["message"]
        again = "" if self.ooms == 1 else f" (failure {self.ooms} of this process)"
        say(f"\noomscope: out of memory{again}, kept in {case}{text}\n{head}\n  all of it: oomscope why {case}")

    def finish(self) -> None:
        """At the end of the process: the real message into the last context, and the verdict's thread waited for."""
        if self.folder is None or not self.cases:
            return
        self._add_message(self.cases[-1])
        until = time.monotonic() + WHY_SECONDS + _ranks.PATIENCE
        for speaker in self._speakers:
            speaker.join(max(until - time.monotonic(), 0))

    def _add_message(self, case: Path) -> None:
        """The error's own text, once the interpreter or a notebook has shown it."""
        error = getattr(sys, "last_value", None)
        if id(error) == self._error_before:
            return
        while isinstance(error, BaseException):  # the end of a graph's capture raises an error of its own on top
            if _torch.is_oom(error):
                _change_context(case, {"message": str(error), "message_from": "error"})
                return
            error = error.__cause__ or error.__context__

    def start_ranks(self) -> None:
        """The thread that answers when another rank fails, where there may be others: under a launcher, or in a
        process that another one started."""
        may_be_rank = _torch.ranks()["world"] > 1 or multiprocessing.parent_process() is not None
        if may_be_rank and not self._is_watching_ranks:
            self._is_watching_ranks = True
            _ranks.watch(lambda: job_folder(str(self.folder)), summary_of_this_rank)


class _InterruptsKeptBack:
    """Ctrl-C during a dump is held and delivered when torch has raised its error. Only the main thread gets signals."""

    def __init__(self) -> None:
        self._pressed = False
        self._before: Any = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if callable(self._before):
                signal.signal(signal.SIGINT, self._press)

    def _press(self, *_: Any) -> None:
        self._pressed = True

    def __exit__(self, *_: Any) -> None:
        if callable(self._before):
            signal.signal(signal.SIGINT, self._before)

    def deliver(self) -> None:
        if self._pressed:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()


def context_of(device: int, request: int, limit: int, free: int) -> dict[str, Any]:
    """context.json (docs/formats/context.md): what the snapshot cannot know. All sizes in bytes.

    `limit` is the observer's third argument: the card's total, or what set_per_process_memory_fraction allows."""
    torch = _torch.torch_module()
    assert torch is not None
    properties = torch.cuda.get_device_properties(device)
    total = int(properties.total_memory)
    uuid = getattr(properties, "uuid", None)
    return {
        "schema": "oomscope.context/1", "time": time.time(), "message": _message(device, request, total, limit, free),
        "message_from": "observer", "snapshot": None, "device": device, "name": properties.name,
        "request_bytes": request, "free_bytes": free, "card_bytes": total,
        "limit_bytes": limit if limit != total else None, "phase": _torch.phase_of_this_thread(),
        "mark": progress.phase, "step": progress.step, **_torch.ranks(), "pid": os.getpid(),
        "thread": threading.current_thread().name, "ooms": watcher.ooms, **_torch.allocator_facts(device),
        "card": _nvml.card(str(uuid) if uuid else None), "settings": _torch.settings(),
        "versions": _torch.versions(), "command": list(getattr(sys, "orig_argv", sys.argv)),
    }


def summary_of_this_rank() -> dict[str, Any]:
    """What a rank that has not failed says of itself, without touching the card."""
    summary: dict[str, Any] = {"time": time.time(), "failed": False, "step": progress.step,
                               "phase": progress.phase or "waiting or working", **_torch.ranks()}
    if _torch.cuda_is_on():
        torch = _torch.torch_module()
        assert torch is not None
        summary.update(_torch.allocator_facts(torch.cuda.current_device()))
    return summary


def _message(device: int, request: int, total: int, limit: int, free: int) -> str:
    """The figures in torch's layout, until the error itself is seen."""
    size = _torch.format_bytes
    allowed = f" {size(limit)} allowed;" if limit != total else ""
    return (f"CUDA out of memory. Tried to allocate {size(request)}. GPU {device} has a total capacity of {size(total)} "
            f"of which {size(free)} is free.{allowed}")


def _change_context(case: Path, change: dict[str, Any]) -> None:
    try:
        path = case / "context.json"
        write_json(path, {**json.loads(path.read_text(encoding="utf-8")), **change})
    except (OSError, ValueError):  # the user moved it away
        pass


watcher = Watcher()
_has_hooks = False


def install(folder: str | os.PathLike[str] | None = None, *, max_events: int = 1_000_000, stacks: str = "python",
            most_snapshots: int = 3, verdict: bool = True) -> None:
    """Watches this process for out of memory on any CUDA device. Call it once, before the model is made.

    folder          where failures are kept, one folder each; made when the first one comes. Default: OOMSCOPE_FOLDER,
                    else "oomscope-oom" in the working folder. Nothing is written outside it.
    max_events      the most events of history kept, oldest dropped first (docs/python.md has their memory)
    stacks          "python", or "all" for C++ frames too, which cost more a step and a slower dump
    most_snapshots  failures of this process that get a snapshot; later ones are counted in the last context.json
    verdict         print the first lines of `oomscope why` on stderr

    Raises ValueError for a wrong argument, and nothing else: without torch or without a card it does nothing.
    Calling it again changes the settings. Source: torch's out-of-memory observer and memory history (torch 2.1 on)."""
    global _has_hooks
    if stacks not in ("python", "all", "cpp"):
        raise ValueError(f"stacks={stacks!r}: 'python', 'cpp' or 'all'")
    if max_events < 1 or not 1 <= most_snapshots <= 3:
        raise ValueError("max_events is at least 1, and most_snapshots from 1 to 3")
    watcher.folder = os.path.abspath(folder or os.environ.get("OOMSCOPE_FOLDER") or "oomscope-oom")
    watcher.most_snapshots, watcher.verdict = most_snapshots, verdict
    if _torch.torch_module() is None:
        say("oomscope: torch cannot be imported: nothing is watched")
        return
    if not _has_hooks:
        _has_hooks = True
        atexit.register(lambda: watcher.finish())  # of the process that ends: a fork has its own
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_after_fork)
        _torch.when_cuda_starts(lambda: _quietly(_torch.attach_observer, watcher_observes))
    _torch.when_cuda_starts(lambda: _quietly(_torch.start_history, max_events, stacks))
    _torch.when_cuda_starts(progress.announce)
    progress.start()
    watcher.start_ranks()


def watcher_observes(device: int, request: int, limit: int, free: int) -> None:
    """What torch holds for ever: it finds the watcher of the process that it runs in."""
    watcher.observe(device, request, limit, free)


def _after_fork() -> None:
    """A child begins with no failures and no threads; its own CUDA, if it may have one, attaches again by itself."""
    global watcher
    progress.after_fork()
    old, watcher = watcher, Watcher()
    watcher.folder, watcher.most_snapshots, watcher.verdict = old.folder, old.most_snapshots, old.verdict


def _quietly(call: Any, *arguments: Any) -> None:
    try:
        call(*arguments)
    except Exception as error:
        say(f"oomscope: {error}: out of memory will not be recorded")
