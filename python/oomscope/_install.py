"""install(): on out of memory, a snapshot with its context in one folder, and the first lines of `oomscope why`.

The allocator calls the observer in the thread whose request failed, before the error is raised, also for errors that
the program catches. It writes the folder and returns; a thread of its own asks the program and prints, while the job
goes on. That thread is no daemon: the interpreter waits for it at the end, in worker processes too.
"""
from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Iterator

from . import _ranks, _torch
from ._marks import progress
from ._program import run_program, say, size, whole, write_json

WHY_SECONDS = 40.0  # the longest that the program may take for its answer
MOST_SNAPSHOTS = 3  # of a process; the rest is counted in the last context


class Watcher:
    """One a process."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder  # None: not installed
        self.ooms = 0
        self.cases: list[tuple[Path, dict[str, Any]]] = []  # folders and their contexts
        self._counting = threading.Lock()
        self._busy = threading.Lock()  # while a failure is written
        self._board: _ranks.Board | None = None  # of a rank that has failed
        self._answers = False  # when other ranks fail

    def observe(self, *figures: int) -> None:
        """Called by torch: context_of has the figures. Never raises: the allocator is in the middle of its own error."""
        with _interrupts_held():
            try:
                self._observe(*figures)
            except Exception as error:  # whatever it is, the user gets torch's error and not ours
                say(f"oomscope: the failure could not be recorded: {error!r}")

    def _observe(self, *figures: int) -> None:
        if self.folder is None or progress.paused:
            return
        with self._counting:
            self.ooms += 1
            is_full, is_free = len(self.cases) == MOST_SNAPSHOTS, self._busy.acquire(blocking=False)
            if is_free and is_full:
                self._busy.release()
                case, last = self.cases[-1]
                write_json(case / "context.json", {**last, "ooms": self.ooms})
            if is_full or not is_free:
                return  # counted; what is being written now takes the number with it
        context: dict[str, Any] = {}
        try:
            context = {**context_of(*figures), "ooms": self.ooms}
            case = self._write(context)
        except Exception as error:  # a full disk, or a folder that is none: what is known is said all the same
            return say(f"\noomscope: out of memory, and in {self.folder} it could not be recorded: {error}\n"
                       f"{context.get('message', '')}")
        finally:
            self._busy.release()
        # A backward's thread is not Python's own: such are daemons, which a new thread would take after.
        threading.Thread(target=self._tell, args=(case, context), name="oomscope", daemon=False).start()

    def _write(self, context: dict[str, Any]) -> Path:
        began = time.monotonic()
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        root = Path(str(self.folder))
        if context["world"] > 1:
            name, root = f"rank{context['rank']}", _ranks.job_folder(str(root))
        name += ("", "-second", "-third")[len(self.cases)]
        if (root / name).exists():  # of an earlier run of the same job
            name += time.strftime("-%Y%m%d-%H%M%S") + f"-{os.getpid()}"
        case = root / name
        case.mkdir(parents=True)
        self.cases.append((case, context))
        write_json(case / "context.json", context)
        asks = threading.Thread(target=lambda: context.update(card=card_processes(context["device"])), daemon=True)
        asks.start()
        carries_marks = _torch.dump_snapshot(case / "oom.pickle")
        asks.join()
        progress.write_marks(case / "oom.pickle.marks.json", carries_marks)
        context.update(snapshot="oom.pickle", ooms=self.ooms, dump_seconds=round(time.monotonic() - began, 3))
        write_json(case / "context.json", context)
        return case

    def answer_ranks(self) -> None:
        """From now on, if this is one of several."""
        self._answers = self._answers or _ranks.watch(lambda: str(self.folder), summary_of_this_rank)

    def _tell(self, case: Path, context: dict[str, Any]) -> None:
        """The verdict: of this process, or where it is a rank, one for all of them."""
        try:
            if context["world"] == 1:
                return self._ask(case, context, "")
            self._board = self._board or _ranks.Board(case.parent)
            if not self._board.is_first(context["time"]):
                return self._board.wait()
            self._ask(case, context, self._board.table(summary_of_this_rank()))
            self._board.close()
        except Exception as error:
            say(f"oomscope: {case}: {error!r}")

    def _ask(self, case: Path, context: dict[str, Any], ranks: str) -> None:
        code, answer = run_program("why", str(case), seconds=WHY_SECONDS)
        head = answer.split("\n\n")[0].rstrip() if code == 0 else f"{context['message']}\n{answer}"
        again = f" (failure {context['ooms']} of this process)" if context["ooms"] > 1 else ""
        say(f"\noomscope: out of memory{again}, kept in {case}{ranks}\n{head}\n"
            f"  all of it: oomscope why {shlex.quote(str(case.parent if ranks else case))}")


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C meanwhile is delivered right after: torch's error comes first. Only the main thread gets signals."""
    held: list[int] = []
    before = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if callable(before):
        signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        if callable(before):
            signal.signal(signal.SIGINT, before)
        if held:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()


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
        "schema": "oomscope.context/1", "time": time.time(), "message": message, "snapshot": None, "card": None,
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
        answer = subprocess.run(command, capture_output=True, text=True, timeout=3, check=True).stdout
        rows = [line.split(",") for line in answer.splitlines()]
        return {"processes": [{"pid": int(pid), "bytes": int(mib) << 20 if mib.strip().isdigit() else None,
                               "own": int(pid) == os.getpid()} for pid, mib in rows]}
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def summary_of_this_rank() -> dict[str, Any]:
    """What a rank says of itself when one has failed, without touching the card."""
    for _, context in watcher.cases[-1:]:
        if time.time() - context["time"] < _ranks.TOGETHER:
            return {**context, "failed": True}
    cuda = _torch.cuda()
    cards = [_torch.allocator_facts(device) for device in range(cuda.device_count())] if cuda is not None else [{}]
    facts = max(cards, key=lambda card: card.get("reserved", 0))  # the current device is another thread's affair
    return {"failed": False, "step": progress.step, "phase": progress.phase or "waiting or working", **facts}


watcher = Watcher()
_has_hooks = False


def install(folder: str | os.PathLike[str] | None = None, *, max_events: int = 1_000_000,
            stacks: str = "python") -> None:
    """Watches this process for out of memory on any CUDA device. Call it once, before the model is made.

    folder      where failures are kept, one folder each; made when the first one comes. Default: OOMSCOPE_FOLDER,
                else "oomscope-oom" in the working folder. Nothing is written outside it.
    max_events  the most events of history kept, oldest dropped first (docs/python.md has their memory)
    stacks      "python", or "all" for C++ frames too, which cost more a step and a slower dump

    Raises ValueError for a wrong argument, and nothing else: without torch or without a card it does nothing.
    Calling it again changes the settings. Source: torch's out-of-memory observer and memory history (torch 2.1 on)."""
    global _has_hooks
    if stacks not in ("python", "all", "cpp"):
        raise ValueError(f"stacks={stacks!r}: 'python', 'cpp' or 'all'")
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
        atexit.register(_sum_up)


def _sum_up() -> None:
    """At the end: a job that catches its failures and goes on has more of them than were shown."""
    if watcher.ooms > MOST_SNAPSHOTS:
        say(f"oomscope: out of memory {watcher.ooms} times in this process: {len(watcher.cases)} are kept")


def _after_fork() -> None:
    """A child begins with no failures and no threads; its own CUDA, if it may have one, attaches again by itself."""
    global watcher
    progress.after_fork()
    _torch.collects_again()
    watcher = Watcher(watcher.folder)
