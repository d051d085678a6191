"""Ranks: one fails while the other waits in a collective; one verdict, and the job ends as it would without us."""
import json
import os
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import FAKE_CARD, ROOT

from oomscope import _ranks

WORKER = FAKE_CARD + textwrap.dedent("""
    from datetime import timedelta
    import torch.distributed as dist

    oomscope.install("kept")
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    if sys.argv[1] == "all" or dist.get_rank() == 1:
        fail()
        if sys.argv[1] == "again":
            fail()
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
    dist.all_reduce(torch.zeros(1))
""")


def run_ranks(folder, how):
    script = folder / "worker.py"
    script.write_text(WORKER)
    port = 29000 + (os.getpid() * 7 + len(how)) % 900
    processes = []
    for rank in range(2):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "RANK": str(rank),
                       "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(port)}
        processes.append(subprocess.Popen([sys.executable, str(script), how], cwd=folder,
                                          env=environment, stderr=subprocess.PIPE, text=True))
    errors = [process.communicate(timeout=120)[1] for process in processes]
    return [process.returncode for process in processes], errors


@pytest.mark.slow
def test_one_rank_fails_while_the_other_waits(tmp_path):
    codes, errors = run_ranks(tmp_path, "one")
    assert all(codes), "the failing rank raises, the waiting one loses its peer"
    assert "torch.cuda.OutOfMemoryError" in errors[1] or "OutOfMemoryError" in errors[1]
    both = "".join(errors)
    assert both.count("oomscope: out of memory") == 1 and both.count("Fragmentation: 980.47 MiB failed") == 1
    assert "rank 0: not failed" in errors[1] and "rank 1: out of memory" in errors[1]
    (job,) = (tmp_path / "kept").iterdir()
    context = json.loads((job / "rank1" / "context.json").read_text())
    assert (context["rank"], context["world"]) == (1, 2)
    answered = (job / "board" / "summary-1-0").stat().st_mtime
    assert answered - context["time"] < 5


@pytest.mark.slow
def test_a_second_failure_after_a_caught_one_has_a_verdict_of_all_ranks_too(tmp_path):
    _, errors = run_ranks(tmp_path, "again")
    assert errors[1].count("rank 0: not failed") == 2 and "(failure 2 of this process)" in errors[1]


@pytest.mark.slow
def test_ranks_that_fail_together_give_one_verdict(tmp_path):
    codes, errors = run_ranks(tmp_path, "all")
    both = "".join(errors)
    assert all(codes) and both.count("oomscope: out of memory") == 1
    assert "rank 0: out of memory" in both and "rank 1: out of memory" in both


def test_a_rank_that_does_not_answer_is_left_out_in_five_seconds(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    began = time.monotonic()
    table = _ranks.Board(tmp_path).table({"failed": True, "step": 1, "phase": "forward"})
    assert 4.5 < time.monotonic() - began < 7
    assert "rank 0: out of memory" in table and "rank 2: no answer within 5 s" in table


def test_failures_that_belong_together_share_a_verdict_and_later_ones_have_their_own(tmp_path, monkeypatch):
    def is_first(rank, at):
        monkeypatch.setenv("RANK", str(rank))
        return _ranks.Board(tmp_path).is_first(at)

    assert [is_first(0, 100.0), is_first(1, 100.5), is_first(2, 109.0)] == [True, False, False]
    assert [is_first(1, 200.0), is_first(0, 200.1)] == [True, False]


def test_a_waiting_rank_answers_each_failure_and_none_of_an_earlier_run(tmp_path, monkeypatch):
    waits, fails = _ranks.Board(tmp_path), _ranks.Board(tmp_path)
    for at in (10.0, 100.0, 200.0):
        fails.is_first(at)
        waits.answer(50.0, lambda: {"at": at})
    assert [bool(fails.get(f"summary-{number}-0")) for number in (1, 2, 3)] == [False, True, True]
