"""What the tests share: the package from the tree, the program, a card that is not there."""
import os
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python"))
PROGRAM = os.environ.get("OOMSCOPE_PROGRAM", str(ROOT / "build/release/bin/oomscope"))
os.environ["OOMSCOPE_PROGRAM"] = PROGRAM
DEMO = ROOT / "tests/data/demo_oom.pickle.zst"

# For a process of its own: a card whose allocator fails when `fail()` is called, as below; sys.argv[1] names the folder.
FAKE_CARD = f"""
import os, sys
import torch
import oomscope
from oomscope import _install, _torch

class Properties:
    total_memory, name, uuid = 24 << 30, "a card", None

torch.cuda.get_device_properties = lambda device=0: Properties
_torch.snapshot = lambda: (open({str(DEMO)!r}, "rb").read(), True)
_torch.allocator_facts = lambda device: {{"allocated": 5 << 30, "reserved": 6 << 30}}

def fail():
    _install.watcher.observe(0, 1 << 30, 24 << 30, 1 << 20)
"""
torch = pytest.importorskip("torch")


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """A working folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fresh(monkeypatch):
    """The package as in a new process: no failures, no hooks of earlier tests that fire."""
    from oomscope import _install, _marks
    watcher = _install.Watcher()
    monkeypatch.setattr(_install, "watcher", watcher)
    progress = _marks.progress
    progress.step, progress.phase, progress._leader, progress.paused = 1, None, None, 0
    progress.watchers, progress.modules, progress._is_stepping = [], list, False
    progress._marks.clear()
    yield watcher
    wait_for_verdicts()
    progress.set_phase(None)


def wait_for_verdicts():
    """As the interpreter does at its end."""
    for thread in threading.enumerate():
        if thread.name == "oomscope":
            thread.join()


@pytest.fixture
def fake_card(monkeypatch, fresh):
    """A card of 24 GiB whose allocator has failed: what the package asks of torch is answered from here, and the
    snapshot is the recording of the README."""
    from oomscope import _install, _torch

    class Properties:
        total_memory = 24 << 30
        name = "a card"
        uuid = None

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device=0: Properties)
    monkeypatch.setattr(_torch, "snapshot", lambda: (DEMO.read_bytes(), True))
    monkeypatch.setattr(_torch, "allocator_facts",
                        lambda device: {"allocated": 5 << 30, "reserved": 6 << 30, "requested": 5 << 30,
                                        "peak_allocated": 5 << 30, "peak_reserved": 6 << 30, "num_ooms": 1})
    monkeypatch.setattr(_install, "card_processes", lambda device: {
        "processes": [{"pid": os.getpid(), "bytes": 7 << 30, "own": True},
                      {"pid": 4242, "bytes": 16 << 30, "own": False}]})
    return fresh


@pytest.fixture
def silent_card(fake_card, monkeypatch):
    """The same, and the program is not asked."""
    from oomscope import _install
    monkeypatch.setattr(_install, "run_program", lambda *words, **options: (0, "a verdict"))
    return fake_card
