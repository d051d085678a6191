"""The oomscope program as a subprocess, and what this package itself says and writes."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


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


def size(count: int | None) -> str:
    """Bytes as the program prints them: 1.50 GiB."""
    if count is None:
        return "unknown"
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if abs(count) >= 1 << power:
            return f"{count / (1 << power):,.2f} {unit}"
    return f"{count} B"


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Whole or not at all: whoever reads it never sees half a file."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(json.dumps(document, indent=1, default=str), encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)  # where the disk was full
