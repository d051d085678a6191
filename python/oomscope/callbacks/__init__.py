"""Callbacks for trainers: oomscope.callbacks.lightning, .transformers and .accelerate. Each is thin: steps come from
the optimizer's hook as everywhere; a callback names the phases that only the trainer knows."""
from __future__ import annotations

from .. import install, mark, profile


class Watch:
    """What the three have in common: the watcher is installed, and with steps=N the first N optimizer steps of a
    training are profiled; `profile` is then what was measured. folder: as of oomscope.install."""

    def __init__(self, folder: str | None = None, steps: int | None = None) -> None:
        super().__init__()
        install(folder)
        self.profile = profile(steps=steps) if steps is not None else None
        self._epoch: str | None = None

    def _begin(self) -> None:
        if self.profile is not None:
            self.profile.start()

    def _begin_epoch(self, number: int) -> None:
        self._epoch = f"epoch {number}"
        mark(self._epoch)

    def _end(self) -> None:
        self._epoch = None
        mark(None)
        if self.profile is not None:
            self.profile.stop()
