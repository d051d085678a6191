#!/usr/bin/env python3
"""Sends one random stream of requests through the allocator of a torch that runs on fake_cuda.cc, and records it.

    drive.py OUT.pickle --seed N [--operations N] [--capacity SIZE] [--placement NAME] [--fraction F] [--use WHAT,...]
             [--devices N]

Run by oracle.py, which sets the paths and PYTORCH_CUDA_ALLOC_CONF. WHAT is any of
    streams      two side streams, record_stream, events that complete late
    empty_cache  calls of it between requests
    pools        two private pools, entered and left
    nested       as pools, and a second scope may open inside the first
    renewed      as pools, and now and then one is given up for a new one
    custom       as pools, with a segment allocator of their own
    capture      as pools, and the card says that the stream captures a graph meanwhile
    late         history is switched on in the middle
Beside OUT.pickle (the snapshot) it writes for each device D OUT.D.stats.json (memory_stats) and OUT.D.calls.json (what
the allocator asked of the driver: kind, address, size).
"""
import argparse
import ctypes
import json
import pickle
import random
import sys
import warnings

warnings.simplefilter("ignore")

import torch  # noqa: E402

RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PLACEMENTS = ("lowest", "highest", "rising", "random", "fed")
CALL_KINDS = ("none", "allocate", "refuse", "release", "map", "unmap", "refuse_map", "reserve")
SEGMENT_ALLOCATORS = []  # to the end of the process: a pool does not keep its own
OF_POOLS = {"pools", "nested", "renewed", "custom", "capture"}


class Call(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("device", ctypes.c_uint32), ("address", ctypes.c_uint64),
                ("size", ctypes.c_uint64)]


class Card:
    """The driving program's side of fake_cuda.cc."""

    def __init__(self):
        version = (torch.version.cuda or "12").split(".")[0]
        self.path = f"libcudart.so.{version}"
        self.library = ctypes.CDLL(self.path)
        self.library.oracle_calls.restype = ctypes.POINTER(Call)
        self.library.oracle_call_count.restype = ctypes.c_size_t

    def set_capacity(self, size):
        self.library.oracle_set_capacity(ctypes.c_uint64(size))

    def set_occupied(self, size):
        self.library.oracle_set_occupied(ctypes.c_uint64(size))

    def set_devices(self, count):
        self.library.oracle_set_devices(count)

    def set_placement(self, name, seed=0):
        self.library.oracle_set_placement(PLACEMENTS.index(name), ctypes.c_uint64(seed))

    def feed(self, addresses):
        array = (ctypes.c_uint64 * len(addresses))(*addresses)
        self.library.oracle_feed(array, ctypes.c_size_t(len(addresses)))

    def keep_segments(self, keeps):
        self.library.oracle_keep_segments(int(keeps))

    def hold_events(self, held):
        self.library.oracle_hold_events(int(held))

    def complete_events(self, count):
        self.library.oracle_complete_events(ctypes.c_size_t(count))

    def set_capturing(self, stream, capture):
        self.library.oracle_set_capturing(ctypes.c_uint64(stream.cuda_stream), ctypes.c_uint64(capture))

    def segment_allocator(self):
        functions = torch.cuda.memory.CUDAPluggableAllocator(self.path, "oracle_pool_allocate", "oracle_pool_release")
        SEGMENT_ALLOCATORS.append(functions.allocator())
        return SEGMENT_ALLOCATORS[-1]

    def calls(self, device=0):
        calls = self.library.oracle_calls(device)
        return [(CALL_KINDS[calls[i].kind], calls[i].address, calls[i].size)
                for i in range(self.library.oracle_call_count(device))]


def random_size(rng):
    """Bytes: near every boundary that the allocator knows, and everything between."""
    kind = rng.random()
    if kind < 0.30:
        return rng.randint(1, 16 * KIB)
    if kind < 0.45:
        return rng.randint(1, MIB)
    if kind < 0.55:
        edge = rng.choice((512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 40 * MIB, 128 * MIB))
        return max(1, edge + rng.choice((-513, -512, -511, -1, 0, 1, 511, 512, 513)))
    if kind < 0.80:
        return rng.randint(MIB, 10 * MIB)
    if kind < 0.95:
        return rng.randint(10 * MIB, 64 * MIB)
    return rng.randint(64 * MIB, 512 * MIB)


class ObjectScope:
    """torch.cuda.use_mem_pool."""

    def __init__(self, pool):
        self.scope = torch.cuda.use_mem_pool(pool)
        self.scope.__enter__()

    def leave(self):
        self.scope.__exit__(None, None, None)


class StreamScope:
    """What torch.cuda.graph does: a pool for the current stream, which must not be the default one."""

    def __init__(self, pool, side_stream):
        self.pool, self.outer = pool, torch.cuda.current_stream()
        if self.outer == torch.cuda.default_stream():
            torch.cuda.set_stream(side_stream)
        torch._C._cuda_beginAllocateCurrentStreamToPool(0, pool)

    def leave(self):
        new_name = hasattr(torch._C, "_cuda_endAllocateToPool")
        end = torch._C._cuda_endAllocateToPool if new_name else torch._C._cuda_endAllocateCurrentStreamToPool
        end(0) if RELEASE < (2, 2) else end(0, self.pool)
        torch.cuda.set_stream(self.outer)


class Pools:
    """Private pools: those of MemPool where torch has it, else (and under capture) those that graphs use."""

    def __init__(self, card, uses, count):
        self.card, self.uses = card, uses
        self.has_objects = hasattr(torch.cuda, "MemPool") and "capture" not in uses
        self.side_stream = None if self.has_objects else torch.cuda.Stream()
        self.captures, self.used = 0, set()  # a pool of graphs exists from its first use on
        self.pools = [self.make() for _ in range(count)]
        self.scopes = []

    def make(self):
        if "custom" in self.uses:
            return torch.cuda.MemPool(self.card.segment_allocator())
        return torch.cuda.MemPool() if self.has_objects else torch.cuda.graph_pool_handle()

    def renew(self, rng):
        index = rng.randrange(len(self.pools))
        if not self.has_objects and self.pools[index] in self.used:
            torch._C._cuda_releasePool(0, self.pools[index])
        self.pools[index] = None
        self.pools[index] = self.make()

    def enter(self, rng):
        pool = rng.choice(self.pools)
        if any(pool is opened for opened, _ in self.scopes):
            return
        scope = ObjectScope(pool) if self.has_objects else StreamScope(pool, self.side_stream)
        self.scopes.append((pool, scope))
        if not self.has_objects:
            self.used.add(pool)
        if "capture" in self.uses:
            self.captures += 1
            self.card.set_capturing(torch.cuda.current_stream(), self.captures)

    def leave(self):
        if "capture" in self.uses:
            self.card.set_capturing(torch.cuda.current_stream(), 0)
        self.scopes.pop()[1].leave()

    def step(self, rng):
        if self.scopes and ("nested" not in self.uses or len(self.scopes) > 1 or rng.random() < 0.5):
            self.leave()
        elif "renewed" in self.uses and rng.random() < 0.2:
            self.renew(rng)
        else:
            self.enter(rng)


class Job:
    """A random program: a list of live tensors, some streams, some pools, perhaps several devices."""

    def __init__(self, card, seed, uses, target_bytes, devices=1):
        self.card, self.rng, self.uses = card, random.Random(seed), uses
        self.target, self.devices = target_bytes, devices
        self.live, self.live_bytes, self.ooms = [], 0, 0
        self.streams = [self.streams_of(device) for device in range(devices)]
        self.pools = Pools(card, uses, 2 if OF_POOLS & set(uses) else 0)
        card.hold_events("streams" in uses)

    def streams_of(self, device):
        streams = [torch.cuda.default_stream(device)]
        if "streams" in self.uses:
            streams += [torch.cuda.Stream(device) for _ in range(2)]
        return streams

    def allocate(self):
        size = random_size(self.rng)
        try:
            tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            self.ooms += 1
            self.drop(len(self.live) // 2)
            return
        self.live.append(tensor)
        self.live_bytes += size
        if "streams" in self.uses and self.rng.random() < 0.2:
            tensor.record_stream(self.rng.choice(self.streams[tensor.device.index]))

    def drop(self, count):
        for _ in range(min(count, len(self.live))):
            index = self.rng.randrange(len(self.live))
            self.live[index], self.live[-1] = self.live[-1], self.live[index]
            self.live_bytes -= self.live.pop().numel()

    def step(self):
        chance = self.rng.random()
        if chance < 0.004 and "empty_cache" in self.uses and not self.pools.scopes:
            torch.cuda.empty_cache()
        elif chance < 0.03 and "streams" in self.uses and not self.pools.scopes:
            torch.cuda.set_stream(self.rng.choice(self.streams[torch.cuda.current_device()]))
        elif chance < 0.05 and "streams" in self.uses:
            self.card.complete_events(self.rng.randint(1, 8))
        elif chance < 0.06 and self.pools.pools:
            self.pools.step(self.rng)
        elif chance < 0.062:
            self.drop(len(self.live))
        elif chance < 0.075 and self.devices > 1:
            torch.cuda.set_device(self.rng.randrange(self.devices))
        elif self.live and self.rng.random() < 0.5 * self.live_bytes / self.target + 0.25:
            self.drop(1)
        else:
            self.allocate()

    def run(self, operations):
        for _ in range(operations):
            self.step()

    def end(self):
        while self.pools.scopes:
            self.pools.leave()


def record_history(operations):
    torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=4 * operations)


def write(out, card, devices):
    """The snapshot first: memory_stats is compared with its state."""
    snapshot = torch.cuda.memory._snapshot()
    with open(out, "wb") as file:
        pickle.dump(snapshot, file)
    for device in range(devices):
        for name, content in (("stats", dict(torch.cuda.memory_stats(device))), ("calls", card.calls(device))):
            with open(out.replace(".pickle", f".{device}.{name}.json"), "w") as file:
                json.dump(content, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", type=int, default=20000)
    parser.add_argument("--capacity", type=int, default=80 * GIB)
    parser.add_argument("--target", type=int, default=2 * GIB, help="about how many bytes are live")
    parser.add_argument("--placement", choices=PLACEMENTS, default="lowest")
    parser.add_argument("--fraction", type=float)
    parser.add_argument("--use", default="", help="see above")
    parser.add_argument("--devices", type=int, default=1)
    arguments = parser.parse_args()
    card = Card()
    card.set_devices(arguments.devices)
    card.set_capacity(arguments.capacity)
    card.set_placement(arguments.placement, arguments.seed)
    torch.cuda.init()
    if arguments.fraction:
        for device in range(arguments.devices):
            torch.cuda.set_per_process_memory_fraction(arguments.fraction, device)
    uses = arguments.use.split(",")
    job = Job(card, arguments.seed, uses, arguments.target, arguments.devices)
    before = arguments.operations // 2 if "late" in uses else 0
    job.run(before)
    record_history(arguments.operations)
    job.run(arguments.operations - before)
    job.end()
    write(arguments.out, card, arguments.devices)
    print(f"{torch.__version__}: {arguments.operations} operations, {job.ooms} refused", file=sys.stderr)


if __name__ == "__main__":
    main()
