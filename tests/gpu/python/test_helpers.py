"""Profile, modules, the second step's prediction, find_batch_size and free on a card, to the byte."""
import gc

import pytest
import torch

import oomscope
from oomscope import _install, _options

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def installed(tmp_path):
    """Under a limit of 3 GiB and with the watcher on, as in a job."""
    gc.collect()
    torch.cuda.empty_cache()
    oomscope.install(tmp_path / "kept")
    torch.cuda.set_per_process_memory_fraction((3 << 30) / torch.cuda.mem_get_info()[1])
    yield
    assert not _install.watcher.ooms, "find_batch_size's failures are its own"
    torch.cuda.set_per_process_memory_fraction(1.0)


def mlp(width=1024, depth=4):
    layers = [torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))
              for _ in range(depth)]
    return torch.nn.Sequential(*layers).cuda()


def workload(kind):
    """(step, model, optimizer): plain, with batch norm and AMP, with gradients that stay."""
    if kind == "conv":
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(),
                                    torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.AdaptiveAvgPool2d(1)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

        def step(n):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(torch.randn(n, 3, 64, 64, device="cuda")).float().sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    else:
        model = mlp()
        optimizer = torch.optim.AdamW(model.parameters())

        def step(n):
            model(torch.randn(n, 1024, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=kind == "mlp")
    return step, model, optimizer


def by_hand(kind, around):
    """Each size with a fresh model and two steps, between half and twice the answer."""
    def fits(n):
        step, model, optimizer = workload(kind)
        try:
            step(n)
            step(n)
            return True
        except torch.cuda.OutOfMemoryError:
            return False

    _install.progress.paused += 1
    low, high = max(around // 2, 1), around * 2
    while high - low > 1:
        gc.collect()
        torch.cuda.empty_cache()
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    _install.progress.paused -= 1
    return low


@pytest.mark.parametrize("kind", ["mlp", "mlp_grads_stay", "conv"])
def test_find_batch_size_equals_bisection_and_gives_all_memory_back(kind):
    step, model, optimizer = workload(kind)
    torch.randn(1, device="cuda")
    gc.collect()
    torch.cuda.empty_cache()
    # cuBLAS takes its workspace at the first product; it is the library's and stays.
    model(torch.randn(*((2, 3, 64, 64) if kind == "conv" else (2, 1024)), device="cuda")).sum().backward()
    optimizer.zero_grad(set_to_none=True)
    with torch.no_grad():
        before_weights = [p.clone().cpu() for p in model.parameters()]
    gc.collect()
    torch.cuda.empty_cache()
    before, random_state = torch.cuda.memory_allocated(), torch.cuda.get_rng_state()
    found = oomscope.find_batch_size(step, 16)
    after = torch.cuda.memory_allocated()
    assert torch.equal(random_state, torch.cuda.get_rng_state())
    assert all(torch.equal(a, p.cpu()) for a, p in zip(before_weights, model.parameters()))
    assert not optimizer.state and all(p.grad is None for p in model.parameters())
    del step, model, optimizer
    hand = by_hand(kind, found)
    print(f"\nfind_batch_size {kind}: {found}, by hand {hand}; memory {before} -> {after}")
    assert after == before and found == hand


def test_profile_reads_peaks_by_phase():
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    with oomscope.profile(steps=3) as peaks:
        for _ in range(3):
            model(torch.randn(2048, 1024, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    print("\n" + str(peaks))
    assert len(peaks.steps) == 3
    first, second = (step["phases"] for step in peaks.steps[:2])
    assert 0 < first["forward"]["allocated"] < first["backward"]["allocated"]
    assert second["forward"]["allocated"] > first["forward"]["allocated"], "the optimizer's state came"


def test_modules_keep_what_the_allocator_says():
    model = mlp(depth=3)
    batch = torch.randn(4096, 1024, device="cuda")
    model(batch).sum().backward()
    model.zero_grad()
    gc.collect()
    before = torch.cuda.memory_allocated()
    with oomscope.profile(modules=True) as peaks:
        out = model(batch)
    held = torch.cuda.memory_allocated() - before
    kept = sum(row["kept_bytes"] for row in peaks.modules)
    print(f"\nmodules keep {kept}, allocator {held}: the batch is {batch.nbytes}, the result {out.nbytes}")
    assert kept == held - out.nbytes + batch.nbytes
    out.sum().backward()
    assert max(row["peak_bytes"] for row in peaks.modules) > 0


def test_the_second_step_is_as_debug_memory_says(capfd):
    model = mlp(width=2048)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    watch = _options.FirstStep()
    watch.start()
    for step in range(2):
        torch.cuda.reset_peak_memory_stats()
        model(torch.randn(2048, 2048, device="cuda")).sum().backward()
        reached = torch.cuda.max_memory_allocated()
        optimizer.step()
        optimizer.zero_grad()
    said = capfd.readouterr().err
    print(f"\n{said}\nthe second step reached {reached / 2**20:.2f} MiB in forward and backward")
    assert abs(watch.second_step_bytes - reached) / reached < 0.01
    assert "of optimizer state to forward and backward" in said and "Live memory by what it is" in said


def test_free_returns_the_cards_memory():
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    kept = {"weights": model[0][0].weight}
    report = oomscope.free("model", "optimizer")
    print("\n" + str(report))
    assert report.freed > 300 << 20
    assert report.remaining[0]["bytes"] == kept["weights"].nbytes
    assert "kept" in "".join(report.remaining[0]["holders"]) or "local" in "".join(report.remaining[0]["holders"])


def test_measure_and_static_input():
    with oomscope.measure("one tensor") as section:
        kept = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
    assert section.grew == 100 << 20
    load = oomscope.static_input()
    addresses = {load(torch.randn(1000, 100)).data_ptr() for _ in range(5)}
    assert len(addresses) == 1 and kept.numel()
