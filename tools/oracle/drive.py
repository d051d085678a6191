#!/usr/bin/env python3
"""Sends one random stream of requests through the allocator of a torch that runs on fake_cuda.cc, and records it.

    drive.py OUT.pickle --seed N [--operations N] [--capacity SIZE] [--placement NAME] [--fraction F] [--use WHAT,...]

Run by oracle.py, which sets the paths and PYTORCH_CUDA_ALLOC_CONF. Beside OUT.pickle (the snapshot) it writes
OUT.stats.json (memory_stats) and OUT.calls.json (what the allocator asked of the driver: kind, address, size).
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
CALL_KINDS = {1: "allocate", 2: "refuse", 3: "release", 4: "map", 5: "unmap", 6: "refuse_map"}


class Call(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("device", ctypes.c_uint32), ("address", ctypes.c_uint64),
                ("size", ctypes.c_uint64)]


class Card:
    """The driving program's side of fake_cuda.cc."""

    def __init__(self):
        version = (torch.version.cuda or "12").split(".")[0]
        self.library = ctypes.CDLL(f"libcudart.so.{version}")
        self.library.oracle_calls.restype = ctypes.POINTER(Call)
        self.library.oracle_call_count.restype = ctypes.c_size_t

    def set_capacity(self, size):
        self.library.oracle_set_capacity(ctypes.c_uint64(size))

    def set_placement(self, name, seed=0):
        self.library.oracle_set_placement(PLACEMENTS.index(name), ctypes.c_uint64(seed))

    def feed(self, addresses):
        array = (ctypes.c_uint64 * len(addresses))(*addresses)
        self.library.oracle_feed(array, ctypes.c_size_t(len(addresses)))

    def hold_events(self, held):
        self.library.oracle_hold_events(int(held))

    def complete_events(self, count):
        self.library.oracle_complete_events(ctypes.c_size_t(count))

    def set_capturing(self, stream, capture):
        self.library.oracle_set_capturing(ctypes.c_uint64(stream.cuda_stream), ctypes.c_uint64(capture))

    def calls(self):
        calls = self.library.oracle_calls()
        return [(CALL_KINDS[calls[i].kind], calls[i].address, calls[i].size)
                for i in range(self.library.oracle_call_count())]


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


class Pools:
    """Private pools: those of MemPool where torch has it, else those that graph capture uses."""

    def __init__(self):
        self.has_objects = hasattr(torch.cuda, "MemPool")
        self.pools = []
        self.scope = None

    def make(self):
        self.pools.append(torch.cuda.MemPool() if self.has_objects else torch.cuda.graph_pool_handle())

    def enter(self, rng):
        pool = rng.choice(self.pools)
        if self.has_objects:
            self.scope = torch.cuda.use_mem_pool(pool)
            self.scope.__enter__()
        else:
            torch._C._cuda_beginAllocateCurrentStreamToPool(0, pool)
            self.scope = pool

    def leave(self):
        if self.has_objects:
            self.scope.__exit__(None, None, None)
        else:
            end = torch._C._cuda_endAllocateCurrentStreamToPool
            end(0) if RELEASE < (2, 2) else end(0, self.scope)
        self.scope = None


class Job:
    """A random program: a list of live tensors, some streams, some pools."""

    def __init__(self, card, seed, uses, target_bytes):
        self.card, self.rng, self.uses, self.target = card, random.Random(seed), uses, target_bytes
        self.live, self.live_bytes, self.ooms = [], 0, 0
        self.streams = [torch.cuda.default_stream()]
        if "streams" in uses:
            self.streams += [torch.cuda.Stream() for _ in range(2)]
        self.pools = Pools()
        if "pools" in uses:
            for _ in range(2):
                self.pools.make()
        card.hold_events("streams" in uses)

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
            tensor.record_stream(self.rng.choice(self.streams))

    def drop(self, count):
        for _ in range(min(count, len(self.live))):
            index = self.rng.randrange(len(self.live))
            self.live[index], self.live[-1] = self.live[-1], self.live[index]
            self.live_bytes -= self.live.pop().numel()

    def step(self):
        chance = self.rng.random()
        if chance < 0.004 and "empty_cache" in self.uses and self.pools.scope is None:
            torch.cuda.empty_cache()
        elif chance < 0.03 and len(self.streams) > 1 and self.pools.scope is None:
            torch.cuda.set_stream(self.rng.choice(self.streams))
        elif chance < 0.05 and "streams" in self.uses:
            self.card.complete_events(self.rng.randint(1, 8))
        elif chance < 0.06 and self.pools.pools:
            if self.pools.scope is None:
                self.pools.enter(self.rng)
            else:
                self.pools.leave()
        elif chance < 0.062:
            self.drop(len(self.live))
        elif self.live and self.rng.random() < 0.5 * self.live_bytes / self.target + 0.25:
            self.drop(1)
        else:
            self.allocate()

    def run(self, operations):
        for _ in range(operations):
            self.step()
        if self.pools.scope is not None:
            self.pools.leave()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", type=int, default=20000)
    parser.add_argument("--capacity", type=int, default=80 * GIB)
    parser.add_argument("--target", type=int, default=2 * GIB, help="about how many bytes are live")
    parser.add_argument("--placement", choices=PLACEMENTS, default="lowest")
    parser.add_argument("--fraction", type=float)
    parser.add_argument("--use", default="", help="streams,pools,empty_cache")
    arguments = parser.parse_args()
    card = Card()
    card.set_capacity(arguments.capacity)
    card.set_placement(arguments.placement, arguments.seed)
    torch.cuda.init()
    if arguments.fraction:
        torch.cuda.set_per_process_memory_fraction(arguments.fraction)
    torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python",
                                             max_entries=4 * arguments.operations)
    job = Job(card, arguments.seed, arguments.use.split(","), arguments.target)
    job.run(arguments.operations)
    snapshot = torch.cuda.memory._snapshot()
    stats = torch.cuda.memory_stats()
    with open(arguments.out, "wb") as file:
        pickle.dump(snapshot, file)
    with open(arguments.out.replace(".pickle", ".stats.json"), "w") as file:
        json.dump(dict(stats), file)
    with open(arguments.out.replace(".pickle", ".calls.json"), "w") as file:
        json.dump(card.calls(), file)
    print(f"{torch.__version__}: {arguments.operations} operations, {job.ooms} refused", file=sys.stderr)


if __name__ == "__main__":
    main()
