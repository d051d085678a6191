"""Ranks: one fails while the other waits in a collective; one verdict, and the job ends as it would without us."""
import json
import os
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import DEMO, ROOT

from oomscope import _ranks

WORKER = """
    import os, shutil, sys
    from datetime import timedelta
    import torch, torch.distributed as dist
    import oomscope
    from oomscope import _install, _torch

    class Properties:
        total_memory, name, uuid = 24 << 30, "a card", None
    torch.cuda.get_device_properties = lambda device=0: Properties
    _torch.dump_snapshot = lambda path: bool(shutil.copy(sys.argv[2], path))
    _torch.allocator_facts = lambda device: {"allocated": 5 << 30, "reserved": 6 << 30}

    oomscope.install("kept")
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    if dist.get_rank() == 1:
        _install.watcher.observe(0, 1 << 30, 24 << 30, 1 << 20)
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
    dist.all_reduce(torch.zeros(1))
"""


def run_ranks(folder, port):
    script = folder / "worker.py"
    script.write_text(textwrap.dedent(WORKER))
    processes = []
    for rank in range(2):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "RANK": str(rank), "LOCAL_RANK": str(rank),
                       "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(port)}
        processes.append(subprocess.Popen([sys.executable, str(script), str(rank), str(DEMO)], cwd=folder,
                                          env=environment, stderr=subprocess.PIPE, text=True))
    errors = [process.communicate(timeout=120)[1] for process in processes]
    return [process.returncode for process in processes], errors


@pytest.mark.slow
def test_one_rank_fails_while_the_other_waits(tmp_path):
    codes, errors = run_ranks(tmp_path, 29000 + os.getpid() % 900)
    assert all(codes), "the failing rank raises, the waiting one loses its peer"
    assert "torch.cuda.OutOfMemoryError" in errors[1] or "OutOfMemoryError" in errors[1]
    both = "".join(errors)
    assert both.count("oomscope: out of memory") == 1 and both.count("Fragmentation: 980.47 MiB failed") == 1
    assert "rank 0: not failed" in errors[1] and "rank 1: out of memory" in errors[1]
    (job,) = (tmp_path / "kept").iterdir()
    context = json.loads((job / "rank1" / "context.json").read_text())
    assert (context["rank"], context["world"]) == (1, 2)
    answered = json.loads(next(job.glob("board-*/summary-0.json")).read_text())
    assert answered["time"] - context["time"] < 5


def test_a_rank_that_does_not_answer_is_left_out_in_five_seconds(tmp_path):
    began = time.monotonic()
    found = _ranks.gather(_ranks.Board(tmp_path), {"rank": 0, "world": 3, "failed": True}, 0.0)
    assert 4.5 < time.monotonic() - began < 7 and found[1:] == [None, None]
    assert "rank 2: no answer within 5 s" in _ranks.table(found)


def test_a_store_that_hangs_costs_its_limit_and_no_more():
    began = time.monotonic()
    assert _ranks.bounded(lambda: time.sleep(30), 0.2) is None
    assert time.monotonic() - began < 2


def test_only_the_first_claims(tmp_path):
    board = _ranks.Board(tmp_path)
    assert [board.claim("verdict") for _ in range(3)] == [True, False, False]
