#!/usr/bin/env python3
"""Sends the requests of a recording from a real card through the same torch on fake_cuda.cc, at the recorded addresses.

    drive_recording.py OUT.json --recording snapshot.pickle[.zst] --total BYTES [--limit-mib N]

Run by recordings.py. The card places every segment where the real one did; where the allocator puts blocks in them, what
it asks of the driver and when, is its own. Writes both event sequences' comparison to OUT.json: how many allocations and
driver events there are, how many are equal, and the first that is not. A recording with private pools or without its
beginning is refused, since a trace of 2.11 does not tell their requests: {"skipped": why}.
"""
import argparse
import io
import json
import pickle
import subprocess
import warnings

warnings.simplefilter("ignore")

import torch  # noqa: E402

from drive import Card  # noqa: E402

DRIVER = ("segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom")


def load(path):
    if path.endswith(".zst"):
        data = subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout
        return pickle.load(io.BytesIO(data))
    with open(path, "rb") as file:
        return pickle.load(file)


def why_not(snapshot, events):
    if any(tuple(segment["segment_pool_id"]) != (0, 0) for segment in snapshot["segments"]):
        return "private pools"
    live = set()
    for event in events:
        if event["action"] == "alloc":
            live.add(event["addr"])
        elif event["action"] == "free_completed":
            if event["addr"] not in live:
                return "starts in mid-life"
            live.remove(event["addr"])
    return None


def first_small_segment(snapshot, events):
    """The address of the segment that a first tiny tensor left before history was switched on; None if there was none.

    Raises ValueError where more was there.
    """
    here = {segment["address"]: segment["total_size"] for segment in snapshot["segments"]}
    for event in reversed(events):
        if event["action"] in ("segment_alloc", "segment_map"):
            take_out(here, event["addr"], event["size"])
        elif event["action"] in ("segment_free", "segment_unmap"):
            here[event["addr"]] = event["size"]
    if not here:
        return None
    if list(here.values()) != [2 << 20]:
        raise ValueError("starts in mid-life")
    return next(iter(here))


def take_out(here, address, size):
    """Pages of a range: what is left of it stays."""
    begin = next((b for b, length in here.items() if b <= address < b + length), None)
    if begin is None:
        return
    end = begin + here.pop(begin)
    if begin < address:
        here[begin] = address - begin
    if address + size < end:
        here[address + size] = end - address - size


def placements(events, small):
    """The addresses that the driver handed out, in order: of segments, or of the ranges that pages are mapped into."""
    addresses, bases = [], {}
    if small is not None:
        addresses.append(small)
        bases[(0, True)] = small
    for event in events:
        if event["action"] == "segment_alloc":
            addresses.append(event["addr"])
        elif event["action"] == "segment_map":
            key = (event["stream"], event["size"] == 2 << 20)
            if key not in bases:
                bases[key] = event["addr"]
                addresses.append(event["addr"])
    return addresses


class Replay:
    def __init__(self, card, events):
        self.card, self.events = card, events
        self.live, self.streams = {}, {0: torch.cuda.default_stream()}
        self.other = torch.cuda.Stream()
        card.hold_events(True)

    def stream(self, handle):
        if handle not in self.streams:
            self.streams[handle] = torch.cuda.Stream()
        return self.streams[handle]

    def free(self, index):
        """At once, or held by another stream until the recording says that it completed."""
        event = self.events[index]
        following = self.events[index + 1] if index + 1 < len(self.events) else {"action": ""}
        tensor = self.live.pop(event["addr"])
        if following["action"] != "free_completed" or following["addr"] != event["addr"]:
            tensor.record_stream(self.other)

    def is_own(self, index):
        """Are the releases from here on the doing of the next request? Else somebody called empty_cache."""
        names = [frame["name"] for frame in self.events[index].get("frames", [])]
        return "empty_cache" not in names

    def run(self):
        in_burst = False
        for index, event in enumerate(self.events):
            action = event["action"]
            if action in ("segment_free", "segment_unmap"):
                if not in_burst and not self.is_own(index):
                    torch.cuda.empty_cache()
                in_burst = True
                continue
            in_burst = False
            if action in ("alloc", "oom"):
                with torch.cuda.stream(self.stream(event["stream"])):
                    try:
                        self.live[event["addr"]] = torch.empty(event["size"], dtype=torch.uint8, device="cuda")
                    except torch.cuda.OutOfMemoryError:
                        pass
            elif action == "free_requested":
                self.free(index)
            elif action == "free_completed":
                self.card.complete_events(1)


def sequences(events):
    allocations = [(event["addr"], event["size"]) for event in events if event["action"] == "alloc"]
    driver = [(event["action"], event["addr"] if event["action"] != "oom" else 0, event["size"]) for event in events
              if event["action"] in DRIVER]
    return allocations, driver


def compared(recorded, made):
    equal = sum(a == b for a, b in zip(recorded, made))
    first = next((i for i, (a, b) in enumerate(zip(recorded, made)) if a != b), None)
    return {"recorded": len(recorded), "made": len(made), "equal": equal, "first_difference": first}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--recording", required=True)
    parser.add_argument("--total", type=int, required=True)
    parser.add_argument("--limit-mib", type=float)
    arguments = parser.parse_args()
    snapshot = load(arguments.recording)
    events = [event for event in snapshot["device_traces"][0] if event["action"] != "snapshot"]
    result = {"skipped": why_not(snapshot, events)}
    try:
        small = first_small_segment(snapshot, events)
    except ValueError as error:
        result["skipped"] = str(error)
    if not result["skipped"]:
        card = Card()
        card.set_capacity(arguments.total)
        card.set_placement("fed")
        card.feed(placements(events, small))
        torch.cuda.init()
        if arguments.limit_mib:
            torch.cuda.set_per_process_memory_fraction(arguments.limit_mib * (1 << 20) / arguments.total)
        if small is not None:
            torch.empty(1, device="cuda")
        torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python",
                                                 max_entries=2 * len(events) + 1000)
        Replay(card, events).run()
        made = torch.cuda.memory._snapshot()["device_traces"][0]
        for name, recorded, own in zip(("allocations", "driver"), sequences(events), sequences(made)):
            result[name] = compared(recorded, own)
    with open(arguments.out, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
