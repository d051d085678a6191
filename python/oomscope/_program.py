"""The oomscope program as a subprocess, and what this package itself says and writes."""
from __future__ import annotations

import html
import itertools
import json
import logging
import numbers
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

log = logging.getLogger("oomscope")


def find_program() -> str | None:
    """OOMSCOPE_PROGRAM, else the program that this package carries."""
    carried = Path(__file__).parent / "bin" / "oomscope"
    return os.environ.get("OOMSCOPE_PROGRAM") or (str(carried) if carried.is_file() else None)


def run_program(*arguments: str, seconds: float = 60.0) -> tuple[int, str]:
    """Exit code and answer of the program, or its errors where it gave none. Exit code 127: it cannot be run."""
    program = find_program()
    if program is None:
        return 127, "oomscope: the program is not installed"
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                              errors="replace", timeout=seconds, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, f"oomscope: {error}"
    return done.returncode, done.stdout.strip() or done.stderr.strip()


def main() -> None:
    """`python -m oomscope ...` and the command `oomscope`: the program, in place of this process."""
    program = find_program()
    if program is None:
        sys.exit("oomscope: the program is not installed: this copy of the package carries none\n"
                 "  pip install .   in a clone builds it; or set OOMSCOPE_PROGRAM to a built one")
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"oomscope: {program}: {error.strerror}\n  OOMSCOPE_PROGRAM names the program")


def say(text: str) -> None:
    """What this package tells people goes to stderr, and never fails."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass


def tell(text: str) -> None:
    """To the log "oomscope" where somebody listens at INFO, else to stderr."""
    if log.hasHandlers() and log.isEnabledFor(logging.INFO):
        log.info(text)
    else:
        say("oomscope: " + text)


def size(count: int | None) -> str:
    """Bytes as the program prints them: 1.50 GiB."""
    if count is None:
        return "unknown"
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if abs(count) >= 1 << power:
            return f"{count / (1 << power):,.2f} {unit}"
    return f"{count} B"


def whole(name: str, value: Any, least: int = 1) -> int:
    """The argument, if it is a whole number from `least` on; else ValueError."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r}: a whole number, at least {least}")
    return int(value)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Whole or not at all: whoever reads it never sees half a file."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(json.dumps(document, indent=1, default=str), encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)  # where the disk was full


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
