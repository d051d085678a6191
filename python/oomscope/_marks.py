"""Where a job is: the step, found by torch's global optimizer hooks, and the phase that the user names.

Each becomes a record_function scope named oomscope.step:N or oomscope.phase:NAME, which snapshots of torch 2.8 and
newer carry. For older ones the same boundaries go into SNAPSHOT.marks.json (docs/formats/marks.md).
"""
from __future__ import annotations

import importlib
import threading
import time
import weakref
from collections import deque
from pathlib import Path
from typing import Any, Callable

from . import _torch
from ._program import say, write_json

MOST_STEPS_OF_OTHERS = 100  # in a row, before the optimizer that counts is taken to be out of use
MOST_MARKS = 100_000  # kept for a side file: at two a step, 50,000 steps


class Progress:
    """The process's one account of steps and phases. Steps count from 1: step N ends with the N-th call of step() of
    the optimizer that was the first to step; what others do belongs to it."""

    def __init__(self) -> None:
        self.step = 1
        self.phase: str | None = None
        self.modules: Callable[[], list[dict[str, Any]]] = list  # rows of profile(modules=True), for the side file
        self.boundaries: list[Callable[[], None]] = []  # called where a phase ends, and where a step's closure begins
        self.before_optimizer: list[Callable[[Any], None]] = []  # called with the optimizer, when backward is over
        self.after_step: list[Callable[[Any, int], None]] = []  # called with the optimizer and the step that ended
        self.paused = 0  # inside find_batch_size nothing counts
        self._marks: deque[dict[str, Any]] = deque(maxlen=MOST_MARKS)
        self._leader: weakref.ref[Any] | None = None
        self._steps_of_others = 0  # since the leader's last
        self._is_stepping = False
        self._scopes: dict[str, tuple[str, Any]] = {}  # by kind: name, scope
        self._started = False
        self._lock = threading.RLock()

    def start(self) -> None:
        """Hooks every optimizer, once a process. Without torch there are no steps."""
        with self._lock:
            if self._started or _torch.torch_module() is None:
                return
            self._started = True
        hooks = importlib.import_module("torch.optim.optimizer")  # torch.optim hides its name
        hooks.register_optimizer_step_pre_hook(self._before)
        hooks.register_optimizer_step_post_hook(self._after)
        self._switch("step", "oomscope.step:1")

    def forget(self, *callbacks: Callable[..., None]) -> None:
        """Takes them off again, where they still are."""
        self.boundaries = [each for each in self.boundaries if each not in callbacks]
        self.before_optimizer = [each for each in self.before_optimizer if each not in callbacks]
        self.after_step = [each for each in self.after_step if each not in callbacks]

    def after_fork(self) -> None:
        """Another thread may have held the lock when the process forked."""
        self._lock = threading.RLock()

    def set_phase(self, name: str | None) -> None:
        """The phase from now on; None ends it."""
        self._call(self.boundaries)
        self.phase = name
        self._switch("phase", None if name is None else "oomscope.phase:" + name)

    def announce(self) -> None:
        """Opens the scopes anew: those from before the history began are in no snapshot."""
        for kind, (name, _) in list(self._scopes.items()):
            self._switch(kind, name)

    def write_marks(self, path: Path, carries_marks: bool) -> None:
        """SNAPSHOT.marks.json, where there is something that the snapshot does not carry."""
        path.unlink(missing_ok=True)  # of an earlier run
        with self._lock:
            marks = [] if carries_marks else list(self._marks)
        modules = self.modules()
        if marks or modules:
            write_json(path, {"schema": "oomscope.marks/1", "marks": marks, "modules": modules})

    def leads_anew(self) -> None:
        """The next optimizer to step is the one that counts: another training may begin while the last one's lives."""
        self._leader, self._is_stepping = None, False

    def _before(self, optimizer: Any, arguments: Any, options: Any) -> tuple[Any, Any] | None:
        """Backward is over here, or at the end of the closure that step() was given."""
        if self.paused or self._is_stepping:
            return None
        self._is_stepping = True

        def with_boundaries(closure: Callable[[], Any]) -> Callable[[], Any]:
            def run() -> Any:
                self._call(self.boundaries)
                result = closure()
                self._call(self.before_optimizer, optimizer)
                return result
            return run

        if callable(options.get("closure")):
            return arguments, {**options, "closure": with_boundaries(options["closure"])}
        if len(arguments) > 1 and callable(arguments[1]):  # behind the optimizer itself
            return (arguments[0], with_boundaries(arguments[1]), *arguments[2:]), options
        self._call(self.before_optimizer, optimizer)
        return None

    def _after(self, optimizer: Any, *_: Any) -> None:
        """torch wraps step() of each class: a subclass that calls super().step() comes here twice, and so does an
        optimizer that steps an inner one. The first to end counts."""
        if self.paused or not self._is_stepping:
            return
        self._is_stepping = False
        with self._lock:
            if not self._leads(optimizer):
                return
            ended, self.step = self.step, self.step + 1
            self._switch("step", f"oomscope.step:{self.step}")
        self._call(self.after_step, optimizer, ended)

    def _call(self, callbacks: list[Callable[..., None]], *arguments: Any) -> None:
        """Ours may fail; the user's step goes on."""
        for callback in list(callbacks):
            try:
                callback(*arguments)
            except Exception as error:
                self.forget(callback)
                say(f"oomscope: {getattr(callback, '__name__', 'a watcher')}: {error!r}: it is off from now on")

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

    def _switch(self, kind: str, name: str | None) -> None:
        """Ends the scope of this kind, and begins the next."""
        with self._lock:
            before, scope = self._scopes.pop(kind, (None, None))
            if before is not None:
                self._note(before, "END", scope, "__exit__", None, None, None)
            if name is not None:
                torch = _torch.torch_module()
                scope = torch.autograd.profiler.record_function(name) if torch is not None else None
                self._scopes[kind] = (name, scope)
                self._note(name, "START", scope, "__enter__")

    def _note(self, name: str, stage: str, scope: Any, call: str, *arguments: Any) -> None:
        self._marks.append({"name": name, "stage": stage, "device": 0, "time_us": time.time_ns() // 1000})
        try:
            if scope is not None:
                getattr(scope, call)(*arguments)
        except Exception:  # under a tracer that cannot take it: the side file still has the mark
            pass


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

    def __exit__(self, *_: object) -> None:
        progress.set_phase(self._before)
