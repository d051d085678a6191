#!/usr/bin/env python3
"""Whole processes: the program against Python's pickle.load on the same file, as ratios.

    bench/whole_process.py build/release/bin/oomscope SNAPSHOT.pickle [--runs 7]

SNAPSHOT is unpacked (a .zst is unpacked into a scratch folder first). Twice: each command behind itself, the ratio of
the medians; then in turn, the ratio pair by pair, so that a machine whose speed drifts does not decide. In turn is
harder for the shorter one on a virtual machine whose host takes back what is not used for two seconds: it finds its
memory gone every time. Printed too: median seconds and peak resident memory.
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


def behind_itself(command, runs):
    for _ in range(3):
        measured(command)
    return [measured(command)[0] for _ in range(runs)]


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
            behind = [behind_itself(command, arguments.runs) for command in (ours, load)]
            pairs = [(measured(ours), measured(load)) for _ in range(arguments.runs)]
            ratios = sorted(theirs[0] / mine[0] for mine, theirs in pairs)
            mine, theirs = (statistics.median(seconds) for seconds in behind)
            print(f"{name}: {mine:.3f} s, {statistics.median(mine[1] for mine, _ in pairs):.0f} MiB; "
                  f"pickle.load: {theirs:.3f} s, {statistics.median(theirs[1] for _, theirs in pairs):.0f} MiB; "
                  f"file {os.path.getsize(path) / 2**20:.0f} MiB")
            print(f"  pickle.load / {name}: {theirs / mine:.1f} each behind itself; "
                  f"{statistics.median(ratios):.1f} in turn ({ratios[0]:.1f} to {ratios[-1]:.1f})")


if __name__ == "__main__":
    main()
