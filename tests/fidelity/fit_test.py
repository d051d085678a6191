#!/usr/bin/env python3
"""`oomscope fit` against what was measured on a card: the thresholds of tools/score_fit.py. Without the recordings the
test is skipped, loudly."""
import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    options = parser.parse_args()
    return subprocess.run([sys.executable, ROOT / "tools/score_fit.py", "--program", options.program]).returncode


if __name__ == "__main__":
    sys.exit(main())
