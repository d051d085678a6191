#!/usr/bin/env python3
"""Whole processes in pairs: the program against Python's pickle.load on the same file, in turn, as ratios.

    bench/whole_process.py build/release/bin/oomscope SNAPSHOT.pickle [--runs 7]

SNAPSHOT is unpacked (a .zst is unpacked into a scratch folder first). Each pair runs right after each other, so that a
machine whose speed drifts does not decide. Printed: seconds and peak resident memory, median of the runs, and the
median, lowest and highest ratio of the pairs.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time


def measured(command):
    before = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} failed: {status}")
    return time.perf_counter() - before, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("snapshot")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = arguments.snapshot
        if path.endswith(".zst"):
            path = os.path.join(scratch, "snapshot.pickle")
            subprocess.run(["zstd", "-q", "-d", arguments.snapshot, "-o", path], check=True)
        load = [sys.executable, "-c", f"import pickle; pickle.load(open({path!r}, 'rb'))"]
        for name, ours in (("show --json", [arguments.program, "show", "--json", path]),
                           ("why", [arguments.program, "why", path])):
            measured(ours)
            measured(load)
            pairs = [(measured(ours), measured(load)) for _ in range(arguments.runs)]
            ratios = sorted(theirs[0] / mine[0] for mine, theirs in pairs)
            print(f"{name}: {statistics.median(mine[0] for mine, _ in pairs):.3f} s, "
                  f"{statistics.median(mine[1] for mine, _ in pairs):.0f} MiB; pickle.load: "
                  f"{statistics.median(theirs[0] for _, theirs in pairs):.3f} s, "
                  f"{statistics.median(theirs[1] for _, theirs in pairs):.0f} MiB; "
                  f"pickle.load / {name}: {statistics.median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f}); "
                  f"file {os.path.getsize(path) / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
