"""Lightning: Trainer(callbacks=[OomscopeCallback()])."""
from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from .. import install, mark, profile


class OomscopeCallback(Callback):  # type: ignore[misc]
    """Installs the watcher, marks epochs, validation, test and prediction as phases, and with steps=N profiles the
    first N optimizer steps; `profile` is then what it measured. folder: as of oomscope.install."""

    def __init__(self, folder: str | None = None, steps: int | None = None) -> None:
        install(folder)
        self.profile = profile(steps=steps) if steps is not None else None
        self._epoch: str | None = None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        if self.profile is not None:
            self.profile.start()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.on_fit_end(trainer, pl_module)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._epoch = None
        mark(None)
        if self.profile is not None:
            self.profile.stop()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._epoch = f"epoch {trainer.current_epoch}"
        mark(self._epoch)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        mark("validation")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        mark(self._epoch)

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        mark("test")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        mark(None)

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        mark("prediction")

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        mark(None)
