"""The cell magic %%oomscope after %load_ext oomscope."""
from __future__ import annotations

import importlib
from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """%load_ext oomscope. Then a cell that begins with %%oomscope is run under profile(), and its table shown; the
    cell's own error, if any, is raised, and so shown, behind the table."""
    def oomscope(line: str, cell: str) -> Any:
        from ._profile import profile
        peaks = profile(name=line.strip() or "cell")
        peaks.speaks = False
        shell._showtraceback = lambda *_: None  # shown when it is raised below, and only then
        try:
            with peaks:
                result = shell.run_cell(cell)
        finally:
            del shell._showtraceback
        importlib.import_module("IPython.display").display(peaks)
        result.raise_error()

    shell.register_magic_function(oomscope, "cell", "oomscope")
