"""oomscope for training scripts: where the GPU's memory went, from inside the job.

    import oomscope
    oomscope.install()                       # on out of memory: a snapshot, its context and the verdict
    with oomscope.profile(steps=3): ...      # peaks by step and phase

Importing this costs a few milliseconds and does not import torch. Nothing here raises into the code that it watches,
and nothing is written outside the folder that was asked for. All sizes are bytes.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "install": "_install", "mark": "_marks", "profile": "_profile", "measure": "_profile",
    "add_arguments": "_start", "start": "_start", "free": "_free", "find_batch_size": "_batch",
    "static_input": "_batch", "host_profile": "_host", "load_ipython_extension": "_notebook",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from ._batch import find_batch_size as find_batch_size, static_input as static_input
    from ._free import free as free
    from ._host import host_profile as host_profile
    from ._install import install as install
    from ._marks import mark as mark
    from ._notebook import load_ipython_extension as load_ipython_extension
    from ._profile import measure as measure, profile as profile
    from ._start import add_arguments as add_arguments, start as start


def __getattr__(name: str) -> Any:
    """Loads what is asked for, when it is asked for: the import stays cheap."""
    if name not in _HOMES:
        raise AttributeError(f"module 'oomscope' has no attribute {name!r}")
    value = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
