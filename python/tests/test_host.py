"""host_profile adds up to the process's unshared bytes; notebooks show tables."""
import os
import time

import pytest
import torch

import oomscope
from oomscope import _host

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="no /proc/self/smaps_rollup")


def test_rows_add_up_and_name_line_and_tensors():
    with oomscope.host_profile() as profile:
        words = [str(i) * 20 for i in range(200_000)]
        tensor = torch.ones(16 << 20, dtype=torch.uint8)
    rows = dict(profile.rows)
    assert sum(rows.values()) == profile.total
    largest = max((name for name in rows if "test_host.py" in name), key=rows.get)
    assert rows[largest] > 20 << 20, "the list of words"
    assert rows["tensors on the CPU"] >= 16 << 20 and len(words) and tensor.numel()
    assert "total: unshared bytes" in str(profile)


def test_shared_tensors_and_workers_stand_beside_the_total():
    stop_read, stop_write = os.pipe()
    with oomscope.host_profile() as profile:
        shared = torch.ones(4 << 20, dtype=torch.uint8).share_memory_()
        child = os.fork()
        if child == 0:
            os.close(stop_write)
            os.read(stop_read, 1)
            os._exit(0)
        time.sleep(0.1)
    os.close(stop_write)
    os.waitpid(child, 0)
    outside = dict(profile.outside)
    assert outside["shared memory (tensors)"] >= 4 << 20 and f"worker {child}: unshared" in outside
    assert "<table>" in profile._repr_html_() and shared.numel()


def test_unshared_bytes_of_a_process_that_is_gone():
    assert _host.unshared_bytes("999999999") is None


def test_a_cell_that_fails_under_the_magic_fails_and_is_shown_once(fresh, capsys):
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "oomscope")
    for cell in ("1 / 0", "not = python"):
        assert not shell.run_cell(f"%%oomscope\n{cell}").success
    assert capsys.readouterr().out.count(": division by zero") == 1
    assert shell.run_cell("%%oomscope\nanswer = 1").success
    InteractiveShell.clear_instance()


def test_cell_magic_runs_the_cell_and_shows_a_table(fresh, capsys):
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "oomscope")
    shell.run_cell_magic("oomscope", "a cell", "answer = 6 * 7")
    assert shell.user_ns["answer"] == 42
    printed = capsys.readouterr()
    assert printed.out.count("a cell: peaks of 1 step(s)") == 1 and not printed.err
    InteractiveShell.clear_instance()
