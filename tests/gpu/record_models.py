"""Records staged causes and healthy runs on models that are not a GPT: images, words, pairs, graphs, two players.

    python3 tests/gpu/record_models.py OUT [CASE...]

Needs a GPU and PyTorch (a second GPU for the case with two). Each case runs twice, each time in a process of its own:
first as it should be, without a limit, which measures what it needs; then with its fault, under a limit that is that
need and a little more. Writes OUT/CASE.pickle.xz and OUT/labels.json: {CASE: {cause, instant, what, end, need, limit}}.
Names of cases, functions and files do not tell the cause, so that a rule cannot read it off a frame.
"""
import json
import lzma
import os
import sys
import traceback

import torch

import staged_cases  # noqa: F401  (fills the table)
import staged_cases_more  # noqa: F401
from staged_models import MIB
from staged_table import CASES


def attempt(name, fault, limit, out):
    job, _, _, _, late = CASES[name]
    torch.zeros(1, device="cuda")
    torch.manual_seed(0)
    if limit:
        torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.mem_get_info()[1])
    path = f"{out}/{name}.pickle"
    record = fault or CASES[name][1]["cause"] == "none"
    if record:
        torch.cuda.memory._record_memory_history(max_entries=200_000, stacks="python")
        if not late:
            torch._C._cuda_attach_out_of_memory_observer(lambda *_: torch.cuda.memory._dump_snapshot(path))
    end = "done"
    try:
        job(fault)
    except torch.OutOfMemoryError as error:
        end = str(error)[:90]
        if late:
            torch.cuda.memory._dump_snapshot(path)
    if record and end == "done":
        torch.cuda.memory._dump_snapshot(path)
    return dict(end=end, need=torch.cuda.max_memory_reserved())


def in_child(work):
    """Runs work in a fork (the parent never touches the GPU) and returns its dictionary."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            answer = work()
        except BaseException:
            answer = dict(end="broken", why=traceback.format_exc()[-600:])
        os.write(writer, json.dumps(answer).encode())
        sys.stdout.flush()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.wait()
    return json.loads(text or '{"end": "died"}')


def record(name, out):
    _, label, factor, extra, _ = CASES[name]
    if label["cause"] == "none":
        result = dict(label, limit=0, **in_child(lambda: attempt(name, False, 0, out)))
    else:
        need = in_child(lambda: attempt(name, False, 0, out))
        limit = int(need.get("need", 0) * factor) + extra * MIB
        result = dict(label, healthy=need, limit=limit, **in_child(lambda: attempt(name, True, limit, out)))
    path = f"{out}/{name}.pickle"
    if os.path.exists(path):
        with open(path, "rb") as plain, lzma.open(path + ".xz", "wb", preset=3) as packed:
            packed.write(plain.read())
        os.unlink(path)
    print(name, result["cause"], result["end"], result.get("why", ""), result.get("healthy"), result["limit"] // MIB,
          result.get("need", 0) // MIB, flush=True)
    with open(f"{out}/{name}.json", "w") as file:
        json.dump(result, file)


def main():
    out, names = sys.argv[1], sys.argv[2:] or list(CASES)
    os.makedirs(out, exist_ok=True)
    running = 0
    for name in names:
        if running == 20:
            os.wait()
            running -= 1
        if os.fork() == 0:
            record(name, out)
            os._exit(0)
        running += 1
    for _ in range(running):
        os.wait()
    labels = {}
    for name in names:
        if os.path.exists(f"{out}/{name}.json"):
            with open(f"{out}/{name}.json") as file:
                labels[name] = json.load(file)
            os.unlink(f"{out}/{name}.json")
    with open(f"{out}/labels.json", "w") as file:
        json.dump(labels, file, indent=1)


if __name__ == "__main__":
    main()
