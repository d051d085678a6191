"""oomscope for training scripts: where the GPU's memory went, from inside the job.

    import oomscope
    oomscope.install()                       # on out of memory: a snapshot, its context and the verdict
    with oomscope.profile(steps=3): ...      # peaks by step and phase

Importing this costs some milliseconds and does not import torch. Nothing here raises into the code that it watches,
and nothing is written outside the folder that was asked for. All sizes are bytes.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._batch import find_batch_size as find_batch_size, static_input as static_input
    from ._free import free as free
    from ._host import host_profile as host_profile
    from ._install import install as install
    from ._marks import mark as mark
    from ._meter import measure as measure
    from ._notebook import load_ipython_extension as load_ipython_extension
    from ._options import add_arguments as add_arguments, start as start
    from ._profile import profile as profile

__version__ = "0.1.0"
_HOMES = {"add_arguments": "_options", "find_batch_size": "_batch", "free": "_free", "host_profile": "_host",
          "install": "_install", "load_ipython_extension": "_notebook", "mark": "_marks", "measure": "_meter",
          "profile": "_profile", "start": "_options", "static_input": "_batch"}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Loads what is asked for, when it is asked for: the import stays cheap."""
    if name not in _HOMES:
        raise AttributeError(f"module 'oomscope' has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
