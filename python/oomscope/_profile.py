"""profile(): peaks of each step and phase.

At each boundary the peak is read, so the largest of the parts is the step's. Boundaries are the outermost module's
forward, the optimizer's step, the end of the closure that it is given, and the user's marks: what lies between a
forward that builds a graph and the next boundary is the backward pass, the loss included.
"""
from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import Any

from . import _torch
from ._marks import progress
from ._meter import Gauge
from ._modules import Modules
from ._program import Table, run_program, say, size, tell, whole, write

NOTHING = {"allocated": 0, "reserved": 0}


class profile(Table):
    """What articles call --profile_memory: the peaks of each step and phase.

        with oomscope.profile(steps=3) as p:
            train()
        print(p)                       # a table; in a notebook a rich one
        p.save("peaks.json")           # docs/formats/peaks.md; `oomscope baseline save peaks.json`

    steps     stop measuring after so many optimizer steps; None: at the end of the block
    modules   also what each module keeps for backward, in p.modules: costs hooks on every module, so for a few steps;
              torch.func's gradients cannot be taken inside a module's forward meanwhile, and compiled modules are one
    name      in the log and in peaks.json

    All sizes in bytes, of this process's allocator on the current device; zeros without a card. Sets torch's peak
    counters back at each boundary. Raises ValueError for steps that make no sense, and nothing else of its own.
    Source: max_memory_allocated and max_memory_reserved between boundaries."""

    def __init__(self, steps: int | None = None, *, modules: bool = False, name: str = "run") -> None:
        self.name = name
        self.speaks = True  # at the end, in the log
        self._most = None if steps is None else whole("steps", steps)
        self._modules = Modules() if modules else None
        self._parts: dict[tuple[int, str | None, str], dict[str, int]] = {}  # by step, the user's phase and ours
        self._ended: dict[int, str | None] = {}  # by step, the user's phase in which it ended
        self._depth = 0  # of modules whose forward runs
        self._between = "other"  # what runs while none does
        self._thread: int | None = None  # while it measures
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """As the start of the block, for code that has no block."""
        torch = _torch.torch_module()
        if torch is None or self._thread is not None:
            return
        self._thread = threading.get_ident()
        progress.watch(self)
        self._step = progress.step
        hooks = torch.nn.modules.module
        self._undo.callback(hooks.register_module_forward_pre_hook(self._enter).remove)
        self._undo.callback(hooks.register_module_forward_hook(self._leave, always_call=True).remove)
        self._gauge = self._undo.enter_context(Gauge())
        if self._modules is not None:
            self._undo.callback(self._modules.end)
            progress.modules = self._modules.rows

    def stop(self) -> None:
        """As the end of the block: the table goes to the log. A step whose forward has begun counts as one more; what
        came behind the last one belongs to it."""
        if self._thread is not None:
            self.boundary()
            self._ended.setdefault(self._step, progress.phase)
            self._end()

    def _end(self) -> None:
        self._thread = None
        if self in progress.watchers:
            progress.watchers.remove(self)
        self._undo.close()
        if self.speaks:
            tell(str(self))

    @property
    def steps(self) -> list[dict[str, Any]]:
        """{step, mark, allocated, reserved, phases {name: {allocated, reserved}}} of each, in bytes. A phase of the
        user's that steps end in (an epoch) is the step's mark; another (validation) stands beside forward and backward."""
        steps: dict[int, dict[str, Any]] = {
            number: {"step": number, "mark": mark, **NOTHING, "phases": {}}
            for number, mark in self._ended.items()}
        for (number, mark, phase), part in self._parts.items():
            if number in steps:
                phases = steps[number]["phases"]
                name = phase if mark is None or mark in self._ended.values() else mark
                _raise_to(phases.setdefault(name, {**NOTHING}), part)
                _raise_to(steps[number], part)
        return list(steps.values())

    @property
    def modules(self) -> list[dict[str, Any]]:
        """Rows of profile(modules=True), most kept bytes first (docs/formats/marks.md)."""
        return self._modules.rows() if self._modules is not None else []

    @property
    def title(self) -> str:  # type: ignore[override]
        kept = [f"\n{each['name']} keeps {size(each['kept_bytes'])} of {tuple(each['largest'][0])} {each['largest'][1]}"
                for each in self.modules[:5] if each["kept_bytes"]]
        return f"{self.name}: peaks of {len(self.steps)} step(s)" + "".join(kept)

    @property
    def peak(self) -> dict[str, int]:
        """{allocated, reserved}: the largest over all steps, in bytes."""
        return {kind: max((step[kind] for step in self.steps), default=0) for kind in NOTHING}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes peaks.json (docs/formats/peaks.md). Raises OSError where it cannot be written."""
        cuda = _torch.cuda()
        card = cuda.get_device_properties(cuda.current_device()) if cuda is not None else None
        device = {"name": getattr(card, "name", None), "total_bytes": getattr(card, "total_memory", None)}
        write(Path(path), {"schema": "oomscope.peaks/1", "name": self.name, **_torch.versions_and_settings(),
                           "device": device, **_torch.ranks(), "peak": self.peak, "steps": self.steps,
                           "modules": self.modules})
        return Path(path)

    def baseline(self, name: str, path: str | os.PathLike[str], *arguments: str) -> int:
        """Compares with the baseline of that name through `oomscope baseline compare`, and saves it if there is none
        yet. `path` is where peaks.json goes; the store is baselines.sqlite beside it, unless OOMSCOPE_STORE or
        "--store" in `arguments` names another. 0: no regression, or saved; 1: worse; 127: no program. Raises OSError
        where peaks.json cannot be written."""
        store = os.environ.get("OOMSCOPE_STORE") or str(Path(path).with_name("baselines.sqlite"))
        words = [*arguments] if "--store" in arguments else ["--store", store, *arguments]
        code, answer = run_program("baseline", "compare", str(self.save(path)), "--or-save", "--name", name, *words)
        say(answer)
        return code

    def _rows(self) -> list[tuple[Any, ...]]:
        return [("step", "phase", *NOTHING), *(
            (str(step["step"]) if part is step else "", name, *(part[kind] for kind in NOTHING))
            for step in self.steps for name, part in {"all": step, **step["phases"]}.items())]

    # --- boundaries --------------------------------------------------------------------------------------------

    def boundary(self) -> None:
        """What was reached since the last boundary is that of what ran until now."""
        peaks = dict(zip(NOTHING, self._gauge.take()))
        phase = "forward" if self._depth else self._between
        _raise_to(self._parts.setdefault((self._step, progress.phase, phase), peaks), peaks)
        if self._modules is not None:
            self._modules.reach(peaks["allocated"])

    def before_optimizer(self, optimizer: Any) -> None:
        """The first time in a step, what no module's forward began is backward too; after it, the optimizer's."""
        self._step = progress.step
        self._depth = 0  # whatever an interrupted forward left
        self._between = "backward" if self._between == "other" else self._between
        self.boundary()
        self._between = "optimizer step"

    def after_step(self, optimizer: Any, step: int) -> None:
        self.boundary()
        self._between = "other"
        self._ended[step] = progress.phase
        if self._most is not None and len(self._ended) >= self._most:
            self._end()  # nothing came behind it yet

    def _enter(self, module: Any, inputs: Any) -> None:
        if _torch.in_users_forward(self._thread):
            if self._depth == 0 or self._modules is not None:
                self.boundary()
            if self._depth == 0 and sys.modules["torch"].is_grad_enabled():
                self._step = progress.step
            self._depth += 1
            if self._modules is not None:
                self._modules.enter(module, inputs)

    def _leave(self, module: Any, inputs: Any, output: Any) -> None:
        if self._depth > 0 and _torch.in_users_forward(self._thread):
            if self._depth == 1 or self._modules is not None:
                self.boundary()
            if self._depth == 1 and sys.modules["torch"].is_grad_enabled():
                self._between = "backward"
            self._depth -= 1
            if self._modules is not None:
                self._modules.leave(output)


def _raise_to(kept: dict[str, Any], peaks: dict[str, int]) -> None:
    kept.update({kind: max(kept[kind], peaks[kind]) for kind in NOTHING})
