#!/usr/bin/env python3
"""Compares the reader with pickle.load: python3 check_reader.py DUMP_SNAPSHOT FILE...

FILE may be packed with zstd. Only for files that you trust: Python's pickle executes what it reads.
"""

import pickle
import subprocess
import sys
import tempfile

ACTIONS = [
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
    "oom", "snapshot", "annotate",
]
STATES = {"active_allocated": 0, "active_pending_free": 1, "active_awaiting_free": 1, "inactive": 2}


def load(path):
    if path.endswith(".zst"):
        return pickle.loads(subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout)
    with open(path, "rb") as file:
        return pickle.load(file)


class Expected:
    """The lines that dump_snapshot should print, with stacks spelled out instead of their ids."""

    def __init__(self, snapshot):
        self.lines = []
        self.cache = {}
        segments = snapshot if isinstance(snapshot, list) else snapshot["segments"]
        for segment in segments:
            self.segment(segment)
        if isinstance(snapshot, dict):
            for trace in snapshot.get("device_traces", []):
                self.trace(trace)
            for a in snapshot.get("external_annotations", []):
                name = a["name"].encode()
                self.lines.append(f"annotation {int(a['stage'] == 'START')} {a['device']} {a['time_us']} "
                                  f"{len(name)}:{name.decode()}")

    def stack(self, frames):
        key = id(frames)
        if key not in self.cache:
            self.cache[key] = (frames, tuple((f["name"], f["filename"], f["line"] % 2**64) for f in frames))
        return self.cache[key][1]

    def segment(self, s):
        pool = s.get("segment_pool_id", (0, 0))
        self.lines.append(("segment", s["device"], s["address"], s["total_size"], s["allocated_size"], s["active_size"],
                           s.get("requested_size"), s["stream"] % 2**64, int(s["segment_type"] == "large"),
                           int(s.get("is_expandable", False)), pool[0], pool[1], self.stack(s.get("frames", [])),
                           len(s["blocks"])))
        address = s["address"]
        for b in s["blocks"]:
            state = STATES[b["state"]]
            frames = b.get("frames", [])
            if "history" in b and state != 2 and b["history"]:
                frames = b["history"][0].get("frames", [])
            self.lines.append(("block", b.get("address", address), b["size"], b.get("requested_size"), state,
                               self.stack(frames)))
            address += b["size"]

    def trace(self, trace):
        self.lines.append(f"trace {len(trace)}")
        for e in trace:
            address = e["addr"] if "addr" in e else e["device_free"]
            context = e.get("compile_context", "")
            metadata = e.get("user_metadata", "")
            pool = e.get("pool_id", (0, 0))
            self.lines.append(("event", ACTIONS.index(e["action"]), address, e["size"], e["stream"] % 2**64,
                               self.stack(e.get("frames", [])), e.get("time_us", 0), pool[0], pool[1],
                               f"{len(context)}:{context} {len(metadata)}:{metadata}"))


def parse_text(text):
    length, _, rest = text.partition(":")
    return rest[:int(length)], rest[int(length) + 1:]


def dumped(tool, path):
    run = subprocess.run([tool, path], capture_output=True, check=False)
    frames, stacks, lines, rest = [], [], [], []
    for line in run.stdout.decode(errors="surrogateescape").split("\n"):
        kind, _, text = line.partition(" ")
        if kind == "frame":
            number, _, text = text.partition(" ")
            name, text = parse_text(text)
            filename, _ = parse_text(text)
            frames.append((name, filename, int(number)))
        elif kind == "stack":
            stacks.append(tuple(frames[int(i)] for i in text.split()))
        elif kind in ("segment", "block"):
            values = [int(i) for i in text.split()]
            place = 11 if kind == "segment" else 4
            values[place] = stacks[values[place]]
            lines.append((kind, *values))
        elif kind == "event":
            parts = text.split(" ", 8)
            values = [int(i) for i in parts[:8]]
            values[4] = stacks[values[4]]
            lines.append((kind, *values, parts[8]))
        elif kind in ("trace", "annotation"):
            lines.append(line)
        elif line:
            rest.append(line)
    return lines, rest


def compare(expected, lines):
    """The first difference; None in the expected values (keys that old files lack) stands for anything."""
    for index, (want, got) in enumerate(zip(expected, lines)):
        if want == got:
            continue
        if isinstance(want, str) or len(want) != len(got) or any(w not in (None, g) for w, g in zip(want, got)):
            return f"line {index}: expected {want}, got {got}"
    return None if len(expected) == len(lines) else f"expected {len(expected)} lines, got {len(lines)}"


def main():
    tool, paths = sys.argv[1], sys.argv[2:]
    wrong = 0
    for path in paths:
        expected = Expected(load(path)).lines
        lines, rest = dumped(tool, path)
        difference = compare(expected, lines)
        wrong += difference is not None
        print("same" if difference is None else "DIFFERENT", len(expected), path, "|", *rest[-3:])
        if difference is not None:
            print(difference[:2000])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
