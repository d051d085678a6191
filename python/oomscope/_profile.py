"""profile(): peaks of each step and phase; measure(): the peak of one section.

torch keeps one peak per device. At each boundary it is read and set back, so the largest of the parts is the step's.
Boundaries are the outermost module's forward, the optimizer's step and the user's marks: what lies between the forward
and the optimizer's step is the backward pass, the loss included.
"""
from __future__ import annotations

import logging
import sys
import threading
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Any

from . import _torch
from ._folder import write_json
from ._marks import progress
from ._program import run_program, say

log = logging.getLogger("oomscope")


class Meter:
    """The counters of one device: reads peaks and sets them back. Zeros without a card."""

    def __init__(self) -> None:
        self.device: int | None = None

    def take(self) -> tuple[int, int]:
        """(allocated, reserved): the peaks in bytes since the last call."""
        if not _torch.cuda_is_on():
            return 0, 0
        cuda = sys.modules["torch"].cuda
        if self.device is None:
            self.device = cuda.current_device()
        peaks = int(cuda.max_memory_allocated(self.device)), int(cuda.max_memory_reserved(self.device))
        cuda.reset_peak_memory_stats(self.device)
        return peaks

    def now(self) -> tuple[int, int]:
        """(allocated, reserved) at this moment, in bytes."""
        if not _torch.cuda_is_on():
            return 0, 0
        cuda = sys.modules["torch"].cuda
        return int(cuda.memory_allocated(self.device)), int(cuda.memory_reserved(self.device))


class measure:
    """The peak of one section, for models that take turns: with measure("generator") as m: ... then m.allocated and
    m.reserved, the most bytes of this process's allocator on the current device while it ran, and m.grew, the bytes
    allocated more at its end than at its start. Says so in the log "oomscope". Sets torch's peak counters back.

    Source: torch.cuda.max_memory_allocated and max_memory_reserved. Zeros without a card; raises nothing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.allocated = self.reserved = self.grew = 0
        self._meter = Meter()

    def __enter__(self) -> measure:
        self._meter.take()
        self._before = self._meter.now()[0]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.allocated, self.reserved = self._meter.take()
        self.grew = self._meter.now()[0] - self._before
        tell(f"{self.name}: peak allocated {_torch.format_bytes(self.allocated)}, "
             f"reserved {_torch.format_bytes(self.reserved)}, kept {_torch.format_bytes(self.grew)}")


class profile:
    """What articles call --profile_memory: the peaks of each step and phase.

        with oomscope.profile(steps=3) as p:
            train()
        print(p)                       # a table; in a notebook a rich one
        p.save("peaks.json")           # docs/formats/peaks.md; `oomscope baseline save peaks.json`

    steps     stop measuring after so many optimizer steps; None: at the end of the block
    modules   also what each module keeps for backward, in p.modules: costs hooks on every module, so for a few steps
    name      in the log and in peaks.json

    All sizes in bytes, of this process's allocator on one device (the current one at the first step); zeros without a
    card. Sets torch's peak counters back at each boundary. Raises nothing of its own.
    Source: max_memory_allocated and max_memory_reserved between boundaries."""

    def __init__(self, steps: int | None = None, *, modules: bool = False, name: str = "run") -> None:
        self.steps: list[dict[str, Any]] = []
        self.modules: list[dict[str, Any]] = []
        self.name = name
        self._most = steps
        self._wants_modules = modules
        self._meter = Meter()
        self._parts: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        self._depth = 0
        self._hooks: list[Any] = []
        self._is_on = False
        self._spy: Any = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """As the start of the block, for code that has no block."""
        torch = _torch.torch_module()
        if torch is None or self._is_on:
            return
        self._is_on = True
        self._thread = threading.get_ident()
        progress.start()
        progress.before_optimizer.append(self._before_optimizer)
        progress.after_step.append(self._after_step)
        module = torch.nn.modules.module
        self._hooks = [module.register_module_forward_pre_hook(self._enter_module),
                       module.register_module_forward_hook(self._leave_module, **_torch.always_call(module))]
        if self._wants_modules:
            from ._modules import ModuleSpy
            self._spy = ModuleSpy(lambda: self._take(progress.phase or "forward")[0])
            self._spy.start()
        self._meter.take()

    def stop(self) -> None:
        """As the end of the block: the table goes to the log. A step that has begun counts as one more."""
        if not self._is_on:
            return
        self._is_on = False
        self._take("other")
        if set(self._parts) <= {"other"} and self.steps:
            self._add_to_last_step()
        else:
            self._close_step(None)
        for hook in self._hooks:
            hook.remove()
        for callbacks, own in ((progress.before_optimizer, self._before_optimizer),
                               (progress.after_step, self._after_step)):
            _forget(callbacks, own)
        if self._spy is not None:
            from . import _install
            self.modules = self._spy.stop()
            _install.watcher.modules = self.modules
        tell(str(self))

    # --- results -----------------------------------------------------------------------------------------------

    @property
    def peak(self) -> dict[str, int]:
        """{allocated, reserved}: the largest over all steps, in bytes."""
        return {key: max((step[key] for step in self.steps), default=0) for key in ("allocated", "reserved")}

    def as_dict(self) -> dict[str, Any]:
        """What peaks.json holds (docs/formats/peaks.md)."""
        facts: dict[str, Any] = {"name": None, "total_bytes": None}
        if _torch.cuda_is_on():
            properties = sys.modules["torch"].cuda.get_device_properties(self._meter.device or 0)
            facts = {"name": properties.name, "total_bytes": int(properties.total_memory)}
        return {"schema": "oomscope.peaks/1", "name": self.name, "command": list(getattr(sys, "orig_argv", sys.argv)),
                "versions": _torch.versions(), "settings": _torch.settings(), "device": facts, **_torch.ranks(),
                "peak": self.peak, "steps": self.steps, "modules": self.modules}

    def save(self, path: str | Path) -> Path:
        """Writes peaks.json. Raises OSError where it cannot be written."""
        write_json(Path(path), self.as_dict())
        return Path(path)

    def baseline(self, name: str, path: str | Path, *arguments: str) -> int:
        """Compares with the baseline of that name through `oomscope baseline`, and saves it if there is none yet;
        `path` is where peaks.json goes. 0: no regression, or saved; 1: worse; 127: no program."""
        self.save(path)
        code, answer, errors = run_program("baseline", "compare", str(path), "--name", name, *arguments)
        if code == 1 and "no baseline" in errors:
            code, answer, errors = run_program("baseline", "save", str(path), "--name", name, *arguments)
        say((answer or errors).rstrip())
        return code

    def __str__(self) -> str:
        rows = [("step", "phase", "allocated", "reserved")]
        for step in self.steps:
            rows.append((str(step["step"]), "all", *_sizes(step)))
            rows += [("", name, *_sizes(part)) for name, part in step["phases"].items()]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = ["  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                           for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]
        for each in self.modules[:5]:
            lines.append(f"{each['name']} keeps {_torch.format_bytes(each['kept_bytes'])} of {each['largest']}")
        return f"{self.name}: peaks of {len(self.steps)} step(s)\n" + "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._notebook import table_html
        return table_html(self)

    # --- boundaries --------------------------------------------------------------------------------------------

    def _take(self, part: str) -> tuple[int, int]:
        peaks = self._meter.take()
        self._parts[part] = tuple(map(max, peaks, self._parts[part]))  # type: ignore[assignment]
        return peaks

    def _enter_module(self, *_: Any) -> None:
        if threading.get_ident() == self._thread and not _torch.in_backward():
            if self._depth == 0:
                self._take("other")
            self._depth += 1

    def _leave_module(self, *_: Any) -> None:
        if threading.get_ident() == self._thread and self._depth > 0 and not _torch.in_backward():
            self._depth -= 1
            if self._depth == 0:
                self._take(progress.phase or "forward")

    def _before_optimizer(self, optimizer: Any) -> None:
        self._depth = 0  # a forward that an error ended left its count behind
        self._take("backward")

    def _after_step(self, optimizer: Any, step: int) -> None:
        self._take("optimizer step")
        self._close_step(step)
        if self._most is not None and len(self.steps) >= self._most:
            self.stop()

    def _add_to_last_step(self) -> None:
        """What came behind the last step without a forward belongs to it."""
        last = self.steps[-1]
        other = last["phases"].setdefault("other", {"allocated": 0, "reserved": 0})
        for key, peak in zip(("allocated", "reserved"), self._parts.pop("other", (0, 0))):
            other[key] = max(other[key], peak)
            last[key] = max(last[key], peak)

    def _close_step(self, step: int | None) -> None:
        parts = {name: {"allocated": peak[0], "reserved": peak[1]} for name, peak in self._parts.items()}
        self._parts.clear()
        most = {key: max((part[key] for part in parts.values()), default=0) for key in ("allocated", "reserved")}
        self.steps.append({"step": step or progress.step, "mark": progress.phase, **most, "phases": parts})


def tell(text: str) -> None:
    """To the log "oomscope" where somebody listens at INFO, else to stderr."""
    if log.hasHandlers() and log.isEnabledFor(logging.INFO):
        log.info(text)
    else:
        say("oomscope: " + text)


def _forget(callbacks: list[Any], own: Any) -> None:
    if own in callbacks:
        callbacks.remove(own)


def _sizes(part: dict[str, Any]) -> tuple[str, str]:
    return _torch.format_bytes(part["allocated"]), _torch.format_bytes(part["reserved"])
