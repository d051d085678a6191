"""Lightning: Trainer(callbacks=[OomscopeCallback()])."""
from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from .. import mark
from . import Watch


class OomscopeCallback(Watch, Callback):  # type: ignore[misc]
    """Watch; epochs, validation, test and prediction are phases."""

    def on_fit_start(self, *_: Any) -> None:
        self._begin()

    def on_fit_end(self, *_: Any) -> None:
        self._end()

    on_exception = on_fit_end

    def on_train_epoch_start(self, trainer: Any, *_: Any) -> None:
        self._begin_epoch(trainer.current_epoch)

    def on_validation_start(self, *_: Any) -> None:
        mark("validation")

    def on_test_start(self, *_: Any) -> None:
        mark("test")

    def on_predict_start(self, *_: Any) -> None:
        mark("prediction")

    def on_validation_end(self, *_: Any) -> None:
        mark(self._epoch)

    on_test_end = on_predict_end = on_validation_end
