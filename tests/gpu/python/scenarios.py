"""Small jobs that run out of memory in one place each, under a limit of 2 GiB. usage: scenarios.py NAME [FOLDER]

With FOLDER, oomscope is installed there; without, the job runs as it would alone, for comparison.
"""
import os
import signal
import sys
import threading
import time

import torch

LIMIT = 2 << 30
ROWS = 25_000  # of 4096 floats: 400 MB a tensor
installs = len(sys.argv) > 2


def limited(most=LIMIT):
    torch.cuda.set_per_process_memory_fraction(most / torch.cuda.mem_get_info()[1])


def batch():
    return torch.randn(ROWS, 4096, device="cuda")


def forward():
    net = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 16384)).cuda()
    net(batch()).sum().backward()


def backward():
    net = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 4096)).cuda()
    out = net(batch())
    out.sum().backward()


def optimizer():
    net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(10)]).cuda()
    adam = torch.optim.Adam(net.parameters())
    net(torch.randn(8, 4096, device="cuda")).sum().backward()
    adam.step()


def thread():
    def fill():
        kept = []
        while True:
            kept.append(torch.empty(100 << 20, dtype=torch.uint8, device="cuda"))

    worker = threading.Thread(target=fill, name="filler")
    worker.start()
    worker.join()
    print("the main thread goes on", torch.ones(4, device="cuda").sum().item())


def graph():
    x = torch.ones(4096, 4096, device="cuda")
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        kept = [x + i for i in range(100)]
    print(len(kept))


def compiled():
    net = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 16384)).cuda()
    fast = torch.compile(net)
    fast(torch.randn(64, 4096, device="cuda")).sum().backward()
    fast(batch()).sum().backward()


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return torch.full((4096,), float(index))


def loader():
    batches = iter(torch.utils.data.DataLoader(Rows(), 8, num_workers=2, persistent_workers=True))
    next(batches)
    print("workers", *[worker.pid for worker in batches._workers])
    forward()


def begin_ranks():
    """Over NCCL where each rank has a card of its own, over gloo where they share one."""
    import torch.distributed as dist
    backend = "nccl" if torch.cuda.device_count() >= int(os.environ["WORLD_SIZE"]) else "gloo"
    dist.init_process_group(backend)
    together()
    if dist.get_rank() == 0:
        print(f"backend {backend}, {torch.cuda.device_count()} card(s)", file=sys.stderr)
    return dist.get_rank()


def together():
    """An all_reduce that is waited for."""
    torch.distributed.all_reduce(torch.ones(1, device="cuda"))
    torch.cuda.synchronize()


def ranks():
    if begin_ranks() == 1:
        forward()
    together()


def ranks_again():
    """The first failure is caught, and the job goes on to a second."""
    if begin_ranks() == 1:
        try:
            forward()
        except torch.cuda.OutOfMemoryError:
            print("caught", file=sys.stderr)
        together()
        forward()
    together()
    together()


def ranks_together():
    begin_ranks()
    forward()


def worker():
    """A process of multiprocessing's, which ends without atexit."""
    child = torch.multiprocessing.get_context("spawn").Process(target=start_worker, args=(sys.argv[2:],))
    child.start()
    child.join()
    sys.exit(child.exitcode)


def start_worker(folders):
    if folders:
        import oomscope
        oomscope.install(*folders)
    limited()
    forward()


def interrupt():
    net = torch.nn.Linear(4096, 4096).cuda()
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    step = 0
    while True:
        net(torch.randn(512, 4096, device="cuda")).sum().backward()
        sgd.step()
        step += 1
        if step == 10:  # torch imports much in the first step: an interrupt in an import can end as another error
            threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()


def interrupt_in_dump():
    """Ctrl-C while the failure is being written, which ends that; alone, while the error is being handled."""
    def press():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)

    if installs:
        from oomscope import _torch
        dump = _torch.snapshot
        _torch.snapshot = lambda: (press(), dump())[1]
    try:
        forward()
    except torch.cuda.OutOfMemoryError:
        if not installs:
            press()
        time.sleep(5)


def retry():
    for attempt in range(5):
        try:
            torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            print("caught", attempt)
    print("went on", torch.ones(4, device="cuda").sum().item())


def deep(levels, size):
    return deep(levels - 1, size) if levels else torch.empty(size, device="cuda")


def million():
    """A full ring of a million events, a stack of some twenty frames each."""
    import resource
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.time()
    kept = []
    for i in range(505_000):
        kept.append(deep(15 + i % 5, 100 + i % 977))
        if len(kept) > 64:
            kept.pop(0)
    print(f"history: {(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024:.0f} MiB of host memory, "
          f"{(time.time() - began) / 505_000 * 1e6:.1f} us a request and its free", file=sys.stderr)
    torch.empty(4 << 30, dtype=torch.uint8, device="cuda")


if __name__ == "__main__":
    if installs:
        import oomscope
        oomscope.install(sys.argv[2])
    if "LOCAL_RANK" in os.environ:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    if sys.argv[1] != "worker":
        limited()
    globals()[sys.argv[1]]()
