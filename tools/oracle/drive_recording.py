#!/usr/bin/env python3
"""Sends the requests of a recording from a real card through the same torch on fake_cuda.cc, at the recorded addresses.

    drive_recording.py OUT.json --recording snapshot.pickle[.zst] --total BYTES [--limit BYTES]

Run by recordings.py. The card places every segment where the real one did; where the allocator puts blocks in them,
what it asks of the driver and when, is its own. Writes both event sequences' comparison to OUT.json: how many
allocations and driver events there are, how many are equal, and the first that is not. A recording without its
beginning is refused, since nothing tells what was there: {"skipped": why}.
"""
import argparse
import io
import json
import pickle
import subprocess
import warnings

warnings.simplefilter("ignore")

import torch  # noqa: E402

from drive import Card, record_history  # noqa: E402

DRIVER = ("segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom")
RELEASES = ("segment_free", "segment_unmap")
SMALL_PAGE = 2 << 20
MID_LIFE = "starts in mid-life"


def load(path):
    if path.endswith(".zst"):
        data = subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout
        return pickle.load(io.BytesIO(data))
    with open(path, "rb") as file:
        return pickle.load(file)


def device_of(snapshot):
    """A process of several uses one of them."""
    return next((device for device, trace in enumerate(snapshot["device_traces"]) if trace), 0)


def starts_in_mid_life(events):
    live = set()
    for event in events:
        if event["action"] == "alloc":
            live.add(event["addr"])
        elif event["action"] == "free_completed":
            if event["addr"] not in live:
                return True
            live.remove(event["addr"])
    return False


def first_small_segment(segments, events):
    """The address of the segment that a first tiny tensor left before history was switched on; None if there was none.

    Raises ValueError where more was there.
    """
    def pages(address, size):
        return range(address, address + size, SMALL_PAGE)

    here = {page for segment in segments for page in pages(segment["address"], segment["total_size"])}
    for event in reversed(events):
        if event["action"] in ("segment_alloc", "segment_map"):
            here.difference_update(pages(event["addr"], event["size"]))
        elif event["action"] in RELEASES:
            here.update(pages(event["addr"], event["size"]))
    if len(here) > 1:
        raise ValueError(MID_LIFE)
    return min(here, default=None)


def pool_finder(segments, events):
    """A function from an event's index to the id of its private pool, None for the default pool.

    A trace of 2.11 names no pools, the final segments do: what lies in a private one since it was obtained is its.
    """
    private = [segment for segment in segments if tuple(segment["segment_pool_id"]) != (0, 0)]

    def begin_of(segment):
        obtained = [i for i, event in enumerate(events)
                    if event["action"] in ("segment_alloc", "segment_map") and event["addr"] == segment["address"]]
        return obtained[-1] if obtained else 0

    spans = [(segment["address"], segment["address"] + segment["total_size"], begin_of(segment),
              tuple(segment["segment_pool_id"])) for segment in private]

    def find(index):
        address = events[index].get("addr", 0)
        return next((pool for low, high, begin, pool in spans if low <= address < high and begin < index), None)

    return find


def placements(events, small):
    """The addresses that the driver handed out, in order: of segments, or of the ranges that pages are mapped into."""
    addresses, ranges = [], {}  # (stream, small pages?) -> bytes mapped in it
    if small is not None:
        addresses.append(small)
        ranges[(0, True)] = SMALL_PAGE
    for event in events:
        if event["action"] == "segment_alloc":
            addresses.append(event["addr"])
        elif event["action"] in ("segment_map", "segment_unmap"):
            key = (event["stream"], event["size"] % (20 << 20) != 0)
            if event["action"] == "segment_unmap":
                ranges[key] -= event["size"]  # a range that is wholly unmapped is given back
                continue
            if not ranges.get(key):
                addresses.append(event["addr"])
            ranges[key] = ranges.get(key, 0) + event["size"]
    return addresses


def occupied(events, total, small):
    """Bytes that other processes and the context hold, as the tightest refusal tells; 0 without one."""
    reserved, held = SMALL_PAGE if small is not None else 0, []
    for event in events:
        if event["action"] in ("segment_alloc", "segment_map"):
            reserved += event["size"]
        elif event["action"] in RELEASES:
            reserved -= event["size"]
        elif event["action"] == "oom":
            held.append(total - reserved - event["device_free"])
    return max(held, default=0)


def first_under(events, limit):
    """The index of the event from which on the limit can hold: a program may set one that is below what it had."""
    reserved, first = 0, 0
    for index, event in enumerate(events):
        if event["action"] in ("segment_alloc", "segment_map"):
            reserved += event["size"]
            first = index + 1 if reserved > limit else first
        elif event["action"] in RELEASES:
            reserved -= event["size"]
    return first


class Replay:
    def __init__(self, card, events, pool_of, set_limit, limit_from):
        self.card, self.events, self.pool_of = card, events, pool_of
        self.set_limit, self.limit_from = set_limit, limit_from  # called in front of the first request from there on
        self.live, self.pending = {}, 0
        self.streams, self.pools = {0: torch.cuda.default_stream()}, {}
        self.other = torch.cuda.Stream()
        self.last_pool = None
        card.hold_events(True)

    def stream(self, handle):
        if handle not in self.streams:
            self.streams[handle] = torch.cuda.Stream()
        return self.streams[handle]

    def action(self, index):
        return self.events[index]["action"] if index < len(self.events) else ""

    def free(self, index):
        """At once, or held by another stream until the recording says that it completed."""
        address = self.events[index]["addr"]
        tensor = self.live.pop(address)
        if self.action(index + 1) != "free_completed" or self.events[index + 1]["addr"] != address:
            tensor.record_stream(self.other)
            self.pending += 1

    def free_needs_no_completion(self, index):
        before = self.events[index - 1]
        return before["action"] == "free_requested" and before["addr"] == self.events[index]["addr"]

    def before_request(self, begin, end):
        """Events [begin, end), what stands in front of a request or of a free: completions and driver events."""
        actions = [self.action(index) for index in range(begin, end)]
        released = any(action in RELEASES for action in actions)
        completed = sum(action == "free_completed" and not self.free_needs_no_completion(begin + offset)
                        for offset, action in enumerate(actions))
        own = self.action(end) in ("alloc", "oom") and not self.calls_empty_cache(begin, end)
        if released and not own:
            torch.cuda.empty_cache()  # waits for what is pending
        elif not (released and completed == self.pending):  # else the request's own release waits for all
            self.card.complete_events(completed)
        self.pending -= completed

    def calls_empty_cache(self, begin, end):
        return any(frame["name"] == "empty_cache" for index in range(begin, end) if self.action(index) in RELEASES
                   for frame in self.events[index].get("frames", []))

    def allocate(self, size):
        try:
            return torch.empty(size, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            return None

    def request(self, index, released):
        event = self.events[index]
        # An oom entry has no address: it is of the pool of the request before, unless everything was released for it.
        self.last_pool = self.pool_of(index) if "addr" in event else None if released else self.last_pool
        with torch.cuda.stream(self.stream(event["stream"])):
            if self.last_pool is None:
                tensor = self.allocate(event["size"])
            else:
                pool = self.pools.setdefault(self.last_pool, torch.cuda.MemPool())
                with torch.cuda.use_mem_pool(pool):
                    tensor = self.allocate(event["size"])
        if tensor is not None:
            self.live[event.get("addr", -index)] = tensor

    def run(self):
        begin = 0
        for index, event in enumerate(self.events):
            action = event["action"]
            if action not in ("alloc", "oom", "free_requested"):
                continue
            if self.limit_from is not None and begin >= self.limit_from:
                self.set_limit()
                self.limit_from = None
            self.before_request(begin, index)
            if action == "free_requested":
                self.free(index)
            else:
                self.request(index, any(self.action(i) in RELEASES for i in range(begin, index)))
            begin = index + 1
        self.before_request(begin, len(self.events))


def sequences(events):
    allocations = [(event["addr"], event["size"]) for event in events if event["action"] == "alloc"]
    driver = [(event["action"], event.get("addr", 0), event["size"]) for event in events
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
    parser.add_argument("--limit", type=int)
    arguments = parser.parse_args()
    snapshot = load(arguments.recording)
    device = device_of(snapshot)
    segments = [segment for segment in snapshot["segments"] if segment["device"] == device]
    events = [event for event in snapshot["device_traces"][device] if event["action"] != "snapshot"]
    result = {"skipped": None if events else "no history"}
    try:
        small = first_small_segment(segments, events)
        if starts_in_mid_life(events):
            raise ValueError(MID_LIFE)
    except ValueError as error:
        result["skipped"] = str(error)
    if not result["skipped"]:
        card = Card()
        card.set_capacity(arguments.total)
        card.set_placement("fed")
        card.feed(placements(events, small))
        torch.cuda.init()
        if not arguments.limit:
            card.set_occupied(occupied(events, arguments.total, small))
        if small is not None:
            torch.empty(1, device="cuda")
        record_history(len(events) + 1000)
        replay = Replay(card, events, pool_finder(segments, events),
                        lambda: torch.cuda.set_per_process_memory_fraction(arguments.limit / arguments.total),
                        first_under(events, arguments.limit) if arguments.limit else None)
        replay.run()
        made = torch.cuda.memory._snapshot()["device_traces"][0]
        for name, recorded, own in zip(("allocations", "driver"), sequences(events), sequences(made)):
            result[name] = compared(recorded, own)
    with open(arguments.out, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
