"""The oomscope program as a subprocess, and what this package itself says and writes."""
from __future__ import annotations

import contextlib
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


def find_program() -> str:
    """OOMSCOPE_PROGRAM, else the program that this package carries."""
    return os.environ.get("OOMSCOPE_PROGRAM") or str(Path(__file__).parent / "bin" / "oomscope")


def run_program(*arguments: str, stdin: bytes = b"", seconds: float = 60.0) -> tuple[int, str]:
    """Exit code and answer of the program, or its errors where it gave none. Exit code 127: it cannot be run."""
    try:
        done = subprocess.run([find_program(), *arguments], input=stdin, capture_output=True, timeout=seconds)
    except (OSError, subprocess.SubprocessError) as error:
        return 127, f"oomscope: {error}"
    return done.returncode, (done.stdout.strip() or done.stderr.strip()).decode("utf-8", "replace")


def main() -> None:
    """`python -m oomscope ...` and the command `oomscope`: the program, in place of this process."""
    program = find_program()
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"oomscope: {program}: {error.strerror}\n"
                 "  pip install .   in a clone builds the program; OOMSCOPE_PROGRAM names a built one")


def say(text: str) -> None:
    """What this package tells people goes to stderr, and never fails."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def tell(text: str) -> None:
    """To the log "oomscope" where somebody listens at INFO, else to stderr."""
    if log.hasHandlers() and log.isEnabledFor(logging.INFO):
        log.info(text)
    else:
        say("oomscope: " + text)


def size(count: int) -> str:
    """Bytes as the program prints them: 1.50 GiB."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if abs(count) >= 1 << power:
            return f"{count / (1 << power):,.2f} {unit}"
    return f"{count} B"


def whole(name: str, value: Any, least: int = 1) -> int:
    """The argument, if it is a whole number from `least` on; else ValueError."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r}: a whole number, at least {least}")
    return int(value)


def write(path: Path, content: bytes | dict[str, Any]) -> None:
    """Whole or not at all: whoever reads it never sees half a file. A dictionary becomes JSON."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content if isinstance(content, bytes) else json.dumps(content, indent=1, default=str).encode())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)  # where the disk was full


class Table:
    """A title and rows, the first row the head. Whole numbers are bytes, and stand to the right."""

    title = ""

    def _rows(self) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def _texts(self) -> list[list[str]]:
        return [[size(cell) if isinstance(cell, int) else cell for cell in row] for row in self._rows()]

    def __str__(self) -> str:
        columns = []
        for column in itertools.zip_longest(*self._texts(), fillvalue=""):
            width, is_size = max(map(len, column)), column[-1].endswith("B")
            columns.append([cell.rjust(width) if is_size else cell.ljust(width) for cell in column])
        return "\n".join([self.title, *("  ".join(cells).rstrip() for cells in zip(*columns))]).strip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._texts()]
        return f"{html.escape(self.title)}<table><tr>{'</tr><tr>'.join(rows)}</tr></table>"
