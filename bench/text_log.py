#!/usr/bin/env python3
"""Times `why` over a training log of 1 GiB that ends in a failure, and its memory.

    bench/text_log.py --program build/release/bin/oomscope [--gib 1] [--runs 3] [--check]

The log is written to a scratch folder and read once before, so that the disk is not timed. User and system time is
that of one core, since the reader has one thread. --check exits 1 above 4 s a GiB or 64 MiB.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

FAILURE = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.50 GiB of "
           "which 620.00 MiB is free. Including non-PyTorch memory, this process has 22.80 GiB memory in use. Of the allocated "
           "memory 21.40 GiB is allocated by PyTorch, and 910.00 MiB is reserved by PyTorch but unallocated.\n")


def training_lines(count):
    rng = random.Random(1)
    return "".join(f"[2030-01-01 10:{i // 60 % 60:02d}:{i % 60:02d},123] [INFO] [rank{i % 8}]: epoch {i // 1000}/90 step {i} "
                   f"loss {rng.random() * 3:.4f} lr 3.0e-04 grad_norm {rng.random():.3f} tokens/s {rng.randint(10000, 99999)} "
                   f"mem {rng.random() * 80:.1f}GB\n" for i in range(count))


def write_log(path, size_bytes):
    block = training_lines(60000).encode()
    with open(path, "wb") as file:
        while file.tell() < size_bytes:
            file.write(block)
        file.write(FAILURE.encode())


def run(program, path):
    process = subprocess.Popen([program, "why", str(path), "--json"], stdout=subprocess.PIPE)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0 or b'"gpu_oom_capacity"' not in text:
        sys.exit(f"{program}: status {status}, {text[:300]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/oomscope")
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "train.log"
        write_log(path, int(options.gib * (1 << 30)))
        runs = [run(options.program, path) for _ in range(options.runs + 1)][1:]
    seconds, memory = min(r[0] for r in runs) / options.gib, max(r[1] for r in runs)
    print(f"{seconds:.2f} s a GiB on one core, {memory:.0f} MiB of memory")
    return 1 if options.check and (seconds >= 4 or memory >= 64) else 0


if __name__ == "__main__":
    sys.exit(main())
