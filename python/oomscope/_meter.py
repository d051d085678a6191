"""The allocator's peaks, for all who measure at once; measure(): the peak of one section.

torch keeps one peak a device. Whoever reads it here sets it back and hands what it was to every gauge that is open, so
that each has the largest since its own last look, whatever the others do meanwhile.
"""
from __future__ import annotations

from typing import Any, ClassVar

from . import _torch
from ._program import Table, tell


def live() -> tuple[int, int]:
    """(allocated, reserved) at this moment, in bytes. Zeros without a card."""
    cuda = _torch.cuda()
    return (int(cuda.memory_allocated()), int(cuda.memory_reserved())) if cuda is not None else (0, 0)


def read() -> tuple[int, int]:
    """(allocated, reserved): the current device's peaks in bytes since the last call. Zeros without a card."""
    cuda = _torch.cuda()
    if cuda is None:
        return 0, 0
    peaks = int(cuda.max_memory_allocated()), int(cuda.max_memory_reserved())
    cuda.reset_peak_memory_stats()
    return peaks


class Gauge:
    """One reader's peaks, within `with`."""

    _open: ClassVar[list[Gauge]] = []
    _peaks = 0, 0

    def __enter__(self) -> Gauge:
        self.take()
        Gauge._open = [*Gauge._open, self]
        return self

    def __exit__(self, *_: object) -> None:
        Gauge._open = [each for each in Gauge._open if each is not self]

    def take(self) -> tuple[int, int]:
        """(allocated, reserved): the peaks in bytes since the beginning or the last call."""
        allocated, reserved = read()
        for gauge in Gauge._open:
            gauge._peaks = max(gauge._peaks[0], allocated), max(gauge._peaks[1], reserved)
        peaks, self._peaks = self._peaks, (0, 0)
        return peaks


class measure(Gauge, Table):
    """The peak of one section, for models that take turns: with measure("generator") as m: ... then m.allocated and
    m.reserved, the most bytes of this process's allocator on the current device while it ran, and m.grew, the bytes
    allocated more at its end than at its start. Says so in the log "oomscope". Sets torch's peak counters back; inside
    a profile or another measure each has its own peaks.

    Source: torch.cuda.max_memory_allocated and max_memory_reserved. Zeros without a card; raises nothing."""

    def __init__(self, name: str) -> None:
        self.title = name
        self.allocated = self.reserved = self.grew = 0

    def __enter__(self) -> measure:
        super().__enter__()
        self._before = live()[0]
        return self

    def __exit__(self, *_: object) -> None:
        self.allocated, self.reserved = self.take()
        super().__exit__()
        self.grew = live()[0] - self._before
        tell(f"{self.title}: " + ", ".join(f"{name} {count}" for name, count in self._texts()[1:]))

    def _rows(self) -> list[tuple[Any, ...]]:
        return [("", "bytes"), ("peak allocated", self.allocated), ("peak reserved", self.reserved), ("kept", self.grew)]
