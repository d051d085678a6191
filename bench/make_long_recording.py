#!/usr/bin/env python3
"""Makes a recording of any length that replays exactly: the events of one, again and again.

    bench/make_long_recording.py SNAPSHOT.pickle EVENTS OUT.pickle

Between two rounds everything is given back as PyTorch would: the live blocks are freed, and empty_cache releases the
segments, the large pool first, each by stream, size and address. The next round then starts from nothing, as the first
did, and its addresses hold. SNAPSHOT must start with the process (or behind its first tiny tensor), under the default
settings, without private pools.
"""
import pickle
import struct
import sys

KEYS = ("action", "addr", "size", "stream", "time_us", "frames")
ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom")


def integer(value):
    if value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little")
    return b"\x8a" + bytes([len(data)]) + data


def get(index):
    return b"h" + bytes([index])


def write_words(words):
    """Each word once, memoized under its place in the list; the events refer to them."""
    out = b""
    for index, word in enumerate(words):
        out += b"X" + struct.pack("<I", len(word)) + word.encode() + b"q" + bytes([index]) + b"0"
    return out


def encode(event, words):
    frames = get(len(words))
    values = (get(words[event["action"]]), integer(event["addr"]), integer(event["size"]), integer(event["stream"]),
              integer(event["time_us"]), frames)
    return b"}(" + b"".join(get(words[key]) + value for key, value in zip(KEYS, values)) + b"u"


def event(action, addr, size, stream=0):
    return {"action": action, "addr": addr, "size": size, "stream": stream, "time_us": 0}


def one_round(snapshot):
    """The events of the recording from an empty allocator to an empty one, and the segment of the first tensor."""
    trace = [e for e in snapshot["device_traces"][0] if e["action"] in ACTIONS]
    obtained = set()
    first = None
    for e in trace:
        if e["action"] == "segment_alloc":
            obtained.add(e["addr"])
        elif e["action"] == "segment_free" and e["addr"] not in obtained:
            first = e["addr"]
    segments = {s["address"]: s for s in snapshot["segments"]}
    first = next((a for a in segments if a not in obtained), first)
    begin = []
    if first is not None:
        begin = [event("segment_alloc", first, 2 << 20), event("alloc", first, 4), event("free_requested", first, 4),
                 event("free_completed", first, 4)]
    end = []
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                end += [event(action, block["address"], block["requested_size"], segment["stream"])
                        for action in ("free_requested", "free_completed")]
    in_order = sorted(snapshot["segments"],
                      key=lambda s: (s["segment_type"] == "small", s["stream"], s["total_size"], s["address"]))
    end += [event("segment_free", s["address"], s["total_size"], s["stream"]) for s in in_order]
    return begin + trace + end


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        snapshot = pickle.load(file)
    words = KEYS + ACTIONS
    index_of = {word: index for index, word in enumerate(words)}
    events = one_round(snapshot)
    body = b"".join(encode(e, index_of) for e in events)
    rounds = max(1, int(sys.argv[2]) // len(events))
    with open(sys.argv[3], "wb") as out:
        out.write(b"\x80\x02" + write_words(words) + b"]q" + bytes([len(words)]) + b"0")
        out.write(b"}(X" + struct.pack("<I", 8) + b"segments](eX" + struct.pack("<I", 13) + b"device_traces](](")
        for _ in range(rounds):
            out.write(body)
        out.write(b"eeX" + struct.pack("<I", 18) + b"allocator_settings")
        out.write(b"}(X" + struct.pack("<I", 23) + b"PYTORCH_CUDA_ALLOC_CONFX" + bytes(4) + b"uu.")
    print(f"{rounds * len(events)} events in {rounds} rounds")


if __name__ == "__main__":
    main()
