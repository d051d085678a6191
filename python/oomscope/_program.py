"""The oomscope program as a subprocess: found, run with a time limit, its answer as text."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def find_program() -> str | None:
    """The path of the program: OOMSCOPE_PROGRAM, else the one in this package, else one on PATH that is not our
    own entry point (which is a Python script, and would come back here)."""
    named = os.environ.get("OOMSCOPE_PROGRAM")
    if named:
        return named
    carried = Path(__file__).parent / "bin" / "oomscope"
    if carried.is_file():
        return str(carried)
    found = shutil.which("oomscope")
    if found and Path(found).read_bytes()[:4] == b"\x7fELF":
        return found
    return None


def run_program(*arguments: str, seconds: float = 60.0) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the program. Exit code 127: there is none; 124: it took longer than `seconds`,
    and what it had said is returned."""
    program = find_program()
    if program is None:
        return 127, "", "oomscope: the program is not installed"
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONPATH")}
    try:
        done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=seconds, env=environment)
    except subprocess.TimeoutExpired as late:
        return 124, _text(late.stdout), _text(late.stderr)
    except OSError as error:
        return 127, "", f"oomscope: {program}: {error}"
    return done.returncode, done.stdout, done.stderr


def say(text: str) -> None:
    """What this package tells people goes to stderr, and never fails."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass


def _text(output: bytes | str | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""
