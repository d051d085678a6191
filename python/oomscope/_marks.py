"""Where a job is: the step, found by torch's global optimizer hooks, and the phase that the user names.

Each becomes a record_function scope named oomscope.step:N or oomscope.phase:NAME, which snapshots of torch 2.8 and
newer carry. For older ones the same boundaries go into SNAPSHOT.marks.json (docs/formats/marks.md).
"""
from __future__ import annotations

import contextlib
import importlib
import time
import weakref
from collections import deque
from pathlib import Path
from typing import Any, Callable

from . import _torch
from ._program import say, write

MOST_MARKS = 100_000  # kept for a side file: at two a step, 50,000 steps


class Progress:
    """The process's one account of steps and phases. Steps count from 1: step N ends with the N-th call of step() of
    the optimizer that was the first to step; what others do belongs to it. Watchers are told of boundary(), where a
    phase of the user's ends, before_optimizer(optimizer), where backward is over, and after_step(optimizer, number)."""

    def __init__(self) -> None:
        self.step = 1
        self.phase: str | None = None
        self.paused = 0  # inside find_batch_size nothing counts
        self.watchers: list[Any] = []
        self.modules: Callable[[], list[dict[str, Any]]] = list  # rows of profile(modules=True), for the side file
        self._marks: deque[dict[str, Any]] = deque(maxlen=MOST_MARKS)
        self._leader: weakref.ref[Any] | None = None
        self._is_stepping = False
        self._scopes: dict[str, tuple[str, contextlib.ExitStack]] = {}  # by kind: name, what ends it
        self._started = False

    def start(self) -> None:
        """Hooks every optimizer, once a process. Without torch there are no steps."""
        torch = _torch.torch_module()
        if self._started or torch is None:
            return
        self._started = True
        hooks = importlib.import_module("torch.optim.optimizer")  # torch.optim hides its name
        hooks.register_optimizer_step_pre_hook(self._before)
        hooks.register_optimizer_step_post_hook(self._after)
        self._switch("step", "1")

    def watch(self, watcher: Any) -> None:
        """The next optimizer to step is the one that counts: another training may begin while the last one's lives."""
        self.start()
        self.watchers.append(watcher)
        self._leader = None

    def set_phase(self, name: str | None) -> None:
        """The phase from now on; None ends it."""
        if name == self.phase:
            return
        self._tell("boundary")
        self.phase = name
        self._switch("phase", name)

    def announce(self) -> None:
        """Opens the scopes anew: those from before the history began are in no snapshot."""
        for kind, (name, _) in list(self._scopes.items()):
            self._switch(kind, name)

    def write_marks(self, path: Path, carries_marks: bool) -> None:
        """SNAPSHOT.marks.json, where there is something that the snapshot does not carry."""
        marks, modules = [] if carries_marks else list(self._marks), self.modules()
        if marks or modules:
            write(path, {"schema": "oomscope.marks/1", "marks": marks, "modules": modules})

    def _before(self, optimizer: Any, arguments: Any, options: Any) -> tuple[Any, Any] | None:
        """Backward is over here, or at the end of the closure that step() is given."""
        if self.paused:
            return None
        self._is_stepping = True
        own, *others = arguments  # the optimizer itself
        if not any(map(callable, (*others, *options.values()))):
            self._tell("before_optimizer", optimizer)

        def watched(value: Any) -> Any:
            def closure() -> Any:
                result = value()
                self._tell("before_optimizer", optimizer)
                return result
            return closure if callable(value) else value

        return (own, *map(watched, others)), {name: watched(value) for name, value in options.items()}

    def _after(self, optimizer: Any, *_: Any) -> None:
        """torch wraps step() of each class: a subclass that calls super().step() comes here twice, and so does an
        optimizer that steps an inner one. The first to end counts."""
        leader = self._leader() if self._leader is not None else None
        if self.paused or not self._is_stepping or leader not in (None, optimizer):
            return
        self._is_stepping, self._leader = False, weakref.ref(optimizer)
        ended, self.step = self.step, self.step + 1
        self._switch("step", str(self.step))
        self._tell("after_step", optimizer, ended)

    def _tell(self, event: str, *arguments: Any) -> None:
        """Ours may fail; the user's step goes on."""
        for watcher in list(self.watchers):
            try:
                getattr(watcher, event, lambda *_: None)(*arguments)
            except Exception as error:
                self.watchers.remove(watcher)
                say(f"oomscope: {type(watcher).__name__}: {error!r}: it is off from now on")

    def _switch(self, kind: str, name: str | None) -> None:
        """Ends the scope of this kind, and begins the next. Under a tracer that takes no scopes the marks are there."""
        with contextlib.suppress(Exception):
            self._scopes.pop(kind, ("", contextlib.ExitStack()))[1].close()
        torch = _torch.torch_module()
        if name is not None and torch is not None:
            self._scopes[kind] = name, contextlib.ExitStack()
            self._note(kind, name, "START")
            self._scopes[kind][1].callback(self._note, kind, name, "END")
            with contextlib.suppress(Exception):
                self._scopes[kind][1].enter_context(torch.autograd.profiler.record_function(f"oomscope.{kind}:{name}"))

    def _note(self, kind: str, name: str, stage: str) -> None:
        self._marks.append({"name": f"oomscope.{kind}:{name}", "stage": stage, "device": 0,
                            "time_us": time.time_ns() // 1000})


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
