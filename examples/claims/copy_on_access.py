"""What a forked worker takes of a data set: nothing at first, then each page that it touches; and what RSS shows of it.

    python3 examples/claims/copy_on_access.py    (Linux)
"""
import gc
import os
import re


def memory_mib():
    """Of this process: resident, and private (written since the fork, or its own)."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        kib = {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB", file.read(), re.M)}
    return kib["Rss"] >> 10, (kib["Private_Clean"] + kib["Private_Dirty"]) >> 10


def about(mib):
    """So that the figures are the same on every machine."""
    return "nothing" if mib < 20 else f"more than {mib // 100 * 100 or 20} MiB"


def main():
    samples = [float(number) for number in range(6_000_000)]  # each an object with a count of its own
    gc.freeze()
    print(f"the parent holds {about(memory_mib()[0])}", flush=True)
    worker = os.fork()
    if worker == 0:
        resident, private = memory_mib()
        print(f"the worker's own at its start: {about(private)}")
        for sample in samples:  # reading counts references, which writes to the page
            sample.real
        print(f"after it read all samples: {about(memory_mib()[1] - private)}; "
              f"its RSS shows {about(memory_mib()[0] - resident)} of that", flush=True)
        os._exit(0)
    os.waitpid(worker, 0)


main()
