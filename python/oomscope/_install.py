"""install(): on out of memory, a snapshot with its context in one folder, and the first lines of `oomscope why`.

The allocator calls the observer in the thread whose request failed, before the error is raised, also for errors that
the program catches. It writes the folder and returns; a thread of its own asks the program and prints, while the job
goes on. That thread is no daemon: the interpreter waits for it at the end, in worker processes too.
"""
from __future__ import annotations

import atexit
import contextlib
import gc
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from . import _torch
from ._marks import progress
from ._program import run_program, say, size, whole, write
from ._ranks import PATIENCE, TOGETHER, Board, one_verdict, within

WHY_SECONDS = 40.0  # the longest that the program may take for its answer
MOST_SNAPSHOTS = 3  # of a process; the rest is counted in the last context


class Watcher:
    """One a process."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder  # None: not installed
        self.ooms = 0
        self.cases: list[tuple[Path, dict[str, Any]]] = []  # folders and their contexts
        self.recording = threading.Lock()
        self._board: Board | None = None  # of the job, where it has several ranks
        self._answers = False  # when other ranks fail
        self._over = threading.Event()  # the process ends

    def observe(self, device: int, request: int, limit: int, free: int) -> None:
        """Called by torch. Never raises: the allocator is in the middle of its own error."""
        if self.folder is None or progress.paused:
            return
        with self.recording:
            self.ooms += 1
            try:
                if len(self.cases) < MOST_SNAPSHOTS:
                    return self._record({**context_of(device, request, limit, free), "ooms": self.ooms})
                case, context = self.cases[-1]
                write(case / "context.json", {**context, "ooms": self.ooms})
            except Exception as error:  # whatever it is, the user gets torch's error and not ours
                say(f"oomscope: out of memory, which could not be recorded: {error!r}")

    def _record(self, context: dict[str, Any]) -> None:
        """Into a folder of its own. Where that fails, on a full disk for example, the program is asked all the same."""
        case, evidence, lost = self._place(context), context["message"].encode(), ""
        self.cases.append((case, context))
        try:
            evidence, carries_marks = _torch.snapshot()
            context.update(card=card_processes(context["device"]), dump_seconds=round(time.time() - context["time"], 3))
            case.mkdir(parents=True)
            write(case / "oom.pickle", evidence)
            progress.write_marks(case / "oom.pickle.marks.json", carries_marks)
            write(case / "context.json", context)
        except Exception as error:
            lost = f"in {case} it could not be recorded: {error}"
        # A backward's thread is not Python's own: such are daemons, which a new thread would take after.
        threading.Thread(target=one_verdict, daemon=False, name="oomscope",
                         args=(self._board, context["time"], summary_of_this_rank,
                               lambda ranks: _tell(case, context, ranks, lost, evidence if lost else b""))).start()

    def _place(self, context: dict[str, Any]) -> Path:
        """Each run of a job has a folder, and in it each rank, where the ranks can agree on its name."""
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        if context["world"] > 1:
            self._board = self._board or within(PATIENCE, Board)
            name = f"job-{self._board.run}/rank{context['rank']}" if self._board else f"rank{context['rank']}-{name}"
        return Path(str(self.folder)) / (name + ("", "-second", "-third")[len(self.cases)])

    def answer_ranks(self) -> None:
        """From now on, where there may be other ranks: under a launcher, or in a process that another one started."""
        parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", lambda: None)()
        if not self._answers and (_torch.ranks()["world"] > 1 or parent is not None):
            self._answers = True
            thread = threading.Thread(target=self._answer, name="oomscope-ranks", daemon=True)
            thread.start()
            # A thread that is in the store when the interpreter goes takes the process with it (SIGABRT).
            atexit.register(thread.join, 1)
            atexit.register(self._over.set)  # which comes first

    def _answer(self) -> None:
        while _torch.process_group() is None and not self._over.wait(1):
            pass
        with contextlib.suppress(Exception):  # a store of another kind, or one that is gone: then nobody asks
            Board().answer(summary_of_this_rank, self._over)


def _tell(case: Path, context: dict[str, Any], ranks: str, lost: str, evidence: bytes) -> None:
    """The verdict; of `evidence`, where the case is lost."""
    code, answer = run_program("why", "-" if lost else str(case), stdin=evidence, seconds=WHY_SECONDS)
    head = answer.split("\n\n")[0].rstrip() if code == 0 else f"{context['message']}\n{answer}"
    again = f" (failure {context['ooms']} of this process)" if context["ooms"] > 1 else ""
    rest = "" if lost else f"\n  all of it: oomscope why {shlex.quote(str(case.parent if ranks else case))}"
    say(f"\noomscope: out of memory{again}, {lost or f'kept in {case}'}{ranks}\n{head}{rest}")


def context_of(device: int, request: int, limit: int, free: int) -> dict[str, Any]:
    """context.json (docs/formats/context.md): what the snapshot cannot know. All sizes in bytes. `limit` is the
    observer's third argument: the card's total, or what set_per_process_memory_fraction allows."""
    card = sys.modules["torch"].cuda.get_device_properties(device)
    total = int(card.total_memory)
    facts = _torch.allocator_facts(device)
    allowed = f" {size(limit)} allowed;" if limit != total else ""
    message = (f"CUDA out of memory. Tried to allocate {size(request)}. GPU {device} has a total capacity of "
               f"{size(total)} of which {size(free)} is free.{allowed} Of the allocated memory "
               f"{size(facts['allocated'])} is allocated by PyTorch, and "
               f"{size(facts['reserved'] - facts['allocated'])} is reserved by PyTorch but unallocated.")
    return {
        "schema": "oomscope.context/1", "time": time.time(), "message": message, "snapshot": "oom.pickle", "card": None,
        "device": device, "name": card.name, "request_bytes": request, "free_bytes": free, "card_bytes": total,
        "limit_bytes": limit if limit != total else None, "phase": _torch.phase_of_this_thread(),
        "mark": progress.phase, "step": progress.step, **_torch.ranks(), "pid": os.getpid(),
        "thread": threading.current_thread().name, **facts, **_torch.versions_and_settings(),
    }


def card_processes(device: int) -> dict[str, Any] | None:
    """Who is on the card, of nvidia-smi: {processes: [{pid, bytes or None, own}]}, in whole MiB. None: not known."""
    uuid = getattr(sys.modules["torch"].cuda.get_device_properties(device), "uuid", None)  # torch 2.4 on
    command = ["nvidia-smi", f"--id=GPU-{uuid}", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=3).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    rows = re.findall(r"^(\d+), *(\d*)", answer, re.M)
    return {"processes": [{"pid": int(pid), "bytes": int(mib) << 20 if mib else None, "own": int(pid) == os.getpid()}
                          for pid, mib in rows]} if rows else None


def summary_of_this_rank() -> dict[str, Any]:
    """What a rank says of itself when one has failed, without touching the card."""
    if watcher.cases and time.time() - watcher.cases[-1][1]["time"] < TOGETHER:
        return {**watcher.cases[-1][1], "failed": True}
    cuda = _torch.cuda()
    cards = [_torch.allocator_facts(device) for device in range(cuda.device_count())] if cuda is not None else []
    return {"failed": False, "step": progress.step, "phase": progress.phase or "waiting or working",
            **{kind: sum(card[kind] for card in cards) for kind in ("allocated", "reserved")}}


watcher = Watcher()
_has_hooks = False


def install(folder: str | os.PathLike[str] | None = None, *, max_events: int = 1_000_000,
            stacks: str = "python") -> None:
    """Watches this process for out of memory on any CUDA device. Call it once, before the model is made.

    folder      where failures are kept, one folder each; made when the first one comes. Default: OOMSCOPE_FOLDER,
                else "oomscope-oom" in the working folder. Nothing is written outside it.
    max_events  the most events of history kept, oldest dropped first (docs/python.md has their memory)
    stacks      "python"; "cpp" for C++ frames, "all" for both, which cost more a step and a slower dump

    Raises ValueError for a wrong argument, and nothing else: without torch or without a card it does nothing.
    Calling it again changes the settings. Source: torch's out-of-memory observer and memory history (torch 2.1 on)."""
    global _has_hooks
    if stacks not in ("python", "all", "cpp"):
        raise ValueError(f"stacks={stacks!r}: 'python', 'cpp' or 'all'")
    if not isinstance(folder, (str, os.PathLike, type(None))):
        raise ValueError(f"folder={folder!r}: a path")
    max_events = whole("max_events", max_events)
    watcher.folder = os.path.abspath(folder or os.environ.get("OOMSCOPE_FOLDER") or "oomscope-oom")
    torch = _torch.torch_module()
    if torch is None:
        return say("oomscope: torch cannot be imported: nothing is watched")

    def begin() -> None:  # when CUDA starts (torch.cuda._lazy_call): making a context here would break jobs that fork
        try:
            if first:
                torch._C._cuda_attach_out_of_memory_observer(lambda *figures: watcher.observe(*figures))
            _torch.start_history(max_events, stacks)
            progress.announce()
            watcher.answer_ranks()
        except Exception as error:
            say(f"oomscope: {error}: out of memory will not be recorded")

    first, _has_hooks = not _has_hooks, True
    torch.cuda._lazy_call(begin)
    progress.start()
    watcher.answer_ranks()
    if first:
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    """A child begins with no failures and no threads; its own CUDA, if it may have one, attaches again by itself."""
    global watcher
    if watcher.recording.locked():  # another thread was writing a dump, for which the cycle collector rests
        gc.enable()
    watcher = Watcher(watcher.folder)
