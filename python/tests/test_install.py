"""install(): what a failure leaves behind, and that nothing else changes. Torch is real; the card is not there."""
import _thread
import ast
import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import torch
from conftest import FAKE_CARD, ROOT, wait_for_verdicts

import oomscope
from oomscope import _install, _torch

REQUEST, LIMIT, FREE = 1 << 30, 24 << 30, 100 << 20


def run_script(text, folder, **environment):
    """A Python process of its own in `folder`: (exit code, stderr)."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], cwd=folder, capture_output=True, text=True,
                          timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment})
    return done.returncode, done.stderr


def test_importing_is_cheap_and_brings_no_torch():
    text = """
        import time
        began = time.process_time()
        import oomscope
        spent = time.process_time() - began
        import sys
        assert "torch" not in sys.modules
        sys.exit(f"{spent * 1000:.2f}")
    """
    spent = min(float(run_script(text, ".")[1]) for _ in range(3))
    assert spent <= 30, f"{spent} ms"


def test_sources_are_python_3_9_and_public_names_have_docstrings():
    for path in sorted((ROOT / "python/oomscope").rglob("*.py")):
        ast.parse(path.read_text(), feature_version=(3, 9))
    for name in oomscope.__all__:
        assert getattr(oomscope, name).__doc__, name


def test_the_version_is_the_programs():
    from oomscope._program import run_program
    assert oomscope.__version__ in run_program("--version")[1]


def test_a_failure_leaves_snapshot_context_and_verdict(in_folder, fake_card, capfd, monkeypatch):
    snapshot, _ = _torch.snapshot()
    monkeypatch.setattr(_torch, "snapshot", lambda: (snapshot, False))  # as before torch 2.8
    oomscope.install("kept")
    oomscope.mark("validation")
    _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    wait_for_verdicts()
    (case,) = (in_folder / "kept").iterdir()
    assert sorted(path.name for path in case.iterdir()) == ["context.json", "oom.pickle", "oom.pickle.marks.json"]
    context = json.loads((case / "context.json").read_text())
    assert context["schema"] == "oomscope.context/1"
    expected = {"request_bytes": REQUEST, "free_bytes": FREE, "card_bytes": 24 << 30, "limit_bytes": None, "device": 0,
                "snapshot": "oom.pickle", "mark": "validation", "step": 1, "rank": 0, "world": 1, "ooms": 1}
    assert {key: context[key] for key in expected} == expected
    assert context["card"]["processes"][1] == {"pid": 4242, "bytes": 16 << 30, "own": False}
    assert context["versions"]["torch"] == torch.__version__
    assert "Tried to allocate 1.00 GiB" in context["message"]
    assert "1.00 GiB is reserved by PyTorch but unallocated" in context["message"]
    printed = capfd.readouterr().err
    assert "Fragmentation: 980.47 MiB failed" in printed and f"oomscope why {case}" in printed
    marks = json.loads((case / "oom.pickle.marks.json").read_text())["marks"]
    assert {"oomscope.phase:validation"} <= {each["name"] for each in marks}


def test_the_phase_is_that_of_the_failing_thread():
    seen = {}

    class Looks(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            seen["forward"] = _torch.phase_of_this_thread()
            return x * 1

        @staticmethod
        def backward(context, gradient):
            seen["backward"] = _torch.phase_of_this_thread()
            return gradient

    class Net(torch.nn.Module):
        def forward(self, x):
            return Looks.apply(x)

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            seen["data loading"] = _torch.phase_of_this_thread()
            return index

    class Stepped(torch.optim.SGD):
        def _init_group(self, *arguments):
            seen["optimizer step"] = _torch.phase_of_this_thread()
            return super()._init_group(*arguments)

    weight = torch.nn.Parameter(torch.ones(2))
    Net()(weight).sum().backward()
    Stepped([weight], 0.1).step()
    list(torch.utils.data.DataLoader(Rows()))
    seen["unknown"] = _torch.phase_of_this_thread()
    assert all(phase == name for name, phase in seen.items()) and len(seen) == 5, seen


def test_a_memory_fraction_is_a_limit(in_folder, silent_card):
    oomscope.install("kept")
    _install.watcher.observe(0, REQUEST, 12 << 30, 13 << 30)
    context = json.loads(next((in_folder / "kept").glob("*/context.json")).read_text())
    assert context["limit_bytes"] == 12 << 30 and "12.00 GiB allowed" in context["message"]


def test_processes_on_the_card_are_those_of_nvidia_smi(in_folder, monkeypatch):
    class Properties:
        uuid = "0123"

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    monkeypatch.setenv("PATH", str(in_folder), prepend=os.pathsep)
    tool = in_folder / "nvidia-smi"
    tool.write_text('#!/bin/sh\n[ "$1" = --id=GPU-0123 ] && echo "$PPID, 1234" && echo "42, [N/A]"\n')
    tool.chmod(0o755)
    assert _install.card_processes(0) == {"processes": [{"pid": os.getpid(), "bytes": 1234 << 20, "own": True},
                                                        {"pid": 42, "bytes": None, "own": False}]}
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert _install.card_processes(0) is None


def test_at_most_three_snapshots_and_the_rest_is_counted(in_folder, silent_card):
    oomscope.install("kept")
    for _ in range(10):
        _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    cases = sorted((in_folder / "kept").iterdir(), key=lambda path: path.stat().st_mtime)
    assert len(cases) == 3 and all((case / "oom.pickle").exists() for case in cases)
    assert json.loads((silent_card.cases[-1][0] / "context.json").read_text())["ooms"] == 10


def test_nothing_is_raised_whatever_fails(in_folder, fake_card, monkeypatch, capfd):
    def fails():
        raise MemoryError("no memory for the dump")

    monkeypatch.setattr(_torch, "snapshot", fails)
    oomscope.install("kept")
    _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    wait_for_verdicts()
    printed = capfd.readouterr().err
    assert "no memory for the dump" in printed and "GPU memory ran out" in printed, "the verdict is of the message"
    monkeypatch.setattr(_torch, "allocator_facts", lambda device: {})
    _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    assert "could not be recorded" in capfd.readouterr().err


def test_where_nothing_can_be_kept_the_verdict_is_that_of_the_snapshot(in_folder, fake_card, monkeypatch, capfd):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_install, "write", full)
    oomscope.install("kept")
    for _ in range(4):
        _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    wait_for_verdicts()
    printed = capfd.readouterr().err
    assert "No space left on device" in printed and str(in_folder / "kept") in printed
    assert printed.count("Fragmentation: 980.47 MiB failed") == 3 and "all of it" not in printed


def test_the_folder_is_named_as_a_shell_takes_it(in_folder, silent_card, capfd):
    oomscope.install("kept in it")
    _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    wait_for_verdicts()
    assert f"oomscope why '{in_folder}/kept in it/" in capfd.readouterr().err


def test_secrets_are_not_written(monkeypatch):
    words = ["python", "train.py", "--hub-token", "hf_1", "--api_key=2", "wandb.api_key=3", "--password", "4", "--lr",
             "5", "--tokenizer", "gpt2"]
    monkeypatch.setattr(sys, "orig_argv", words, raising=False)
    monkeypatch.setenv("TORCH_HUB_TOKEN", "hf_2")
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64,expandable_segments:False")
    found = _torch.versions_and_settings()
    assert found["command"] == ["python", "train.py", "--hub-token", "***", "--api_key=***", "wandb.api_key=***",
                                "--password", "***", "--lr", "5", "--tokenizer", "gpt2"]
    assert found["settings"]["TORCH_HUB_TOKEN"] == "***"
    assert found["settings"]["PYTORCH_CUDA_ALLOC_CONF"] == "max_split_size_mb:64,expandable_segments:False"


def test_a_dump_shows_other_threads_and_forked_children_nothing_of_itself(in_folder, monkeypatch):
    began, go_on, seen = threading.Event(), threading.Event(), []

    def snapshot():
        seen.append(hasattr(torch._inductor, "codecache"))
        began.set()
        go_on.wait(30)
        return {}

    monkeypatch.delitem(sys.modules, "torch._inductor", raising=False)
    monkeypatch.delattr(torch, "_inductor", raising=False)
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", snapshot)
    oomscope.install("kept")
    def dump():
        with _install.watcher.recording:
            _torch.snapshot()

    dumps = threading.Thread(target=dump)
    dumps.start()
    assert began.wait(30)
    child = os.fork()
    if child == 0:
        os._exit(0 if gc.isenabled() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert hasattr(torch._inductor, "list_mode_options") and seen == [False]
    go_on.set()
    dumps.join()
    assert gc.isenabled()


def test_the_interpreter_waits_for_the_verdict_of_a_thread_that_is_not_its_own(in_folder, silent_card, monkeypatch):
    tellers = []
    monkeypatch.setattr(_install, "_tell", lambda *_: tellers.append(threading.current_thread()))
    oomscope.install("kept")
    done = threading.Event()
    _thread.start_new_thread(lambda: (_install.watcher.observe(0, REQUEST, LIMIT, FREE), done.set()), ())
    assert done.wait(10)
    wait_for_verdicts()
    assert [teller.daemon for teller in tellers] == [False]


def test_a_storm_of_failures_is_counted_to_the_last(in_folder, silent_card, capfd):
    oomscope.install("kept")

    def fail():
        for _ in range(20):
            _install.watcher.observe(0, REQUEST, LIMIT, FREE)

    threads = [threading.Thread(target=fail) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for_verdicts()
    assert silent_card.ooms == 200 and len(silent_card.cases) == 3
    assert json.loads((silent_card.cases[-1][0] / "context.json").read_text())["ooms"] == 200
    assert "could not be recorded" not in capfd.readouterr().err
    assert not list((in_folder / "kept").rglob("*.part"))


def test_ctrl_c_during_a_dump_ends_it_and_leaves_no_half_a_record(in_folder, silent_card, monkeypatch):
    def interrupted():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)

    snapshot = _torch.snapshot
    monkeypatch.setattr(_torch, "snapshot", interrupted)
    oomscope.install("kept")
    with pytest.raises(KeyboardInterrupt):
        _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    assert not list(in_folder.iterdir()) and gc.isenabled()
    monkeypatch.setattr(_torch, "snapshot", snapshot)
    _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    assert len(list(in_folder.rglob("context.json"))) == 1


def test_a_fork_starts_with_a_fresh_account(in_folder, silent_card):
    oomscope.install("kept")
    _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    child = os.fork()
    if child == 0:
        os._exit(0 if _install.watcher.ooms == 0 and not _install.watcher.cases else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_process_says_its_verdict_before_it_ends(in_folder, method):
    (in_folder / "job.py").write_text(FAKE_CARD + textwrap.dedent(f"""
        import multiprocessing

        def work():
            oomscope.install("kept")
            fail()
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

        if __name__ == "__main__":
            child = multiprocessing.get_context("{method}").Process(target=work)
            child.start()
            child.join()
            sys.exit(child.exitcode)
    """))
    code, errors = run_script("import runpy; runpy.run_path('job.py', run_name='__main__')" if method == "fork" else
                              "import os, sys; os.execv(sys.executable, [sys.executable, 'job.py'])", in_folder)
    assert code == 1 and "Fragmentation: 980.47 MiB failed" in errors and "OutOfMemoryError" in errors
    assert len(list((in_folder / "kept").iterdir())) == 1


def test_loader_workers_and_forks_go_on_beside_a_failure(in_folder, fake_card):
    oomscope.install("kept")
    rows = torch.utils.data.TensorDataset(torch.arange(64))
    batches = iter(torch.utils.data.DataLoader(rows, 8, num_workers=2))
    next(batches)
    _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    assert sum(len(batch[0]) for batch in batches) == 56 and len(fake_card.cases) == 1


def test_a_folder_that_cannot_be_written_costs_the_record_alone(in_folder, silent_card, capfd):
    oomscope.install("/proc/nothing can be made here")
    _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    wait_for_verdicts()
    assert "could not be recorded" in capfd.readouterr().err
    oomscope.install("kept in ünïcode\t and 'quotes\"")
    _install.watcher.observe(0, REQUEST, LIMIT, FREE)
    wait_for_verdicts()
    assert "a verdict" in capfd.readouterr().err and (silent_card.cases[1][0] / "oom.pickle").exists()


def test_without_a_card_or_torch_it_does_nothing_and_the_script_goes_on(in_folder):
    code, errors = run_script("import oomscope; oomscope.install(); import torch; torch.zeros(3) + 1", in_folder)
    assert (code, errors) == (0, "") and not list(in_folder.iterdir())
    code, errors = run_script("""
        import sys
        sys.modules["torch"] = None
        import oomscope
        oomscope.install()
        oomscope.mark("x")
        with oomscope.profile(): pass
    """, in_folder)
    assert code == 0 and "torch cannot be imported" in errors and not list(in_folder.iterdir())


def test_cuda_is_not_initialised(in_folder):
    code, errors = run_script("""
        import oomscope, torch, sys
        oomscope.install()
        sys.exit(1 if torch.cuda.is_initialized() else 0)
    """, in_folder)
    assert code == 0, errors


@pytest.mark.parametrize("wrong", [{"stacks": "some"}, {"max_events": 0}])
def test_wrong_arguments_are_said_at_once(wrong):
    with pytest.raises(ValueError):
        oomscope.install(**wrong)
