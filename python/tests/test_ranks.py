"""Ranks: one fails while the other waits in a collective; one verdict, and the job ends as it would without us."""
import json
import os
import subprocess
import sys
import textwrap
import time

import pytest
import torch.distributed
from conftest import FAKE_CARD, ROOT

from oomscope import _ranks

WORKER = FAKE_CARD + textwrap.dedent("""
    from datetime import timedelta
    import time
    import torch.distributed as dist

    oomscope.install(sys.argv[2].format(rank=os.environ["RANK"]))
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    if sys.argv[1] == "late":
        dist.all_reduce(torch.zeros(1))
        time.sleep(3)  # by now each rank's thread waits for failures
    if sys.argv[1] in ("all", "late") or dist.get_rank() == 1:
        fail()
        if sys.argv[1] == "again":
            fail()
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
    dist.all_reduce(torch.zeros(1))
""")


def run_ranks(folder, how, kept="kept"):
    """Two processes of one job; {rank} in `kept` gives each a folder of its own, as nodes that share no disk have."""
    script = folder / "worker.py"
    script.write_text(WORKER)
    port = 29000 + (os.getpid() * 7 + len(how + kept)) % 900
    processes = []
    for rank in range(2):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "RANK": str(rank),
                       "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        processes.append(subprocess.Popen([sys.executable, str(script), how, kept], cwd=folder,
                                          env=environment, stderr=subprocess.PIPE, text=True))
    errors = [process.communicate(timeout=120)[1] for process in processes]
    return [process.returncode for process in processes], errors


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["kept", "kept/of_{rank}"])
def test_one_rank_fails_while_the_other_waits(tmp_path, kept):
    codes, errors = run_ranks(tmp_path, "one", kept)
    assert all(codes), "the failing rank raises, the waiting one loses its peer"
    assert "torch.cuda.OutOfMemoryError" in errors[1] or "OutOfMemoryError" in errors[1]
    both = "".join(errors)
    assert both.count("oomscope: out of memory") == 1 and both.count("Fragmentation: 980.47 MiB failed") == 1
    assert "rank 0: not failed" in errors[1] and "rank 1: out of memory" in errors[1]
    (path,) = tmp_path.rglob("context.json")
    assert path.parent.name == "rank1" and path.parent.parent.name.startswith("job-")
    context = json.loads(path.read_text())
    assert (context["rank"], context["world"]) == (1, 2)


@pytest.mark.slow
def test_a_second_failure_after_a_caught_one_has_a_verdict_of_all_ranks_too(tmp_path):
    _, errors = run_ranks(tmp_path, "again")
    assert errors[1].count("rank 0: not failed") == 2 and "(failure 2 of this process)" in errors[1]


@pytest.mark.slow
def test_ranks_that_fail_together_give_one_verdict_wherever_their_folders_are_and_each_run_has_its_own(tmp_path):
    for kept in ("kept/of_{rank}", "kept", "kept"):
        codes, errors = run_ranks(tmp_path, "all", kept)
        both = "".join(errors)
        assert all(codes) and both.count("oomscope: out of memory") == 1
        assert "rank 0: out of memory" in both and "rank 1: out of memory" in both
    runs = list((tmp_path / "kept").glob("job-*"))
    assert len(runs) == 2 and all({path.name for path in run.iterdir()} == {"rank0", "rank1"} for run in runs)


@pytest.mark.slow
def test_ranks_that_fail_together_long_after_they_met_answer_and_end_as_ever(tmp_path):
    codes, errors = run_ranks(tmp_path, "late")
    both = "".join(errors)
    assert codes == [1, 1] and both.count("oomscope: out of memory") == 1
    assert "rank 0: out of memory" in both and "rank 1: out of memory" in both


@pytest.fixture
def board(monkeypatch):
    """Boards of one job by rank, over a store of the test's own."""
    store = torch.distributed.HashStore()

    def make(rank, world=3):
        made = _ranks.Board.__new__(_ranks.Board)
        made._store, made._number, made.rank, made.world = store, 0, rank, world
        return made
    return make


def test_a_rank_that_does_not_answer_is_left_out_in_five_seconds(board):
    began = time.monotonic()
    table = board(0).table({"failed": True, "step": 1, "phase": "forward", "allocated": 1, "reserved": 2})
    assert 4.5 < time.monotonic() - began < 7
    assert "rank 0: out of memory" in table and "rank 2: no answer within 5 s" in table


def test_failures_that_belong_together_share_a_verdict_and_later_ones_have_their_own(board):
    assert [board(0).is_first(100.0), board(1).is_first(100.5), board(2).is_first(109.0)] == [True, False, False]
    assert [board(1).is_first(200.0), board(0).is_first(200.1)] == [True, False]


def test_where_the_store_never_answers_each_rank_speaks_for_itself_in_time(monkeypatch):
    class Frozen:
        is_first = table = close = wait = lambda *_: time.sleep(30)

    said, began = [], time.monotonic()
    _ranks.one_verdict(Frozen(), 100.0, dict, said.append)
    assert said == [""] and time.monotonic() - began < 7


def test_what_fails_or_takes_too_long_is_none():
    began = time.monotonic()
    assert _ranks.within(0.2, lambda: time.sleep(5)) is None and _ranks.within(5, lambda: 1 / 0) is None
    assert time.monotonic() - began < 2 and _ranks.within(5, lambda: 7) == 7
