#!/usr/bin/env python3
"""`why` on a folder of 64 rank files of 100,000 events each: seconds and peak resident memory.

    bench/bench_ranks.py --program build/release/bin/oomscope [--ranks 64] [--events 100000] [--keep FOLDER]

The ranks are the last events of h200/big_ring_wrapped (OOMSCOPE_DATA, default ../shared/data), which fit the segments at its
end: each is a whole recording whose ring has wrapped. They are copies but for their clocks, a second apart. --keep
writes them to FOLDER and leaves them there.
"""
import argparse
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = pathlib.Path(os.environ.get("OOMSCOPE_DATA") or ROOT.parent / "shared/data")
RECORDING = DATA / "h200/big_ring_wrapped/snapshot.pickle.zst"


def write_ranks(folder, ranks, events):
    packed = subprocess.run(["zstd", "-dc", str(RECORDING)], check=True, capture_output=True)
    snapshot = pickle.loads(packed.stdout)
    traces = snapshot["device_traces"]
    device = max(range(len(traces)), key=lambda i: len(traces[i]))
    traces[device] = traces[device][-events:]
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        for event in traces[device]:
            event["time_us"] += 1_000_000
        (folder / f"rank{rank}.pickle").write_bytes(pickle.dumps(snapshot, protocol=4))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    if not RECORDING.exists():
        print(f"SKIPPED: no {RECORDING} (set OOMSCOPE_DATA)", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(arguments.keep or scratch)
        # In a process of its own: a child's peak memory begins with what its parent holds.
        writer = multiprocessing.Process(target=write_ranks, args=(folder, arguments.ranks, arguments.events))
        writer.start()
        writer.join()
        command = [arguments.program, "why", str(folder), "--json"]
        for _ in range(3):
            before = time.perf_counter()
            pid = os.posix_spawn(command[0], command, os.environ,
                                 file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
            _, status, usage = os.wait4(pid, 0)
            if status != 0:
                sys.exit(f"{arguments.program} failed: {status}")
            print(f"{arguments.ranks} ranks of {arguments.events} events: {time.perf_counter() - before:.2f} s, "
                  f"{usage.ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
