"""Where a job is: the step, found by torch's global optimizer hooks, and the phase that the user names.

Each becomes a record_function scope named oomscope.step:N or oomscope.phase:NAME, which snapshots of torch 2.8 and
newer carry. For older ones the same boundaries go into SNAPSHOT.marks.json (docs/formats/marks.md).
"""
from __future__ import annotations

import importlib
import json
import sys
import threading
import time
import weakref
from collections import deque
from types import TracebackType
from typing import Any, Callable

from . import _torch

MOST_STEPS_OF_OTHERS = 100  # in a row, before the first optimizer is taken to be out of use
MOST_MARKS = 100_000  # kept for a side file: at two a step, 50,000 steps


class Progress:
    """The process's one account of steps and phases. Steps count from 1: step N ends with the N-th call of step() of
    the optimizer that was the first to step; what others do belongs to it."""

    def __init__(self) -> None:
        self.step = 1
        self.phase: str | None = None
        self.marks: deque[dict[str, Any]] = deque(maxlen=MOST_MARKS)
        self.before_optimizer: list[Callable[[Any], None]] = []  # called with the optimizer
        self.after_step: list[Callable[[Any, int], None]] = []  # called with the optimizer and the step that ended
        self.paused = 0  # inside find_batch_size nothing counts
        self._leader: weakref.ref[Any] | None = None
        self._steps_of_others = 0  # since the leader's last
        self._scopes: dict[str, tuple[Any, str, int]] = {}  # by kind: scope, name, thread
        self._started = False
        self._lock = threading.RLock()

    def start(self) -> None:
        """Hooks every optimizer, once a process. Without torch there are no steps."""
        with self._lock:
            if self._started:
                return
            self._started = True
        if _torch.torch_module() is None:
            return
        hooks = importlib.import_module("torch.optim.optimizer")  # torch.optim hides its name
        hooks.register_optimizer_step_pre_hook(self._before)
        hooks.register_optimizer_step_post_hook(self._after)
        self._open("step", "oomscope.step:1")

    def after_fork(self) -> None:
        """Another thread may have held the lock when the process forked."""
        self._lock = threading.RLock()

    def set_phase(self, name: str | None) -> None:
        """The phase from now on; None ends it."""
        with self._lock:
            self._close("phase")
            self.phase = name
            if name is not None:
                self._open("phase", "oomscope.phase:" + name)

    def announce(self) -> None:
        """Opens the scopes anew: those from before the history began are in no snapshot."""
        with self._lock:
            for kind, (_, name, _) in list(self._scopes.items()):
                self._leave(kind)
                self._enter(kind, name)

    def write_marks(self, snapshot: str, carries_marks: bool, modules: list[dict[str, Any]]) -> None:
        """SNAPSHOT.marks.json: the marks that the snapshot does not carry, and what only this file can hold."""
        with self._lock:
            marks = [] if carries_marks else list(self.marks)
        document: dict[str, Any] = {"schema": "oomscope.marks/1", "marks": marks}
        if modules:
            document["modules"] = modules
        with open(snapshot + ".marks.json", "w", encoding="utf-8") as file:
            json.dump(document, file)

    def _before(self, optimizer: Any, *_: Any) -> None:
        if not self.paused and not _is_inside_another():
            _guarded(self.before_optimizer, optimizer)

    def _after(self, optimizer: Any, *_: Any) -> None:
        if self.paused or _is_inside_another():
            return
        with self._lock:
            if not self._leads(optimizer):
                return
            ended, self.step = self.step, self.step + 1
            self._close("step")
            self._open("step", f"oomscope.step:{self.step}")
        _guarded(self.after_step, optimizer, ended)

    def _leads(self, optimizer: Any) -> bool:
        """Is it the one that counts? Another takes over when that one is gone, or has not stepped for long."""
        leader = self._leader() if self._leader is not None else None
        if leader is not optimizer:
            self._steps_of_others += 1
            if leader is not None and self._steps_of_others < MOST_STEPS_OF_OTHERS:
                return False
            self._leader = weakref.ref(optimizer)
        self._steps_of_others = 0
        return True

    def _open(self, kind: str, name: str) -> None:
        self._note(name, "START")
        self._enter(kind, name)

    def _close(self, kind: str) -> None:
        name = self._leave(kind)
        if name is not None:
            self._note(name, "END")

    def _enter(self, kind: str, name: str) -> None:
        torch = _torch.torch_module()
        scope = None
        if torch is not None:
            try:
                scope = torch.autograd.profiler.record_function(name)
                scope.__enter__()
            except Exception:  # under a tracer that cannot take it: the side file still has the mark
                scope = None
        self._scopes[kind] = (scope, name, threading.get_ident())

    def _leave(self, kind: str) -> str | None:
        scope, name, thread = self._scopes.pop(kind, (None, None, 0))
        if scope is not None and thread == threading.get_ident():
            try:
                scope.__exit__(None, None, None)
            except Exception:  # as above
                pass
        return name

    def _note(self, name: str, stage: str) -> None:
        self.marks.append({"name": name, "stage": stage, "device": 0, "time_us": time.time_ns() // 1000})


def _is_inside_another() -> bool:
    """Is the step of our caller inside another's? torch wraps step() of each class, so a subclass whose step() calls
    super().step() passes two wrappers, and so does an optimizer that steps an inner one. Wrappers share their code."""
    wrapper = sys._getframe(2)
    frame = wrapper.f_back
    while frame is not None:
        if frame.f_code is wrapper.f_code:
            return True
        frame = frame.f_back
    return False


def _guarded(callbacks: list[Callable[..., None]], *arguments: Any) -> None:
    """Ours may fail; the user's step goes on."""
    for callback in list(callbacks):
        try:
            callback(*arguments)
        except Exception as error:
            if callback in callbacks:
                callbacks.remove(callback)
            from ._program import say
            say(f"oomscope: {getattr(callback, '__name__', 'a watcher')}: {error!r}: it is off from now on")


progress = Progress()


class mark:
    """Names the phase of the job from here on: mark("validation"); mark(None) ends it. With `with`, the phase before
    comes back afterwards. Epochs are phases too: mark("epoch 3"). Costs some microseconds; never raises.

    Source: a record_function scope oomscope.phase:NAME, which `oomscope why` and `diff` read from the snapshot."""

    def __init__(self, name: str | None) -> None:
        progress.start()
        self._before = progress.phase
        progress.set_phase(None if name is None else str(name))

    def __enter__(self) -> mark:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        progress.set_phase(self._before)
