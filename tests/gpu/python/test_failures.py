"""Out of memory in every place, on a card: what is kept, what is said, and that the job ends as it would alone."""
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oomscope._program import size

pytestmark = pytest.mark.gpu
SCENARIOS = Path(__file__).with_name("scenarios.py")


class Ended:
    """A job that is over: exit code, output, and when each line of stderr came."""

    def __init__(self, *command):
        process = subprocess.Popen([sys.executable, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, start_new_session=True)
        self.lines = [(time.time(), line.rstrip("\n")) for line in process.stderr]
        self.out = process.stdout.read()
        self.code = process.wait(timeout=300)
        self.err = "\n".join(line for _, line in self.lines)
        self.error = next((line for _, line in reversed(self.lines) if re.match(r"[\w.]*(Error|Interrupt)\b", line)), "")

    def second_of(self, words):
        return next(at for at, line in self.lines if words in line)


def alone_and_watched(name, folder):
    return Ended(SCENARIOS, name), Ended(SCENARIOS, name, folder)


def contexts(folder):
    return [json.loads(path.read_text()) for path in sorted(Path(folder).rglob("context.json"))]


def same_error(a, b):
    """Figures of free memory differ from run to run."""
    return a.split(".")[:4] == b.split(".")[:4]


@pytest.mark.parametrize("name,phase", [
    ("forward", "forward"), ("backward", "backward"), ("optimizer", "optimizer step"), ("thread", "unknown"),
    ("graph", "unknown"), ("compiled", "forward"), ("loader", "forward")])
def test_out_of_memory_in(name, phase, tmp_path):
    alone, watched = alone_and_watched(name, tmp_path / "kept")
    assert watched.code == alone.code, watched.err
    assert same_error(watched.error, alone.error), (watched.error, alone.error)
    (context,) = contexts(tmp_path)
    assert context["phase"] == phase
    assert context["limit_bytes"] and context["card_bytes"] > context["limit_bytes"]
    assert context["dump_seconds"] <= 5
    assert "oomscope: out of memory" in watched.err and "oomscope why" in watched.err
    if name != "thread":
        assert f"Tried to allocate {size(context['request_bytes'])}" in context["message"]
    own = [each for each in (context["card"] or {"processes": []})["processes"] if each["own"]]
    print(f"\n{name}: phase {context['phase']}, step {context['step']}, dump {context['dump_seconds']} s, "
          f"limit {context['limit_bytes']}, own on card {own}")
    print("  " + "\n  ".join(watched.err[watched.err.index("oomscope: out of memory"):].split("\n")[:9]))
    if name == "loader":
        for pid in re.search(r"workers (.*)", watched.out).group(1).split():
            assert not os.path.exists(f"/proc/{pid}") or "State:\tZ" in Path(f"/proc/{pid}/status").read_text()


def run_ranks(name, *folder):
    began = time.time()
    ended = Ended("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", SCENARIOS, name, *folder)
    print(f"\n{name}: {time.time() - began:.1f} s, exit code {ended.code}; "
          + next((line for _, line in ended.lines if line.startswith("backend")), "no backend"))
    return ended


def show(ended, lines):
    print("  " + "\n  ".join(ended.err[ended.err.index("oomscope: out of memory"):].split("\n")[:lines]))


def test_one_rank_of_two_ranks_fails_while_the_other_waits(tmp_path):
    alone, watched = run_ranks("ranks"), run_ranks("ranks", tmp_path / "kept")
    assert watched.code == alone.code != 0
    (context,) = contexts(tmp_path)
    assert context["rank"] == 1 and context["world"] == 2
    seconds = watched.second_of("all of it: oomscope why") - context["time"]
    print(f"ranks: verdict {seconds:.1f} s after the failure")
    show(watched, 12)
    assert seconds <= 10
    assert watched.err.count("oomscope: out of memory") == 1
    assert "rank 0: not failed" in watched.err and "rank 1: out of memory" in watched.err


def test_a_second_failure_of_ranks_has_a_verdict_of_all_too(tmp_path):
    alone, watched = run_ranks("ranks_again"), run_ranks("ranks_again", tmp_path / "kept")
    assert watched.code == alone.code != 0 and len(contexts(tmp_path)) == 2
    assert watched.err.count("rank 0: not failed") == watched.err.count("oomscope: out of memory") == 2


def test_ranks_that_fail_together_have_one_verdict(tmp_path):
    alone, watched = run_ranks("ranks_together"), run_ranks("ranks_together", tmp_path / "kept")
    show(watched, 5)
    assert watched.code == alone.code != 0 and watched.err.count("oomscope: out of memory") == 1
    assert "rank 0: out of memory" in watched.err and "rank 1: out of memory" in watched.err


def test_a_worker_process_says_its_verdict_too(tmp_path):
    alone, watched = alone_and_watched("worker", tmp_path / "kept")
    assert watched.code == alone.code == 1 and "oomscope: out of memory" in watched.err, watched.err
    assert len(contexts(tmp_path)) == 1


def test_ctrl_c_ends_the_job_as_ever(tmp_path):
    alone, watched = alone_and_watched("interrupt", tmp_path / "kept")
    if watched.code != alone.code:
        print(watched.err)
    assert watched.code == alone.code and watched.error == alone.error == "KeyboardInterrupt"
    assert not (tmp_path / "kept").exists()


def test_ctrl_c_during_the_dump_ends_the_job_as_ever(tmp_path):
    alone, watched = alone_and_watched("interrupt_in_dump", tmp_path / "kept")
    if watched.code != alone.code:
        print(watched.err)
    assert watched.code == alone.code and watched.error == alone.error == "KeyboardInterrupt"
    assert not contexts(tmp_path)


def test_caught_and_retried(tmp_path):
    alone, watched = alone_and_watched("retry", tmp_path / "kept")
    assert (watched.code, watched.out) == (alone.code, alone.out) and watched.code == 0
    found = contexts(tmp_path)
    assert len(found) == 3 and max(each["ooms"] for each in found) == 5
    assert watched.err.count("oomscope: out of memory, kept in") + watched.err.count("of this process), kept in") == 3


def test_a_million_events_are_dumped_in_five_seconds(tmp_path):
    watched = Ended(SCENARIOS, "million", tmp_path / "kept")
    (context,) = contexts(tmp_path)
    size = next((tmp_path / "kept").rglob("oom.pickle")).stat().st_size
    history = next(line for _, line in watched.lines if line.startswith("history:"))
    print(f"\nmillion: dump {context['dump_seconds']} s, {size / 2**20:.0f} MiB; {history}")
    assert context["dump_seconds"] <= 5


def test_nothing_is_written_outside_the_folder(tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    Ended(SCENARIOS, "forward", tmp_path / "kept")
    assert not list(work.iterdir())
    assert {path.name for path in (tmp_path / "kept").rglob("*") if path.is_file()} == {"context.json", "oom.pickle"}
