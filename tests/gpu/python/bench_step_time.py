"""How much install() costs a step: 20 interleaved pairs of blocks on a workload of a script that calls
torch.cuda.synchronize and logs the time after each step. usage: bench_step_time.py SCRIPT [STACKS...]

One process, so that clocks and the card are the same for both: every ten steps the watcher is switched on or off. The
first two steps of a block are left out. Prints the median over pairs of the change of a step's time.
"""
import json
import runpy
import statistics
import sys
import tempfile

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

import oomscope
from oomscope import _marks, _torch

PAIRS, BLOCK, LEFT_OUT = 20, 10, 2


def switch(on, stacks):
    _marks.progress.paused = 0 if on else 1
    if on:
        _torch.start_history(1_000_000, stacks)
    else:
        torch.cuda.memory._record_memory_history(None)


def main(script, stacks):
    steps = 0

    def after(optimizer, *_):
        nonlocal steps
        steps += 1
        if steps % BLOCK == 0:
            switch(is_on(steps // BLOCK), stacks)

    def is_on(block):  # off on, on off, off on, ...
        return (block % 2 == 1) != (block // 2 % 2 == 1)

    with tempfile.TemporaryDirectory() as out:
        oomscope.install(out + "/kept", stacks=stacks)
        torch.cuda.init()
        switch(False, stacks)
        hook = register_optimizer_step_post_hook(after)
        sys.argv = [script, "gpt_fp32", out, "--steps", str(2 * PAIRS * BLOCK), "--stacks", "none", "--timed"]
        runpy.run_path(script, run_name="__main__")
        hook.remove()
        times = [step["t"] for step in json.load(open(out + "/result.json"))["steps"]]
    # Entry i ends step i; a block's switch happens in the step before its first.
    def milliseconds(block):
        first = block * BLOCK
        each = [times[i] - times[i - 1] for i in range(max(first + LEFT_OUT, 1), first + BLOCK - 1)]
        return statistics.median(each) * 1000

    changes, off = [], []
    for pair in range(PAIRS):
        by_state = {is_on(block): milliseconds(block) for block in (2 * pair, 2 * pair + 1)}
        off.append(by_state[False])
        changes.append((by_state[True] / by_state[False] - 1) * 100)
    changes.sort()
    print(f"step time, stacks={stacks}: {statistics.median(off):.2f} ms without; with install() "
          f"{statistics.median(changes):+.2f} % (median of {PAIRS} interleaved pairs; "
          f"quartiles {changes[PAIRS // 4]:+.2f} and {changes[3 * PAIRS // 4]:+.2f} %)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "python")
