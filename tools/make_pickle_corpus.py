#!/usr/bin/env python3
"""Writes the seed corpus of tests/fuzz/fuzz_snapshot.cc: python3 tools/make_pickle_corpus.py [FOLDER]

All data is made up here. One small file for each layout that PyTorch has written (torch 1.13 to 2.13), for each pickle
protocol, for each packing, and for what a hostile writer might try. Same script, same bytes.
"""

import base64
import gzip
import lzma
import pathlib
import pickle
import random
import shutil
import struct
import subprocess
import sys

BASE = 0x7F2340000000
MIB = 1 << 20


def frames(rng, shared):
    """A stack; frames are shared objects, as PyTorch's cache of them makes it."""
    return [shared[rng.randrange(len(shared))] for _ in range(rng.randrange(4))]


def make_frames(cpp):
    made = [{"name": f"step_{i}", "filename": f"/home/user/train_{i % 3}.py", "line": 10 * i + 1} for i in range(6)]
    if cpp:
        made.append({"name": "at::empty(c10::ArrayRef<long>)", "filename": "??", "line": 0})
        made.append({"name": "malloc", "filename": "", "line": 2**64 - 1})
    return made


def make_events(rng, vintage, count, shared):
    """Allocations and frees with the keys of a torch version, given as (major, minor)."""
    events, live, time_us = [], [], 1795971281321858
    for i in range(count):
        time_us += rng.randrange(40)
        event = {"action": "alloc", "addr": BASE + 512 * i, "size": rng.choice([8, 600, 70000, 2**31 + 5, 1 << rng.randrange(34)]),
                 "stream": 0 if i % 9 else 0x55D0C0FFEE00}
        if live and rng.random() < 0.4:
            old = live.pop(rng.randrange(len(live)))
            event.update(action="free_requested", addr=old["addr"], size=old["size"])
        elif i % 13 == 5:
            event.update(action=rng.choice(["segment_alloc", "segment_free"]), size=2 * MIB)
        elif i % 29 == 7 and vintage >= (2, 1):
            event.update(action=rng.choice(["segment_map", "segment_unmap"]), size=20 * MIB)
        else:
            live.append(event)
        if i == count - 3:
            event["action"] = "oom"
            event["device_free"] = event.pop("addr")
        if vintage >= (2, 2):
            event["time_us"] = time_us
        if vintage >= (2, 8):
            event["compile_context"] = "".join(["N/", "A"]) if i % 17 else "0/0"
        if vintage >= (2, 10):
            event["user_metadata"] = "".join(["", ""])
        if vintage >= (2, 12):
            event["pool_id"] = (0, i // 20 % 2)
        if vintage >= (2, 13) and i % 21 == 4:
            event["internal_metadata"] = "mallocWithAddress"
            event["forward_frames"] = ["File a.py, line 3", "File b.py, line 4"]
        if vintage < (2, 1) and i % 3:
            event["frames"] = frames(rng, shared)
        elif vintage >= (2, 1):
            event["frames"] = frames(rng, shared)
        events.append(event)
        if event["action"] == "free_requested":
            events.append(dict(event, action="free_completed"))
    return events


def make_segments(rng, vintage, shared, bare):
    segments = []
    for number in range(3):
        address = BASE + 64 * MIB * number
        blocks = []
        sizes = [512, 1024, 2 * MIB - 1536]
        for i, size in enumerate(sizes):
            state = ["active_allocated", "active_pending_free", "inactive"][(i + number) % 3]
            block = {"size": size, "state": state}
            if vintage >= (2, 0):
                block["requested_size"] = size - 100
            if vintage >= (2, 1):
                block["address"] = address + sum(sizes[:i])
                block["frames"] = frames(rng, shared)
            elif i == 0:
                block["history"] = [{"addr": address, "real_size": 400, "frames": frames(rng, shared)},
                                    {"addr": address, "real_size": 300, "cpp_frames": frames(rng, shared)}]
            blocks.append(block)
        segment = {"device": 0, "address": address, "total_size": 2 * MIB, "allocated_size": 512, "active_size": 1536,
                   "stream": -1 if number == 2 else 0, "segment_type": "small" if number else "large", "blocks": blocks}
        if vintage >= (2, 0) or not bare:
            segment["requested_size"] = 1300
        if vintage >= (2, 1):
            segment.update(segment_pool_id=(0, number), is_expandable=number == 1, frames=frames(rng, shared))
        segments.append(segment)
    return segments


def make_snapshot(vintage, events=60, devices=1, seed=1):
    rng = random.Random(seed)
    shared = make_frames(cpp=vintage >= (2, 1))
    if vintage < (2, 0):
        return make_segments(rng, vintage, shared, bare=True)
    snapshot = {"segments": make_segments(rng, vintage, shared, bare=False),
                "device_traces": [make_events(rng, vintage, events, shared) if device != 1 or devices == 1 else []
                                  for device in range(devices)]}
    if vintage >= (2, 4):
        snapshot["allocator_settings"] = {
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "max_split_size": -1, "garbage_collection_threshold": 0.8,
            "expandable_segments": True, "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
            "pinned_use_cuda_host_register": False, "roundup_power2_divisions": {str(1 << i): i % 5 for i in range(16)}}
    if vintage >= (2, 8):
        snapshot["external_annotations"] = [{"stage": stage, "name": "Optimizer.step#AdamW.step", "device": 0, "time_us": 17}
                                            for stage in ("START", "END")]
    if vintage >= (2, 13):
        snapshot["host_segments"] = [dict(segment, device=-1) for segment in snapshot["segments"][:1]]
        snapshot["host_traces"] = []
    return snapshot


def torchscript_pickle(value):
    """As torch/csrc/jit/serialization/pickler.cpp writes: protocol 2, no batches, BINPUT behind shared values."""
    out, memo = bytearray(b"\x80\x02"), {}

    def put_index(index):
        out.extend(b"q" + bytes([index]) if index < 256 else b"r" + struct.pack("<I", index))

    def put(item):
        key = ("text", item) if isinstance(item, str) else id(item)
        if key in memo and isinstance(item, (str, list, dict)):
            index = memo[key]
            out.extend(b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index))
            return
        if isinstance(item, bool):
            out.extend(b"\x88" if item else b"\x89")
        elif isinstance(item, int):
            item = item - 2**64 if item >= 2**63 else item
            if 0 <= item < 256:
                out.extend(b"K" + bytes([item]))
            elif -2**31 <= item < 2**31:
                out.extend(b"J" + struct.pack("<i", item))
            else:
                out.extend(b"\x8a\x08" + struct.pack("<q", item))
        elif isinstance(item, float):
            out.extend(b"G" + struct.pack(">d", item))
        elif isinstance(item, str):
            data = item.encode()
            out.extend(b"X" + struct.pack("<I", len(data)) + data)
        elif isinstance(item, tuple):
            out.extend(b"(")
            for part in item:
                put(part)
            out.extend(b"t")
        elif isinstance(item, list):
            out.extend(b"](")
            for part in item:
                put(part)
            out.extend(b"e")
        elif isinstance(item, dict):
            out.extend(b"}(")
            for name, part in item.items():
                put(name)
                put(part)
            out.extend(b"u")
        if isinstance(item, (str, list, dict)):
            memo[key] = len(memo)
            put_index(memo[key])

    put(value)
    return bytes(out) + b"."


def page_of(data):
    """The form of torch/cuda/_memory_viz.py, _format_viz."""
    data += b"\x00" * (3 - len(data) % 3)
    text = base64.b64encode(data).decode()
    return (f'<!DOCTYPE html>\n<html><body><script type="module">\nconst local_files = [{{"name": "snapshot.pickle", '
            f'"base64": "{text}"}}]\n</script></body></html>\n').encode()


def hostile():
    whole = pickle.dumps(make_snapshot((2, 11), events=20), 4)
    yield "cut_in_trace", whole[:len(whole) * 2 // 3]
    yield "cut_in_segments", whole[:len(whole) // 12]
    yield "cut_at_header", whole[:2]
    yield "global", b"\x80\x02}(X\x08\x00\x00\x00segmentscos\nsystem\nX\x02\x00\x00\x00id\x85Ru."
    yield "memo_index", b"\x80\x04]r\xff\xff\xff\x7f."
    yield "long_text", b"\x80\x04X\xff\xff\xff\x7fabc"
    yield "long_bytes", b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7fabc"
    yield "deep", b"\x80\x04" + b"]" * 3000 + b"a" * 2999 + b"."
    yield "inside_itself", b"\x80\x04}(\x8c\x08segments]q\x05h\x05au."
    laughs = b"\x80\x04]q\x00" + b"".join(b"](h%ch%ch%ceq%c" % (i, i, i, i + 1) for i in range(40)) + b"."
    yield "laughs", laughs
    yield "odd_pairs", b"\x80\x04}(\x8c\x08segments]\x8c\x04nameu."
    yield "negative_sizes", pickle.dumps({"segments": [{"device": -7, "address": 2**64 - 1, "total_size": -5, "blocks": [
        {"size": -1, "state": "inactive", "address": 0}, {"size": 2**63 - 1, "state": "?", "address": 5}]}], "device_traces": []}, 4)
    yield "dict_of_numbers", pickle.dumps({"a": 1, "b": 2}, 4)
    yield "list_of_texts", pickle.dumps(["a", "b"], 4)
    yield "text", b"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB\n"
    yield "zip", b"PK\x03\x04archive/data.pkl"
    yield "empty", b""


def corpus():
    for vintage in [(1, 13), (2, 0), (2, 1), (2, 2), (2, 4), (2, 8), (2, 11), (2, 12), (2, 13)]:
        yield f"torch_{vintage[0]}_{vintage[1]}", pickle.dumps(make_snapshot(vintage), 4)
    small = make_snapshot((2, 11), events=12)
    for protocol in (2, 3, 5):
        yield f"protocol_{protocol}", pickle.dumps(small, protocol)
    yield "torchscript", torchscript_pickle(make_snapshot((2, 11), events=20))
    yield "three_devices", pickle.dumps(make_snapshot((2, 11), events=8, devices=3), 4)
    yield "no_history", pickle.dumps(dict(make_snapshot((2, 11), events=5), device_traces=[[]]), 4)
    yield "only_segments", pickle.dumps({"segments": make_snapshot((2, 4), events=5)["segments"]}, 4)
    data = pickle.dumps(small, 4)
    yield "gzip", gzip.compress(data, mtime=0)
    yield "xz", lzma.compress(data)
    if shutil.which("zstd"):
        yield "zstd", subprocess.run(["zstd", "-19", "-c"], input=data, check=True, capture_output=True).stdout
    yield "page", page_of(data)
    yield "page_gzip", gzip.compress(page_of(data), mtime=0)
    yield from hostile()


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fuzz" / "corpus" / "snapshot"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in corpus():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
