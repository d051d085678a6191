"""Records allocator behaviour that training workloads rarely show, for `oomscope verify`. Needs a GPU and PyTorch.

    python3 tests/gpu/record_cases.py OUT [--only NAME] [--device-pair]

One process a case (this script calls itself with --case), since the allocator reads its settings once. Each case writes
OUT/NAME.pickle and OUT/NAME.json: settings, torch, card, driver and memory_stats at the end.
Most cases are random requests from a fixed seed: sizes over the whole range, several streams, record_stream,
empty_cache, private pools, a memory limit; what the allocator does with them is the record.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time

MIB = 1 << 20

# name: (PYTORCH_CUDA_ALLOC_CONF, limit in MiB, function, arguments)
CASES = {}


def case(name, conf="", limit=0, function="requests", **arguments):
    CASES[name] = (conf, limit, function, arguments)


CONFS = {
    "default": "", "split20": "max_split_size_mb:20", "split64": "max_split_size_mb:64", "split200": "max_split_size_mb:200",
    "expand": "expandable_segments:True", "round1": "roundup_power2_divisions:1", "round4": "roundup_power2_divisions:4",
    "roundlist": "roundup_power2_divisions:[2:2,32:8,256:1,>:4]", "segment64": "large_segment_size_mb:64",
    "segment32expand": "large_segment_size_mb:32,expandable_segments:True",
    "nonsplit": "max_split_size_mb:64,max_non_split_rounding_mb:100", "gc5": "garbage_collection_threshold:0.5",
    "gc8split64": "garbage_collection_threshold:0.8,max_split_size_mb:64",
    "gc6expand": "garbage_collection_threshold:0.6,expandable_segments:True",
    "expandsplit": "expandable_segments:True,max_split_size_mb:64,roundup_power2_divisions:8",
}
for name, conf in CONFS.items():
    case(f"random_{name}", conf, 0, seed=1)
    case(f"random_{name}_cap", conf, 1500, seed=2)
    case(f"random_{name}_streams_cap", conf, 1800, seed=3, streams=3)
for name in ("default", "expand", "split64", "gc5"):
    case(f"late_{name}", CONFS[name], 1500, seed=4, late=4000, streams=2)
    case(f"ring_{name}", CONFS[name], 1500, seed=5, entries=3000, streams=2)
    case(f"pools_{name}", CONFS[name], 1800, function="pools", seed=6)
    case(f"threads_{name}", CONFS[name], 0, function="threads", seed=7)
case("from_start", "", 0, seed=8, from_start=True)
case("from_start_expand", "expandable_segments:True", 0, seed=8, from_start=True)
case("context_alloc", "", 1500, seed=9, context="alloc")
case("full_card", "", 0, function="full_card", seed=10)
case("full_card_expand", "expandable_segments:True", 0, function="full_card", seed=11)
case("full_card_split64", "max_split_size_mb:64", 0, function="full_card", seed=12)
case("graphs", "", 0, function="graphs")
case("graphs_expand", "expandable_segments:True", 0, function="graphs")
case("graph_trees", "", 0, function="graph_trees")
for name in ("default", "expand"):
    case(f"graph_pools_{name}", CONFS[name], function="graph_pools")
    case(f"graph_side_{name}", CONFS[name], function="graph_side")
    case(f"dead_pools_{name}", CONFS[name], function="dead_pools", seed=16)
    case(f"dead_pools_late_{name}", CONFS[name], function="dead_pools", seed=17, late=1)
    case(f"graph_trees_back_{name}", CONFS[name], function="graph_trees_back")
case("switched", "", 0, function="switched", seed=13)
case("release_lock", "release_lock_on_cudamalloc:True", 1500, seed=14)
case("two_devices", "", 0, function="two_devices", seed=15)


def size_of(rng):
    kind = rng.random()
    if kind < 0.45:
        return rng.randint(1, 1 * MIB + 4096)
    if kind < 0.8:
        return rng.randint(1 * MIB, 12 * MIB)
    if kind < 0.97:
        return rng.choice([rng.randint(8, 80) * MIB, rng.randint(10 * MIB, 70 * MIB), 1 << rng.randint(20, 26)])
    return rng.randint(60, 400) * MIB


class Requests:
    """Random requests; frees at random; an OOM frees half of what is held, as a program that recovers would."""

    def __init__(self, torch, seed, streams=1, budget=1200 * MIB, device=0):
        self.torch, self.rng, self.budget, self.device = torch, random.Random(seed), budget, device
        self.streams = [torch.cuda.default_stream(device)] + [torch.cuda.Stream(device) for _ in range(streams - 1)]
        self.live, self.bytes = [], 0

    def free_one(self):
        index = self.rng.randrange(len(self.live))
        self.live[index], self.live[-1] = self.live[-1], self.live[index]
        tensor = self.live.pop()
        self.bytes -= tensor.numel()

    def step(self):
        torch, rng = self.torch, self.rng
        while self.live and (self.bytes > self.budget or rng.random() < 0.45):
            self.free_one()
        size = size_of(rng)
        stream = rng.choice(self.streams)
        try:
            with torch.cuda.stream(stream):
                tensor = torch.empty(size, dtype=torch.uint8, device=f"cuda:{self.device}")
        except torch.OutOfMemoryError:
            for _ in range(len(self.live) // 2):
                self.free_one()
            return
        if len(self.streams) > 1 and rng.random() < 0.2:
            other = rng.choice(self.streams)
            with torch.cuda.stream(other):
                tensor[:1024].fill_(1) if rng.random() < 0.5 else torch.cuda._sleep(200000)
            tensor.record_stream(other)
        self.live.append(tensor)
        self.bytes += size
        if rng.random() < 0.002:
            torch.cuda.empty_cache()

    def run(self, steps):
        for _ in range(steps):
            self.step()


def requests(torch, record, seed, streams=1, late=0, **_):
    work = Requests(torch, seed, streams)
    work.run(late)
    if late:
        record()
    work.run(6000)
    return work


def pools(torch, record, seed, **_):
    work = Requests(torch, seed, 2, 700 * MIB)
    kept = []
    for round_ in range(6):
        work.run(400)
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            inner = Requests(torch, seed * 100 + round_, 1, 300 * MIB)
            inner.run(200)
        if round_ % 2:
            kept.append((pool, inner))
        else:
            inner.live.clear()
            del pool, inner
        work.run(200)
        if round_ == 3:
            torch.cuda.empty_cache()
    return work, kept


def threads(torch, record, seed, **_):
    import threading
    works = [Requests(torch, seed * 10 + i, 1, 300 * MIB) for i in range(3)]
    running = [threading.Thread(target=work.run, args=(1500,)) for work in works]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return works


def full_card(torch, record, seed, **_):
    """Another process holds all but some 2 GiB: the driver refuses, not a limit."""
    code = ("import torch,sys,time\n"
            "torch.cuda.init(); free,_=torch.cuda.mem_get_info(); keep=int(sys.argv[1])\n"
            "x=torch.empty(free-keep,dtype=torch.uint8,device='cuda'); print('held',flush=True); sys.stdin.read()")
    hog = subprocess.Popen([sys.executable, "-c", code, str(1400 * MIB)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    hog.stdout.readline()
    try:
        work = Requests(torch, seed, 2, 1150 * MIB)
        work.run(5000)
    finally:
        hog.stdin.close()
        hog.wait()
    return work


def graphs(torch, record, **_):
    layers = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda()
    static = torch.randn(64, 512, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            layers(static)
    torch.cuda.current_stream().wait_stream(side)
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        a = layers(static)
    with torch.cuda.graph(second, pool=first.pool()):
        b = layers(static * 2)
    for _ in range(5):
        first.replay()
        second.replay()
        torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
    del a, first
    torch.cuda.empty_cache()
    third = torch.cuda.CUDAGraph()
    with torch.cuda.graph(third):
        c = layers(static + 1)
    third.replay()
    del b, second
    torch.cuda.empty_cache()
    return third, c


def graph_trees(torch, record, **_):
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(6)]).cuda()
    compiled = torch.compile(model, mode="reduce-overhead")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(8):
        loss = compiled(torch.randn(64 if step % 3 else 32, 256, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss


def perceptron(torch, width):
    layers = [torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))
              for _ in range(4)]
    return torch.nn.Sequential(*layers).cuda()


def warm_up(torch, step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
        step()
    torch.cuda.current_stream().wait_stream(side)


def graph_pools(torch, record, **_):
    """Graphs of several batches in one pool and one of training in its own; some are gone before the end."""
    model = perceptron(torch, 512)
    inputs = {batch: torch.randn(batch, 512, device="cuda") for batch in (400, 200, 60, 9)}
    captured, outputs = {}, {}
    shared = torch.cuda.graph_pool_handle()
    with torch.no_grad():
        warm_up(torch, lambda: model(inputs[400]))
        for batch, static in inputs.items():
            captured[batch] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured[batch], pool=shared):
                outputs[batch] = model(static)
    static = torch.randn(250, 512, device="cuda")
    warm_up(torch, lambda: model(static).sum().backward())
    model.zero_grad(set_to_none=True)
    training = torch.cuda.CUDAGraph()
    with torch.cuda.graph(training):
        loss = model(static).sum()
        loss.backward()
    training.replay()
    others = [torch.empty((3 + 5 * i % 27) * MIB, dtype=torch.uint8, device="cuda") for i in range(12)]
    captured.pop(400).reset()
    del outputs[400], others
    torch.cuda.empty_cache()
    training.reset()
    del loss, training
    model.zero_grad(set_to_none=True)
    torch.cuda.empty_cache()
    model(torch.randn(1500, 512, device="cuda")).sum().backward()
    captured.clear()
    outputs.clear()
    torch.cuda.empty_cache()
    return model


def graph_side(torch, record, **_):
    """Side streams and record_stream within a capture; the second graph of the pool outlives the first."""
    model, static = perceptron(torch, 512), torch.randn(384, 512, device="cuda")
    side, first, second = torch.cuda.Stream(), torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.no_grad():
        warm_up(torch, lambda: model(static))
        with torch.cuda.graph(first):
            main = torch.cuda.current_stream()
            hidden = model(static)
            side.wait_stream(main)
            with torch.cuda.stream(side):
                hidden.record_stream(side)
                doubled = hidden * 2
                scratch = torch.empty(25 * MIB, dtype=torch.uint8, device="cuda")
            kept = [model(static) for _ in range(3)]
            del kept[1], scratch
            main.wait_stream(side)
            doubled.record_stream(main)
            total = doubled + hidden
            del hidden, doubled
            result = model(total)
        others = [torch.empty((1 + 7 * i % 22) * MIB, dtype=torch.uint8, device="cuda") for i in range(10)]
        first.replay()
        del others[::2]
        torch.cuda.empty_cache()
        with torch.cuda.graph(second, pool=first.pool()):
            last = model(result)
            product = last @ last.T
        second.replay()
        del first, kept, total, result
        torch.cuda.empty_cache()
        del second, last, product
        torch.cuda.empty_cache()
    return others


def dead_pools(torch, record, seed, late=0, **_):
    """Two MemPools, one within the other's scope, that both end before the dump."""
    rng = random.Random(seed)

    def tensor(most):
        return torch.empty(int(2 ** rng.uniform(9, most)), dtype=torch.uint8, device="cuda")

    outer, inner = torch.cuda.MemPool(), torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(outer):
        kept = [tensor(26) for _ in range(60)]
        with torch.cuda.use_mem_pool(inner):
            others = [tensor(25) for _ in range(40)]
            del others[::3]
        del kept[::2]
    if late:
        record()
    between = [tensor(24) for _ in range(20)]
    del kept[::2], between[::2]
    torch.cuda.empty_cache()
    with torch.cuda.use_mem_pool(inner):
        others += [tensor(23) for _ in range(20)]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.cuda.use_mem_pool(outer):
        lent = torch.randn(1000, 1000, device="cuda")
        lent.record_stream(torch.cuda.default_stream())
        del lent
    torch.cuda.synchronize()
    kept.clear()
    del outer
    others.clear()
    del inner
    return between, [tensor(25) for _ in range(30)]


def graph_trees_back(torch, record, **_):
    """Training with two batches, then inference: each new graph first restores the state that its pool had."""
    model = torch.nn.Sequential(*[torch.nn.Linear(320, 320) for _ in range(5)]).cuda()
    compiled = torch.compile(model, mode="reduce-overhead")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(9):
        torch.compiler.cudagraph_mark_step_begin()
        loss = compiled(torch.randn(160 if step % 4 else 90, 320, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    del loss
    with torch.no_grad():
        for _ in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            compiled(torch.randn(50, 320, device="cuda")).clone()
    return compiled


def switched(torch, record, seed, **_):
    work = Requests(torch, seed, 2)
    work.run(1500)
    torch._C._accelerator_setAllocatorSettings("max_split_size_mb:64")
    work.run(1500)
    torch._C._accelerator_setAllocatorSettings("expandable_segments:True")
    work.run(1500)
    torch._C._accelerator_setAllocatorSettings("expandable_segments:False")
    work.run(1500)
    return work


def two_devices(torch, record, seed, **_):
    works = [Requests(torch, seed + i, 1, 600 * MIB, device=i) for i in range(min(2, torch.cuda.device_count()))]
    for _ in range(2000):
        for work in works:
            work.step()
    return works


def run_case(name, out):
    import torch
    conf, limit, function, arguments = CASES[name]

    def record():
        torch.cuda.memory._record_memory_history(enabled="all", context=arguments.get("context", "all"), stacks="python",
                                                 max_entries=arguments.get("entries", 1000000))
    if arguments.get("from_start"):
        record()
    torch.cuda.init()
    if not arguments.get("from_start"):
        torch.zeros(1, device="cuda")
    if limit:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(limit * MIB / total)
    if not arguments.get("from_start") and not arguments.get("late"):
        record()
    kept = globals()[function](torch, record, **arguments)
    torch.cuda.synchronize()
    torch.cuda.memory._dump_snapshot(os.path.join(out, name + ".pickle"))
    json.dump({"name": name, "conf": conf, "cap_mib": limit, "torch": torch.__version__,
               "card": torch.cuda.get_device_name(), "stats": dict(torch.cuda.memory_stats())},
              open(os.path.join(out, name + ".json"), "w"), indent=0)
    del kept


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--case")
    parser.add_argument("--only")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    if arguments.case:
        return run_case(arguments.case, arguments.out)
    names = [name for name in CASES if not arguments.only or arguments.only in name]
    exclusive = [name for name in names if name.startswith("full_card")]
    waiting, running = [name for name in names if name not in exclusive], {}

    def start(name):
        environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=CASES[name][0])
        return subprocess.Popen([sys.executable, __file__, arguments.out, "--case", name], env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def finish(name, process):
        error = process.communicate()[1]
        print(name, "ok" if process.returncode == 0 else "FAILED " + error[-400:], flush=True)

    while waiting or running:
        while waiting and len(running) < 8:
            name = waiting.pop(0)
            running[name] = start(name)
        for name, process in list(running.items()):
            if process.poll() is not None:
                finish(name, running.pop(name))
        time.sleep(0.1)
    for name in exclusive:
        finish(name, start(name))


if __name__ == "__main__":
    main()
