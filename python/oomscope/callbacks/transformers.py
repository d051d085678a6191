"""Hugging Face Trainer: Trainer(..., callbacks=[OomscopeCallback()])."""
from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from .. import mark
from . import Watch


class OomscopeCallback(Watch, TrainerCallback):  # type: ignore[misc]
    """Watch; epochs and evaluation are phases. The Trainer tells of an evaluation when its first prediction step is
    over: until then it counts as the epoch."""

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._begin()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self._end()

    def on_epoch_begin(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        self._begin_epoch(int(state.epoch or 0))

    def on_prediction_step(self, *_: Any, **__: Any) -> None:
        mark("evaluation")

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        mark(self._epoch)

    on_predict = on_evaluate
