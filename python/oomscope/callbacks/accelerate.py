"""Accelerate: Accelerator(log_with=[OomscopeTracker()]); accelerator.init_trackers("run"); accelerator.end_training()."""
from __future__ import annotations

from typing import Any

from accelerate.tracking import GeneralTracker

from . import Watch


class OomscopeTracker(Watch, GeneralTracker):  # type: ignore[misc]
    """Watch, which profiles from its making on. Values that are logged pass by. On every rank, not the first alone:
    each has its own card."""

    name = "oomscope"
    requires_logging_directory = False
    main_process_only = False

    def __init__(self, folder: str | None = None, steps: int | None = None, **_: Any) -> None:
        super().__init__(folder, steps)
        self._begin()

    @property
    def tracker(self) -> Any:
        """What Accelerate hands out as the tracker itself."""
        return self.profile

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Nothing to store: settings stand in peaks.json."""

    def log(self, values: dict[str, Any], step: int | None = None, **_: Any) -> None:
        """Nothing to keep: losses are no memory."""

    def finish(self) -> None:
        self._end()
