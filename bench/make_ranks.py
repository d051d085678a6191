#!/usr/bin/env python3
"""A folder of rank files for timing, cut from one long recording: the last EVENTS events of its busiest device.

    bench/make_ranks.py SNAPSHOT.pickle[.zst] FOLDER [--ranks 64] [--events 100000]
    time build/release/bin/oomscope why FOLDER --json > /dev/null

The last events and the final segments fit each other, so each file is a whole recording whose ring has wrapped. Ranks
are copies but for their clocks, which a second sets apart.
"""
import argparse
import pathlib
import pickle
import subprocess


def load(path):
    if path.endswith(".zst"):
        return pickle.loads(subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout)
    return pickle.loads(pathlib.Path(path).read_bytes())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("snapshot")
    parser.add_argument("folder")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--events", type=int, default=100_000)
    arguments = parser.parse_args()
    snapshot = load(arguments.snapshot)
    traces = snapshot["device_traces"]
    device = max(range(len(traces)), key=lambda i: len(traces[i]))
    traces[device] = traces[device][-arguments.events:]
    folder = pathlib.Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(arguments.ranks):
        for event in traces[device]:
            if "time_us" in event:
                event["time_us"] += 1_000_000
        (folder / f"rank{rank}.pickle").write_bytes(pickle.dumps(snapshot, protocol=4))


if __name__ == "__main__":
    main()
