"""Notebooks: tables as HTML, and the cell magic %%oomscope after %load_ext oomscope."""
from __future__ import annotations

import html
from typing import Any

from ._torch import format_bytes


def rows_html(rows: list[tuple[str, int | None]]) -> str:
    """(name, bytes) as a table."""
    return _table(("", "bytes"), [(name, format_bytes(count)) for name, count in rows])


def table_html(profile: Any) -> str:
    """The peaks of a profile, a row a step and phase."""
    rows: list[tuple[str, ...]] = []
    for step in profile.steps:
        rows.append((f"step {step['step']}", "all", format_bytes(step["allocated"]), format_bytes(step["reserved"])))
        rows += [("", name, format_bytes(part["allocated"]), format_bytes(part["reserved"]))
                 for name, part in step["phases"].items()]
    return _table(("step", "phase", "allocated", "reserved"), rows)


def load_ipython_extension(shell: Any) -> None:
    """%load_ext oomscope. Then a cell that begins with %%oomscope is run under profile(), and its table shown; the
    cell's own error, if any, is shown as ever."""
    def oomscope(line: str, cell: str) -> Any:
        from IPython.display import display
        from ._profile import profile
        with profile(name=line.strip() or "cell") as peaks:
            shell.run_cell(cell)
        display(peaks)

    shell.register_magic_function(oomscope, "cell", "oomscope")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    def line(tag: str, cells: tuple[str, ...]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + line("th", head) + "".join(line("td", row) for row in rows) + "</table>"
