#!/usr/bin/env python3
"""The labelled failure reports against the thresholds of tools/score_oom_corpus.py. They are other people's data, so they
are read where they lie; without them the test is skipped, loudly."""
import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    options = parser.parse_args()
    data = pathlib.Path(os.environ.get("OOMSCOPE_DATA") or ROOT.parent / "shared/data")
    corpus = data / "oom-corpus/dev.jsonl"
    if not corpus.exists():
        print(f"skipped: no file {corpus} (set OOMSCOPE_DATA)")
        return SKIPPED
    score = ROOT / "tools/score_oom_corpus.py"
    return subprocess.run([sys.executable, score, "--program", options.program, "--check", "--show", corpus]).returncode


if __name__ == "__main__":
    sys.exit(main())
