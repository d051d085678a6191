"""Steps, phases, peaks, modules, measure, the command line: on the CPU, where the meter reads what the test says."""
import argparse
import json
import os
import subprocess
import sys
import textwrap

import pytest
import torch
from conftest import DEMO, ROOT

import oomscope
from oomscope import _marks, _meter, _options, _torch


@pytest.fixture
def counters(monkeypatch, fresh):
    """A card's peak counter: `reach` raises it, each look sets it back to what is live."""
    class Counters:
        peak = live = 0

        def reach(self, count):
            self.peak = max(self.peak, count)

    card = Counters()

    def take():
        peak, card.peak = card.peak, card.live
        return peak, 2 * peak

    monkeypatch.setattr(_meter, "read", take)
    for module in (_meter, _options):
        monkeypatch.setattr(module, "live", lambda: (card.live, 2 * card.live))
    return card


class Model(torch.nn.Module):
    def __init__(self, card):
        super().__init__()
        self.card, self.inner = card, torch.nn.Linear(4, 4)

    def forward(self, x):
        self.card.reach(100)
        return self.inner(x)


class Optimizer(torch.optim.SGD):
    card = None

    def step(self, closure=None):
        self.card.reach(300)
        return super().step(closure)


def train(card, steps):
    model = Model(card)
    Optimizer.card = card
    optimizer = Optimizer(model.parameters(), 0.1)
    for _ in range(steps):
        loss = model(torch.ones(2, 4)).sum()
        card.reach(200)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def test_peaks_of_each_step_and_phase(counters, capfd):
    with oomscope.profile(steps=3) as peaks:
        train(counters, 5)
    assert [step["step"] for step in peaks.steps] == [1, 2, 3]
    phases = {name: part["allocated"] for name, part in peaks.steps[1]["phases"].items()}
    assert {name: count for name, count in phases.items() if count} == {
        "forward": 100, "backward": 200, "optimizer step": 300}
    assert peaks.peak == {"allocated": 300, "reserved": 600}
    assert "optimizer step" in str(peaks) and "optimizer step" in capfd.readouterr().err
    assert "<td>forward</td>" in peaks._repr_html_()


def test_peaks_json_holds_what_the_format_says(counters, in_folder):
    with oomscope.profile(steps=1, name="small") as peaks:
        train(counters, 1)
    document = json.loads(peaks.save("peaks.json").read_text())
    assert document["schema"] == "oomscope.peaks/1" and document["name"] == "small"
    assert document["peak"]["allocated"] == 300 and document["versions"]["torch"] == torch.__version__
    assert [path.name for path in in_folder.iterdir()] == ["peaks.json"]


def test_marks_are_phases_and_come_back(fresh):
    seen = []
    with oomscope.mark("epoch 1"):
        with oomscope.mark("validation"):
            seen.append(_marks.progress.phase)
        seen.append(_marks.progress.phase)
    assert seen == ["validation", "epoch 1"] and _marks.progress.phase is None


def test_marks_are_record_function_scopes(fresh):
    with torch.profiler.profile() as trace:
        with oomscope.mark("validation"):
            torch.zeros(3).add(1)
    assert "oomscope.phase:validation" in {event.key for event in trace.key_averages()}


def test_steps_follow_the_first_optimizer(fresh, counters):
    Optimizer.card = counters
    first, second = (Optimizer([torch.nn.Parameter(torch.ones(1))], 0.1) for _ in range(2))
    _marks.progress.start()
    for _ in range(3):
        first.step()
        second.step()
    assert _marks.progress.step == 4


def test_a_step_inside_a_step_counts_once(fresh, counters):
    Optimizer.card = counters
    torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)  # torch wraps step() of each class when it is first used
    _marks.progress.start()
    own = Optimizer([torch.nn.Parameter(torch.ones(1))], 0.1)
    own.step()
    assert _marks.progress.step == 2


def test_another_run_takes_over_when_the_first_optimizer_is_gone(fresh, counters):
    for _ in range(2):
        train(counters, 2)
    assert _marks.progress.step == 5


def test_what_comes_after_the_last_step_belongs_to_it(fresh, counters):
    with oomscope.profile() as peaks:
        train(counters, 2)
        counters.reach(900)
    assert [step["step"] for step in peaks.steps] == [1, 2] and peaks.peak["allocated"] == 900


def test_a_watcher_that_fails_is_switched_off_and_the_step_goes_on(fresh, counters, capfd):
    class Watcher:
        def before_optimizer(self, *_):
            raise RuntimeError("a defect")

    _marks.progress.watch(Watcher())
    train(counters, 2)
    assert capfd.readouterr().err.count("a defect") == 1


def test_modules_say_what_they_keep(fresh):
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1))
    with oomscope.profile(modules=True) as peaks:
        model(torch.ones(512, 64)).sum().backward()
    rows = {row["name"]: row for row in peaks.modules}
    assert rows["1"]["kept_bytes"] == 512 * 256 * 4 and rows["1"]["largest"] == [[512, 256], "float32"]
    assert rows["0"]["inputs"] == [{"shape": [512, 64], "dtype": "float32"}]
    assert rows["0"]["outputs"] == [{"shape": [512, 256], "dtype": "float32"}]
    assert rows["0"]["kept_bytes"] == 512 * 64 * 4, "the input; weights do not count"
    assert peaks.modules[0]["name"] in ("1", "2") and "1 keeps 512.00 KiB of (512, 256) float32" in str(peaks)
    assert "Sequential" not in str(peaks), "a container keeps nothing of its own"


def test_a_compiled_module_is_not_broken_up(fresh):
    if torch.__version__.startswith("2.1."):
        pytest.skip("its compiler switches the hooks of optimizers off for the rest of the process")
    torch._dynamo.reset()
    graphs = []
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    compiled = torch.compile(model, backend=lambda graph, inputs: graphs.append(graph) or graph.forward)
    with oomscope.profile(modules=True) as peaks:
        for _ in range(3):
            compiled(torch.ones(4, 8)).sum().backward()
    assert len(graphs) == 1 and peaks.modules[0]["kept_bytes"] > 0


def test_gradients_of_torch_func_go_through(fresh):
    model = torch.nn.Linear(8, 1)

    def loss(weights, x):
        return torch.func.functional_call(model, weights, (x,)).sum()

    with oomscope.profile(modules=True):
        torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(dict(model.named_parameters()), torch.randn(5, 8))


def test_a_pass_without_gradients_does_not_hide_what_was_kept(fresh):
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh())
    with oomscope.profile(modules=True) as peaks:
        model(torch.ones(8, 64)).sum().backward()
        with torch.no_grad():
            model(torch.ones(8, 64))
    assert {row["name"]: row["kept_bytes"] for row in peaks.modules} == {"0": 8 * 64 * 4, "1": 8 * 256 * 4, "Sequential": 0}


def test_modules_of_a_failing_pass_stand_beside_the_snapshot(silent_card, in_folder):
    from oomscope import _install
    oomscope.install("kept")
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh())
    with oomscope.profile(modules=True):
        model(torch.ones(512, 64))
        _install.watcher.observe(0, 1 << 30, 24 << 30, 1 << 20)
    marks = json.loads(next((in_folder / "kept").rglob("oom.pickle.marks.json")).read_text())
    assert {row["name"] for row in marks["modules"] if row["kept_bytes"]} == {"0", "1"}


def test_results_show_themselves(counters):
    with oomscope.measure("generator") as section:
        counters.reach(1 << 20)
    assert "peak allocated  1.00 MiB" in repr(section) and "<td>1.00 MiB</td>" in section._repr_html_()
    with oomscope.profile() as peaks:
        train(counters, 1)
    assert repr(peaks) == str(peaks)


def test_modules_change_no_gradient(fresh):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    batch = torch.randn(4, 8)
    model(batch).sum().backward()
    before = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with oomscope.profile(modules=True):
        model(batch).sum().backward()
    assert all(torch.equal(a, p.grad) for a, p in zip(before, model.parameters()))
    assert not torch.nn.modules.module._global_forward_hooks


def test_measure_reports_one_section(counters, capfd):
    with oomscope.measure("generator") as section:
        counters.reach(700)
        counters.live = 50
    assert (section.allocated, section.reserved, section.grew) == (700, 1400, 50)
    assert "generator: peak allocated 700 B" in capfd.readouterr().err


def test_baseline_is_saved_first_and_compared_then(counters, in_folder, monkeypatch, capfd):
    monkeypatch.setenv("OOMSCOPE_STORE", str(in_folder / "store.sqlite"))
    with oomscope.profile() as peaks:
        train(counters, 2)
    assert peaks.baseline("nightly", "peaks.json") == 0 and "Saved as baseline" in capfd.readouterr().err
    assert peaks.baseline("nightly", "peaks.json") == 0 and "No worse than baseline" in capfd.readouterr().err
    next(iter(peaks._parts.values()))["allocated"] += 100 << 20
    assert peaks.baseline("nightly", "peaks.json") == 1 and "Worse than baseline" in capfd.readouterr().err
    assert {path.name for path in in_folder.iterdir()} == {"store.sqlite", "peaks.json"}


@pytest.mark.slow
def test_a_script_with_memory_baseline(in_folder):
    script = """
        import argparse, torch, oomscope
        oomscope.start(oomscope.add_arguments(argparse.ArgumentParser()).parse_args(), "kept")
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], 0.1)
        for _ in range(2):
            weight.sum().backward()
            optimizer.step()
    """
    (in_folder / "train.py").write_text(textwrap.dedent(script))
    said = []

    def run():
        return subprocess.run([sys.executable, "train.py", "--profile-memory", "2", "--memory-baseline", "nightly"],
                              capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "HOME": str(in_folder)})

    for _ in range(2):
        done = run()
        assert done.returncode == 0, done.stderr
        said.append(done.stderr)
    assert "peaks of 2 step(s)" in said[0] and "Saved as baseline" in said[0] and "No worse than baseline" in said[1]
    assert {path.name for path in in_folder.iterdir()} == {"train.py", "kept"}
    assert {path.name for path in (in_folder / "kept").iterdir()} == {"peaks.json", "baselines.sqlite"}
    (in_folder / "train.py").write_text(textwrap.dedent(script) + "raise RuntimeError('a failure')")
    done = run()
    assert done.returncode == 1 and "it is not compared with baseline nightly" in done.stderr


@pytest.mark.parametrize("steps", [0, -1, "3", 2.5])
def test_steps_that_make_no_sense_are_an_error_at_once(steps):
    with pytest.raises(ValueError, match="a whole number"):
        oomscope.profile(steps=steps)


@pytest.mark.parametrize("words,expected", [
    (["--profile-memory"], (3, False, None)), (["--profile_memory", "5"], (5, False, None)),
    (["--debug_memory", "--memory-baseline", "nightly"], (None, True, "nightly")), ([], (None, False, None))])
def test_arguments_with_dashes_and_underscores(words, expected):
    args = oomscope.add_arguments(argparse.ArgumentParser()).parse_args(words)
    assert (args.profile_memory, args.debug_memory, args.memory_baseline) == expected


def test_debug_memory_says_what_is_there_and_what_the_second_step_adds(counters, in_folder, monkeypatch, capfd):
    class Cuda:
        mem_get_info = staticmethod(lambda: (1 << 30, 24 << 30))
        current_device = staticmethod(lambda: 0)

    class Adam(Optimizer):
        def step(self, closure=None):
            counters.live += 70
            return super().step(closure)

    monkeypatch.setattr(_torch, "snapshot", lambda: (DEMO.read_bytes(), True))
    monkeypatch.setattr(_torch, "cuda", lambda: Cuda)
    oomscope.start(oomscope.add_arguments(argparse.ArgumentParser()).parse_args(["--debug-memory"]))
    Optimizer.card = counters
    run_step(counters, Adam([torch.nn.Parameter(torch.ones(4))], 0.1))
    printed = capfd.readouterr().err
    assert "it reached 200 B in forward and backward, 300 B in the optimizer" in printed
    assert "adds 70 B of optimizer state" in printed and "about 300 B, on a card of 24.00 GiB" in printed
    assert "Live memory by what it is" in printed and "optimizer state" in printed.split("Live memory")[1]


def run_step(card, optimizer, inside=None):
    """One step that reaches 100 in forward, 200 in backward and 300 in the optimizer."""
    loss = Model(card)(torch.ones(2, 4)).sum()
    if inside is not None:
        inside()
    card.reach(200)
    loss.backward()
    optimizer.step()


def optimizer_on(card):
    Optimizer.card = card
    return Optimizer([torch.nn.Parameter(torch.ones(4))], 0.1)


def phases_of(step):
    return {name: part["allocated"] for name, part in step["phases"].items() if part["allocated"]}


def test_all_who_measure_at_once_have_their_own_peaks(counters, capfd):
    first_step = _options.FirstStep()
    first_step.start()
    with oomscope.profile(name="outer") as outer, oomscope.profile(steps=1, name="inner") as inner:
        with oomscope.measure("long") as long:
            with oomscope.measure("short") as short:
                counters.reach(50)
            run_step(counters, optimizer_on(counters))
        counters.reach(900)
    assert (short.allocated, long.allocated) == (50, 300)
    assert inner.peak["allocated"] == 300 and outer.peak["allocated"] == 900
    assert phases_of(inner.steps[0]) == {"other": 50, "forward": 100, "backward": 200, "optimizer step": 300}
    assert "it reached 200 B in forward and backward, 300 B in the optimizer" in capfd.readouterr().err
    assert not _meter.Gauge._open


def test_backward_inside_a_closure_is_backward(counters):
    weights = torch.nn.Parameter(torch.ones(4))
    for make in (torch.optim.SGD, torch.optim.LBFGS):
        optimizer = make([weights], 0.1)

        def closure():
            loss = Model(counters)(weights.view(1, 4)).sum()
            counters.reach(200)
            loss.backward()
            counters.reach(250)
            return loss

        for call in (lambda: optimizer.step(closure), lambda: optimizer.step(closure=closure)):
            first_step = _options.FirstStep()
            first_step.start()
            with oomscope.profile() as peaks:
                call()
            phases = phases_of(peaks.steps[0])
            assert (phases["forward"], phases["backward"], phases.get("optimizer step", 0)) == (100, 250, 0), phases
            assert first_step.second_step_bytes == 250


def test_of_accumulated_gradients_each_backward_is_backward(counters):
    with oomscope.profile() as peaks:
        Model(counters)(torch.ones(2, 4)).sum().backward()
        counters.reach(400)
        run_step(counters, optimizer_on(counters))
    assert phases_of(peaks.steps[0]) == {"forward": 100, "backward": 400, "optimizer step": 300}


def test_a_second_training_is_seen_while_the_first_optimizer_lives(counters):
    first, second = optimizer_on(counters), optimizer_on(counters)
    for optimizer in (first, second):
        with oomscope.profile(steps=3) as peaks:
            for _ in range(5):
                run_step(counters, optimizer)
        assert len(peaks.steps) == 3


def test_epochs_stand_beside_the_phases_and_other_marks_are_phases(counters):
    def generates():
        with oomscope.mark("generate"):
            counters.reach(5000)

    optimizer = optimizer_on(counters)
    with oomscope.profile() as peaks:
        for epoch in range(2):
            oomscope.mark(f"epoch {epoch}")
            run_step(counters, optimizer, generates if epoch else None)
            with oomscope.mark("validation"), torch.no_grad():
                Model(counters)(torch.ones(2, 4))
        oomscope.mark(None)
    usual = {"forward": 100, "backward": 200, "optimizer step": 300}
    assert [step["mark"] for step in peaks.steps] == ["epoch 0", "epoch 1"]
    assert phases_of(peaks.steps[0]) == {**usual, "validation": 100}, "it came after the step"
    assert phases_of(peaks.steps[1]) == {**usual, "validation": 100, "generate": 5000}


class Interrupted(torch.nn.Module):
    def __init__(self, what):
        super().__init__()
        self.what, self.inner = what, torch.nn.Linear(4, 4)

    def forward(self, x):
        self.what()
        return self.inner(x)


def no_hooks_of_autograd():
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)  # torch 2.2 on
    return top is None or top(True) is None


def test_an_interrupt_or_stop_inside_a_forward_leaves_no_hooks(fresh):
    def interrupts():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), oomscope.profile(modules=True):
        torch.nn.Sequential(torch.nn.Linear(4, 4), Interrupted(interrupts))(torch.ones(1, 4))
    assert no_hooks_of_autograd()
    peaks = oomscope.profile(modules=True)
    peaks.start()
    Interrupted(peaks.stop)(torch.ones(1, 4)).sum().backward()
    assert no_hooks_of_autograd()


def test_a_row_of_modules_is_of_one_pass(fresh):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
    with oomscope.profile(modules=True) as peaks:
        for rows in (8, 2):
            model(torch.ones(rows, 4, requires_grad=True)).sum().backward()
    tanh = next(row for row in peaks.modules if row["name"] == "1")
    assert tanh["kept_bytes"] == 8 * 4 * 4 and tanh["largest"] == [[8, 4], "float32"]
    assert tanh["inputs"] == tanh["outputs"] == [{"shape": [8, 4], "dtype": "float32"}]
