"""The cell magic %%oomscope after %load_ext oomscope."""
from __future__ import annotations

import importlib
from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """%load_ext oomscope. Then a cell that begins with %%oomscope is run under profile(), and its table shown; the
    cell's own error, if any, is shown as ever."""
    def oomscope(line: str, cell: str) -> Any:
        from ._profile import profile
        display: Any = importlib.import_module("IPython.display").display
        peaks = profile(name=line.strip() or "cell")
        peaks.speaks = False
        with peaks:
            shell.run_cell(cell)
        display(peaks)

    shell.register_magic_function(oomscope, "cell", "oomscope")
