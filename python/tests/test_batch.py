"""find_batch_size against bisection by hand, and what it leaves behind: nothing. The CPU plays a card of fixed size."""
import collections
import random
import types

import numpy
import pytest
import torch

import oomscope
from oomscope import _marks

LIMIT = 40_000  # bytes of a batch that the played card holds


def needs(n, each):
    if n * each > LIMIT:
        raise RuntimeError(f"CUDA out of memory. Tried to allocate {n * each} bytes.")


def linear():
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.AdamW(model.parameters())

    def step(n):
        needs(n, 8 * 4)
        model(torch.randn(n, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return step, model, optimizer


def with_batch_norm():
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.5))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)

    def step(n):
        needs(n, 333)
        model(torch.randn(max(n, 2), 4)).sum().backward()
        optimizer.step()
        schedule.step()
    return step, model, optimizer


def second_step_is_larger():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())

    def step(n):
        needs(n, 100 + (57 if optimizer.state else 0))
        model(torch.randn(n, 2)).sum().backward()
        optimizer.step()
    return step, model, optimizer


def by_hand(make):
    """Each size in a fresh model, two steps, plain bisection between what fits and what does not."""
    def fits(n):
        step, _, _ = make()
        try:
            step(n)
            step(n)
            return True
        except RuntimeError:
            return False

    low, high = 0, LIMIT
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def state_of(model, optimizer):
    tensors = [t.clone() for t in (*model.parameters(), *model.buffers())]
    gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    states = [{k: v.clone() if hasattr(v, "clone") else v for k, v in s.items()} for s in optimizer.state.values()]
    groups = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    return tensors, gradients, states, groups, random.getstate(), torch.get_rng_state()


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


@pytest.mark.parametrize("make", [linear, with_batch_norm, second_step_is_larger])
@pytest.mark.parametrize("warm", [False, True])
def test_equals_bisection_by_hand_and_leaves_nothing(make, warm):
    step, model, optimizer = make()
    if warm:
        step(3)
    before = state_of(model, optimizer)
    pointers = [p.data_ptr() for p in model.parameters()]
    found = oomscope.find_batch_size(step, 4)
    assert same(before, state_of(model, optimizer)) and pointers == [p.data_ptr() for p in model.parameters()]
    if not warm:
        assert found == by_hand(make)


def test_what_state_names_is_put_back_too():
    class Trainer:
        def __init__(self):
            self.inner, self.model, self.optimizer = linear()
            self.steps = 0

        def state_dict(self):
            return {"steps": self.steps}

        def load_state_dict(self, state):
            self.steps = state["steps"]

        def train(self, n):
            self.steps += 1
            self.inner(n)

    trainer = Trainer()
    before = state_of(trainer.model, trainer.optimizer)
    oomscope.find_batch_size(trainer.train, most=64, state=[trainer])
    assert trainer.steps == 0 and same(before, state_of(trainer.model, trainer.optimizer))


def test_weights_of_no_module_are_put_back():
    weights = {"first": torch.randn(8, 4, requires_grad=True), "mean": torch.zeros(4)}

    def step(n):
        needs(n, 100)
        out = torch.randn(n, 8) @ weights["first"]
        out.sum().backward()
        with torch.no_grad():
            weights["first"] -= weights["first"].grad
            weights["mean"] += out.mean(0)

    before = {name: value.detach().clone() for name, value in weights.items()}
    assert oomscope.find_batch_size(step, state=[weights["mean"]]) == LIMIT // 100
    assert all(torch.equal(weights[name], before[name]) for name in before) and weights["first"].grad is None


class Slotted:
    __slots__ = ("parts",)

    def __init__(self, *parts):
        self.parts = {"deep": {"er": [{"still": parts}]}}

    def train(self, n):
        def nested():
            shop.step(n)
        nested()


shop = types.ModuleType("shop")


def test_state_is_found_in_slots_modules_nested_functions_and_deep_containers():
    shop.step, model, optimizer = linear()
    deep, deep_model, deep_optimizer = with_batch_norm()
    before = state_of(model, optimizer), state_of(deep_model, deep_optimizer)
    trainer = Slotted(deep)

    def step(n):
        trainer.train(n)
        trainer.parts["deep"]["er"][0]["still"][0](n)

    oomscope.find_batch_size(step, most=64)
    assert same(before, (state_of(model, optimizer), state_of(deep_model, deep_optimizer)))


def test_generators_that_state_names_are_put_back():
    generators = torch.Generator(), numpy.random.default_rng(0), numpy.random.RandomState(0), random.Random(0)

    def draws(n):
        return [torch.randn(n, generator=generators[0]).tolist(), *(each.random(n).tolist() for each in generators[1:3]),
                generators[3].random()]

    before = [generators[0].get_state(), generators[1].bit_generator.state, generators[3].getstate()]
    oomscope.find_batch_size(draws, most=8, state=generators)
    assert same(before, [generators[0].get_state(), generators[1].bit_generator.state, generators[3].getstate()])
    assert generators[2].random() == numpy.random.RandomState(0).random()


def test_modules_without_memory_are_no_hindrance_and_sizes_that_make_no_sense_are_errors():
    kept = torch.nn.LazyLinear(2), torch.nn.Linear(2, 2, device="meta")
    assert oomscope.find_batch_size(lambda n: None, most=2) == 2 and kept
    for wrong in ({"start": 0}, {"start": "4"}, {"start": 2.5}, {"steps": -1}, {"start": 4, "most": 3}):
        with pytest.raises(ValueError, match="a whole number"):
            oomscope.find_batch_size(lambda n: None, **wrong)


def test_static_input_keeps_types_and_memory_format_and_ties_no_graph():
    load = oomscope.static_input(device="cpu")
    ordered = load(collections.OrderedDict(image=torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last)))
    assert type(ordered) is collections.OrderedDict
    assert ordered["image"].is_contiguous(memory_format=torch.channels_last)
    batch = collections.UserDict(ids=torch.ones(3, requires_grad=True))
    loaded = load(batch)
    assert type(loaded) is collections.UserDict and not loaded["ids"].requires_grad and loaded["ids"] is not batch["ids"]
    assert torch.equal(load(torch.arange(6).view(2, 3).t()), torch.arange(6).view(2, 3).t())


def test_none_fits_and_all_fit():
    step, _, _ = linear()
    assert oomscope.find_batch_size(lambda n: step(n + LIMIT)) == 0
    assert oomscope.find_batch_size(lambda n: None, most=100) == 100


def test_start_too_large_is_bisected_down():
    step, _, _ = linear()
    assert oomscope.find_batch_size(step, 20_000) == by_hand(linear)


def test_other_errors_are_raised_and_the_state_is_back():
    step, model, optimizer = linear()
    before = state_of(model, optimizer)

    def breaks(n):
        step(n)
        raise ValueError("not about memory")

    with pytest.raises(ValueError, match="not about memory"):
        oomscope.find_batch_size(breaks)
    assert same(before, state_of(model, optimizer)) and _marks.progress.paused == 0


def test_static_input_reuses_one_buffer_and_takes_nested_batches():
    load = oomscope.static_input(device="cpu")
    first = load({"ids": torch.arange(6).view(2, 3), "pair": (torch.ones(4), "text")})
    address = first["ids"].data_ptr()
    assert torch.equal(first["ids"], torch.arange(6).view(2, 3)) and first["pair"][1] == "text"
    second = load({"ids": torch.arange(4).view(1, 4), "pair": (torch.zeros(2), "text")})
    assert second["ids"].data_ptr() == address and second["ids"].tolist() == [[0, 1, 2, 3]]
    larger = load({"ids": torch.arange(9), "pair": (torch.zeros(2), "text")})
    assert larger["ids"].tolist() == list(range(9))
