#!/usr/bin/env python3
"""Sends one random stream of requests through the allocator of a torch that runs on fake_cuda.cc, and records it.

    drive.py OUT.pickle --seed N [--operations N] [--capacity SIZE] [--placement NAME] [--fraction F] [--use WHAT,...]
             [--devices N] [--no-history]

Run by oracle.py, which sets the paths and PYTORCH_CUDA_ALLOC_CONF. WHAT is any of
    streams      two side streams, record_stream, events that complete late
    empty_cache  calls of it between requests
    pools        two private pools, entered and left
    nested       as pools, and a second scope may open inside the first
    renewed      as pools, and now and then one is given up for a new one
    custom       as pools, with a segment allocator of their own
    capture      as pools, and the card says that the stream captures a graph meanwhile
    options      as pools, some of which serve the default pool where memory is short, or never split
    inside       as empty_cache, also in an open scope
    limits       the limit changes on the way
    settings     settings change on the way
    late         history is switched on in the middle
    frames       stacks are recorded
Beside OUT.pickle (the snapshot) it writes OUT.requests (request_log.py), and for each device D OUT.D.stats.json
(memory_stats).
"""
import argparse
import ctypes
import json
import os
import pickle
import random
import subprocess
import sys
import warnings

warnings.simplefilter("ignore")

import torch  # noqa: E402

from request_log import ANY_STREAM, RequestLog  # noqa: E402

RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PLACEMENTS = ("lowest", "highest", "rising", "random", "fed")
CALL_KINDS = ("none", "allocate", "refuse", "release", "map", "unmap", "refuse_map", "reserve")
SEGMENT_ALLOCATORS = []  # to the end of the process: a pool does not keep its own
OF_POOLS = {"pools", "nested", "renewed", "custom", "capture", "options"}


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

    def complete_events_of(self, handle, count):
        self.library.oracle_complete_events_of(ctypes.c_uint64(handle), ctypes.c_size_t(count))

    def set_capturing(self, stream, capture):
        self.library.oracle_set_capturing(ctypes.c_uint64(stream.cuda_stream), ctypes.c_uint64(capture))

    def segment_allocator(self):
        functions = torch.cuda.memory.CUDAPluggableAllocator(self.path, "oracle_pool_allocate", "oracle_pool_release")
        SEGMENT_ALLOCATORS.append(functions.allocator())
        return SEGMENT_ALLOCATORS[-1]

    def call_count(self, device):
        return self.library.oracle_call_count(device)

    def calls(self, device=0, begin=0):
        calls = self.library.oracle_calls(device)
        return [(CALL_KINDS[calls[i].kind], calls[i].address, calls[i].size)
                for i in range(begin, self.call_count(device))]


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


def current_handle(device=None):
    """Of an index, else of the current device."""
    return torch._C._cuda_getCurrentRawStream(torch._C._cuda_getDevice() if device is None else device)


def id_of(pool):
    """Two numbers."""
    return tuple(getattr(pool, "id", pool))


class ObjectScope:
    """torch.cuda.use_mem_pool."""
    stream = ANY_STREAM

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
        self.stream = current_handle()
        torch._C._cuda_beginAllocateCurrentStreamToPool(0, pool)

    def leave(self):
        new_name = hasattr(torch._C, "_cuda_endAllocateToPool")
        end = torch._C._cuda_endAllocateToPool if new_name else torch._C._cuda_endAllocateCurrentStreamToPool
        end(0) if RELEASE < (2, 2) else end(0, self.pool)
        torch.cuda.set_stream(self.outer)


def completes_in_order(card, device, first, second):
    """Whether torch returns what `first` used before what `second` used."""
    tensors = [(torch.empty(1, dtype=torch.uint8, device="cuda"), stream) for stream in (first, second)]
    places = [tensor.data_ptr() for tensor, _ in tensors]
    for tensor, stream in tensors:
        tensor.record_stream(stream)
    del tensor, tensors
    card.complete_events(2)
    torch.empty(1, dtype=torch.uint8, device="cuda")  # looks at the events
    trace = torch.cuda.memory._snapshot()["device_traces"][device]
    return [event["addr"] for event in trace if event["action"] == "free_completed"][-3:-1] == places


def first_in_order(device, streams):
    """Indices of two for which completes_in_order holds, whichever is used first."""
    record_history(1000)
    torch.cuda.set_device(device)
    card = Card()
    card.hold_events(True)
    return next((i, j) for i in range(len(streams)) for j in range(i + 1, len(streams))
                if completes_in_order(card, device, streams[i], streams[j]) and
                not completes_in_order(card, device, streams[j], streams[i]))


def streams_in_order(device):
    """Two, whose events torch looks at in the order of their handles, as the engine does: torch's is that of a hash.

    Found out in a copy of this process.
    """
    drawn = sorted((torch.cuda.Stream(device) for _ in range(32)), key=lambda stream: stream.cuda_stream)
    result, answer = os.pipe()
    child = os.fork()
    if child == 0:
        torch.cuda._is_in_bad_fork = lambda: False  # this card minds no fork
        os.write(answer, bytes(first_in_order(device, drawn)))
        os._exit(0)
    os.waitpid(child, 0)
    found = os.read(result, 2)
    os.close(result)
    os.close(answer)
    return [drawn[index] for index in found]


class CaptureMarks:
    """What CUDAGraph tells the allocator when a capture begins and ends, from 2.13 on; Python has no call of it."""
    ALLOCATOR = "_ZN3c104cuda20CUDACachingAllocator9allocatorE"
    METHOD = "_ZN3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocator{}Ea"

    def __init__(self):
        path = os.path.join(os.path.dirname(torch.__file__), "lib", "libc10_cuda.so")
        listed = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout.splitlines()
        places = {words[-1]: int(words[0], 16) for words in map(str.split, listed) if len(words) == 3}
        self.allocator = ctypes.c_void_p.in_dll(ctypes.CDLL(path), self.ALLOCATOR)
        loaded_at = ctypes.addressof(self.allocator) - places[self.ALLOCATOR]
        method = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int8)
        self.methods = {begins: method(loaded_at + places[self.METHOD.format(name)])
                        for begins, name in ((True, "16markCaptureBegin"), (False, "14markCaptureEnd"))}

    def mark(self, begins):
        self.methods[begins](self.allocator, 0)


class Pools:
    """Private pools: those of MemPool where torch has it, else (and under capture) those that graphs use."""

    def __init__(self, card, log, rng, uses, count):
        self.card, self.log, self.uses = card, log, uses
        self.has_objects = hasattr(torch.cuda, "MemPool") and "capture" not in uses
        self.side_stream = None if self.has_objects else torch.cuda.Stream()
        self.marks = CaptureMarks() if "capture" in uses and RELEASE >= (2, 13) else None
        self.captures, self.begun = 0, []  # each use of a pool of graphs is a reference to it
        self.pools = []
        for _ in range(count):
            self.pools.append(self.make(rng))
        self.scopes = []

    def make(self, rng):
        if not self.has_objects:
            return torch.cuda.graph_pool_handle()
        options = self.options(rng) if "options" in self.uses else {}
        own = [self.card.segment_allocator()] if "custom" in self.uses else []
        pool = torch.cuda.MemPool(*own, **options)
        said = bool(own) + 2 * options.get("use_on_oom", False) + 4 * options.get("no_split", False)
        self.log.write("pool", *id_of(pool), said)
        return pool

    def options(self, rng):
        """Of several pools that serve the default pool torch asks in the order of a hash: one does."""
        wanted = {"use_on_oom": ((2, 8), not self.pools), "no_split": ((2, 10), rng.random() < 0.5)}
        return {name: value for name, (since, value) in wanted.items() if RELEASE >= since}

    def renew(self, index, rng):
        name = id_of(self.pools[index])
        while self.pools[index] in self.begun:
            self.begun.remove(self.pools[index])
            self.log.write("release", *name)
            torch._C._cuda_releasePool(0, self.pools[index])
        if self.has_objects:
            self.log.write("destroy", *name)
        self.pools[index] = None
        self.log.calls()
        self.pools[index] = self.make(rng)

    def enter(self, rng):
        pool = rng.choice(self.pools)
        if any(pool is opened for opened, _ in self.scopes):
            return
        scope = ObjectScope(pool) if self.has_objects else StreamScope(pool, self.side_stream)
        self.scopes.append((pool, scope))
        self.log.write("begin", *id_of(pool), scope.stream, int("capture" in self.uses))
        if not self.has_objects:
            self.begun.append(pool)
        if "capture" in self.uses:
            self.captures += 1
            self.set_capturing(self.captures)

    def leave(self):
        if "capture" in self.uses:
            self.set_capturing(0)
        pool, scope = self.scopes.pop()
        self.log.write("end", *id_of(pool))
        if self.has_objects:  # use_mem_pool gives its reference back
            self.log.write("release", *id_of(pool))
        scope.leave()
        self.log.calls()

    def set_capturing(self, capture):
        """`capture`: its number, 0 at its end."""
        if self.marks:
            self.marks.mark(capture != 0)
        self.card.set_capturing(torch.cuda.current_stream(), capture)

    def step(self, rng):
        if self.scopes and ("nested" not in self.uses or len(self.scopes) > 1 or rng.random() < 0.5):
            self.leave()
        elif "renewed" in self.uses and rng.random() < 0.2:
            self.renew(rng.randrange(len(self.pools)), rng)
        else:
            self.enter(rng)


def set_settings(conf):
    """As PYTORCH_CUDA_ALLOC_CONF takes them."""
    if hasattr(torch._C, "_accelerator_setAllocatorSettings"):
        torch._C._accelerator_setAllocatorSettings(conf)
    else:
        torch.cuda.memory._set_allocator_settings(conf)


def set_limit(log, fraction, total, device):
    """Releases to 2.12 drop what is below a byte, later ones round: switches.py asks."""
    exact = fraction * total
    log.write("limit", device, round(exact) if RELEASE >= (2, 13) else int(exact))
    torch.cuda.set_per_process_memory_fraction(fraction, device)


class Job:
    """A random program: a list of live tensors, some streams, some pools, perhaps several devices."""

    def __init__(self, card, log, arguments):
        self.card, self.log, self.rng = card, log, random.Random(arguments.seed)
        self.uses, self.confs = arguments.use.split(","), arguments.conf
        self.target, self.devices, self.capacity = arguments.target, arguments.devices, arguments.capacity
        self.live, self.live_bytes, self.ooms, self.made = [], 0, 0, 0
        self.used = set()  # tensors that other streams used
        # What torch does with several that are freed in a scope is decided by the order of its pointers, and what was
        # used in a scope and freed outside leaves a note on an object that may belong to another block later. So there
        # is one at a time, and what was used inside is freed inside.
        self.deferred, self.used_inside = False, None
        self.streams = [self.streams_of(device) for device in range(self.devices)]
        self.pools = Pools(card, log, self.rng, self.uses, 2 if OF_POOLS & set(self.uses) else 0)
        card.hold_events("streams" in self.uses)

    def streams_of(self, device):
        streams = [torch.cuda.default_stream(device)]
        if "streams" in self.uses:
            streams += streams_in_order(device)
        return streams

    def allocate(self):
        size = random_size(self.rng)
        self.made += 1
        self.log.write("malloc", self.made, torch._C._cuda_getDevice(), current_handle(), size)
        try:
            tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            self.log.calls()
            self.log.write("oom")
            self.ooms += 1
            self.drop(len(self.live) // 2)
            if self.pools.pools and not self.pools.scopes and self.rng.random() < 0.1:
                self.give_up_pools()
            return
        self.log.calls()
        self.log.write("at", tensor.data_ptr())
        scoped = bool(self.pools.scopes)
        self.deferred = self.deferred and scoped
        self.live.append((self.made, tensor))
        self.live_bytes += size
        if "streams" in self.uses and self.rng.random() < 0.2 and not (scoped and (self.deferred or self.used_inside)):
            stream = self.rng.choice(self.streams[tensor.device.index][1:])
            self.log.write("record_stream", self.made, stream.cuda_stream, current_handle())
            tensor.record_stream(stream)
            self.used.add(self.made)
            self.used_inside = self.made if scoped else None

    def give_up_pools(self):
        """Else they soon hold all memory, and nothing but refusals follows."""
        self.drop(len(self.live))
        for index in range(len(self.pools.pools)):
            self.pools.renew(index, self.rng)

    def drop(self, count):
        for _ in range(min(count, len(self.live))):
            index = self.rng.randrange(len(self.live))
            self.live[index], self.live[-1] = self.live[-1], self.live[index]
            if self.may_free(self.live[-1][0]):
                self.free_last()

    def may_free(self, number):
        """In a scope, one tensor that other streams used: if one was used inside, that one."""
        if number not in self.used or not self.pools.scopes:
            return True
        return not self.deferred and self.used_inside in (None, number)

    def free_last(self):
        number, tensor = self.live.pop()
        if number in self.used and self.pools.scopes:
            self.deferred = True
        if number == self.used_inside:
            self.used_inside = None
        self.live_bytes -= tensor.numel()
        self.log.write("free", number, current_handle(tensor.device.index))
        del tensor  # asks the driver for nothing

    def step_pools(self):
        if self.used_inside:
            index = next(index for index, (number, _) in enumerate(self.live) if number == self.used_inside)
            self.live[index], self.live[-1] = self.live[-1], self.live[index]
            self.free_last()
        self.pools.step(self.rng)

    def empty_cache(self):
        self.log.write("empty_cache", *(current_handle(device) for device in range(self.devices)))
        torch.cuda.empty_cache()
        self.log.calls()

    def complete_events(self):
        stream = self.rng.choice(self.streams[self.rng.randrange(self.devices)]).cuda_stream
        count = self.rng.randint(1, 8)
        self.log.write("complete", stream, count)
        self.card.complete_events_of(stream, count)

    def change_limit(self):
        fraction = self.rng.choice((1.0, self.rng.uniform(0.6, 1.5) * self.target / self.capacity))
        set_limit(self.log, min(fraction, 1.0), self.capacity, torch.cuda.current_device())

    def change_settings(self):
        conf = self.rng.choice(self.confs)
        self.log.write("settings", conf)
        set_settings(conf)

    def step(self):
        chance = self.rng.random()
        if chance < 0.004 and "empty_cache" in self.uses and ("inside" in self.uses or not self.pools.scopes):
            self.empty_cache()
        elif chance < 0.03 and "streams" in self.uses and not self.pools.scopes:
            torch.cuda.set_stream(self.rng.choice(self.streams[torch.cuda.current_device()]))
        elif chance < 0.05 and "streams" in self.uses:
            self.complete_events()
        elif chance < 0.06 and self.pools.pools:
            self.step_pools()
        elif chance < 0.062:
            self.drop(len(self.live))
        elif chance < 0.075 and self.devices > 1:
            torch.cuda.set_device(self.rng.randrange(self.devices))
        elif chance < 0.078 and "limits" in self.uses:
            self.change_limit()
        elif chance < 0.081 and "settings" in self.uses:
            self.change_settings()
        elif self.live and self.rng.random() < 0.5 * self.live_bytes / self.target + 0.25:
            self.drop(1)
        else:
            self.allocate()

    def run(self, operations):
        for _ in range(operations):
            self.step()

    def end(self):
        while self.pools.scopes:
            self.step_pools()


def record_history(operations, context=None):
    torch.cuda.memory._record_memory_history(enabled="all", context=context, stacks="python",
                                             max_entries=4 * operations)


def without_folders(value):
    """A snapshot whose stacks name files, and not where they lie on this machine."""
    if isinstance(value, list):
        for part in value:
            without_folders(part)
    elif isinstance(value, dict):
        if "filename" in value:
            value["filename"] = os.path.basename(value["filename"])
        for part in value.values():
            without_folders(part)


def write(out, log, devices, frames):
    """The snapshot first: memory_stats is compared with its state."""
    snapshot = torch.cuda.memory._snapshot()
    if frames:
        without_folders(snapshot)
    with open(out, "wb") as file:
        pickle.dump(snapshot, file)
    stats = [dict(torch.cuda.memory_stats(device)) for device in range(devices)]
    log.end(stats)
    for device in range(devices):
        with open(out.replace(".pickle", f".{device}.stats.json"), "w") as file:
            json.dump(stats[device], file)


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
    parser.add_argument("--conf", action="append", default=[], help="the first holds already; others for `settings`")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--no-history", action="store_true", help="the snapshot gets no trace")
    arguments = parser.parse_args()
    card = Card()
    card.set_devices(arguments.devices)
    card.set_capacity(arguments.capacity)
    card.set_placement(arguments.placement, arguments.seed)
    torch.cuda.init()
    log = RequestLog(arguments.out.replace(".pickle", ".requests"), card, arguments.devices)
    log.write("torch", torch.__version__)
    log.write("settings", *arguments.conf[:1])
    for device in range(arguments.devices):
        log.write("card", device, arguments.capacity)
        if arguments.fraction:
            set_limit(log, arguments.fraction, arguments.capacity, device)
    job = Job(card, log, arguments)
    before = arguments.operations // 2 if "late" in job.uses else 0
    job.run(before)
    if not arguments.no_history:
        record_history(arguments.operations, "all" if "frames" in job.uses else None)
    job.run(arguments.operations - before)
    job.end()
    write(arguments.out, log, arguments.devices, "frames" in job.uses)
    print(f"{torch.__version__}: {arguments.operations} operations, {job.ooms} refused", file=sys.stderr)


if __name__ == "__main__":
    main()
