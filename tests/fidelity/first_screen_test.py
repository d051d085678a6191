#!/usr/bin/env python3
"""`why` on every recording: at 80 columns its first fifteen lines answer, down to the next step, and no line of prose or
table is wider. Small recordings also with the replays under other settings. Without the recordings it is skipped, loudly.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
LAST_LINE = 15
COLUMNS = 80
SMALL_BYTES = 200_000  # so compressed: the sweep takes moments
ENVIRONMENT = {**os.environ, "COLUMNS": str(COLUMNS), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}


def width(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def is_pasted(line):
    """Lines to paste are as long as they are: the next command, settings, code."""
    return line.startswith("    ") or "PYTORCH_CUDA_ALLOC_CONF=" in line or "oomscope " in line


def faults(program, path, options):
    run = subprocess.run([program, "why", str(path), *options], capture_output=True, timeout=600, env=ENVIRONMENT)
    if run.returncode != 0:
        return [run.stderr.decode(errors="replace")]
    lines = run.stdout.decode().splitlines()
    last = next((i for i, line in enumerate(lines, 1) if line.startswith("  next: ")), None)
    found = [] if last and last <= LAST_LINE else [f"the next step stands in line {last}"]
    return found + [f"{width(line)} columns: {line}" for line in lines if width(line) > COLUMNS and not is_pasted(line)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/oomscope"))
    options = parser.parse_args()
    data = pathlib.Path(os.environ.get("OOMSCOPE_DATA") or ROOT.parent / "shared/data")
    files = sorted(path for folder in ("h200", "public-snapshots") for path in (data / folder).rglob("*.pickle.zst")
                   if "ranks" not in path.parts)
    if not files:
        print(f"SKIPPED: no recordings in {data}; set OOMSCOPE_DATA to the folder that holds them")
        return SKIPPED
    wrong = 0
    for path in files:
        small = path.stat().st_size < SMALL_BYTES
        for options_of_run in (["--no-sweep"], []) if small else (["--no-sweep"],):
            for fault in faults(options.program, path, options_of_run):
                wrong += 1
                print(f"{path.relative_to(data)} {' '.join(options_of_run)}: {fault}")
    print(f"{len(files)} recordings, {wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
