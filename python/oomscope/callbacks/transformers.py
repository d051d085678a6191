"""Hugging Face Trainer: Trainer(..., callbacks=[OomscopeCallback()])."""
from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from .. import install, mark, profile


class OomscopeCallback(TrainerCallback):  # type: ignore[misc]
    """Installs the watcher, marks epochs and evaluation as phases, and with steps=N profiles the first N optimizer
    steps; `profile` is then what it measured. folder: as of oomscope.install.

    The Trainer tells of an evaluation when its first prediction step is over: until then it counts as the epoch."""

    def __init__(self, folder: str | None = None, steps: int | None = None) -> None:
        install(folder)
        self.profile = profile(steps=steps) if steps is not None else None
        self._epoch: str | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.profile is not None:
            self.profile.start()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._epoch = None
        mark(None)
        if self.profile is not None:
            self.profile.stop()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._epoch = f"epoch {int(state.epoch or 0)}"
        mark(self._epoch)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        mark("evaluation")

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        mark(self._epoch)

    on_predict = on_evaluate
