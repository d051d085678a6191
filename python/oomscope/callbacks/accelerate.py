"""Accelerate: Accelerator(log_with=[OomscopeTracker()]); accelerator.init_trackers("run"); accelerator.end_training()."""
from __future__ import annotations

from typing import Any

from accelerate.tracking import GeneralTracker

from .. import install, profile


class OomscopeTracker(GeneralTracker):  # type: ignore[misc]
    """Installs the watcher; with steps=N profiles the first N optimizer steps from init_trackers on, and `profile` is
    what it measured. Values that are logged pass by. folder: as of oomscope.install. On every rank, not the first
    alone: each has its own card."""

    name = "oomscope"
    requires_logging_directory = False
    main_process_only = False

    def __init__(self, folder: str | None = None, steps: int | None = None, **_: Any) -> None:
        super().__init__()
        install(folder)
        self.profile = profile(steps=steps) if steps is not None else None
        if self.profile is not None:
            self.profile.start()

    @property
    def tracker(self) -> Any:
        """What Accelerate hands out as the tracker itself."""
        return self.profile

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Nothing to store: settings stand in peaks.json."""

    def log(self, values: dict[str, Any], step: int | None = None, **_: Any) -> None:
        """Nothing to keep: losses are no memory."""

    def finish(self) -> None:
        if self.profile is not None:
            self.profile.stop()
