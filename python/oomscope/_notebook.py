"""What prints as a table, and in a notebook as a rich one; and the cell magic %%oomscope after %load_ext oomscope."""
from __future__ import annotations

import html
import importlib
import itertools
from typing import Any


class Table:
    """Rows of texts, the first of them the head. Cells that are sizes stand to the right."""

    title = ""

    def _rows(self) -> list[tuple[str, ...]]:
        raise NotImplementedError

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in itertools.zip_longest(*rows, fillvalue="")]
        is_right = [any(cell.endswith("B") for cell in column) for column in itertools.zip_longest(*rows, fillvalue="")]
        lines = ["  ".join(cell.rjust(width) if right else cell.ljust(width)
                           for cell, width, right in zip(row, widths, is_right)).rstrip() for row in rows]
        return "\n".join([self.title, *lines]).strip("\n")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        lines = []
        for number, row in enumerate(self._rows()):
            tag = "td" if number else "th"
            lines.append("<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>")
        return html.escape(self.title) + f"<table>{''.join(lines)}</table>"


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
