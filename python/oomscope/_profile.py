"""profile(): peaks of each step and phase; and the same as options of a script.

At each boundary the peak is read, so the largest of the parts is the step's. Boundaries are the outermost module's
forward, the optimizer's step, the closure that it is given, and the user's marks: what lies between a forward that
builds a graph and the next boundary is the backward pass, the loss included.
"""
from __future__ import annotations

import argparse
import atexit
import contextlib
import functools
import os
import shlex
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from . import _torch
from ._install import install, watcher
from ._marks import progress
from ._meter import Gauge
from ._modules import Modules
from ._program import Table, run_program, say, size, tell, whole, write_json

KINDS = ("allocated", "reserved")
Parser = TypeVar("Parser", bound=argparse.ArgumentParser)


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
        self.steps: list[dict[str, Any]] = []
        self.modules: list[dict[str, Any]] = []
        self.name = name
        self.speaks = True  # at the end, in the log
        self._most = None if steps is None else whole("steps", steps)
        self._modules = Modules() if modules else None
        self._gauge = Gauge()
        self._parts: dict[tuple[str | None, str], dict[str, int]] = {}  # of this step, by the user's phase and ours
        self._beside: set[str | None] = {None}  # the user's phases that steps ended in: epochs
        self._depth = 0  # of modules whose forward runs
        self._between = "other"  # what runs while none does
        self._undo = contextlib.ExitStack()
        self._is_on = False

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """As the start of the block, for code that has no block."""
        torch = _torch.torch_module()
        if torch is None or self._is_on:
            return
        self._is_on = True
        self._thread = threading.get_ident()
        progress.start()
        progress.leads_anew()
        progress.boundaries.append(self._take)
        progress.before_optimizer.append(self._before_optimizer)
        progress.after_step.append(self._after_step)
        self._undo.callback(progress.forget, self._take, self._before_optimizer, self._after_step)
        hooks = torch.nn.modules.module
        self._undo.callback(hooks.register_module_forward_pre_hook(self._enter).remove)
        self._undo.callback(hooks.register_module_forward_hook(self._leave, always_call=True).remove)
        if self._modules is not None:
            progress.modules = self._modules.rows
        self._gauge.open()
        self._undo.callback(self._gauge.close)

    def stop(self) -> None:
        """As the end of the block: the table goes to the log. A step whose forward has begun counts as one more."""
        if not self._is_on:
            return
        self._is_on = False
        has_begun = not self.steps or self._depth > 0 or self._between != "other"
        self._take()
        if has_begun:
            self._close_step(progress.step, progress.phase, {})
        else:  # what came behind the last step belongs to it
            last = self.steps.pop()
            self._close_step(last["step"], last["mark"], last["phases"])
        self._undo.close()
        if self._modules is not None:
            self._modules.end_pass()
            self.modules = self._modules.rows()
        if self.speaks:
            tell(str(self))

    @property
    def title(self) -> str:  # type: ignore[override]
        kept = [f"\n{each['name']} keeps {size(each['kept_bytes'])} of {tuple(each['largest'][0])} {each['largest'][1]}"
                for each in self.modules[:5] if each["kept_bytes"]]
        return f"{self.name}: peaks of {len(self.steps)} step(s)" + "".join(kept)

    @property
    def peak(self) -> dict[str, int]:
        """{allocated, reserved}: the largest over all steps, in bytes."""
        return {kind: max((step[kind] for step in self.steps), default=0) for kind in KINDS}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes peaks.json (docs/formats/peaks.md). Raises OSError where it cannot be written."""
        cuda = _torch.cuda()
        card = cuda.get_device_properties(cuda.current_device()) if cuda is not None else None
        device = {"name": getattr(card, "name", None), "total_bytes": getattr(card, "total_memory", None)}
        write_json(Path(path), {"schema": "oomscope.peaks/1", "name": self.name, **_torch.versions_and_settings(),
                                "device": device, **_torch.ranks(), "peak": self.peak, "steps": self.steps,
                                "modules": self.modules})
        return Path(path)

    def baseline(self, name: str, path: str | os.PathLike[str], *arguments: str) -> int:
        """Compares with the baseline of that name through `oomscope baseline compare`, and saves it if there is none
        yet. `path` is where peaks.json goes; the store is baselines.sqlite beside it, unless OOMSCOPE_STORE or
        "--store" in `arguments` names another. 0: no regression, or saved; 1: worse; 127: no program. Raises OSError
        where peaks.json cannot be written."""
        words = [str(self.save(path)), "--name", name, *arguments]
        if "--store" not in arguments:
            words += ["--store", os.environ.get("OOMSCOPE_STORE") or str(Path(path).with_name("baselines.sqlite"))]
        tried = run_program("baseline", "compare", *words, "--json")[1]
        has_none = '"store-missing"' in tried or '"baseline-unknown"' in tried  # codes are the same in each language
        code, answer = run_program("baseline", "save" if has_none else "compare", *words)
        say(f"{answer}\n  all of them: oomscope baseline list --store {shlex.quote(words[words.index('--store') + 1])}")
        return code

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("step", "phase", *KINDS)]
        for step in self.steps:
            rows.append((str(step["step"]), "all", *(size(step[kind]) for kind in KINDS)))
            rows += [("", name, *(size(part[kind]) for kind in KINDS)) for name, part in step["phases"].items()]
        return rows

    # --- boundaries --------------------------------------------------------------------------------------------

    def _take(self) -> None:
        """What was reached since the last boundary is that of what ran until now."""
        peaks = dict(zip(KINDS, self._gauge.take()))
        key = progress.phase, "forward" if self._depth else self._between
        before = self._parts.get(key, peaks)
        self._parts[key] = {kind: max(peaks[kind], before[kind]) for kind in KINDS}
        if self._modules is not None:
            self._modules.reached(peaks["allocated"])

    def _enter(self, module: Any, inputs: Any) -> None:
        if self._sees():
            if self._modules is not None or self._depth == 0:
                self._take()
            self._depth += 1
            if self._modules is not None:
                self._modules.enter(module, inputs)

    def _leave(self, module: Any, inputs: Any, output: Any) -> None:
        if self._sees() and self._depth > 0:
            if self._modules is not None or self._depth == 1:
                self._take()
            self._depth -= 1
            if self._modules is not None:
                self._modules.leave(output)
            if self._depth == 0 and sys.modules["torch"].is_grad_enabled():
                self._between = "backward"

    def _sees(self) -> bool:
        return not _torch.is_traced() and threading.get_ident() == self._thread and not _torch.in_backward()

    def _before_optimizer(self, optimizer: Any) -> None:
        self._depth = 0  # whatever an interrupted forward left
        if self._modules is not None:
            self._modules.end_pass()
        self._between = "backward"
        self._take()
        self._between = "optimizer step"

    def _after_step(self, optimizer: Any, step: int) -> None:
        self._between = "optimizer step"
        self._take()
        self._between = "other"
        self._beside.add(progress.phase)
        self._close_step(step, progress.phase, {})
        if self._most is not None and len(self.steps) >= self._most:
            self.stop()

    def _close_step(self, number: int, phase: str | None, phases: dict[str, dict[str, int]]) -> None:
        """A phase that steps end in (an epoch) stands beside forward and backward; another (validation) is its own."""
        for (named, ours), part in self._parts.items():
            before = phases.setdefault(ours if named in self._beside else str(named), part)
            before.update({kind: max(part[kind], before[kind]) for kind in KINDS})
        most = {kind: max((part[kind] for part in phases.values()), default=0) for kind in KINDS}
        self.steps.append({"step": number, "mark": phase, **most, "phases": phases})
        self._parts = {}


def add_arguments(parser: Parser) -> Parser:
    """Adds the three options to a parser and returns it:

    --profile-memory [STEPS]  peaks of each step and phase, of so many steps (default 3)
    --debug-memory            after the first step what is on the card, and what the second will add
    --memory-baseline NAME    compare the peaks with the baseline of that name; the first time, save them as it

    Raises argparse.ArgumentError if the parser has one of them already."""
    group = parser.add_argument_group("memory (oomscope)")
    group.add_argument("--profile-memory", "--profile_memory", type=int, nargs="?", const=3, metavar="STEPS",
                       help="peaks of each step and phase, of so many steps (default 3)")
    group.add_argument("--debug-memory", "--debug_memory", action="store_true",
                       help="after the first step what is on the card, and what the second will add")
    group.add_argument("--memory-baseline", "--memory_baseline", metavar="NAME",
                       help="compare the peaks with the baseline of that name; the first time, save them as it")
    return parser


def start(args: Any, folder: str | os.PathLike[str] | None = None) -> None:
    """install(folder), and what the parsed arguments ask for. The profile's table comes when its steps are over, or at
    the end of the process; peaks.json and the comparison with a baseline at the end too, with the baselines in that folder
    unless OOMSCOPE_STORE names a store. Raises nothing of its own."""
    install(folder)
    if getattr(args, "debug_memory", False):
        from ._debug import FirstStep
        FirstStep().start()
    steps, baseline = getattr(args, "profile_memory", None), getattr(args, "memory_baseline", None)
    if steps is None and baseline is None:
        return
    peaks = profile(steps=steps)
    peaks.start()
    atexit.register(_finish, peaks, baseline, Path(str(watcher.folder)), _exit_codes() if baseline is not None else [])


def _exit_codes() -> list[Any]:
    """Filled by each sys.exit() from now on: a run that ends so leaves no other trace of its failure."""
    codes: list[Any] = []
    leave = sys.exit

    @functools.wraps(leave)
    def leaves(code: Any = None) -> NoReturn:
        codes.append(code)
        leave(code)

    sys.exit = leaves
    return codes


def _finish(peaks: profile, baseline: str | None, folder: Path, codes: list[Any]) -> None:
    peaks.stop()
    rank = _torch.ranks()["rank"]
    suffix = f"-rank{rank}" if rank else ""  # each rank has a baseline of its own
    path = folder / f"peaks{suffix}.json"
    has_failed = hasattr(sys, "last_value") or bool(codes and codes[-1])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if baseline is not None and not has_failed:
            peaks.baseline(baseline + suffix, path)
            return
        say(f"oomscope: peaks: {peaks.save(path)}")
    except OSError as error:
        say(f"oomscope: {path}: {error.strerror}: the peaks are not kept")
    if baseline is not None:  # what was reached until the error is no measure of the run
        say(f"oomscope: the run ended with an error: it is not compared with baseline {baseline}")
